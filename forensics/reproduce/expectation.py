"""What is expected of the trials before they run: figures, and what will be judged, in sentences.

Facts: memory model, section 7: free memory at the first capture begin is C(f') = B (1 - f') - U,
with the request table of f' in the place of the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forensics.launch import Launch
from forensics.releases import names_of
from forensics.reproduce.choosing import Choice
from forensics.reproduce.figures import predicted, situation
from forensics.reproduce.model import Failure, Figures, Goal, TrialPlan

FRACTION, REQUESTS = "mem_fraction_static", "max_running_requests"

_BESIDE_MEMORY = frozenset(
    {
        *names_of("cuda_graph_max_bs"),
        *names_of("cuda_graph_bs"),
        *("port", "host", "nccl_port", "dist_init_addr", "log_level", "watchdog_timeout"),
        *("random_seed", "served_model_name", "api_key", "skip_server_warmup"),
    }
)
"""Fields that leave free memory at the first capture begin as it is, the fraction being typed."""
_WITHOUT_GRAPHS = frozenset({"disable_cuda_graph"})

GOAL_WORDS: dict[Goal, str] = {
    "capture": "have captured all graphs",
    "ready": "become ready",
    "health": "become ready and answer its health check",
    "generate": "become ready and answer a request",
    "load": "become ready and answer a burst of requests",
}


def figures_of_control(figures: Figures, launch: Launch, baseline_gib: float | None) -> Figures:
    """What the control should show: what the log shows, on a card of another size shifted."""
    fraction = launch.number(FRACTION)
    if fraction is None or not captures(launch):
        return Figures()
    return _at(figures, fraction, fraction, _requests(launch), None, baseline_gib)


def figures_of_fix(
    figures: Figures, launch: Launch, choice: Choice, baseline_gib: float | None
) -> Figures:
    """What the fix should show; no figures where the change is one that the model cannot price."""
    fraction = launch.number(FRACTION)
    names = set(choice.flags)
    if fraction is None or names & _WITHOUT_GRAPHS or not captures(launch):
        return Figures()
    if not names <= _BESIDE_MEMORY | {FRACTION, REQUESTS}:
        return _advised(choice)
    to = choice.flags.get(FRACTION, fraction)
    requests = choice.flags.get(REQUESTS, _requests(launch))
    if not isinstance(to, int | float) or (requests is not None and not isinstance(requests, int)):
        return _advised(choice)
    found = _at(figures, fraction, float(to), _requests(launch), requests, baseline_gib)
    return _advised(choice) if found == Figures() else found


def captures(launch: Launch) -> bool:
    """Whether a launch captures graphs, so that there is something to predict."""
    return launch.get("device") != "cpu" and launch.get("disable_cuda_graph") is not True


def judged(
    trials: Sequence[TrialPlan], failure: Failure | None, choice: Choice | None, search: str | None
) -> list[str]:
    """What will be judged and when, a sentence for each kind of trial."""
    named = f"{failure.rule} ({failure.phase})" if failure else "a failure"
    said: list[str] = []
    for trial in trials:
        free = trial.predicted.free_gib_at_capture
        at = "" if free is None else f", with about {free:.2f} GiB free when capture begins"
        if trial.role == "control":
            as_before = " as in the log" if failure else ""
            said.append(f"control: must fail with {named}{as_before}{at}.")
        elif trial.role == "fix":
            said.append(f"fix: must {GOAL_WORDS[trial.goal]}, without {named}{at}.")
    again = sum(trial.role == "confirmation" for trial in trials)
    if again:
        said.append(f"confirmation: the fix {'once' if again == 1 else f'{again} times'} more.")
    if choice is not None and choice.merged:
        flags = " and ".join(choice.flags)
        said.append(f"The one change {choice.merged} is spelled as {flags} in this release.")
    elif choice is not None and len(choice.flags) + len(choice.env) > 1:
        said.append("Several things change at once: which of them matters is not learnt.")
    if search:
        said.append(search)
    return said


def _at(
    figures: Figures,
    fraction: float,
    to: float,
    before: int | None,
    after: int | None,
    baseline_gib: float | None,
) -> Figures:
    """The figures at another fraction, table of requests and baseline."""
    found = predicted(figures, fraction, to, before)
    here = situation(figures, fraction, before)
    free, tokens = found.free_gib_at_capture, found.kv_tokens
    if here is None or free is None:
        return found
    if after != before and after is not None and here.requests is not None and tokens:
        smaller = replace(here.requests, max_running_requests=after, typed=True)
        free += here.requests.table_gib(tokens) - smaller.table_gib(tokens)
    if baseline_gib is not None:
        more = baseline_gib - here.baseline_gib
        free += more * (1 - to)
        if tokens is not None and here.cell_bytes:
            tokens = max(int(tokens + more * to * 2**30 / here.cell_bytes), 0)
    return found.model_copy(
        update={"free_gib_at_capture": round(max(free, 0.0), 2), "kv_tokens": tokens}
    )


def _requests(launch: Launch) -> int | None:
    number = launch.number(REQUESTS)
    return None if number is None else int(number)


def _advised(choice: Choice) -> Figures:
    """The effect that the diagnosis itself promises of its remedy."""
    effect = choice.remedy.effect if choice.remedy else {}
    free = effect.get("free_gib_at_capture_scaled", effect.get("free_gib_at_capture"))
    tokens = effect.get("kv_tokens")
    return Figures(
        free_gib_at_capture=free if isinstance(free, int | float) else None,
        kv_tokens=tokens if isinstance(tokens, int) else None,
    )
