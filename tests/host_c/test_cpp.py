"""The C++ header of a model: two standards, no warnings, and what it runs is the model."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.host_c.test_banks import banked, two_banks
from tests.host_c.test_info import expected, theirs_of
from tests.support.graphs import dense_chain
from tests.support.host import plan_of
from tests.support.states import GRAPHS
from toolchain.boards import HOST, Core, board
from toolchain.codegen import generate
from toolchain.codegen.library import write_library
from toolchain.codegen.steps import Costs
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.report.latency import predict_latency

STANDARDS = ["c++17", "c++20"]
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow", "-Wundef")
BARE = ("-fno-exceptions", "-fno-rtti")
CROSS = "arm-none-eabi-g++"

RUN = """\
#include "net.hpp"
#include <cstdint>
#include <cstdio>
#include <new>

template <class Span> static void fill(Span input)
{
    auto *const bytes = reinterpret_cast<std::uint8_t *>(input.data());

    for (std::size_t i = 0; i < input.size_bytes(); i++) {
        bytes[i] = static_cast<std::uint8_t>(7 * i);
    }
}

template <class Span> static void print(Span output)
{
    const auto *const bytes = reinterpret_cast<const std::int8_t *>(output.data());

    for (std::size_t i = 0; i < output.size_bytes(); i++) {
        std::printf("%d ", bytes[i]);
    }
    std::printf("\\n");
}
"""


def library(plan: Plan, folder: Path, core: Core = HOST, external: bool = False) -> Path:
    latency = predict_latency(plan)
    costs = Costs(latency.counts, latency.unit, latency.basis.text)
    root = cmsis_nn.find()
    sources = generate(plan, core, root, name="net", costs=costs, external=external)
    write_library([sources], folder)
    if sources.weights is not None:
        (folder / "blob.bin").write_bytes(sources.weights.data)
    return folder


def program(folder: Path, standard: str, main: str) -> list[str]:
    """What `main` prints after `RUN`, built with a library of one model."""
    text = f"{RUN}\nint main()\n{{\n{main}\n}}\n"
    (folder / "main.cpp").write_text(text, encoding="utf-8")
    include = ["-I", folder, "-I", folder / "runtime/include"]
    objects = []
    for file in [*folder.glob("*.c"), *(folder / "runtime").rglob("*.c"), *theirs_of(folder)]:
        objects.append(folder / f"{file.stem}.o")
        theirs = ["-isystem", cmsis_nn.find() / "Include"]
        command = ["gcc", "-std=c99", "-O1", *include, *theirs, "-c", file, "-o", objects[-1]]
        subprocess.run(command, check=True)
    built = ["g++", f"-std={standard}", *WARNINGS, *BARE, "-O1", "-fsanitize=address,undefined"]
    built += [*include, folder / "main.cpp", *objects, "-o", folder / "program"]
    subprocess.run(built, check=True)
    done = subprocess.run([folder / "program"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_model_with_its_own_arena(tmp_path: Path, standard: str) -> None:
    plan = plan_of(dense_chain("net", (6, 8, 5)))
    (end,), (last,) = plan.inputs, plan.outputs
    sources = generate(plan, HOST, cmsis_nn.find(), name="net")
    given, made = f"input_{sources.inputs[0]}", f"output_{sources.outputs[0]}"
    main = f"""
    static thimble::net::arena network;
    alignas(thimble::net::model::arena_alignment) static std::uint8_t memory[NET_ARENA_BYTES + 1];
    thimble::net::model other(memory + 1);

    static_assert(decltype(network.{given}())::extent == {end.tensor.elements}, "input");
    static_assert(decltype(network.{made}())::extent == {last.tensor.elements}, "output");
    fill(network.{given}());
    const thimble::net::status done = network.run();
    if (!done) {{
        return 1;
    }}
    std::printf("%s %d %s %s\\n", done.name(), done.code(), other.run().name(),
                thimble::net::model::check(memory, 1).name());
    std::printf("%s %u\\n", thimble::net::info().name, unsigned(thimble::net::info().arena_bytes));
    std::int32_t sum = 0;
    for (const std::int8_t value : network.{made}()) {{
        sum += value;
    }}
    std::printf("%d\\n", static_cast<int>(sum));
    print(network.{made}());"""
    main += f"""
    net_progress progress = {{}};
    std::printf("%s ", thimble::net::model::step(progress, 0).name());
    std::printf("%s ", other.start(progress).name());
    fill(network.{given}());
    std::printf("%s\\n", network.start(progress).name());
    std::int32_t left = 2;
    auto again = network.step_while(progress, [](void *asked) -> std::int32_t {{
        return --*static_cast<std::int32_t *>(asked);
    }}, &left);
    std::int32_t steps = 2;
    for (; again.code() == NET_AGAIN; steps++) {{
        again = network.step(progress, 0);
    }}
    std::printf("%s %d\\n", again.name(), static_cast<int>(steps - NET_STEPS));
    print(network.{made}());"""
    lines = program(library(plan, tmp_path), standard, main)
    assert lines[:2] == ["OK 0 ERROR_ARENA ERROR_ARENA_SHORT", f"net {plan.arena.size_bytes}"]
    assert lines[3] == lines[6] == expected(plan)
    assert lines[4:6] == ["ERROR_NOT_STARTED ERROR_ARENA OK", "OK 0"]
    assert int(lines[2]) == sum(map(int, lines[3].split()))


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_model_over_two_banks(tmp_path: Path, standard: str) -> None:
    plan, _ = two_banks()
    first, second = (part.bank for part in plan.arena.parts)
    sources = generate(plan, HOST, cmsis_nn.find(), name="net")
    fills = "".join(f"    fill(network.input_{name}());\n" for name in sources.inputs)
    main = f"""
    alignas(NET_ARENA_ALIGNMENT) static std::uint8_t a[NET_ARENA_{first}_BYTES];
    alignas(NET_ARENA_ALIGNMENT) static std::uint8_t b[NET_ARENA_{second}_BYTES];
    static const net_banks banks = {{a, b}};
    thimble::net::model network(banks);

