"""The plan of a reproduction, what its trials gave, and the verdict; published as
`reproduction.json`.

A plan is fixed before anything runs: every trial says beforehand what is expected of it and what
decides it. Fields may be added within a schema version; those here keep their names and meanings.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from forensics.findings import Model

SCHEMA_VERSION = 1
"""Raised when a field changes its name or meaning."""

TrialRole = Literal["control", "fix", "confirmation", "search"]
Word = Literal[
    "confirmed",
    "fix-holds",
    "not-confirmed",
    "different-failure",
    "not-reproduced",
    "inconclusive",
]
"""The verdict, in fixed words."""

Goal = Literal["capture", "ready", "health", "generate", "load"]
"""How far a trial must come to pass: all graphs captured, ready, or ready and a probe answered."""

Weight = Literal["blocking", "matters", "minor"]
"""Of a difference: the trial cannot run here, its result may not carry over, or worth knowing."""

EXIT_CODES: dict[Word, int] = {
    "confirmed": 0,
    "fix-holds": 0,
    "not-confirmed": 4,
    "different-failure": 4,
    "not-reproduced": 5,
    "inconclusive": 5,
}


AGAIN = ("interrupted", "not-started")
"""Outcomes that say nothing about the launch: on resuming these trials run again."""


class Change(Model):
    """One thing that a launch has different from the control."""

    kind: Literal["flag", "env", "package", "action"]
    name: str
    """`ServerArgs` field, variable or package."""
    from_: Any = Field(default=None, validation_alias="from", serialization_alias="from")
    to: Any = None
    """None: back to the default, or unset."""
    runnable: bool = True
    """Whether the tool makes the change itself; a package or an action is left to the user."""


class Failure(Model):
    """A failure as the rules name it, to be held against another one."""

    rule: str
    class_: str = Field(validation_alias="class", serialization_alias="class")
    phase: str
    """Phase in which it failed."""
    title: str
    rank: str | None = None
    source: str | None = None
    line: int | None = None
    text: str | None = None
    """The first line of the cause, secrets removed."""


class Figures(Model):
    """Memory figures of a launch, predicted or measured; of the rank that has least. None where
    unknown."""

    free_gib_at_capture: float | None = None
    """Free memory at the first capture begin, GiB."""
    free_gib_after_capture: float | None = None
    capture_gib: float | None = None
    """What capture took and kept, GiB."""
    prefill_graphs_gib: float | None = None
    """Of it for prefill graphs, which some releases drop when little memory is free."""
    capture_need_gib: float | None = None
    """What capture needed from its begin on: its peak as far as the log shows it; of a capture
    that failed for want of memory a lower bound, the refused request included."""
    baseline_gib: float | None = None
    """Free memory before weights, of which the fraction is a fraction."""
    after_weights_gib: float | None = None
    """Free memory after weights, from which the pool is sized."""
    kv_pool_gib: float | None = None
    kv_tokens: int | None = None
    context_len: int | None = None
    """On which the table from request to KV slots depends."""
    rank: str | None = None


class SearchAsk(Model):
    """A numeric flag and what is asked of its best value: the value nearest to `bad` that holds."""

    name: str
    """`ServerArgs` field, as the launch's release names it."""
    good: float | None = None
    """A value that is known or believed to hold; None: to be found from the ledgers."""
    bad: float | None = None
    """A value known to fail; which side of it is searched follows from `good`, lower if None."""
    whole: bool = False
    """Whole numbers only."""
    margin_gib: float = 0.0
    """Free memory that must be left when all graphs are captured, GiB."""
    resolution: float = 0.01
    """The search ends when good and bad are within this; whole numbers: within 5 %."""
    goal: Goal = "capture"
    trials: int = 6
    """At most so many searching launches, confirmation not counted."""


class TrialPlan(Model):
    """One launch that is to be made, with what is expected of it; fixed before it runs."""

    name: str
    """`control`, `fix`, `confirmation-1`, `search-2`: also the name of its folder."""
    role: TrialRole
    command: list[str]
    """An argument list, never for a shell; transport prefix not included."""
    stands_for: list[str] = Field(default_factory=list)
    """Of a trial that is scaled down: the command of the original; else empty."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables set on top of the environment of the tool."""
    unset_env: list[str] = Field(default_factory=list)
    changes: list[Change] = Field(default_factory=list)
    """Against the control."""
    expects: Literal["fails", "passes"]
    goal: Goal = "ready"
    load: int | None = None
    """Requests of the burst, where the goal is `load`."""
    timeout_s: float = 1800.0
    """Until the launch has come to its goal or failed."""
    predicted: Figures = Field(default_factory=Figures)


