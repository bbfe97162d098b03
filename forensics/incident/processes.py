"""Which rank a process is: from global ranks and indices on a node to the tags of the log.

torch numbers processes over all nodes (`[rank5]:`), the launcher numbers the schedulers that it
started (`Rank 5 scheduler died`, `scheduler_5`), SGLang prints tags (`TP5`, `DP0 TP5 EP5`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from forensics.incident.model import Run

_SCHEDULER = re.compile(r"^scheduler_(\d+)$")
_PART = re.compile(r"([A-Z][A-Z_]*)(\d+)")


def parts(tag: str) -> dict[str, int]:
    """The numbers of a tag by name: `{"DP": 0, "TP": 5}`."""
    return {name: int(number) for name, number in _PART.findall(tag)}


def flag_number(run: Run, source: int, name: str, default: int = 1) -> int:
    """A whole-number flag of the launch of one source."""
    value = run.launch_of(source).number(name)
    return int(value) if value is not None and value >= 1 else default


def global_rank(run: Run, source: int, tag: str) -> int | None:
    """The number that torch gives to a rank; None where replicas number theirs alike."""
    numbers = parts(tag)
    if "TP" not in numbers:
        return numbers.get("PP")
    if "DP" in numbers and not _attention(run, source) and len(_replicas(run, source)) > 1:
        return None
    return numbers.get("PP", 0) * flag_number(run, source, "tp_size") + numbers["TP"]


def _attention(run: Run, source: int) -> bool:
    return bool(run.launch_of(source).get("enable_dp_attention"))


def _replicas(run: Run, source: int) -> set[int]:
    found = (parts(tag).get("DP", 0) for place, tag in run.ranks if place == source)
    return set(found)


def tag_of_global(run: Run, source: int, number: int) -> str | None:
    """The tag of a process that torch calls `rank{number}`, seen or built like those seen."""
    tags = [tag for place, tag in run.ranks if place == source]
    for tag in tags:
        if global_rank(run, source, tag) == number:
            return tag
    return _alike(tags, number) if flag_number(run, source, "pp_size") == 1 else None


def tag_of_index(run: Run, source: int, index: int) -> str | None:
    """The tag of the scheduler that the launcher of a node started as number `index`."""
    nodes = flag_number(run, source, "nnodes")
    here = max(flag_number(run, source, "tp_size") // nodes, 1)
    offset = int(run.launch_of(source).number("node_rank") or 0) * here
    tags = sorted({tag for place, tag in run.ranks if place == source}, key=_order)
    if any(set(parts(tag)) == {"DP"} for tag in tags):
        return next((tag for tag in tags if parts(tag).get("DP") == index), None)
    return tag_of_global(run, source, offset + index)


def tag_of_dead(run: Run, source: int, fields: Mapping[str, object]) -> str | None:
    """The rank of a scheduler that the launcher reports dead (`index`, or `scheduler_5`)."""
    index, name = fields.get("index"), str(fields.get("process_name") or "")
    if index is None and (found := _SCHEDULER.search(name)):
        index = int(found[1])
    return tag_of_index(run, source, index) if isinstance(index, int) else None


def _alike(tags: Iterable[str], number: int) -> str | None:
    """A tag of the form of the others, where all their numbers go together."""
    forms = set()
    for tag in tags:
        found = parts(tag)
        if "TP" not in found or len(set(found.values())) != 1:
            return None
        forms.add(tuple(found))
    if len(forms) != 1:
        return None
    return " ".join(f"{name}{number}" for name in forms.pop())


def _order(tag: str) -> list[int]:
    return list(parts(tag).values())


def world_size(run: Run, source: int) -> int | None:
    """Processes of the process group, over all nodes; None if nothing tells."""
    launch = run.launch_of(source)
    if (size := launch.number("tp_size")) is not None:
        return int(size) * flag_number(run, source, "pp_size")
    peers = [e.number("expected") for e in run.of("gloo_connected") if e.source == source]
    most = max((int(peer) for peer in peers if peer is not None), default=0)
    return most + 1 if most else None


def local_ranks(run: Run, source: int) -> list[int]:
    """Global ranks of the processes that a source's node should run."""
    world = world_size(run, source)
    if world is None:
        known = (global_rank(run, place, tag) for place, tag in run.ranks if place == source)
        return sorted({number for number in known if number is not None})
    nodes = flag_number(run, source, "nnodes")
    here = max(world // nodes, 1)
    first = int(run.launch_of(source).number("node_rank") or 0) * here
    return list(range(first, first + here))


def name_processes(run: Run) -> None:
    """Give their rank to records of C++ and torch that only carry a global rank."""
    for event in run.events:
        number = event.fields.get("global_rank")
        if event.rank is not None or not isinstance(number, int):
            continue
        tags = [tag for place, tag in run.ranks if place == event.source]
        fitting = [tag for tag in tags if global_rank(run, event.source, tag) == number]
        if len(fitting) == 1:
            facts = run.ranks[(event.source, fitting[0])]
            before = [other.phase for other in facts.events if other.line < event.line]
            event.rank, event.phase = fitting[0], before[-1] if before else event.phase
            facts.events.append(event)
            facts.events.sort(key=lambda other: other.line)
        elif not fitting:
            event.rank = tag_of_global(run, event.source, number)
