"""The C program of `edgetpu split --emit c`: on a runtime of the tests, and on LiteRT's C API.

$THIMBLE_LITERT_SOURCE names a clone of google-ai-edge/LiteRT (a bare one will do), which has the
headers that the package ai-edge-litert lacks; $THIMBLE_LIBEDGETPU_SOURCE one of
google-coral/libedgetpu.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import re
import select
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from toolchain.cli import run
from toolchain.resources import RUNTIME_C

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
RUNTIME = Path(__file__).resolve().parents[1] / "support" / "pipeline" / "runtime_test.c"
FRESH = Path(__file__).resolve().parents[1] / "support" / "sticks" / "fresh.c"
PIPELINE = RUNTIME_C / "pipeline"
STAGES, FRAME_BYTES = 3, 64
STOPS, PIPE_BYTES = 8, 4096
FLAGS = ("-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wconversion", "-Wshadow")


def the_source(variable: str) -> Path:
    if not (found := os.environ.get(variable)):
        pytest.skip(f"${variable} names no clone")
    return Path(found)


def headers(repository: Path, folder: Path, *paths: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tar = subprocess.run(
        ["git", "-C", str(repository), "archive", "HEAD", *paths], capture_output=True, check=True
    )
    subprocess.run(["tar", "x", "-C", str(folder)], input=tar.stdout, check=True)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("split") / "stages"
    command = ["edgetpu", "split", str(DIGITS), "-n", str(STAGES), "-o", str(out), "--emit", "c"]
    assert run([*command, "--objective", "params", "--quiet"]) == 0
    return out


@pytest.fixture(scope="module", params=["address,undefined", "thread"])
def program(request: pytest.FixtureRequest, folder: Path) -> Path:
    """The program over the tests' runtime, with a sanitizer."""
    made = folder.parent / f"program_{request.param[:3]}"
    source = folder / "c"
    files = [source / name for name in ("main.c", "pipeline.c", "stages.c")]
    command = ["gcc", *FLAGS, "-D_DEFAULT_SOURCE", "-O1", "-g", f"-fsanitize={request.param}"]
    command += ["-fno-sanitize-recover=all", f'-DPIPELINE_FOLDER="{folder}"', f"-I{source}"]
    subprocess.run([*command, *map(str, files), str(RUNTIME), "-pthread", "-o", made], check=True)
    return made


def ran(
    program: Path, frames: int, *options: str, cut: int = 0, **settings: object
) -> tuple[int, bytes, str, bytes]:
    data = np.random.default_rng(frames).integers(0, 256, frames * FRAME_BYTES, np.uint8).tobytes()
    given = data[: len(data) - cut]
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    done = subprocess.run(
        [program, *options], input=given, capture_output=True, timeout=60, env=environment
    )
    return done.returncode, done.stdout, done.stderr.decode(), data


def expected(data: bytes, result_bytes: int = 10) -> bytes:
    """Each stage adds its number plus 1, and repeats or cuts what it got."""
    frames = np.frombuffer(data, np.uint8).reshape(-1, FRAME_BYTES)[:, :result_bytes]
    return (frames + sum(range(1, STAGES + 1))).astype(np.uint8).tobytes()


@pytest.mark.parametrize("frames", [0, 1, 2, 40])
@pytest.mark.parametrize("queue", ["1", "3"])
def test_all_frames_come_out_in_order(program: Path, frames: int, queue: str) -> None:
    code, out, said, data = ran(program, frames, "--queue", queue)
    assert (code, out) == (0, expected(data)), said
    assert f"{frames} frames, all frames done" in said
    if frames == 40:
        assert "at most 3 at once" in said


def test_a_lost_stick_is_told_and_its_stage_moves_to_a_free_one(program: Path) -> None:
    code, out, said, data = ran(program, 40, STICKS=STAGES + 1, LOSES="1:7")
    assert (code, out) == (0, expected(data)), said
    assert "stage 1 failed on stick 1: the device is gone" in said
    assert "stage 1 goes on on stick 3" in said
    assert "stage 1 on stick 3:" in said and "stage 2 on stick 2:" in said


def test_without_a_free_stick_the_stage_moves_to_the_processor(program: Path) -> None:
    code, out, said, data = ran(program, 40, STICKS=STAGES, LOSES="0:1")
    assert (code, out) == (0, expected(data)), said
    assert "stage 0 goes on on the CPU" in said and "stage 0 on the CPU:" in said


def test_devices_as_they_are_named(program: Path) -> None:
    code, out, said, data = ran(program, 5, "--devices", "2,cpu,any", STICKS=3)
    assert (code, out) == (0, expected(data)), said
    for line in ("stage 0 on stick 2", "stage 1 on the CPU", "stage 2 on stick 0"):
        assert line in said
    code, _, said, _ = ran(program, 5, "--devices", "0,1,7", STICKS=3)
    assert code == 3 and "stage 2 does not open: there is no stick 7: 3 found" in said
    code, _, said, _ = ran(program, 5, "--devices", "0,0,1", STICKS=3)
    assert code == 3 and "stage 1 does not open: stick 0 runs stage 0" in said


