"""The pytest plugin: tests that take `board`, `firmware` or `link` run on every board of a bench.

    pytest --bench bench.toml

`board`     the board at hand (BenchBoard); parametrises the test over the bench
`firmware`  `firmware(model, **options)` compiles a model file for it (options: those of
            planner.PlanOptions), puts it there, and gives a deployment.Deployment; with
            `timed=True`, its `run_time` has the cycles of emulated boards, too: modelled from a
            trace (`basis`), which makes each run slower
`started`   the same for a firmware that is built already: gives a device.session.Session
`link`      the line to the board while it runs a firmware that echoes

`@pytest.mark.needs_ram(bytes)` and `@pytest.mark.needs_core("mve")` (dsp, mve, fpu, or the core's
name) leave out boards that lack them. In bench mode a run in which nothing passed or failed is a
failure.

Somebody's pytest loads this module whatever it tests: it imports what it needs when it needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from toolchain.bench.bench_file import BenchBoard
    from toolchain.bench.mode import BenchMode
    from toolchain.cycles.memory_system import MemorySystem
    from toolchain.deployment.run import Deployment
    from toolchain.device.firmware import Firmware
    from toolchain.device.link import Link
    from toolchain.device.session import Session

BENCH_MODE = "thimble-bench"
"""The name of `mode.BenchMode` among pytest's plugins, where a bench is given."""

StartFirmware = Callable[..., "Session"]
RunModel = Callable[..., "Deployment"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("thimble", "Thimble: hardware in the loop")
    group.addoption("--bench", metavar="FILE", default=None, help="bench.toml: the boards to use")
    group.addoption(
        "--soak", type=int, default=50, metavar="N", help="inferences of each soak test (50)"
    )


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "needs_ram(size_bytes): only on boards with that much RAM",
        "needs_core(feature): only on cores with dsp, mve or fpu, or of that name",
    ):
        config.addinivalue_line("markers", line)
    named = config.getoption("--bench")
    if named is not None:
        from toolchain.bench.bench_file import read_bench
        from toolchain.bench.mode import BenchMode
        from toolchain.errors import ThimbleError

        try:
            config.pluginmanager.register(BenchMode(read_bench(Path(named))), BENCH_MODE)
        except ThimbleError as error:
            raise pytest.UsageError(str(error)) from error


def _mode(config: pytest.Config) -> BenchMode | None:
    mode: BenchMode | None = config.pluginmanager.get_plugin(BENCH_MODE)
    return mode


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "board" not in metafunc.fixturenames:
        return
    if metafunc.definition.get_closest_marker("parametrize") and any(
        "board" in str(mark.args[0]).replace(" ", "").split(",")
        for mark in metafunc.definition.iter_markers("parametrize")
    ):
        return  # the test has boards of its own
    mode = _mode(metafunc.config)
    if mode is None:
        why = pytest.mark.skip(reason="needs --bench bench.toml")
        boards = [pytest.param(None, marks=why, id="no-bench")]
    else:
        boards = [pytest.param(b, id=b.label, marks=_lacks(b, metafunc)) for b in mode.bench.boards]
    metafunc.parametrize("board", boards, indirect=True, scope="session")


def _lacks(board: BenchBoard, metafunc: pytest.Metafunc) -> list[pytest.MarkDecorator]:
    core, marks = board.board.core, []
    for mark in metafunc.definition.iter_markers("needs_ram"):
        if board.board.ram_bytes < int(mark.args[0]):
            marks.append(
                pytest.mark.skip(reason=f"{board.name} has less than {mark.args[0]} B RAM")
            )
    for mark in metafunc.definition.iter_markers("needs_core"):
        feature = str(mark.args[0])
        if feature != core.name and getattr(core, feature, False) is not True:
            marks.append(pytest.mark.skip(reason=f"{board.name} has no {feature}"))
    return marks


@pytest.fixture(scope="session")
def board(request: pytest.FixtureRequest) -> BenchBoard:
    """The board of the bench that this test runs on."""
    bench_board: BenchBoard = request.param
    return bench_board


@pytest.fixture(scope="session")
def _workshop() -> Iterator[Path]:
    """A folder for firmware of this run alone, so that two benches never share one."""
    from toolchain.files import scratch_folder

    with scratch_folder() as folder:
        yield folder


@pytest.fixture
def started(board: BenchBoard) -> Iterator[StartFirmware]:
    """Puts a built firmware on the board and returns its session, which closes after the test."""
    from toolchain.bench import bench_file
    from toolchain.errors import ThimbleError

    with ExitStack() as stack:
        open_now: list[Session] = []
        try:
            port = stack.enter_context(bench_file.held(board))
        except ThimbleError as error:
            pytest.fail(str(error), pytrace=False)

        def start(firmware: Firmware, trace: MemorySystem | None = None) -> Session:
            while open_now:
                open_now.pop().close()
            try:
                session = bench_file.start(board, firmware, port, trace)
            except bench_file.NotThereError as error:
                pytest.skip(str(error))
            open_now.append(session)
            stack.callback(session.close)
            return session

        yield start


@pytest.fixture
def firmware(board: BenchBoard, started: StartFirmware, _workshop: Path) -> RunModel:
    """`firmware(model, **options)`: the model file, compiled for the board and running on it.

    `timed`: trace an emulated board, so that `Deployment.run_time` knows cycles everywhere. A
    model that does not fit the board skips the test.
    """
    from toolchain.deployment.compile import compile_model
    from toolchain.deployment.folder import compiled_model
    from toolchain.deployment.modelled_time import NoReader, find_reader
    from toolchain.deployment.run import Deployment
    from toolchain.device.firmware import load_firmware
    from toolchain.errors import DoesNotFitError, ThimbleError
    from toolchain.planning.options import PlanOptions

    def run(model: str | Path, timed: bool = False, **options: object) -> Deployment:
        chosen = PlanOptions(**options)  # type: ignore[arg-type]
        stem = "-".join([Path(model).stem, *(f"{k}-{v}" for k, v in sorted(options.items()))])
        folder = _workshop / board.label / stem
        if not (folder / "firmware.json").exists():
            try:
                compile_model(model, board.name, folder, chosen)
            except DoesNotFitError as error:
                pytest.skip(str(error).splitlines()[0])
            except ThimbleError as error:
                pytest.fail(str(error), pytrace=False)
        built = load_firmware(folder)
        reader = find_reader(built) if timed and board.started_here else NoReader()
        if isinstance(reader, NoReader):
            return Deployment(started(built), compiled_model(folder))
        return Deployment(started(built, reader.memory), compiled_model(folder), reader)

    return run


@pytest.fixture
def link(echo: Session) -> Link:
    """The line to the board, which runs the echo firmware."""
    return echo.link


@pytest.fixture
def echo(board: BenchBoard, started: StartFirmware, _workshop: Path) -> Session:
    """A session with a firmware whose output is its input, ECHO_BYTES of int8."""
    from toolchain.bench.echo import echo_firmware

    return started(echo_firmware(board.name, _workshop / board.label / "echo"))
