"""Measure `forensics analyze` beside its peers on the same log, and the start-up on a small one.

Commands take turns, so that a busy minute hits all of them; the medians of the rounds are printed.
Wall and CPU seconds and peak memory come from `wait4`. Peers that are not installed are left out.

    python tests/bench/bench_analyze.py --sizes 200MB 1GB --rounds 3
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from make_log import parse_size, write

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM = [sys.executable, "-m", "forensics"]
COUNT_BY_RANK = ";SELECT rank, count(*) FROM sglang_log GROUP BY rank"


@dataclass
class Peer:
    """A command that is measured, and what its runs took."""

    name: str
    argv: list[str]
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Run once and note what it took."""
        begin = time.perf_counter()
        env = os.environ | {"LC_ALL": "C"}
        # A file, since grep stops at the first hit when its output is the null device.
        with (
            tempfile.TemporaryFile() as out,
            subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=out, env=env, cwd=ROOT
            ) as process,
        ):
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.wall_s.append(time.perf_counter() - begin)
        self.cpu_s.append(used.ru_utime + used.ru_stime)
        self.peak_mib.append(used.ru_maxrss / 1024)
        if process.returncode not in (0, 1):
            raise SystemExit(f"{self.name} ended with {process.returncode}")


def peers(log: str) -> list[Peer]:
    """Ourselves first, then the peers that are installed."""
    found = [Peer("forensics analyze", [*PROGRAM, "analyze", "-q", log])]
    if lnav := shutil.which("lnav"):
        lnav_argv = [lnav, "-n", "-I", str(HERE / "lnav"), "-c", COUNT_BY_RANK, log]
        found.append(Peer("lnav, count by rank", lnav_argv))
    found.append(Peer("Python re loop", [sys.executable, str(HERE / "python_re.py"), log]))
    found.append(Peer("grep -c 'Decode batch'", ["grep", "-c", "Decode batch", log]))
    found.append(Peer("wc -l", ["wc", "-l", log]))
    return found


def measure(commands: Sequence[Peer], rounds: int) -> None:
    """Every command once a round, in turn."""
    for _ in range(rounds):
        for command in commands:
            command.run()


def table(commands: Sequence[Peer], size: int) -> str:
    """The medians as a markdown table; ratios are to the first row."""
    ours = statistics.median(commands[0].wall_s)
    rows = ["| command | wall s | CPU s | MB/s | peak MiB | time, ours = 1 |",
            "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for command in commands:
        wall, cpu = statistics.median(command.wall_s), statistics.median(command.cpu_s)
        rows.append(
            f"| {command.name} | {wall:.2f} | {cpu:.2f} | {size / wall / 1e6:,.0f} "
            f"| {statistics.median(command.peak_mib):,.0f} | {wall / ours:.2f} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Write the logs, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", nargs="*", default=["200MB", "1GB"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the logs are kept; default: temporary")
    options = parser.parse_args()
    small = [
        Peer("analyze, 460 lines", [*PROGRAM, "analyze", "fixtures/sglang-glm5.log"]),
        Peer("--help", [*PROGRAM, "--help"]),
        Peer("python -c pass", [sys.executable, "-c", "pass"]),
    ]
    measure(small, max(options.rounds, 5))
    print(f"small log\n{table(small, (ROOT / 'fixtures/sglang-glm5.log').stat().st_size)}\n")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for size in options.sizes:
            log = folder / f"bench-{size}.log"
            if not log.exists():
                write(parse_size(size), log)
            commands = peers(str(log))
            commands[-1].run()  # brings the log into the page cache
            commands[-1] = peers(str(log))[-1]
            measure(commands, options.rounds)
            print(f"{size}, {log.stat().st_size:,} bytes\n{table(commands, log.stat().st_size)}\n")


if __name__ == "__main__":
    main()
