"""`thimble sweep --dask`: workers over TCP; one is killed, and the scheduler is restarted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.net import free_port
from toolchain.cli import run as thimble
from toolchain.errors import LinkError
from toolchain.resources import RUNTIME_C
from toolchain.sweep.jobs import Job, Shared, run

pytest.importorskip("distributed", reason="the extra [dask] is not installed")

from toolchain.sweep.cluster import DaskPool

pytestmark = pytest.mark.slow
ROOT = RUNTIME_C.parent
_PATIENCE_SECONDS = 300.0


def marked(folder: str, number: int, data: Shared, seconds: float = 0.3) -> tuple[int, int]:
    """Leaves a file with its worker's process while it runs, and another when it is done.

    Once four are done the others wait until there is a file `go`.
    """
    being_written = Path(folder) / f"{number}.pid"
    being_written.write_text(str(os.getpid()))
    being_written.replace(being_written.with_suffix(".begun"))
    time.sleep(seconds)
    while len([*Path(folder).glob("*.done")]) >= 4 and not (Path(folder) / "go").exists():
        time.sleep(0.02)
    with (Path(folder) / f"{number}.done").open("a") as marks:
        marks.write(".")
    return number * number, len(data.data)


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def scheduler(port: int) -> ExitStack:
    words = ("--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    stack = ExitStack()
    stack.process = stack.enter_context(started("scheduler", *words))  # type: ignore[attr-defined]
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return stack
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def worker(address: str) -> ExitStack:
    stack = ExitStack()
    words = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "300")
    stack.enter_context(started("worker", address, *words))
    return stack


def until(found: object) -> None:
    """Until `found`, a function, gives something."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not found():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def under_way(folder: Path) -> list[Path]:
    """The files of jobs that have begun and are not done."""
    return [f for f in folder.glob("*.begun") if not f.with_suffix(".done").exists()]


def test_a_worker_is_killed_and_the_scheduler_restarted(tmp_path: Path) -> None:
    port = free_port()
    address, data = f"tcp://127.0.0.1:{port}", Shared("of all", bytes(200_000))
    jobs = [Job(f"j{number}", marked, (str(tmp_path), number, data)) for number in range(24)]
    units = {"board": ["the only one"]}
    with ExitStack() as stack:
        first = stack.enter_context(scheduler(port))
        workers = [stack.enter_context(worker(address)) for _ in range(2)]
        pool = stack.enter_context(DaskPool(address))
        results, killed, restarted = {}, 0, False
        for result in run(jobs, pool, units):
            assert result.job.key not in results  # nothing twice to the user's eye
            results[result.job.key] = result
            if len(results) == 4:
                until(lambda: under_way(tmp_path))
                killed = int(under_way(tmp_path)[0].read_text())
                os.kill(killed, signal.SIGKILL)
                (tmp_path / "go").touch()
            if len(results) == 12 and not restarted:
                restarted = True
                first.close()
                for one in workers:
                    one.close()
                stack.enter_context(scheduler(port))
                stack.enter_context(worker(address))
        assert killed
        assert restarted
    assert {key: result.value for key, result in results.items()} == {
        f"j{number}": (number * number, 200_000) for number in range(24)
    }
    assert not any(result.died for result in results.values())
    done = [len(file.read_text()) for file in tmp_path.glob("*.done")]
    assert len(done) == 24
    assert sum(done) <= 24 + 4  # what was under way at the restart, and no more


def exits(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_job_that_kills_workers_is_given_up() -> None:
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    jobs = [Job(f"j{number}", exits, (number,)) for number in range(4)]
    with ExitStack() as stack:
        stack.enter_context(scheduler(port))
        nannies = ("--nthreads", "1", "--nworkers", "2", "--no-dashboard")
        stack.enter_context(started("worker", address, *nannies))
        with DaskPool(address) as pool:
            results = {result.job.key: result for result in run(jobs, pool)}
    assert [results[f"j{n}"].died for n in range(4)] == [False, True, False, False]
    assert results["j1"].where.startswith("tcp://")
    assert [results[f"j{n}"].value for n in (0, 2, 3)] == [0, 2, 3]


def test_a_sweep_on_a_cluster_has_the_rows_of_one_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    model = ROOT / "examples" / "digits" / "digits_int8.tflite"
    found = {}
    port = free_port()
    with scheduler(port), worker(f"tcp://127.0.0.1:{port}"):
        for name, more in (("here", ["-j", "1"]), ("dask", ["--dask", f"tcp://127.0.0.1:{port}"])):
            file = tmp_path / f"{name}.sqlite"
            line = [
                "sweep",
                str(model),
                "-b",
                "netduinoplus2",
                "--ram",
                "none,4K,1K",
                "-o",
                str(file),
                *more,
            ]
            assert thimble([*line, "--json", "-"]) == 0
            rows = json.loads(capsys.readouterr().out)["rows"]
            found[name] = [{k: v for k, v in row.items() if k != "seconds"} for row in rows]
    assert found["dask"] == found["here"]


def test_no_scheduler_is_said(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="no Dask scheduler answers at"):
        DaskPool(f"tcp://127.0.0.1:{free_port()}", connect_seconds=0.5)
