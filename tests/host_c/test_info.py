"""What a model says of itself (`<name>_info`), and the codes that its functions return."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from tests.host_c.test_banks import two_banks
from tests.support.graphs import dense_chain
from tests.support.host import plan_of, reference_outputs
from toolchain.boards import HOST, board
from toolchain.codegen import generate
from toolchain.codegen.library import write_library
from toolchain.ir import About, Status
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.version import __version__

STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wundef", "-Wcast-align", "-Wshadow", "-Werror")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1")
CROSS = "arm-none-eabi-"
HASH = "0123456789abcdef" * 4
LABELS = ('a "quoted" one', "zwölf", "", "back\\slash", "??/")

GENERIC = """\
#include "thimble_info.h"
#include <stdio.h>
#include <string.h>

/* Nothing here names a model. */
static void describe(const struct thimble_info *info)
{
    printf("%s %s %s ", info->name, info->version, info->core);
    for (int i = 0; i < 32; i++) {
        printf("%02x", (unsigned)info->model_sha256[i]);
    }
    printf("\\n%u %u %u %u\\n", (unsigned)info->arena_bytes, (unsigned)info->arena_alignment,
           (unsigned)info->weight_bytes, (unsigned)info->macs);
    for (uint32_t i = 0; i < info->part_count; i++) {
        printf("part %s %u\\n", info->parts[i].name, (unsigned)info->parts[i].bytes);
    }
    for (uint32_t i = 0; i < info->operator_count; i++) {
        const char *const name = info->operators[i].name;

        printf("operator %s %s\\n", info->operators[i].kind, name == NULL ? "-" : name);
    }
}

static void tensor(const struct thimble_tensor *t)
{
    printf("tensor %s %d %u %u %.9g %d", t->name, (int)t->type, (unsigned)t->elements,
           (unsigned)t->bytes, (double)t->scale, (int)t->zero_point);
    for (uint32_t i = 0; i < t->rank; i++) {
        printf(" %u", (unsigned)t->shape[i]);
    }
    printf("\\n");
    for (uint32_t i = 0; i < t->label_count; i++) {
        printf("label %s\\n", t->labels[i]);
    }
}

static int run(const struct thimble_info *info, void *arena)
{
    for (uint32_t i = 0; i < info->input_count; i++) {
        int8_t *const data = (int8_t *)thimble_input(info, i, arena);

        tensor(&info->inputs[i]);
        for (uint32_t k = 0; k < info->inputs[i].bytes; k++) {
            data[k] = (int8_t)(7u * k);
        }
    }
    const int32_t status = info->run(arena);

    printf("%s\\n", info->error_name(status));
    for (uint32_t i = 0; i < info->output_count; i++) {
        const int8_t *const data = (const int8_t *)thimble_output(info, i, arena);

        tensor(&info->outputs[i]);
        for (uint32_t k = 0; k < info->outputs[i].bytes; k++) {
            printf("%d ", (int)data[k]);
        }
        printf("\\n");
    }
    return status;
}
"""


def theirs_of(folder: Path) -> list[Path]:
    """CMSIS-NN's files that a library needs."""
    listed = folder / "cmsis_nn_sources.txt"
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    return [cmsis_nn.find() / line for line in lines]


