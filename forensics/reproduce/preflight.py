"""The look before the plan: the machine, its differences, and the launch in its release's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from forensics.releases import table, version_key
from forensics.reproduce.consent import foreign_variables
from forensics.reproduce.differences import (
    HELD_GIB,
    OUTSIDE_GIB,
    SAME_GIB,
    There,
    differences,
    gpus_needed,
    needs_gpus,
    paths_of,
    ports_of,
)
from forensics.reproduce.machine import Asked, Found, Wrap, look
from forensics.reproduce.model import Difference
from forensics.reproduce.releases_apart import Moved, moved, rewritten
from forensics.reproduce.subject import Subject

_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(slots=True)
class Preflight:
    """What was found, and what it means for a launch."""

    subject: Subject
    """The launch in the words of the release at hand."""
    found: Found
    differences: list[Difference] = field(default_factory=list)
    baseline_gib: float | None = None
    """Free memory before weights to be expected here, where cards are of another size."""

    @property
    def is_blocked(self) -> bool:
        """Whether a difference keeps the trials from running here."""
        return any(difference.weight == "blocking" for difference in self.differences)


def preflight(
    subject: Subject,
    own_env: Mapping[str, str],
    folder: str | None = None,
    wrap: Wrap | None = None,
) -> Preflight:
    """Look at the machine and hold it against the log.

    The launch's Python is asked with the user's own variables alone: what the log sets could
    make it load code from elsewhere, and nobody has consented yet.
    """
    launch = subject.launch
    env = {**({_VISIBLE: subject.env[_VISIBLE]} if _VISIBLE in subject.env else {}), **own_env}
    what = Asked(
        paths=tuple(paths_of(launch)),
        ports=tuple(ports_of(launch)),
        near=ports_of(launch)[0],
        folder=folder if wrap is None else None,
        gpus=needs_gpus(launch),
    )
    found = look(subject.argv, env, subject.unset, what, wrap)
    there = There(
        launch,
        subject.figures,
        subject.total_gib,
        subject.failure,
        subject.release.version if _is_sure(subject) else None,
        tuple(foreign_variables(subject.env, own_env)),
    )
    changes, here = _moved(subject, found)
    return Preflight(here, found, differences(there, found, changes), _baseline(there, found))


def _is_sure(subject: Subject) -> bool:
    """Whether the log tells its release: it says so, or the dump fits one alone."""
    launch = subject.launch
    bounds = launch.release_range
    stated = launch.release or launch.versions.get("sglang")
    return bool(stated) or (bounds is not None and bounds[0] == bounds[1])


def _moved(subject: Subject, found: Found) -> tuple[list[Moved], Subject]:
    """What moved between the releases, and the launch as it is typed here."""
    version = found.machine.versions.get("sglang")
    if version is None or not any(version_key(version)):
        return [], subject
    here = table(version)
    if not _is_to_be_rewritten(subject) or here.version == subject.release.version:
        return [], subject.in_words_of(here, subject.argv)
    changes = moved(subject.argv, subject.launch, here)
    return changes, subject.in_words_of(here, rewritten(subject.argv, subject.launch, here))


def _is_to_be_rewritten(subject: Subject) -> bool:
    """Whether a command is known to be in the words of some release, and is not meant to fail for
    its words."""
    launch, failure = subject.launch, subject.failure
    known = launch.release or launch.versions.get("sglang") or launch.release_range
    return bool(known) and (failure is None or failure.rule != "refused-arguments")


def _baseline(there: There, found: Found) -> float | None:
    """The log's baseline moved by as much as the cards differ and as others hold of the fullest.

    None where cards are alike and empty.
    """
    baseline, gpus = there.figures.baseline_gib, found.machine.gpus[: gpus_needed(there.launch)]
    if baseline is None or not gpus:
        return None
    total = there.total_gib or baseline + OUTSIDE_GIB
    larger = min(gpu.total_gib for gpu in gpus) - total
    held = max(gpu.total_gib - gpu.free_gib for gpu in gpus)
    moved_by = larger if abs(larger) > SAME_GIB else 0.0
    moved_by -= held if held > HELD_GIB else 0.0
    return baseline + moved_by if moved_by else None
