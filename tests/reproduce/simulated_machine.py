"""A machine that keeps a ledger like a real one: enough of one to search a flag on."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forensics.reproduce.flag_values import value_in
from forensics.reproduce.model import Failure, Figures, TrialPlan, TrialResult

STEP_GIB = 0.125
"""Free memory moves in such steps: each pool tensor is rounded up to whole blocks."""
PREFILL_GIB = 4.0
"""Below this much free prefill graphs are dropped."""
T0 = datetime(2026, 3, 1, 10, 0, 0)


@dataclass
class Machine:
    """One GPU and one model; what a launch comes to follows from its flags."""

    baseline_gib: float = 139.13
    weights_gib: float = 15.0
    cell_bytes: float = 131072
    context_len: int = 131072
    workspace_gib: float = 0.14
    gib_per_batch: float = 0.00227
    fixed_gib: float = 0.03
    peak_gib: float = 0.1
    """How far capture's peak is above what it keeps."""
    prefill_gib: float = 1.6
    noise_gib: float = 0.04
    seed: int = 0
    launches: list[TrialPlan] = field(default_factory=list)

    def run(self, trial: TrialPlan) -> TrialResult:
        """Launch, as far as the end of capture."""
        self.launches.append(trial)
        figures, failure = self.outcome(
            value_in(trial.command, "mem_fraction_static") or 0.9,
            value_in(trial.command, "cuda_graph_max_bs_decode") or 256,
            value_in(trial.command, "max_running_requests"),
        )
        return TrialResult(
            name=trial.name,
            role=trial.role,
            command=trial.command,
            started_at=T0,
            ended_at=T0 + timedelta(seconds=60),
            outcome="failed" if failure else "passed",
            phase=failure.phase if failure else "warmup",
            because="simulated",
            failure=failure,
            measured=figures,
            log=f"{trial.name}/server.log",
        )

    def outcome(
        self, fraction: float, batch: float, running: float | None = None
    ) -> tuple[Figures, Failure | None]:
        dice = random.Random(f"{self.seed}/{fraction:.4f}/{batch:.0f}/{running}")
        after = self.baseline_gib - self.weights_gib
        pool = after - self.baseline_gib * (1 - fraction)
        base = Figures(baseline_gib=round(self.baseline_gib, 2), after_weights_gib=round(after, 2))
        if pool <= 0:
            return base, failed("mem_fraction_too_low", "kv_pool")
        tokens = int(pool * 2**30 / self.cell_bytes)
        rows = running or min(max(tokens / self.context_len * 512, 2048), 4096)
        table = rows * (self.context_len + 4) * 4 / 2**30
        noise = dice.uniform(-self.noise_gib, self.noise_gib)
        free = self.baseline_gib * (1 - fraction) - table - self.workspace_gib + noise
        free = round(math.floor(free / STEP_GIB) * STEP_GIB, 2)
        if free < 0:
            return base, failed("activation_oom", "kv_pool")
        kept = self.fixed_gib + self.gib_per_batch * batch
        need, prefill = kept + self.peak_gib, self.prefill_gib if free >= PREFILL_GIB else 0.0
        figures = base.model_copy(
            update={
                "free_gib_at_capture": free,
                "kv_pool_gib": round(pool, 2),
                "kv_tokens": tokens,
                "context_len": self.context_len,
            }
        )
        if need > free - prefill:
            shown = dice.uniform(0.75, 0.99) * need
            figures = figures.model_copy(update={"capture_need_gib": round(max(shown, free), 2)})
            return figures, failed("graph_capture_oom", "graph_capture")
        left = round(free - prefill - kept, 2)
        update = {
            "free_gib_after_capture": left,
            "capture_gib": round(prefill + kept, 2),
            "prefill_graphs_gib": prefill,
            "capture_need_gib": round(prefill * 1.6 + kept, 2),
        }
        return figures.model_copy(update=update), None


def failed(class_: str, phase: str) -> Failure:
    return Failure(rule=class_.replace("_", "-"), class_=class_, phase=phase, title=class_)
