"""The whole line: text in, diagnosed incident out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from forensics.causes import judge
from forensics.diagnosis import Coverage, Diagnosis, RunReport
from forensics.events import PHASES, Event
from forensics.grammar import load
from forensics.incident import Incident, IncidentBuilder, SourceFacts
from forensics.reading import Block, InputError, Source, find_sources, read_blocks
from forensics.remedies import can_be_tried
from forensics.rules import Settings
from forensics.timeline import SourceParser, ahead

_FAILED = ("failed", "hung", "degraded")
_SHAPES = 5
"""Shapes of unknown lines that are kept for each source."""

Progress = Callable[[int, int | None], None]
"""Called with the bytes read so far and, where it is known, the bytes there are."""


class NotALog(Exception):
    """Nothing in the input was recognised as a log; the text is one line for the user."""


def analyze(
    paths: Sequence[str], settings: Settings | None = None, progress: Progress | None = None
) -> Diagnosis:
    """Read the inputs as one incident and say what they mean.

    Raises:
        InputError: an input cannot be read.
        NotALog: nothing in the input was recognised.
    """
    settings = settings or Settings()
    incident, unknown = read(paths, progress)
    if not any(source.is_log for source in incident.sources):
        raise NotALog(_nothing_recognised(incident))
    diagnosis = diagnose(incident, unknown, settings)
    for report in diagnosis.reports:
        report.reproduce = _reproduce(report, paths, len(diagnosis.reports))
    return diagnosis


def _reproduce(report: RunReport, paths: Sequence[str], runs: int) -> list[str] | None:
    """How to have a failed launch made again; what was read from a pipe cannot be read twice."""
    root, launch = report.root_cause, report.run.launch
    if root is None or report.run.outcome not in _FAILED or "-" in paths:
        return None
    if not any(can_be_tried(one, launch) for one in root.remedies) or not (
        launch.flags or launch.command
    ):
        return None
    words = ["forensics", "reproduce"]
    words += ["--run", str(report.run.number)] if runs > 1 else []
    return [*words, *(["--"] if any(path.startswith("-") for path in paths) else []), *paths]


def diagnose(incident: Incident, unknown: Counter[str], settings: Settings) -> Diagnosis:
    """What the rules say of an incident; `unknown` are the shapes of lines that no rule knows."""
    reports = [judge(run, incident, settings) for run in incident.runs]
    return Diagnosis(incident, reports, _coverage(incident, reports, unknown))


def read(paths: Sequence[str], progress: Progress | None = None) -> tuple[Incident, Counter[str]]:
    """The facts of the inputs, and the shapes of the lines that no rule knows."""
    sources, skipped = find_sources(paths)
    builder = IncidentBuilder(skipped=skipped)
    unknown: Counter[str] = Counter()
    meter = _Meter(sources, progress)
    for source in sources:
        facts = SourceFacts(source.path)
        builder.sources.append(facts)
        parser = SourceParser(source.index, load())
        notices: list[str] = []
        for block in ahead(parser, meter.counted(read_blocks(source, notices=notices), facts)):
            builder.add(source.index, parser.feed(block), parser.runs_at())
            parser.span_s = builder.span_s
        builder.add(source.index, parser.finish(), parser.runs_at())
        take_tally(facts, parser, notices)
        if facts.is_log or _of_the_system(builder.kinds(source.index)):
            unknown.update(parser.unknown)
        else:
            builder.forget(source.index)
    return builder.build(), unknown


def events(
    paths: Sequence[str], progress: Progress | None = None
) -> Iterator[tuple[Source, Event]]:
    """Every event of the inputs, routine lines included, in reading order.

    Raises:
        InputError: an input cannot be read.
    """
    sources, _ = find_sources(paths)
    meter = _Meter(sources, progress)
    for source in sources:
        parser = SourceParser(source.index, load(), lanes=False)
        facts = SourceFacts(source.path)
        for block in meter.counted(read_blocks(source, notices=[]), facts):
            for event in parser.feed(block).events:
                yield source, event
        for event in parser.finish().events:
            yield source, event


def _of_the_system(kinds: set[str]) -> bool:
    """Whether a text that is no log of SGLang tells what ended it: a kernel's log, a pod's."""
    return any(kind.startswith(("kernel_oom", "gpu_xid", "container_")) for kind in kinds)


class _Meter:
    """How far the reading is: of the bytes of all files, as far as their sizes are known."""

    def __init__(self, sources: Sequence[Source], progress: Progress | None) -> None:
        sizes = [source.size for source in sources if source.size is not None]
        self._total = sum(sizes) if len(sizes) == len(sources) else None
        self._progress = progress
        self._done = 0

    def counted(self, blocks: Iterator[Block], facts: SourceFacts) -> Iterator[Block]:
        """The blocks of one source, whose bytes are counted as they pass."""
        before = self._done
        for block in blocks:
            facts.bytes += len(block.data)
            self._done = before + (facts.bytes if block.stored is None else block.stored)
            if self._progress:
                self._progress(self._done, self._total)
            yield block


def take_tally(facts: SourceFacts, parser: SourceParser, notices: list[str]) -> None:
    """Set how much of a source was read and understood so far."""
    tally = parser.tally
    facts.lines, facts.blank_lines = tally.lines, tally.blank
    facts.recognised_lines = tally.recognised
    facts.is_log = parser.is_log
    facts.wrapper = parser.wrapper
    facts.notice = "; ".join([*notices, *parser.notices]) or None
    facts.unknown_shapes = parser.unknown.most_common(_SHAPES)


def _coverage(incident: Incident, reports: list[RunReport], unknown: Counter[str]) -> Coverage:
    seen = {event.phase for run in incident.runs for event in run.events}
    launches = [run.launch for run in incident.runs]
    releases = {launch.release for launch in launches if launch.release} or {
        launch.release_range[0]
        if launch.release_range[0] == launch.release_range[1]
        else f"{launch.release_range[0]} to {launch.release_range[1]}"
        for launch in launches
        if launch.release_range
    }
    notices = [notice for source in incident.sources if (notice := _notice(source))]
    return Coverage(
        lines=sum(source.lines - source.blank_lines for source in incident.sources),
        recognised=sum(source.recognised_lines for source in incident.sources),
        ranks=list(dict.fromkeys(tag for report in reports for tag in report.run.tags)),
        phases=[phase for phase in PHASES if phase in seen],
        release=", ".join(sorted(releases)) or None,
        skipped=[*incident.skipped, *notices],
        unknown_shapes=unknown.most_common(50),
    )


def _notice(source: SourceFacts) -> str | None:
    """What the reader of the result should know about one input."""
    if source.notice:
        return source.notice if source.path in source.notice else f"{source.path}: {source.notice}"
    if source.is_log:
        return None
    why = "no line of it was recognised as a log of SGLang" if source.bytes else "empty"
    return f"{source.path}: {why}"


def _nothing_recognised(incident: Incident) -> str:
    if not any(source.bytes for source in incident.sources):
        if unread := [source.notice for source in incident.sources if source.notice]:
            return "; ".join(unread[:3])
        return "nothing to read: the input is empty"
    names = ", ".join(source.path for source in incident.sources[:3])
    return f"no line of {names} was recognised as a log of SGLang"


__all__ = ["InputError", "NotALog", "analyze", "diagnose", "events", "read", "take_tally"]