{fills}
    std::printf("%s ", thimble::net::model::check(&banks, sizeof a, sizeof b).name());
    std::printf("%s\\n", network.run().name());
    print(network.output_{sources.outputs[-1]}());"""
    lines = program(library(plan, tmp_path), standard, main)
    assert lines == ["OK OK", expected(plan)]


def test_an_arena_begins_with_the_initial_state(tmp_path: Path) -> None:
    graph = check(GRAPHS["delay line"])
    plan = plan_of(graph)
    sources = generate(plan, HOST, cmsis_nn.find(), name="net")
    step = f"""
        fill(network.input_{sources.inputs[0]}());
        network.run();
        print(network.output_{sources.outputs[0]}());"""
    main = f"""
    union dirt {{
        dirt() {{
            for (auto &byte : bytes) {{
                byte = 0xA5;
            }}
            new (&network) thimble::net::arena;
        }}
        ~dirt() {{}}
        std::uint8_t bytes[sizeof(thimble::net::arena)];
        thimble::net::arena network;
    }};
    static dirt memory;
    auto &network = memory.network;
    for (int i = 0; i < 3; i++) {{{step}
    }}
    network.reset();{step}"""
    folder = library(plan, tmp_path)
    lines = program(folder, "c++17", main)
    (end,) = plan.inputs
    values = (7 * np.arange(end.tensor.elements)).astype(np.int8).reshape(end.tensor.shape)
    memory: dict[str, np.ndarray] = {}
    wanted = []
    for _ in range(3):
        made = interpret(graph, (values,), memory)[0]
        wanted.append(
            "".join(f"{value} " for value in np.frombuffer(made.tobytes(), np.int8).tolist())
        )
    assert lines == [*wanted, wanted[0]]
    assert len(set(wanted)) > 1


def test_an_arena_takes_weights_that_lie_elsewhere_and_then_its_initial_state(
    tmp_path: Path,
) -> None:
    graph = check(GRAPHS["delay line"])
    plan = plan_of(graph)
    sources = generate(plan, HOST, cmsis_nn.find(), name="net", external=True)
    folder = library(plan, tmp_path, external=True)
    main = f"""
    static thimble::net::arena network;
    alignas(8) static std::uint8_t blob[NET_WEIGHTS_BYTES];
    std::FILE *const file = std::fopen("{folder}/blob.bin", "rb");
    const std::size_t size = std::fread(blob, 1, sizeof blob, file);
    std::fclose(file);

    std::printf("%s %s ", network.run().name(), network.check_weights(blob, 80).name());
    std::printf("%s\\n", network.set_weights(blob, std::uint32_t(size)).name());
    network.reset();
    fill(network.input_{sources.inputs[0]}());
    network.run();
    print(network.output_{sources.outputs[0]}());"""
    said, made = program(folder, "c++17", main)
    assert said == "ERROR_WEIGHTS_MISSING ERROR_WEIGHTS_SHORT OK"
    (end,) = plan.inputs
    values = (7 * np.arange(end.tensor.elements)).astype(np.int8).reshape(end.tensor.shape)
    wanted = interpret(graph, (values,), {})[0]
    assert [int(value) for value in made.split()] == np.frombuffer(
        wanted.tobytes(), np.int8
    ).tolist()


@pytest.mark.skipif(shutil.which(CROSS) is None, reason=f"{CROSS} is missing")
@pytest.mark.parametrize("standard", STANDARDS)
def test_headers_compile_for_a_microcontroller(tmp_path: Path, standard: str) -> None:
    core = board("nucleo-f446re").core
    plans = {
        "chain": plan_of(dense_chain("net", (6, 8, 5)), core),
        "state": plan_of(check(GRAPHS["delay line"]), core),
        "banks": banked(check(dense_chain("net", (96, 64, 80, 96))), 1.0),
    }
    for name, plan in plans.items():
        assert plan is not None
        plan = replace(plan, lowered=replace(plan.lowered, core=core))
        folder = library(plan, tmp_path / name, core)
        owner = "" if plan.arena.parts else "thimble::net::arena network;\n"
        (folder / "main.cpp").write_text(f'#include "net.hpp"\n{owner}')
        command = [CROSS, "-mcpu=cortex-m4", "-mthumb", f"-std={standard}", *WARNINGS, *BARE]
        command += ["-Os", "-c", folder / "main.cpp", "-I", folder, "-o", folder / "main.o"]
        subprocess.run(command, check=True)
