"""What a probe found, in the terminal and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from forensics.probe.model import Foretold, Geometry, Measured, ProbeReport
from forensics.views.clean import one_line
from forensics.views.json import dumps
from forensics.views.schema import opened
from forensics.views.terminal.page import Page
from forensics.views.words import sentence

MAX_WIDTH = 100


def probe_json(report: ProbeReport) -> str:
    """The report as a document, with a newline at its end."""
    return dumps(report.model_dump(mode="json"), indent=2) + "\n"


def probe_schema() -> dict[str, Any]:
    """The JSON Schema of the report; unknown fields are allowed, since some may be added."""
    schema = ProbeReport.model_json_schema(mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    found: dict[str, Any] = opened(schema)
    return found


def show_probe(report: ProbeReport, console: Console) -> None:
    """Prints a report: what came out, the figures beside what was foretold, and the limits."""
    page = Page(console, min(console.width, MAX_WIDTH))
    page.paragraph(_verdict(report), indent=0)
    if report.gpu:
        total = f" of {report.total_gib:.2f} GiB" if report.total_gib is not None else ""
        took = f"; {report.elapsed_s:.0f} s" if report.elapsed_s is not None else ""
        page.paragraph(f"On {report.gpu}{total}, torch {report.torch}{took}.", indent=0)
    _draw_geometry(page, report.geometry)
    _draw_figures(page, report)
    page.heading("What it cannot show")
    for note in report.notes:
        page.item("-", note)
    page.show()


def _verdict(report: ProbeReport) -> Text:
    largest = max(report.geometry.batch_sizes)
    graphs = f"{len(report.geometry.batch_sizes)} decode graphs up to batch {largest}"
    measured, refusal = report.measured, report.refusal
    if measured is None:
        return Text("PLANNED ", style="bold").append(f"{graphs}; nothing was run.", "not bold")
    if refusal is None:
        said = (
            f" {graphs} take {measured.capture_gib:.2f} GiB, {measured.capture_need_gib:.2f} at"
            f" the most, and leave {measured.free_gib_after_capture:.2f}."
        )
        return Text("CAPTURED", style="bold green").append(said, style="default not bold")
    where = f"at batch {refusal.batch}" if refusal.batch else "before the first graph"
    said = (
        f" {where}: capture needs at least {measured.capture_need_gib:.2f} GiB, and began with"
        f" {measured.free_gib_at_capture:.2f}. {sentence(one_line(refusal.text))}"
    )
    return Text("OUT OF MEMORY", style="bold red").append(said, style="default not bold")


def _draw_geometry(page: Page, geometry: Geometry) -> None:
    page.heading("Geometry", "of one rank")
    of_tp = f" (tp {geometry.tp_size})" if geometry.tp_size > 1 else ""
    page.item(
        "model ",
        f"{geometry.layers} layers, hidden {geometry.hidden}, {geometry.heads} heads and"
        f" {geometry.kv_heads} for KV of {geometry.head_dim}, feed-forward {geometry.ffn},"
        f" vocabulary {geometry.vocab}, context {geometry.context_len}{of_tp}",
    )
    page.item("graphs", f"{_listed(geometry.batch_sizes)}; attention {geometry.backend or '?'}")
    page.item(
        "static",
        f"weights {geometry.weights_gib:.2f}, KV pool {geometry.kv_pool_gib:.2f}"
        + (f", other {geometry.other_gib:.2f}" if geometry.other_gib else "")
        + " GiB",
    )


def _listed(sizes: list[int]) -> str:
    if len(sizes) <= 8:
        return " ".join(map(str, sizes))
    return f"{len(sizes)} sizes, {' '.join(map(str, sizes[:4]))} ... {sizes[-1]}"


def _draw_figures(page: Page, report: ProbeReport) -> None:
    page.heading("Figures", "GiB")
    rows = _rows(report.foretold, report.measured)
    page.raw(Text(f"  {'':<24}{'foretold':>10}{'measured':>10}", style="dim"))
    for name, foretold, measured in rows:
        page.raw(Text(f"  {name:<24}{_number(foretold):>10}{_number(measured):>10}"))
    page.paragraph(f"Free at capture: {report.foretold.basis}.", style="dim")


def _rows(
    foretold: Foretold, measured: Measured | None
) -> list[tuple[str, float | None, float | None]]:
    parts = foretold.parts
    buffers = None
    if "buffers" in parts:
        buffers = parts["buffers"] + parts.get("logits buffer", 0.0)

    def read(name: str) -> float | None:
        return None if measured is None else getattr(measured, name)

    return [
        ("free at capture", foretold.free_gib_at_capture, read("free_gib_at_capture")),
        ("buffers", buffers, read("buffers_gib")),
        ("first graph", parts.get("first graph"), read("first_graph_gib")),
        ("other graphs", parts.get("other graphs"), read("other_graphs_gib")),
        ("capture, kept", foretold.capture_gib, read("capture_gib")),
        ("capture, at the most", foretold.capture_need_gib, read("capture_need_gib")),
        ("free after capture", None, read("free_gib_after_capture")),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
