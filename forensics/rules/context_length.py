"""A context longer than the model's own, which SGLang refuses to start with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.findings import Finding
from forensics.remedies import env, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case

_REFUSED = re.compile(
    r"context_length \((?P<asked>\d+)\) is greater than the derived context_length"
    r" \((?P<own>\d+)\)"
)
_OVERRIDE = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"


@rule(
    "context-length-refused",
    class_="not_memory",
    summary="A context longer than the model's own was asked for, and refused",
    needs="the refusal with both lengths",
)
def context_length_refused(case: Case) -> Iterator[Finding | Skip]:
    """An error from 0.4.1 on; with the variable set it is a warning, and the server starts."""
    for failure in case.run.failures:
        for raised in failure.traceback.chain if failure.traceback else []:
            if (found := _REFUSED.search(raised.message)) is None:
                continue
            asked, own = int(found["asked"]), int(found["own"])
            yield case.finding(
                "context-length-refused",
                "not_memory",
                failure.event,
                title=f"A context of {asked:,} tokens was asked for, the model's own is {own:,}",
                explanation=f"The model's configuration gives a context of {own:,} tokens, scaling "
                "of positions included. SGLang starts with a longer one only if told to.",
                evidence=case.failure_evidence(failure),
                remedies=kept(
                    flag(case.run.launch, "context_length", own, "the model's own length"),
                    env(
                        _OVERRIDE,
                        "set",
                        "starts with the longer context all the same",
                        to="1",
                        cost="positions that the model was not made for: wrong answers, or an "
                        "index error on the GPU",
                    ),
                ),
                not_helpful=["memory flags: nothing was allocated yet"],
                rank=failure.rank,
                phase=failure.phase,
                weight=FAILURE + 6,
                facts={"asked": asked, "own": own},
            )
            return
