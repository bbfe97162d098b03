"""Logs for reports: hostile ones, and one with secrets and names of every kind planted."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., "subprocess.CompletedProcess[str]"]
Render = Callable[..., str]

HOSTILE = (
    "</script><script>document.title='pwned'</script><img src=x onerror=document.title='pwned'>"
    "<a href=javascript:document.title='pwned'>x</a><style>body{display:none}</style> ]]> --> "
    "``` ~~~ </pre></details> # Heading [click](javascript:alert(1)) ![i](http://evil.example/i.png)"
    " | cell | {{ 7*7 }} {% raw %} @everyone &lt;b&gt; [bold red]x[/]"
)
"""What ends up where a log's own words are shown."""

SECRETS = {
    "api key": "sk-proj-PLANTEDaaaaaaaaaa1",
    "hub token": "hf_PLANTEDbbbbbbbbbb2",
    "admin key": "PLANTEDccccc3",
    "bearer": "PLANTED.ddddd-4",
    "aws": "PLANTED/eeeee+5",
    "url password": "PLANTEDfffff6",
    "database": "PLANTEDggggg7",
}
"""Never printed by anything."""

NAMES = {
    "host": "gpu-node-07",
    "full host name": "trainer3.corp.acme-labs.com",
    "url host": "billing.acme-labs.internal",
    "ipv4": "10.20.30.41",
    "ipv6": "2001:db8:77::5",
    "link-local": "fe80::e42:a1ff:fe3b:9e01",
    "mac": "0c:42:a1:3b:9e:01",
    "user": "aliceplanted",
    "home": "/home/aliceplanted/private-project",
    "e-mail": "bob.planted@acme-labs.com",
    "gpu": "GPU-1f0c9e7a-1111-2222-3333-abcdefabcdef",
    "request": "what is my diagnosis, doctor?",
    "folder": "/data/acme-secret-customer",
}
"""Not shown with --redact."""


def log_of(message: str, *before: str) -> str:
    """A launch whose only failure says `message`, with other lines before it."""
    head = (
        "[2026-03-01 10:00:00] server_args=ServerArgs(model_path='org/model-7b', host='0.0.0.0', "
        "port=30000, mem_fraction_static=0.9, tp_size=1, max_running_requests=4)"
    )
    lines = [
        head,
        "[2026-03-01 10:00:05 TP0] Load weight begin. avail mem=78.50 GB",
        *before,
        "[2026-03-01 10:00:09 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/opt/sglang/srt/managers/scheduler.py", line 3100, in run_scheduler_process',
        "    scheduler.event_loop()",
        '  File "/opt/sglang/srt/models/odd.py", line 12, in forward',
        "    raise ValueError(text)",
        f"ValueError: {message}",
        "",
        "[2026-03-01 10:00:10] Received sigquit from a child process. It usually means the child "
        "failed.",
    ]
    return "\n".join(lines) + "\n"


def planted_log() -> str:
    """A failed launch in which every secret and every name stands somewhere."""
    s, n = SECRETS, NAMES
    head = (
        f"[2026-03-01 10:00:00] server_args=ServerArgs(model_path='{n['folder']}/model-7b', "
        f"tokenizer_path='{n['home']}/tok', host='{n['ipv4']}', port=30000, tp_size=1, "
        f"api_key='{s['api key']}', admin_api_key='{s['admin key']}', "
        f"dist_init_addr='{n['host']}:5000', mem_fraction_static=0.9)"
    )
    request = f"Receive: obj=GenerateReqInput(rid='1', text='{n['request']}')"
    said = (
        f"no route from [{n['full host name']}]:29500 to {n['ipv4']} or {n['ipv6']} via "
        f"{n['link-local']} ({n['mac']}) on {n['gpu']}; http://me:{s['url password']}@"
        f"{n['url host']}:8080/v1, Authorization: Bearer {s['bearer']}, "
        f"HF_TOKEN={s['hub token']} AWS_SECRET_ACCESS_KEY={s['aws']} PGPASSWORD={s['database']} "
        f"user={n['user']} {n['e-mail']} {n['home']}/x.py prompt='{n['request']}' on {n['host']}"
    )
    return (
        log_of(said, f"[2026-03-01 10:00:06] {request}")
        .replace(log_of("").split("\n")[0], head)
        .replace("/opt/sglang/srt/models", f"{n['home']}/lib")
    )


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.log"
    path.write_text(log_of(HOSTILE))
    return path


@pytest.fixture
def harmless(tmp_path: Path) -> Path:
    """The same launch, whose exception says nothing bad."""
    path = tmp_path / "harmless.log"
    path.write_text(log_of("the cat sat on the mat"))
    return path


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    path = tmp_path / "planted.log"
    path.write_text(planted_log())
    return path


@pytest.fixture
def report(program: Program) -> Render:
    """The report on a log, as its users get it."""

    def render(log: Path | str, *options: str) -> str:
        done = program("report", str(log), "--fail-on", "never", *options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return render


@pytest.fixture
def reproduction(tmp_path: Path) -> Path:
    """What a reproduction of the incident could have written."""
    figures = {"free_gib_at_capture": 7.61, "kv_tokens": 425_100}
    command = ["python3", "-m", "sglang.launch_server", "--mem-fraction-static", "0.88"]
    trial = {
        "command": command,
        "started_at": "2026-02-19T01:00:00",
        "ended_at": "2026-02-19T01:07:00",
        "log": "control/launch.log",
    }
    data = {
        "verdict": "confirmed",
        "because": "control failed as in the log, the fix and its confirmation passed",
        "exit_code": 0,
        "tool": "forensics 0.1.0",
        "created_at": "2026-02-19T01:30:00",
        "plan": {
            "logs": ["glm5.log"],
            "trials": [
                {"name": "control", "role": "control", "command": command, "expects": "fails"},
                {
                    "name": "fix",
                    "role": "fix",
                    "command": command,
                    "expects": "passes",
                    "changes": [
                        {"kind": "flag", "name": "mem_fraction_static", "from": 0.95, "to": 0.88}
                    ],
                },
            ],
            "limits": ["Eight ranks were not tried: two GPUs are here."],
            "differences": [
                {"what": "sglang", "weight": "matters", "because": "0.5.9 in the log, 0.5.23 here"}
            ],
        },
        "trials": [
            {**trial, "name": "control", "role": "control", "outcome": "failed",
             "phase": "graph_capture", "because": "out of memory in capture"},
            {**trial, "name": "fix", "role": "fix", "outcome": "passed", "phase": "serving",
             "because": "ready and answered", "measured": figures,
             "predicted": {"free_gib_at_capture": 7.57}},
        ],
        "command": command,
    }  # fmt: skip
    path = tmp_path / "run" / "reproduction.json"
    path.parent.mkdir()
    path.write_text(json.dumps(data))
    return path