def program(plan: Plan, folder: Path, main: str, *defines: str, name: str = "net") -> list[str]:
    """What a program prints that runs `main` after `GENERIC`, built of the model's library."""
    write_library([generate(plan, HOST, cmsis_nn.find(), name=name)], folder)
    text = f'#include "{name}.h"\n{GENERIC}\nint main(void)\n{{\n{main}\n}}\n'
    (folder / "main.c").write_text(text, encoding="utf-8")
    cmsis, theirs = cmsis_nn.find(), theirs_of(folder)
    objects = []
    for kind, files, options in (
        ("own", [*folder.glob("*.c"), *(folder / "runtime").rglob("*.c")], STRICT),
        ("theirs", theirs, ("-w", "-fno-sanitize=shift")),
    ):
        for number, file in enumerate(files):
            objects.append(folder / f"{kind}{number}.o")
            subprocess.run(
                [
                    *("gcc", "-std=c99", "-c", "-O1", *SANITIZE, *options, *defines),
                    *("-I", folder, "-I", folder / "runtime/include"),
                    *("-isystem", cmsis / "Include", file, "-o", objects[-1]),
                ],
                check=True,
            )
    subprocess.run(["gcc", *SANITIZE, *objects, "-o", folder / "program"], check=True)
    done = subprocess.run([folder / "program"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def chain() -> Plan:
    plan = plan_of(dense_chain("net", (6, 8, 5)))
    (output,) = plan.graph.outputs
    return replace(plan, about=About(HASH, MappingProxyType({output: LABELS})))


def expected(plan: Plan) -> str:
    """The bytes of the last output, as the program prints them."""
    given = []
    for end in plan.inputs:
        values = (7 * np.arange(end.tensor.size_bytes)).astype(np.uint8)
        given.append(values.view(end.tensor.dtype.numpy).reshape(end.tensor.shape))
    made = reference_outputs(plan.graph, given)[-1]
    return "".join(f"{value} " for value in np.frombuffer(made.tobytes(), np.int8).tolist())


STATIC = """\
    static uint8_t arena[NET_ARENA_BYTES] __attribute__((aligned(NET_ARENA_ALIGNMENT)));

    describe(&net_info);
    return run(&net_info, arena);"""


def test_generic_code_describes_and_runs_a_model(tmp_path: Path) -> None:
    plan = chain()
    lines = program(plan, tmp_path, STATIC)
    assert lines[0] == f"net {__version__} {HOST.name} {HASH}"
    counted = generate(plan, HOST, cmsis_nn.find(), name="net")
    alignment = max(plan.arena.alignment_bytes, 4)
    assert lines[1] == (f"{plan.arena.size_bytes} {alignment} {counted.weight_bytes} {plan.macs}")
    assert lines[2:4] == ["operator fully_connected -"] * 2
    tensors = [line.split(maxsplit=2) for line in lines if line.startswith("tensor")]
    for (_, name, rest), end in zip(tensors, (*plan.inputs, *plan.outputs), strict=True):
        q, shape = end.tensor.q, end.tensor.shape
        assert name == end.name
        kind, elements, size, scale, zero, *dims = rest.split()
        assert (kind, int(elements), int(size)) == ("1", end.tensor.elements, end.tensor.size_bytes)
        assert (np.float32(scale), int(zero)) == (np.float32(q.scale), q.zero_point)
        assert tuple(map(int, dims)) == shape
    labels = [line.removeprefix("label ") for line in lines if line.startswith("label")]
    assert tuple(labels) == LABELS
    assert lines[-1] == expected(plan)
    assert "OK" in lines


def test_names_of_operators_are_there_where_they_are_asked_for(tmp_path: Path) -> None:
    plan = chain()
    lines = program(plan, tmp_path, STATIC, "-DNET_OPERATOR_NAMES")
    named = [line.split()[2] for line in lines if line.startswith("operator")]
    assert named == [op.name for op in plan.graph.ops]


def test_an_arena_in_parts(tmp_path: Path) -> None:
    plan, _ = two_banks()
    first, second = plan.arena.parts
    main = f"""\
    static uint8_t a[NET_ARENA_{first.bank}_BYTES] __attribute__((aligned(NET_ARENA_ALIGNMENT)));
    static uint8_t b[NET_ARENA_{second.bank}_BYTES] __attribute__((aligned(NET_ARENA_ALIGNMENT)));
    static net_banks banks = {{a, b}};

    describe(&net_info);
    for (size_t i = 0; i < 4; i++) {{
        printf("%s ", net_error_name(net_check_arena(&banks, sizeof a - i % 2, sizeof b - i / 2)));
    }}
    printf("%s\\n", net_error_name(net_check_arena(NULL, sizeof a, sizeof b)));
    return run(&net_info, &banks);"""
    lines = program(plan, tmp_path, main)
    listed = [line for line in lines if line.startswith("part")]
    assert listed == [f"part {part.member} {part.size_bytes}" for part in plan.arena.parts]
    short = "ERROR_ARENA_SHORT"
    assert f"OK {short} {short} {short} ERROR_ARENA" in lines
    assert lines[-1] == expected(plan)


def test_codes_have_names(tmp_path: Path) -> None:
    main = """\
    static uint8_t arena[NET_ARENA_BYTES + 1] __attribute__((aligned(NET_ARENA_ALIGNMENT)));

    describe(&net_info);
    for (int32_t code = -9; code < 5; code++) {
        printf("%d=%s ", (int)code, net_error_name(code));
    }
    printf("\\n%s ", net_error_name(net_check_arena(arena, sizeof arena)));
    printf("%s ", net_error_name(net_check_arena(arena, NET_ARENA_BYTES)));
    printf("%s ", net_error_name(net_check_arena(arena, NET_ARENA_BYTES - 1)));
    printf("%s ", net_error_name(net_check_arena(arena + 1, NET_ARENA_BYTES)));
    printf("%s ", net_error_name(net_check_arena(NULL, NET_ARENA_BYTES)));
    printf("%s\\n", net_error_name(net_run(arena + 1)));
    return run(&net_info, arena);"""
    lines = program(plan_of(dense_chain("net", (6, 8, 5))), tmp_path, main)
    (codes,) = [line.split() for line in lines if line.startswith("-9=")]
    known = {int(status): status.name for status in Status} | {1: "OPERATOR", 2: "OPERATOR"}
    assert codes == [f"{code}={known.get(code, 'UNKNOWN')}" for code in range(-9, 5)]
    assert "OK OK ERROR_ARENA_SHORT ERROR_ARENA ERROR_ARENA ERROR_ARENA" in lines
    assert f"net {__version__} {HOST.name} {'0' * 64}" in lines


@pytest.mark.skipif(shutil.which(f"{CROSS}gcc") is None, reason=f"{CROSS}gcc is missing")
@pytest.mark.parametrize("collected", [True, False], ids=["gc-sections", "archive"])
def test_what_nobody_reads_takes_no_flash(tmp_path: Path, collected: bool) -> None:
    """In firmware that only runs the model: by --gc-sections, or out of an archive without it."""
    core = board("nucleo-f446re").core
    plan = plan_of(dense_chain("net", (6, 8, 5)), core)
    (output,) = plan.graph.outputs
    plan = replace(plan, about=About(HASH, MappingProxyType({output: ("label",) * 500})))
    write_library([generate(plan, core, cmsis_nn.find(), name="net")], tmp_path)
    include = ["-I", tmp_path, "-I", tmp_path / "runtime/include"]
    flags = ["-mcpu=cortex-m4", "-mthumb", "-Os", "-std=c99", *include]
    flags += ["-ffunction-sections", "-fdata-sections"] if collected else []
    objects = {}
    for file in [*tmp_path.glob("*.c"), *tmp_path.rglob("runtime/**/*.c"), *theirs_of(tmp_path)]:
        objects[file.stem] = tmp_path / f"{file.stem}.o"
        theirs = ["-isystem", cmsis_nn.find() / "Include"]
        compiled = [f"{CROSS}gcc", *flags, *theirs, "-c", file, "-o", objects[file.stem]]
        subprocess.run(compiled, check=True)
    text = (
        '#include "net.h"\n#include "thimble_info.h"\nvolatile uint32_t used;\n'
        "static uint8_t arena[NET_ARENA_BYTES] __attribute__((aligned(4)));\n"
        "void _start(void)\n{\n    used = (uint32_t)net_run(arena)%s;\n}\n"
    )

    def flash_bytes(name: str, use: str, left_out: str = "") -> int:
        (tmp_path / "main.c").write_text(text % use, encoding="utf-8")
        wanted = [path for stem, path in objects.items() if stem != left_out]
        if not collected:
            archive = tmp_path / f"{name}.a"
            subprocess.run([f"{CROSS}ar", "rcs", archive, *wanted], check=True)
            wanted = [archive]
        elf, collect = tmp_path / f"{name}.elf", ["-Wl,--gc-sections"] * collected
        linked = [*flags, "-nostartfiles", *collect, tmp_path / "main.c", *wanted]
        subprocess.run([f"{CROSS}gcc", *linked, "-o", elf], check=True, capture_output=True)
        sized = subprocess.run([f"{CROSS}size", elf], capture_output=True, text=True, check=True)
        return sum(map(int, sized.stdout.splitlines()[1].split()[:2]))

    unread = flash_bytes("unread", "")
    assert unread == flash_bytes("absent", "", left_out="net_info")
    assert flash_bytes("read", " + net_info.outputs[0].label_count") > unread + 4 * 500