def test_a_stage_that_fails_everywhere_ends_the_run(program: Path) -> None:
    code, out, said, data = ran(program, 40, FAILS=1, STICKS=2)
    assert code == 3
    assert out == expected(data)[: len(out)] and len(out) <= 20
    assert "stage 1 failed on the CPU: the device is gone" in said and "a stage failed" in said


def test_a_stage_that_hangs_is_told(program: Path) -> None:
    code, _, said, _ = ran(program, 40, "--stall-ms", "300", HANGS=1)
    assert code == 3 and "stage 1 has not answered for" in said
    assert "a stage does not answer" in said


def test_inputs_and_command_lines_that_are_wrong(program: Path, folder: Path) -> None:
    code, _, said, _ = ran(program, 3, cut=5)
    assert code == 3 and "ends inside a frame" in said and "stopped" in said
    code, _, said, _ = ran(program, 1, "--folder", "absent")
    assert code == 3 and "stage 0 does not open: no folder absent" in said
    for wrong in (["--devices", "cpu"], ["--queue", "0"], ["--quick"], ["a", "b", "c"]):
        code, _, said, _ = ran(program, 1, *wrong)
        assert code == 2 and "usage:" in said
    code, _, said, _ = ran(program, 1, "no/such/file")
    assert code == 2 and "no/such/file: No such file" in said
    code, out, _, _ = ran(program, 1, "--help")
    assert code == 0 and b"int8, 64 bytes" in out
    assert "64 bytes" in (folder / "c" / "README.md").read_text()


