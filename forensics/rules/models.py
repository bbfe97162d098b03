"""Model and software do not know each other: unknown types and classes, version notices."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Raised
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import action, kept, package
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case

_UNKNOWN = frozenset(
    {"unknown_model_type", "unknown_architecture", "no_implementation", "transformers_too_old"}
)

_SINCE = {
    "glm_moe_dsa": ">=5.2.0",
}
"""Model type to the first Transformers release that knows it (release notes)."""


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
    kind = str(raised.fields.get("model_type") or raised.fields.get("architecture") or "").strip(
        "`'\""
    )
    by_transformers = raised.kind in ("unknown_model_type", "transformers_too_old")
    who = "Transformers" if by_transformers else "This SGLang release"
    installed = case.run.launch.versions.get("transformers")
    has = f" (installed: {installed})" if installed and by_transformers else ""
    named = f" {kind}" if kind else ""
    yield case.finding(
        "unknown-architecture",
        "model_arch_unknown",
        failure.event,
        title=f"{who} does not know the model type{named}",
        explanation=f"{who}{has} has no model of type{named}; it fails while arguments are "
        "resolved, before any rank starts. A later install can undo an upgrade: check the "
        "version that is imported, after the last install.",
        evidence=case.failure_evidence(failure),
        remedies=_remedies(kind, by_transformers),
        not_helpful=[
            "memory flags: nothing was allocated",
            "downloading the checkpoint again: its configuration was read",
            "trust_remote_code, unless the checkpoint ships code of its own",
        ],
        rank=failure.rank,
        phase=failure.phase,
        weight=FAILURE,
        facts={"model_type": kind or None, "installed": installed},
    )


def _remedies(kind: str, by_transformers: bool) -> list[Remedy]:
    native = action(
        "use_build_with_native_model", "a build of SGLang that has the model's class itself"
    )
    if not by_transformers:
        return kept(
            package("sglang", "upgrade", "a newer release may have the class", to="latest"), native
        )
    wanted = _SINCE.get(kind, "latest")
    return kept(
        package(
            "transformers",
            "upgrade",
            "the type is known to newer releases",
            to=wanted,
            cost="other models may need the pinned version",
        ),
        native,
    )


@rule(
    "transformers-rope",
    class_="version_mismatch",
    severity="info",
    role="context",
    summary="Transformers 5 is used with a release that pins 4.57.1",
    needs="the notice of releases 0.5.7 to 0.5.9",
)
def transformers_rope(case: Case) -> Iterator[Finding | Skip]:
    """The notice proves an upgraded Transformers; RoPE parameters may be read differently."""
    event = case.run.first("transformers_rope_notice")
    if event is None:
        return
    version = event.string("version")
    yield case.finding(
        "transformers-rope",
        "version_mismatch",
        event,
        severity="info",
        role="context",
        title=f"Standing risk: Transformers {version} where this release pins 4.57.1",
        explanation="RoPE parameters may be read differently by Transformers 5. It matters if "
        "answers are wrong; some models need the newer version, so a downgrade can break loading.",
        rank=None,
        known_at=case.known(event),
        facts={"version": version, "count": case.run.counts["transformers_rope_notice"]},
    )
