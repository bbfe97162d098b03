"""A split over ranks that does not fit the model: heads, blocks of a quantised matrix."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case

_BLOCK = re.compile(
    r"(?P<part>\d+)\s+is not divisible by\s+(?:the )?weight quantization block_[nk] ?= ?"
    r"(?P<block>\d+)"
)
_DIVIDES = re.compile(
    r"(?P<what>[\w .()]*?)\(?(?P<total>\d+)\)? (?:must|should) be divisible by "
    r"(?P<by>[\w .]*?)\(?(?P<parts>\d+)\)?|(?P<bare>\d+) is not divisible by (?P<bare_parts>\d+)",
)
_ASSERTED = re.compile(r"num_\w*heads\w* % |% (?:self\.)?(?:attn_)?tp_size == 0|% tp_size|divide\(")


@rule(
    "tp-split",
    class_="quant_config_mismatch",
    summary="The number of ranks does not divide the model's dimensions",
    needs="the refusal, with the dimension and the number",
)
def tp_split(case: Case) -> Iterator[Finding | Skip]:
    """A dimension that the ranks cannot share evenly, or in whole quantisation blocks."""
    for failure in case.run.failures:
        for raised in failure.traceback.chain if failure.traceback else []:
            code = " ".join(frame.code for frame in raised.frames[-2:])
            start = raised.message[:2_000]
            block, even = _BLOCK.search(start), _DIVIDES.search(start)
            asserted = raised.name == "AssertionError" and bool(_ASSERTED.search(code))
            if block or (even and failure.phase in ("init", "load")) or asserted:
                case.memo.setdefault("explained", set()).add(failure.line)
                said = raised.message or raised.frames[-1].code
                yield _finding(case, failure, said, block, even)
                return


def _finding(
    case: Case,
    failure: Failure,
    said: str,
    block: re.Match[str] | None,
    even: re.Match[str] | None,
) -> Finding:
    line = said.strip().split("\n")[0][:200]
    said_once = line.rstrip(".")
    what = f"blocks of {block['block']} columns" if block else "this many ranks"
    return case.finding(
        "tp-split",
        "quant_config_mismatch",
        failure.event,
        title=f"The split over ranks does not fit the model: {line}",
        explanation=f"Each rank must get an even part of every matrix, in {what}: {said_once}. "
        "Fewer ranks make wider parts; experts can be kept whole with expert parallelism.",
        evidence=case.failure_evidence(failure),
        remedies=_remedies(case, block, even),
        not_helpful=["memory flags: a dimension does not divide", "more ranks: thinner parts"],
        rank=failure.rank,
        phase=failure.phase,
        weight=FAILURE + 6,
    )


def _remedies(case: Case, block: re.Match[str] | None, even: re.Match[str] | None) -> list[Remedy]:
    launch = case.run.launch
    tp = int(launch.number("tp_size") or 0)
    fitting = _fitting(tp, block, even)
    fewer = flag(
        launch,
        "tp_size",
        fitting or "<a number that divides the dimension>",
        "the largest number of ranks whose parts come out even"
        if fitting
        else "the number of ranks must divide the dimension",
        direction="decrease",
        basis="computed" if fitting else "documented",
        cost="more memory on each rank",
    )
    whole = None
    if block and tp > 1:
        whole = flag(
            launch,
            "ep_size",
            tp,
            "experts stay whole on a rank, so that their matrices are not cut",
            cost="all-to-all between ranks",
        )
    return kept(whole, fewer) if block and not fitting else kept(fewer, whole)


def _fitting(tp: int, block: re.Match[str] | None, even: re.Match[str] | None) -> int | None:
    """The largest number of ranks below the present one that divides the dimension."""
    if block:
        size, unit = int(block["part"]) * tp, int(block["block"])
        return next((n for n in _below(tp) if size % (n * unit) == 0), None)
    if even:
        total = int(even["total"] or even["bare"])
        parts = int(even["parts"] or even["bare_parts"])
        return next((n for n in _below(parts) if total % n == 0), None)
    return None


def _below(ranks: int) -> list[int]:
    """Smaller numbers of ranks that divide the present one, largest first."""
    return [n for n in range(ranks - 1, 0, -1) if ranks % n == 0]