class Gpu(Model):
    """A GPU of the machine at hand."""

    index: int
    name: str
    total_gib: float
    free_gib: float
    processes: list[str] = Field(default_factory=list)
    """Other processes on it: pid, name, GiB."""


class Machine(Model):
    """What the preflight found where the trials would run."""

    gpus: list[Gpu] = Field(default_factory=list)
    host_total_gib: float | None = None
    host_free_gib: float | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    """Package to version as the launch's own Python has them; absent: not installed."""
    python: str | None = None
    """The interpreter that the launch would use."""
    notes: list[str] = Field(default_factory=list)
    """What could not be looked at, and why."""


class Difference(Model):
    """Something that is not here as it was where the log was written."""

    what: str
    in_log: str | None = None
    here: str | None = None
    weight: Weight
    because: str
    """One sentence: what it does to the result."""


class Consent(Model):
    """Foreign code that a launch would execute; it needs a consent of its own."""

    what: str
    """The flag and its value, or the command."""
    because: str


class ReproductionPlan(Model):
    """All that is fixed before the first launch."""

    logs: list[str]
    """As they were given; empty for a plan from `--launch` alone."""
    run: int | None = None
    failure: Failure | None = None
    """What the control must show again; None where there is no log of it."""
    trials: list[TrialPlan]
    diff: list[str] = Field(default_factory=list)
    """From control to fix, as lines with `+`, `-` or a blank in front."""
    judged: list[str] = Field(default_factory=list)
    """What will be judged and when, a sentence each."""
    notes: list[str] = Field(default_factory=list)
    """Of the launch as it was rebuilt: where it is from, and what was left out."""
    machine: Machine = Field(default_factory=Machine)
    differences: list[Difference] = Field(default_factory=list)
    consents: list[Consent] = Field(default_factory=list)
    transport: list[str] = Field(default_factory=list)
    """Prefix of every command as `--on` has it; empty: here."""
    on: str | None = None
    """What `--on` named; None: here."""
    cwd: str | None = None
    """The folder in which the launches are made, by which their relative paths go; None: not kept,
    or elsewhere."""
    search: SearchAsk | None = None
    """Set: after control and fix the best value of a flag is searched; its trials are added to
    `trials` one by one, each before it runs."""
    limits: list[str] = Field(default_factory=list)
    """What these trials can not prove (a scaled-down model, another release), a sentence each."""


class TrialResult(Model):
    """What one launch came to."""

    name: str
    role: TrialRole
    command: list[str]
    """As it ran, transport included, secrets removed."""
    started_at: datetime
    ended_at: datetime
    outcome: Literal["passed", "failed", "timed-out", "interrupted", "not-started"]
    phase: str
    """The phase reached; of a failed launch the phase of its root cause."""
    because: str
    """What decided it, in one sentence."""
    decided_line: int | None = None
    """The line of its log that decided."""
    failure: Failure | None = None
    status: int | None = None
    """Of the process: exit status, or minus the signal."""
    cleaned_up: bool = True
    """The whole process group is gone."""
    gpu_returned: bool | None = None
    """GPU memory is back to what was free before; None where there is no GPU to ask."""
    predicted: Figures = Field(default_factory=Figures)
    measured: Figures = Field(default_factory=Figures)
    log: str
    """Path inside the run folder."""


class Reproduction(Model):
    """`reproduction.json`: the plan, what was run, and what it says."""

    schema_version: Literal[1] = 1
    verdict: Word
    because: str
    """The verdict in one sentence, with its evidence."""
    exit_code: int
    tool: str
    """Name and version of the program."""
    created_at: datetime
    plan: ReproductionPlan
    trials: list[TrialResult] = Field(default_factory=list)
    """In the order in which they ran."""
    best: dict[str, Any] = Field(default_factory=dict)
    """Of a search: `name`, `value`, `known_good`, `known_bad`."""
    command: list[str] | None = None
    """The launch that is proven: what the user types next; None where nothing was."""
