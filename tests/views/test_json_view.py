from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from forensics.diagnosis import Diagnosis
from forensics.views import json as view
from forensics.views.schema import Document, json_schema


@pytest.fixture
def document(launch_b: Diagnosis) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(view.render(launch_b))
    return loaded


def test_the_document_has_the_published_fields(document: dict[str, Any]) -> None:
    assert list(document) == ["schema_version", "tool", "sources", "runs", "coverage"]
    assert document["schema_version"] == 1
    assert document["tool"]["name"] == "forensics"
    source = {"path": "logs/glm5.log", "bytes": 54309, "lines": 397, "recognised_lines": 391}
    assert document["sources"] == [{**source, "node": None, "notice": None}]
    assert document["coverage"] == {
        "lines": 397,
        "recognised": 391,
        "ranks": [f"TP{rank}" for rank in range(8)],
        "phases": ["init", "load", "kv_pool", "graph_capture"],
        "release": "0.5.9",
        "skipped": [],
    }


def test_a_run(document: dict[str, Any]) -> None:
    (run,) = document["runs"]
    assert (run["run"], run["outcome"], run["phase"]) == (1, "failed", "graph_capture")
    assert run["started_at"] == "2026-02-18T23:47:12"
    assert run["ranks"][:2] == ["TP0", "TP1"]
    assert run["launch"]["flags"]["mem_fraction_static"] == 0.95
    assert run["memory"][0]["weights_gib"] == 61.2
    assert run["memory"][0]["graphs_gib"] is None
    assert run["root_cause"] == "run1-graph-capture-oom-1"
    assert run["skipped_rules"][0]["rule"] == "kv-pool-undersized"


def test_findings_and_remedies_use_the_published_names(document: dict[str, Any]) -> None:
    finding = document["runs"][0]["findings"][0]
    assert finding["class"] == "graph_capture_oom"
    assert finding["first"] == {"source": "logs/glm5.log", "line": 151}
    assert finding["known_at"]["time"] == "2026-02-18T23:53:28"
    remedy = finding["remedies"][0]
    assert (remedy["from"], remedy["to"]) == (0.95, 0.88)
    assert "class_" not in finding
    assert "from_" not in remedy


def test_secrets_never_appear(launch_b: Diagnosis) -> None:
    text = view.render(launch_b)
    for secret in ("sk-verysecret123", "hf_abcdefghijklmnop", "hunter2"):
        assert secret not in text
    launch = json.loads(text)["runs"][0]["launch"]
    assert launch["command"][-2:] == ["--api-key", "[redacted]"]
    assert launch["env"] == {"NCCL_IB_DISABLE": "1", "HF_TOKEN": "[redacted]"}


def test_characters_that_a_terminal_obeys_are_escaped_without_loss(launch_b: Diagnosis) -> None:
    nasty = "a\x1b[2J\x9b31m\u202eb\udc80\u2028"
    launch_b.reports[0].findings[0].evidence[0].text = nasty
    text = view.render(launch_b)
    assert not any(char in text for char in "\x1b\x9b\u202e\udc80\u2028")
    text.encode()
    assert json.loads(text)["runs"][0]["findings"][0]["evidence"][0]["text"] == nasty


def test_numbers_that_json_lacks_become_null(launch_b: Diagnosis) -> None:
    launch_b.reports[0].findings[0].facts = {"a": float("nan"), "b": [float("inf")], "c": {1}}
    facts = json.loads(view.render(launch_b))["runs"][0]["findings"][0]["facts"]
    assert facts == {"a": None, "b": [None], "c": [1]}


def test_the_document_is_valid_under_its_schema(
    document: dict[str, Any], make: Callable[..., Diagnosis]
) -> None:
    Document.model_validate(document)
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(document, json_schema())
    healthy = make(findings=[], root_cause=None, new_command=None, diff=[])
    jsonschema.validate(json.loads(view.render(healthy)), json_schema())


def test_the_schema_allows_fields_to_be_added() -> None:
    schema = json_schema()
    assert "additionalProperties" not in schema["$defs"]["Finding"]
    assert schema["$defs"]["LaunchDocument"]["properties"]["env"]["additionalProperties"] == {
        "type": "string"
    }
    assert {"class", "first", "known_at"} <= set(schema["$defs"]["Finding"]["properties"])
