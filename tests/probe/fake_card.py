"""A GPU that only counts: what is held, and what capture takes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from forensics.probe.model import Geometry
from forensics.probe.probing import OutOfMemory


@dataclass
class FakeCard:
    total_gib: float = 139.8
    context_gib: float = 0.5
    stand_in_gib: float = 1.6
    first_gib: float = 0.235
    per_graph_gib: float = 0.0013
    transient_gib_per_batch: float = 0.00024
    name: str = "Counting GPU"
    torch: str = "none"
    taken_gib: float = 0.0
    did: list[str] = field(default_factory=list)
    _vocab: int = 0
    _largest: int = 0

    def free_gib(self, *, emptied: bool = True) -> float:
        return self.total_gib - self.context_gib - self.taken_gib

    def _take(self, gib: float) -> None:
        free = self.free_gib()
        if gib > free:
            text = f"CUDA out of memory. Tried to allocate {gib:.2f} GiB."
            raise OutOfMemory(text, gib, free)
        self.taken_gib += gib

    def hold(self, gib: float, pieces: int = 1) -> None:
        self.did.append("hold")
        self._take(gib)

    def stand_in(self, geometry: Geometry) -> float:
        self.did.append("stand-in")
        self._vocab, self._largest = geometry.vocab, max(geometry.batch_sizes)
        self._take(self.stand_in_gib)
        return self.stand_in_gib

    def buffers(self, attention_gib: float) -> None:
        self.did.append("buffers")
        self._take(attention_gib)
        self._take(self._largest * self._vocab * 4 / 2**30)

    def capture(self, batch: int) -> None:
        self.did.append(f"capture {batch}")
        eager = batch * self.transient_gib_per_batch
        self._take(eager)
        self.taken_gib -= eager
        self._take(self.first_gib if batch == self._largest else self.per_graph_gib)
