"""The allocator's out-of-memory message, read clause by clause by Lark (`torch_oom.lark`).

Clauses come in any order and most are optional; sizes become GiB. The identities between the
figures hold within their printed rounding (two decimals).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache

import lark

from forensics.grammar.nested import nested_parser
from forensics.grammar.values import size_gib

_HEAD = re.compile(r"\b(?:CUDA|HIP|XPU|NPU|MUSA|MPS) out of memory\. Tried to allocate ")
_CLAUSE = re.compile(r" (?=GPU \d|Including |Of the |Process \d|with |and \d|If |\(GPU)")
_LONGEST = 4_000


@dataclass(slots=True)
class OutOfMemory:
    """An allocator message, sizes in GiB; None where the message has no such clause."""

    requested_gib: float
    backend: str = "CUDA"
    gpu: int | None = None
    total_gib: float | None = None
    free_gib: float | None = None
    in_use_gib: float | None = None
    allocated_gib: float | None = None
    reserved_unallocated_gib: float | None = None
    private_pools_gib: float | None = None
    allowed_gib: float | None = None
    processes: dict[int, float] = field(default_factory=dict)
    """Other processes on the same GPU: pid to GiB in use."""
    own_pid: int | None = None
    """Pid of the failing process, where the message lists it like any other."""

    @property
    def others_gib(self) -> float:
        """What other processes hold on this GPU, as far as the message lists them."""
        return sum(self.processes.values())

    @property
    def outside_torch_gib(self) -> float | None:
        """Context, NCCL, modules: in use by this process, but not PyTorch's."""
        if None in (self.in_use_gib, self.allocated_gib, self.reserved_unallocated_gib):
            return None
        assert self.in_use_gib is not None
        return self.in_use_gib - (self.allocated_gib or 0) - (self.reserved_unallocated_gib or 0)


@cache
def _parser() -> lark.Lark:
    return nested_parser("torch_oom")


@lru_cache(maxsize=512)
def parse_out_of_memory(text: str) -> OutOfMemory | None:
    """The allocator message inside a text, None if there is none."""
    if not (head := _HEAD.search(text)):
        return None
    message = text[head.start() : head.start() + _LONGEST].replace("\n", " ")
    while message:
        try:
            return _read(_parser().parse(message))
        except lark.exceptions.UnexpectedInput as error:
            # A log cut inside a clause: read the whole clauses before it.
            end = error.pos_in_stream if error.pos_in_stream is not None else len(message)
            last = max((c.start() for c in _CLAUSE.finditer(message, 0, max(end, 1))), default=0)
            message = message[:last]
    return None


def _read(tree: lark.Tree[lark.Token]) -> OutOfMemory:
    found = OutOfMemory(0.0)
    for clause in tree.children:
        if not isinstance(clause, lark.Tree):
            continue
        values = {
            str(part.data): str(part.children[0])
            for part in clause.children
            if isinstance(part, lark.Tree) and part.children
        }
        sizes = {
            name: size_gib(text) for name, text in values.items() if name not in ("gpu", "pid")
        }
        _take(found, str(clause.data), clause, values, sizes)
    _own_process(found)
    return found


def _take(
    found: OutOfMemory,
    clause: str,
    tree: lark.Tree[lark.Token],
    values: dict[str, str],
    sizes: dict[str, float],
) -> None:
    if clause in ("capacity", "old_body"):
        found.gpu = int(values["gpu"])
        found.total_gib, found.free_gib = sizes.get("total"), sizes.get("free")
    match clause:
        case "head":
            found.backend = str(tree.children[0])
            found.requested_gib = sizes["requested"]
        case "allowed":
            found.allowed_gib = sizes["size"]
        case "this_process":
            found.in_use_gib = sizes["size"]
        case "process":
            found.processes[int(values["pid"])] = sizes["size"]
        case "allocated":
            found.allocated_gib = sizes["size"]
        case "private_pools":
            found.private_pools_gib = sizes["size"]
        case "unallocated":
            found.reserved_unallocated_gib = sizes["size"]


def _own_process(found: OutOfMemory) -> None:
    """In containers the driver cannot match the pid: then one of "Process N" is this very one.

    It is the one that holds at least what PyTorch says it allocated and cached.
    """
    if found.in_use_gib is not None or found.allocated_gib is None:
        return
    torch = found.allocated_gib + (found.reserved_unallocated_gib or 0.0)
    own = [(used, pid) for pid, used in found.processes.items() if used >= torch - 0.02]
    if own:
        used, pid = min(own)
        found.in_use_gib, found.own_pid = used, pid
        del found.processes[pid]
