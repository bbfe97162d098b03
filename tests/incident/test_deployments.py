"""Incidents of several nodes, replicas and workers, each with what must be said of it."""

from pathlib import Path

import pytest

from forensics.pipeline import analyze

LOGS = Path(__file__).parent / "logs"

EXPECTED: dict[str, dict[str, str | None]] = {
    "bootstrap-port": {"phase": "init", "class": "port_in_use"},
    "diverged": {"rank": "TP2", "phase": "serving", "class": "collective_hang"},
    "docker0": {"phase": "init", "rank": "TP0", "class": "network_interface"},
    "dp-port": {"rank": "DP2", "phase": "init", "class": "port_in_use"},
    "hang-2nodes": {"rank": "TP11", "phase": "kv_pool", "class": "collective_hang"},
    "hang-one-of-two": {"rank": None, "phase": "kv_pool", "class": "collective_hang"},
    "healthy-noise": {"outcome": "serving", "class": None},
    "healthy-stop": {"outcome": "stopped", "class": None},
    "ib-status": {"phase": "serving", "rank": "TP3", "class": "network_interface"},
    "node-rank-twice": {"phase": "init", "class": "rendezvous_config"},
    "partner-single": {"phase": "init", "class": "rendezvous_config"},
    "pd-bootstrap": {"phase": "serving", "outcome": "degraded", "class": "pd_transfer"},
    "pd-prefill-oom": {
        "rank": "TP1",
        "phase": "serving",
        "outcome": "failed",
        "class": "logprob_oom",
    },
    "replica": {"phase": "warmup", "outcome": "failed", "class": "port_in_use"},
    "restarts": {"phase": "load", "class": "slow_start_timeout"},
    "segv": {"rank": "TP3", "phase": "serving", "outcome": "failed", "class": "unknown"},
    "sigterm-child": {
        "rank": "TP1",
        "phase": "serving",
        "outcome": "failed",
        "class": "external_kill",
    },
    "slow-load": {"rank": "TP0", "phase": "load", "class": "slow_start_timeout"},
    "still-waiting": {"phase": "init", "outcome": "hung", "class": "rendezvous_config"},
    "zmq": {"phase": "init", "class": "port_in_use"},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_deployment_is_one_run_with_one_cause(name: str) -> None:
    report = analyze([str(path) for path in sorted((LOGS / name).glob("*.log"))]).reports[0]
    root = report.root_cause
    said = {
        "class": root.class_ if root else None,
        "rank": root.rank if root else None,
        "phase": report.run.phase,
        "outcome": report.run.outcome,
    }
    assert said == {**said, **EXPECTED[name]}


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "restarts"])
def test_files_of_one_deployment_are_one_run(name: str) -> None:
    paths = sorted((LOGS / name).glob("*.log"))
    reports = analyze([str(path) for path in paths]).reports
    assert len(reports) == 1
    assert reports[0].run.sources == list(range(len(paths)))


@pytest.mark.parametrize("name", [n for n, w in EXPECTED.items() if w["class"] is None])
def test_a_healthy_log_alarms_nobody(name: str) -> None:
    (report,) = analyze([str(path) for path in (LOGS / name).glob("*.log")]).reports
    assert {finding.severity for finding in report.findings} <= {"info"}
