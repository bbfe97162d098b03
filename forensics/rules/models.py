"""Model and software do not know each other: unknown types and classes, version notices."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from forensics.events import Event, Raised
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.launch import Launch
from forensics.memory import uses_mla
from forensics.remedies import action, flag, kept, package
from forensics.rules.base import FAILURE, QUIET_CAUSE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.pins import maybe_below

_BY_TRANSFORMERS = frozenset({"unknown_model_type", "transformers_too_old"})
_UNKNOWN = _BY_TRANSFORMERS | {"unknown_architecture", "no_implementation"}
_CLASS = re.compile(r"[A-Z]\w+(?:ForCausalLM|ForConditionalGeneration|Model|For[A-Z]\w+|NextN|MTP)")

_SINCE = {
    "gemma3": ">=4.50.0",
    "mistral3": ">=4.50.0",
    "qwen3": ">=4.51.0",
    "qwen3_moe": ">=4.51.0",
    "llama4": ">=4.51.0",
    "glm4": ">=4.51.3",
    "glm4_moe": ">=4.54.0",
    "ernie4_5_moe": ">=4.54.0",
    "gpt_oss": ">=4.55.0",
    "glm4v_moe": ">=4.55.0",
    "qwen3_next": ">=4.57.0",
    "qwen3_vl": ">=4.57.0",
    "qwen3_vl_moe": ">=4.57.0",
    "glm_moe_dsa": ">=5.2.0",
}
"""Model type to the first Transformers release that knows it (release notes)."""


@cache
def _first_releases() -> dict[str, str]:
    text = Path(__file__).with_name("model_classes.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _unknown(case: Case) -> tuple[Failure, Raised] | None:
    for failure in case.run.failures:
        for raised in failure.traceback.chain if failure.traceback else []:
            if raised.kind in _UNKNOWN:
                return failure, raised
    return None


@rule(
    "unknown-architecture",
    class_="model_arch_unknown",
    summary="The installed software does not know the model's type or class",
    needs="the refusal of Transformers or of SGLang",
)
def unknown_architecture(case: Case) -> Iterator[Finding | Skip]:
    """Transformers or SGLang refuses the model: a newer one is needed."""
    if (found := _unknown(case)) is None:
        return
    failure, raised = found
    kind = _named(raised)
    by_transformers = raised.kind in _BY_TRANSFORMERS
    who = "Transformers" if by_transformers else "This SGLang release"
    installed = case.run.launch.versions.get("transformers")
    has = f" (installed: {installed})" if installed and by_transformers else ""
    named = f" {kind}" if kind else ""
    hidden = None if by_transformers else _not_imported(case, kind)
    yield case.finding(
        "unknown-architecture",
        "model_arch_unknown",
        failure.event,
        title=f"SGLang's class {kind} could not be imported: {hidden.string('error')}"
        if hidden
        else f"{who} does not know the model type{named}",
        explanation=_HIDDEN
        if hidden
        else f"{who}{has} has no model of type{named}; it fails while arguments are "
        "resolved or before weights are read. A later install can undo an upgrade: check the "
        "version that is imported, after the last install.",
        evidence=[*case.evidence(hidden), *case.failure_evidence(failure)],
        remedies=[
            *(_import_remedies(hidden) if hidden else []),
            *_remedies(case.run.launch, kind, by_transformers, hidden is not None),
        ],
        not_helpful=[
            "memory flags: nothing was allocated",
            "downloading the checkpoint again: its configuration was read",
            "trust_remote_code, unless the checkpoint ships code of its own",
        ],
        rank=failure.rank,
        phase=failure.phase,
        weight=FAILURE + 5,
        facts={"model_type": kind or None, "installed": installed},
    )


_HIDDEN = (
    "The release has a module of that name, but importing it failed at the start, which is only "
    "noted in passing; the class then counts as unknown. The import is what has to be mended: no "
    "newer release is needed for it."
)
_SUFFIX = re.compile(r"(?:For[A-Z]\w+|Model)$")


def _not_imported(case: Case, model_class: str) -> Event | None:
    """The notice that the module of this very class could not be imported."""
    stem = _SUFFIX.sub("", model_class).lower()
    for event in case.run.of("import_ignored"):
        module = event.string("module").rsplit(".", 1)[-1].replace("_", "").lower()
        if stem and module == stem:
            return event
    return None


def _import_remedies(notice: Event) -> list[Remedy]:
    error = notice.string("error")
    missing = re.search(r"No module named ['\"]?([\w.]+)", error)
    if missing:
        name = missing[1].split(".")[0]
        reason = f"pip install the package that provides the module {name}"
        return [action("install_missing_python_module", reason)]
    other = re.search(r"cannot import name .* from ['\"]?(\w+)", error)
    if other:
        reason = f"the name that the class imports from {other[1]} is of another version"
        return [package(other[1], "upgrade", reason, to="latest")]
    return []


def _named(raised: Raised) -> str:
    """The model type, or the class, that was refused."""
    fields = raised.fields
    said = fields.get("model_type_name") or fields.get("model_type") or fields.get("model_class")
    if said:
        return str(said).strip("`'\"")
    found = _CLASS.search(str(fields.get("architectures") or raised.message))
    return found[0] if found else ""


def _remedies(launch: Launch, kind: str, by_transformers: bool, hidden: bool) -> list[Remedy]:
    native = action(
        "use_build_with_native_model", "a build of SGLang that has the model's class itself"
    )
    if hidden:
        reason = "if what the class imports does not fit this release"
        return [package("sglang", "upgrade", reason, to="latest"), native]
    if not by_transformers:
        return kept(_newer_sglang(launch, kind), native)
    return kept(
        package(
            "transformers",
            "upgrade",
            "the type is known to newer releases",
            to=_SINCE.get(kind, ">=5.0.0" if kind == "" else "latest"),
            cost="other models may need the pinned version",
        ),
        native,
    )


def _newer_sglang(launch: Launch, model_class: str) -> Remedy:
    first = _first_releases().get(model_class)
    known = first is not None and maybe_below(launch, first)
    return Remedy(
        kind="package",
        name="sglang",
        direction="upgrade",
        to=f">={first}" if known else "latest",
        reason=f"{model_class} came with {first}"
        if known
        else "a newer release may have the class",
    )


@rule(
    "transformers-fallback",
    class_="model_arch_unknown",
    summary="SGLang lacks the model's class and runs the one of Transformers",
    needs="the notice of the fallback",
)
def transformers_fallback(case: Case) -> Iterator[Finding | Skip]:
    """The fallback does not shard as SGLang's own classes do; what fails in it follows from it."""
    notice = case.run.first("transformers_fallback")
    if notice is None:
        return
    failure = next((f for f in case.run.failures if _in_fallback(f, notice)), None)
    name = notice.string("model_class")
    yield case.finding(
        "transformers-fallback",
        "model_arch_unknown",
        notice,
        severity="critical" if failure else "info",
        role="root_cause" if failure else "context",
        title=f"SGLang has no class {name}: the model runs through Transformers' own",
        explanation=_fallback_story(failure),
        evidence=[
            *case.evidence(notice, case.run.first("transformers_backend")),
            *(case.failure_evidence(failure) if failure else []),
        ],
        remedies=kept(
            _newer_sglang(case.run.launch, name),
            action("use_build_with_native_model", f"an image whose SGLang registers {name}"),
            flag(case.run.launch, "model_impl", "auto", "prefers SGLang's own class"),
        ),
        not_helpful=[
            "memory flags: the fallback needs several times what SGLang's own class needs",
            "more ranks: the fallback does not shard every layer",
            "PYTORCH_CUDA_ALLOC_CONF: nothing is fragmented",
        ]
        if failure
        else [],
        phase=failure.phase if failure else notice.phase,
        known_at=case.known(notice),
        weight=QUIET_CAUSE if failure else 0,
        facts={"model_class": name},
    )


