"""SARIF 2.1.0 as code scanning reads it: fixed properties, references that hold, lines of the log.

The schema below is the part of the standard's own that these objects come under.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from forensics.pipeline import analyze
from forensics.views.report import render


def strict(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": -1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
BAG = {"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": True}}}
MESSAGE = strict(["text"], text=TEXT, markdown=TEXT)
ARTIFACT_LOCATION = strict([], uri={**TEXT, "format": "uri-reference"}, index=COUNT)
REGION = strict([], startLine={"type": "integer", "minimum": 1}, snippet=strict([], text=TEXT))
LOCATION = strict(
    [],
    id=COUNT,
    physicalLocation=strict([], artifactLocation=ARTIFACT_LOCATION, region=REGION),
    message=MESSAGE,
)
LOCATIONS = {"type": "array", "items": LOCATION}
RULE = strict(
    ["id"],
    id=TEXT,
    shortDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=strict([], level=LEVEL),
    properties=BAG,
)
RESULT = strict(
    ["message"],
    ruleId=TEXT,
    ruleIndex=COUNT,
    level=LEVEL,
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    message=MESSAGE,
    locations=LOCATIONS,
    relatedLocations={**LOCATIONS, "uniqueItems": True},
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    properties=BAG,
)
NOTIFICATION = strict(["message"], level=LEVEL, message=MESSAGE)
RUN = strict(
    ["tool"],
    tool=strict(
        ["driver"],
        driver=strict(
            ["name"], name=TEXT, version=TEXT,
            rules={"type": "array", "items": RULE, "uniqueItems": True},
        ),
    ),
    invocations={"type": "array", "items": strict(
        ["executionSuccessful"], executionSuccessful={"type": "boolean"},
        toolExecutionNotifications={"type": "array", "items": NOTIFICATION},
    )},
    artifacts={"type": "array", "uniqueItems": True, "items": strict(
        [], location=ARTIFACT_LOCATION, length=COUNT,
        roles={"type": "array", "items": {"enum": ["analysisTarget"]}},
        mimeType={**TEXT, "pattern": "[^/]+/.+"},
    )},
    results={"type": "array", "items": RESULT},
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
)  # fmt: skip
SCHEMA = strict(
    ["version", "runs"],
    **{"$schema": {**TEXT, "format": "uri"}, "version": {"enum": ["2.1.0"]}},
    runs={"type": "array", "items": RUN},
)

LOGS = [
    "fixtures/sglang-glm5.log",
    "fixtures/sglang-glm5-abc.log",
    "tests/rules/kv-retraction/hit.log",
    "tests/rules/thin-reserve/miss.log",
    "tests/rules/unknown-failure/hit.log",
]


@pytest.fixture(params=LOGS)
def log(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(root)
    return str(request.param)


def sarif(*logs: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(render(analyze(logs), "sarif"))
    return found


def test_it_keeps_to_the_standard(log: str) -> None:
    jsonschema.validate(sarif(log), SCHEMA)


def test_references_hold_and_regions_are_lines_of_the_log(log: str) -> None:
    (run,) = sarif(log)["runs"]
    lines = Path(log).read_bytes().decode().split("\n")
    assert [artifact["location"]["uri"] for artifact in run["artifacts"]] == [log]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for place in result["locations"] + result["relatedLocations"]:
            where = place["physicalLocation"]
            assert where["artifactLocation"] == {"uri": log, "index": 0}
            line = lines[where["region"]["startLine"] - 1]
            if "snippet" in where["region"]:
                assert where["region"]["snippet"]["text"][:30].split()[0] in line


def test_every_finding_is_a_result_with_its_severity(root: Path) -> None:
    diagnosis = analyze([str(root / "fixtures" / "sglang-glm5-abc.log")])
    findings = [finding for report in diagnosis.reports for finding in report.findings]
    results = json.loads(render(diagnosis, "sarif"))["runs"][0]["results"]
    levels = {"critical": "error", "warning": "warning", "info": "note"}
    assert [(r["ruleId"], r["level"]) for r in results] == [
        (finding.rule, levels[finding.severity]) for finding in findings
    ]


def test_the_playbook_is_the_rules_help(root: Path) -> None:
    (run,) = sarif(str(root / "fixtures" / "sglang-glm5.log"))["runs"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert "## How to fix" in rules["graph-capture-oom"]["help"]["markdown"]
    assert "<!--" not in json.dumps(rules)


def test_the_same_finding_of_another_try_has_the_same_fingerprint(root: Path) -> None:
    one, two = (
        {r["ruleId"]: r["partialFingerprints"] for r in sarif(str(path))["runs"][0]["results"]}
        for path in (root / "fixtures/sglang-glm5.log", root / "fixtures/sglang-glm5-abc.log")
    )
    assert one["graph-capture-oom"] == two["graph-capture-oom"]


def test_paths_are_uris(tmp_path: Path, root: Path) -> None:
    log = tmp_path / "a b#1.log"
    log.write_text((root / "fixtures/sglang-glm5.log").read_text())
    (artifact,) = sarif(str(log))["runs"][0]["artifacts"]
    assert artifact["location"]["uri"].startswith("file:///")
    assert artifact["location"]["uri"].endswith("/a%20b%231.log")