def started(program: Path, **settings: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    return subprocess.Popen(
        [program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )


def stopped(running: subprocess.Popen[bytes], by: int) -> tuple[int, str]:
    """Exit code and what it said. Its pipes stay open at this end until it has ended: nothing but
    the signal ends it."""
    running.send_signal(by)
    try:
        code = running.wait(60)
    finally:
        running.kill()
    assert running.stdin and running.stdout and running.stderr
    said = running.stderr.read().decode()
    for pipe in (running.stdin, running.stdout, running.stderr):
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
    return code, said


def given_frames(running: subprocess.Popen[bytes], frames: int) -> bytes:
    """Their results: the program has started, and waits for a frame more."""
    assert running.stdin and running.stdout
    running.stdin.write(bytes(FRAME_BYTES * frames))
    running.stdin.flush()
    got, wanted = b"", frames * len(expected(bytes(FRAME_BYTES)))
    while len(got) < wanted:
        assert select.select([running.stdout], [], [], 60)[0], "it keeps the results of its frames"
        more = os.read(running.stdout.fileno(), wanted - len(got))
        assert more, "it ended"
        got += more
    return got


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_it_waits_for_a_frame(program: Path, by: int) -> None:
    for _ in range(STOPS):
        running = started(program)
        assert given_frames(running, 3) == expected(bytes(FRAME_BYTES * 3))
        code, said = stopped(running, by)
        assert code == 3 and "3 frames, stopped" in said and "inside a frame" not in said, said


def test_a_signal_ends_it_inside_a_frame(program: Path) -> None:
    running = started(program)
    given_frames(running, 1)
    assert running.stdin
    running.stdin.write(bytes(FRAME_BYTES - 1))
    running.stdin.flush()
    code, said = stopped(running, signal.SIGTERM)
    assert code == 3 and "1 frames, stopped" in said and "inside a frame" not in said, said


def test_a_signal_ends_it_while_nobody_takes_its_results(program: Path) -> None:
    running = started(program)
    given_frames(running, 1)
    assert running.stdin and running.stdout
    fcntl.fcntl(running.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    fcntl.fcntl(running.stdin, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    # More than both pipes and all queues hold is taken only until the output's is full.
    os.set_blocking(running.stdin.fileno(), False)
    sent = 0
    while sent < 2 * PIPE_BYTES * FRAME_BYTES:
        _, free, _ = select.select([], [running.stdin], [], 0.5)
        if not free:
            break
        sent += os.write(running.stdin.fileno(), bytes(FRAME_BYTES * 8))
    code, said = stopped(running, signal.SIGTERM)
    assert code == 3 and "stopped" in said, said


def test_a_failed_stage_ends_it_while_no_frame_comes(program: Path) -> None:
    running = started(program, FAILS=1)
    assert running.stdin and running.stderr
    running.stdin.write(bytes(2 * FRAME_BYTES))
    running.stdin.flush()
    try:
        assert running.wait(60) == 3
    finally:
        running.kill()
    assert b"a stage failed" in running.stderr.read()
    running.communicate()


def test_names_of_a_file_do_not_steer_a_terminal(folder: Path, tmp_path: Path) -> None:
    source = folder / "c"
    whole = (source / "stages.c").read_text()
    named = re.sub(r'\{"[^"]*", "int8"', r'{"a\\033[31m\\342\\200\\256b", "int8"', whole)
    assert named != whole
    (tmp_path / "stages.c").write_text(named)
    files = [source / "main.c", source / "pipeline.c", tmp_path / "stages.c", RUNTIME]
    command = ["gcc", *FLAGS, "-D_DEFAULT_SOURCE", '-DPIPELINE_FOLDER="."', f"-I{source}"]
    made = tmp_path / "program"
    subprocess.run([*command, *map(str, files), "-pthread", "-o", made], check=True)
    said = subprocess.run([made, "--help"], capture_output=True, check=True).stdout
    assert rb"  input a\x1b[31m\xe2\x80\xaeb: int8, 64 bytes" in said
    assert all(byte == 10 or 32 <= byte < 127 for byte in said)


def test_several_models_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["edgetpu", "split", str(DIGITS), str(DIGITS), "-n", "2", "--emit", "c"]
    assert run([*command, "-o", str(tmp_path / "s")]) == 2
    assert "one model, not of 2" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("built", ["static", "shared"])
def test_stages_on_the_processor_give_what_the_python_runner_gives(
    folder: Path, tmp_path: Path, built: str
) -> None:
    source = the_source("THIMBLE_LITERT_SOURCE")
    include = headers(source, tmp_path / "include", "litert/c")
    (include / "litert" / "build_common").mkdir()
    (include / "litert" / "build_common" / "build_config.h").write_text("")
    spec = importlib.util.find_spec("ai_edge_litert")
    assert spec is not None and spec.origin is not None
    library = Path(spec.origin).with_name("libLiteRt.so")
    command = ["cmake", "-S", str(folder / "c"), "-B", str(tmp_path / "build")]
    command += ["-DTHIMBLE_PIPELINE_RUNTIME=litert", f"-DTHIMBLE_PIPELINE_INCLUDE={include}"]
    command += [f"-DBUILD_SHARED_LIBS={'ON' if built == 'shared' else 'OFF'}"]
    subprocess.run([*command, f"-DTHIMBLE_PIPELINE_LIBRARY={library}"], check=True)
    subprocess.run(["cmake", "--build", str(tmp_path / "build")], check=True)
    frames = np.random.default_rng(1).integers(-128, 128, (50, 8, 8, 1), np.int8)
    np.save(tmp_path / "frames.npy", frames)
    frames.tofile(tmp_path / "frames.bin")
    program = tmp_path / "build" / "run_pipeline"
    subprocess.run([program, tmp_path / "frames.bin", tmp_path / "out.bin"], check=True)
    given = ["--input", str(tmp_path / "frames.npy"), "--backend", "cpu", "--fast"]
    assert run(["edgetpu", "run", str(folder), *given, "-o", str(tmp_path / "out.npz")]) == 0
    wanted = np.load(tmp_path / "out.npz")
    (name,) = wanted.files
    assert (tmp_path / "out.bin").read_bytes() == wanted[name].tobytes()


@pytest.mark.parametrize("sticks", [False, True])
def test_tensorflow_lites_interface_is_as_its_headers_have_it(
    folder: Path, tmp_path: Path, sticks: bool
) -> None:
    include = headers(
        the_source("THIMBLE_LITERT_SOURCE"),
        tmp_path / "include",
        *(
            "tflite/c",
            "tflite/core/c",
            "tflite/core/async",
            "tflite/converter/core/c",
            "tflite/builtin_ops.h",
        ),
    )
    (include / "tensorflow").mkdir()
    (include / "tensorflow" / "lite").symlink_to(include / "tflite")
    command = ["gcc", *FLAGS, "-Werror", "-isystem", str(include), "-fsyntax-only"]
    if sticks:
        edgetpu = headers(
            the_source("THIMBLE_LIBEDGETPU_SOURCE"), tmp_path / "edgetpu", "tflite/public"
        )
        command += ["-DTHIMBLE_PIPELINE_EDGETPU", "-isystem", str(edgetpu / "tflite" / "public")]
    subprocess.run([*command, str(folder / "c" / "runtime_tflite.c")], check=True)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_sticks_fresh_from_power_on_get_a_stage_each(count: int, tmp_path: Path) -> None:
    """libedgetpu lists sticks without firmware first, and opening one loads it and moves it behind
    the others (beagle_usb_driver_provider.cc:209-231, edgetpu_manager_direct.cc:446-451 at
    e35aed1): listed anew for each stage, two stages shared a stick."""
    sticks = FRESH.parent
    program = tmp_path / "fresh"
    command = ["gcc", *FLAGS, "-Werror", "-D_DEFAULT_SOURCE", "-DTHIMBLE_PIPELINE_EDGETPU"]
    command += [f"-I{PIPELINE}", f"-I{sticks / 'include'}", str(FRESH)]
    sources = [str(PIPELINE / "runtime_tflite.c"), "-pthread", "-o", str(program)]
    subprocess.run([*command, *sources], check=True)
    for _ in range(2):  # the second time with firmware in all
        places = [tmp_path / f"{bus}-1" for bus in range(count)]
        for place in places:
            place.mkdir(exist_ok=True)
            if not (place / "idVendor").exists():
                (place / "idVendor").write_text("1a6e\n")
        done = subprocess.run(
            [program, *map(str, places)], capture_output=True, text=True, check=True, timeout=60
        )
        assert sorted(done.stdout.split()) == [place.name for place in places]