def _in_fallback(failure: Failure, notice: Event) -> bool:
    """Whether a failure comes from building or loading the model through Transformers."""
    if failure.line < notice.line:
        return False
    frames = failure.traceback.frames if failure.traceback else []
    inside = any(
        "/models/transformers.py" in f.file or "/transformers/models/" in f.file for f in frames
    )
    return inside or (failure.oom is not None and failure.phase == "load")


def _fallback_story(failure: Failure | None) -> str:
    begin = "The model's class is not in this installation, so that the implementation of "
    if failure is None:
        return begin + "Transformers is used: slower, and without some of SGLang's features."
    then = "ran out of memory" if failure.oom else "failed"
    return (
        f"{begin}Transformers is used. It builds layers whole on every rank that SGLang's own "
        f"class would split, and the loading {then} in it. What follows is a consequence; no "
        "memory setting cures it."
    )


@rule(
    "transformers-rope",
    class_="version_mismatch",
    severity="info",
    role="context",
    summary="Transformers 5 is used with a release that pins 4.57.1",
    needs="the notice of releases 0.5.7 to 0.5.9, with a failure or a model of special RoPE",
)
def transformers_rope(case: Case) -> Iterator[Finding | Skip]:
    """The notice proves an upgraded Transformers; RoPE parameters may be read differently."""
    event = case.run.first("transformers_rope_notice")
    if event is None:
        return
    if case.run.outcome not in ("failed", "hung") and not _special_rope(case):
        return
    version = event.string("version")
    yield case.finding(
        "transformers-rope",
        "version_mismatch",
        event,
        severity="info",
        role="context",
        title=f"Transformers {version} where this release pins 4.57.1",
        explanation="RoPE parameters may be read differently by Transformers 5. It matters if "
        "answers are wrong; some models need the newer version, so a downgrade can break loading.",
        rank=None,
        known_at=case.known(event),
        facts={"version": version, "count": case.run.counts["transformers_rope_notice"]},
    )


def _special_rope(case: Case) -> bool:
    """Whether the model has an attention (MLA) whose RoPE is not the ordinary one."""
    loaded = case.run.first("load_weight_end")
    notice = case.run.first("transformers_rope_notice")
    named = loaded.string("model_class") if loaded else ""
    kind = notice.string("model_type") if notice else ""
    return uses_mla(named) or uses_mla(kind)
