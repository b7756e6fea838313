"""`thimble export`: each target's package builds with nothing but what is in it.

Packagers (pio, compote) are looked for in $THIMBLE_PACKAGERS, a folder of programs, then in PATH.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.support.examples import GRADED, graded
from tests.support.long import mostly_long
from tests.support.tflite_writer import tflite_bytes
from toolchain import compile_model, deployed, export_models
from toolchain.boards import boards
from toolchain.cli import run as thimble
from toolchain.errors import InputError
from toolchain.export import exporter, exporters
from toolchain.export.exporter import URL
from toolchain.export.exporting import Exported
from toolchain.ops import forms
from toolchain.planning.options import PlanOptions
from toolchain.resources import RUNTIME_C

DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"
CORES = sorted(
    {
        b.core.name: b.name for b in boards().values() if b.emulator and b.name != "netduinoplus2"
    }.values()
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two models that share kernels, one of which calls CMSIS-NN."""
    folder = tmp_path_factory.mktemp("models")
    pool = folder / "pool.tflite"
    pool.write_bytes(tflite_bytes(forms()["max_pool2d.int16"].sample(np.random.default_rng(0))))
    again = folder / "again.tflite"
    shutil.copy(DIGITS, again)
    return [DIGITS, again, pool]


def run(*command: str | Path, where: Path | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=where, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def tool(name: str) -> str:
    found = shutil.which(name, path=os.environ.get("THIMBLE_PACKAGERS")) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed, nor in $THIMBLE_PACKAGERS")
    return found


def build_as_its_readme_says(folder: Path) -> None:
    said = (folder / "README.md").read_text()
    (line,) = [line for line in said.splitlines() if line.startswith("- Alone:")]
    commands = re.findall(r"`(cmake .*?)`", line)
    assert len(commands) == 2
    for command in commands:
        run(*command.split(), where=folder)


Export = Callable[..., Exported]


@pytest.fixture(scope="module")
def export(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Export:
    """Exports all models for a target and board, once."""
    made: dict[tuple[str, str], Exported] = {}

    def export(target: str, board: str = "") -> Exported:
        if (target, board) not in made:
            folder = tmp_path_factory.mktemp(target) / "package"
            made[target, board] = export_models(models, target, folder, board)
        return made[target, board]

    return export


@pytest.mark.parametrize("target", exporters())
def test_everything_is_inside_and_each_kernel_once(target: str, export: Export) -> None:
    made = export(target)
    names = [Path(path).name for path in made.files if path.endswith(".c")]
    kernels = [name for name in names if name.startswith(("thimble_", "arm_"))]
    assert len(kernels) == len(set(kernels)) and any(n.startswith("arm_") for n in kernels)
    assert {"README.md", "LICENSE", "NOTICE"} <= set(made.files)
    assert len((made.folder / "README.md").read_text().splitlines()) <= 16
    assert "CMSIS-NN" in (made.folder / "NOTICE").read_text()
    headers = {Path(path).name for path in made.files}
    for path in made.files:
        if path.endswith((".c", ".h")):
            for line in (made.folder / path).read_text().splitlines():
                if line.startswith('#include "') and "HOOKS" not in line:
                    assert Path(line.split('"')[1]).name in headers, (path, line)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_cmake_on_this_machine_computes_what_the_model_does(export: Export, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(export("cmake", "host").folder, tmp_path / "package"))
    graded(folder / "example" / "main.c")
    build_as_its_readme_says(folder)
    lines = run(folder / "build" / "thimble_models_example").splitlines()
    told = {line.split(":")[0]: line.split(":")[1].split() for line in lines}
    compile_model(DIGITS, "host", tmp_path / "host")
    with deployed(tmp_path / "host") as deployment:
        given = {end.name: GRADED for end in deployment.inputs}
        (wanted,) = deployment.run(given).outputs.values()
    digits = [value for name, value in told.items() if name.startswith(("digits", "again"))]
    assert len(digits) == 2 and all(
        [int(number) for number in value] == wanted.reshape(-1).tolist() for value in digits
    )
    assert any(name.startswith("pool") for name in told)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")
@pytest.mark.parametrize("board", mostly_long(CORES, ["mps2-an386", "mps3-an547"]))
def test_cmake_for_each_core(board: str, export: Export) -> None:
    made = export("cmake", board)
    build_as_its_readme_says(made.folder)
    symbols = run("arm-none-eabi-nm", made.folder / "build" / "thimble_models_example")
    assert "digits_int8_run" in symbols and "again_run" in symbols and "pool_run" in symbols


ARDUINO_STUB = """#pragma once
#include <stddef.h>
#include <stdint.h>
struct Port { void begin(long); void print(const char *); };
extern Port Serial;
void delay(unsigned long);
"""


@pytest.mark.skipif(shutil.which("arm-none-eabi-g++") is None, reason="needs arm-none-eabi-g++")
def test_arduino_needs_src_alone(export: Export, tmp_path: Path) -> None:
    made = export("arduino")
    core = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-Os", "-Wall")
    c_files = [path for path in made.files if path.endswith(".c")]
    assert all(path.startswith("src/") for path in c_files)
    objects = tmp_path / "objects"
    objects.mkdir()
    sources = [made.folder / path for path in c_files]
    run("arm-none-eabi-gcc", *core, "-c", "-I", made.folder / "src", *sources, where=objects)
    (sketch,) = [path for path in made.files if path.endswith(".ino")]
    (tmp_path / "Arduino.h").write_text(ARDUINO_STUB)
    where = ("-I", made.folder / "src", "-I", tmp_path)
    run("arm-none-eabi-g++", *core, "-x", "c++", *where, "-c", made.folder / sketch, where=objects)
    size = dict.fromkeys((made.folder / "library.properties").read_text().splitlines())
    assert "includes=digits_int8.h, again.h, pool.h" in size


def checkout(variable: str, repository: str, has: str) -> Path:
    """The folder that the variable names; skips where `has`, a path in it, is absent."""
    folder = Path(os.environ.get(variable) or "absent")
    if not (folder / has).exists():
        pytest.skip(f"needs {variable}, a checkout of {repository} with {has}")
    return folder


@pytest.mark.skipif(shutil.which("arm-none-eabi-g++") is None, reason="needs arm-none-eabi-g++")
def test_arduino_compiles_against_the_core_for_stm32(export: Export, tmp_path: Path) -> None:
    """As the IDE does for a Nucleo-F446RE: platform.txt's macros, standards and include folders."""
    repository = "stm32duino/Arduino_Core_STM32 and its submodule"
    core = checkout("THIMBLE_ARDUINO_STM32", repository, "cores/arduino/api/ArduinoAPI.h")
    cmsis = checkout("THIMBLE_CMSIS", "ARM-software/CMSIS_6", "CMSIS/Core/Include/core_cm4.h")
    compiler = ("arm-none-eabi-g++", "-x", "c++", "-fsyntax-only", "-include", "functional")
    if subprocess.run([*compiler, os.devnull], capture_output=True, check=False).returncode:
        pytest.skip("arm-none-eabi-g++ lacks C++'s library: libstdc++-arm-none-eabi-newlib")
    made = export("arduino", "nucleo-f446re")
    device = core / "system/Drivers/CMSIS/Device/ST/STM32F4xx"
    folders = [
        *(core / "cores/arduino" / part for part in ("", "avr", "stm32", "api")),
        *(core / "libraries/SrcWrapper/inc" / part for part in ("", "LL")),
        *(core / "system/Drivers/STM32F4xx_HAL_Driver" / part for part in ("Inc", "Src")),
        core / "system/STM32F4xx",
        cmsis / "CMSIS/Core/Include",
        device / "Include",
        device / "Source/Templates/gcc",
        core / "variants/STM32F4xx/F446R(C-E)T",
    ]
    macros = ("STM32F4xx", "STM32F446xx", "ARDUINO=10819", "ARDUINO_ARCH_STM32")
    macros += ("USE_HAL_DRIVER", "USE_FULL_LL_DRIVER", "EXTENDED_PIN_MODE", "VECT_TAB_OFFSET=0")
    options = [
        *("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-Os", "-c"),
        *("-ffunction-sections", "-fdata-sections", "-DHAL_UART_MODULE_ENABLED"),
        '-DVARIANT_H="variant_NUCLEO_F446RE.h"',
        *(f"-D{macro}" for macro in macros),
        *(f"-isystem{folder}" for folder in folders),
        *("-I", made.folder / "src", "-Wall", "-Wextra", "-Werror"),
    ]
    sources = [made.folder / path for path in made.files if path.endswith(".c")]
    run("arm-none-eabi-gcc", *options, "-std=gnu17", *sources, where=tmp_path)
    (sketch,) = [made.folder / path for path in made.files if path.endswith(".ino")]
    plain = ("-std=gnu++17", "-fno-rtti", "-fno-exceptions", "-include", "Arduino.h")
    output = tmp_path / "sketch.o"
    run("arm-none-eabi-g++", *options, *plain, "-x", "c++", sketch, "-o", output)
    symbols = run("arm-none-eabi-nm", "-C", output)
    assert all(name in symbols for name in ("T setup", "T loop", "U digits_int8_run"))


def test_arduino_lint_finds_nothing_wrong(export: Export) -> None:
    """Its own schema, with the rules for a library that is not in the library manager's index."""
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    folder = os.environ.get("THIMBLE_ARDUINO_LINT", "")
    if not folder:
        pytest.skip("needs THIMBLE_ARDUINO_LINT, a checkout of arduino/arduino-lint")
    schemas = Path(folder) / "etc" / "schemas"
    rules = json.loads((schemas / "arduino-library-properties-schema.json").read_text())
    definitions = json.loads(
        (schemas / "arduino-library-properties-definitions-schema.json").read_text()
    )
    general = json.loads((schemas / "general-definitions-schema.json").read_text())
    referencing = pytest.importorskip("referencing")
    registry = referencing.Registry().with_resources(
        (schema["$id"], referencing.Resource.from_contents(schema))
        for schema in (rules, definitions, general)
    )
    lines = (export("arduino").folder / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    jsonschema.Draft7Validator(rules, registry=registry).validate(properties)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(rules, registry=registry).validate({"name": "x"})


def test_platformio_packs_it(export: Export, tmp_path: Path) -> None:
    """PlatformIO asks a server for the list of licences; without one, the rest is checked."""
    folder = shutil.copytree(export("platformio").folder, tmp_path / "package")
    pack = (tool("pio"), "pkg", "pack", "-o", str(tmp_path / "models.tar.gz"))
    done = subprocess.run(pack, cwd=folder, capture_output=True, text=True, check=False)
    if "Could not load SPDX licenses" in done.stdout + done.stderr:
        manifest = json.loads((folder / "library.json").read_text())
        del manifest["license"]
        (folder / "library.json").write_text(json.dumps(manifest))
        run(*pack, where=folder)
    else:
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    listed = run("tar", "tzf", tmp_path / "models.tar.gz").split()
    assert {"library.json", "src/digits_int8.c", "include/again.h"} <= {
        name.removeprefix("./") for name in listed
    }


def test_compote_packs_it(export: Export, tmp_path: Path) -> None:
    made = export("esp-idf")
    pack = ("component", "pack", "--name", "digits", "--version", "1.0.0", "--dest-dir", tmp_path)
    run(tool("compote"), *pack, where=made.folder)
    assert list(tmp_path.glob("*.tgz"))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_esp_idf_gets_c_without_arms_instructions(export: Export, tmp_path: Path) -> None:
    """This machine has none either: it computes what the kernels made for it compute."""
    start = tmp_path / "start.c"
    start.write_text("void app_main(void);\nint main(void) { app_main(); return 0; }\n")
    printed = []
    for made, more in ((export("esp-idf"), [start]), (export("cmake", "host"), [])):
        folder = shutil.copytree(made.folder, tmp_path / made.folder.parent.name)
        (main,) = (folder / path for path in made.files if Path(path).name == "main.c")
        graded(main)
        sources = [*(folder / path for path in made.files if path.endswith(".c")), *more]
        include = ("-I", folder / "include", "-I", folder / "src")
        run("gcc", "-O1", *include, *sources, "-lm", "-o", tmp_path / "program")
        printed.append(run(tmp_path / "program"))
    assert printed[0] == printed[1]
    assert "digits_int8 data: " in printed[0] and "error" not in printed[0]
    with pytest.raises(InputError, match="instructions that Espressif's chips lack"):
        export_models([DIGITS], "esp-idf", tmp_path / "out", "netduinoplus2")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("arm-none-eabi-g++")),
    reason="needs cmake and arm-none-eabi-g++",
)
def test_a_project_in_c_plus_plus_takes_the_toolchain_file(export: Export, tmp_path: Path) -> None:
    folder = export("cmake", "mps2-an386").folder
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(own LANGUAGES C CXX)\n"
        f'add_subdirectory("{folder}" models)\nadd_library(own STATIC own.cpp)\n'
        "target_link_libraries(own thimble_models)\n"
    )
    own = '#include "digits_int8.hpp"\nthimble::digits_int8::arena network;\n'
    (tmp_path / "own.cpp").write_text(own)
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={folder / 'toolchain.cmake'}"
    run("cmake", "-B", "build", toolchain, where=tmp_path)
    run("cmake", "--build", "build", "--target", "own", where=tmp_path)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_models_may_share_an_arena(models: list[Path], tmp_path: Path) -> None:
    made = export_models(models, "cmake", tmp_path / "out", "host", share_arena=True)
    assert "include/thimble_shared_arena.h" in made.files
    c_files = [made.folder / p for p in made.files if p.endswith(".c")]
    include = ("-I", made.folder / "include", "-I", made.folder / "src")
    run("gcc", "-O1", *include, *c_files, "-lm", "-o", tmp_path / "program")
    assert "digits_int8" in run(tmp_path / "program")


_BOTH = """
#include "again.h"
#include "digits_int8.h"
#include <string.h>

int main(void)
{
    uint8_t *const one = digits_int8_arena(), *const other = again_arena();

    memset(digits_int8_input_image(one), 7, DIGITS_INT8_INPUT_IMAGE_BYTES);
    memset(again_input_image(other), 7, AGAIN_INPUT_IMAGE_BYTES);
    if (digits_int8_run(one) != DIGITS_INT8_OK || again_run(other) != AGAIN_OK) {
        return 1;
    }
    return memcmp(digits_int8_output_data(one), again_output_data(other), AGAIN_OUTPUT_DATA_BYTES);
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_two_exports_link_together(models: list[Path], tmp_path: Path) -> None:
    def exported(which: list[Path], out: str, of: Path | None = None) -> Exported:
        options = PlanOptions(nearly_free=False, split_seconds=0.0, fast=True)
        folder = tmp_path / out
        return export_models(which, "cmake", folder, "host", options, kernels_from=of)

    first = exported(models[:1], "first")
    second = exported(models[1:], "second", first.folder)
    sources = [[p for p in made.files if "/main.c" not in p] for made in (first, second)]
    kernels = [{Path(p).name for p in files if "kernels/" in p} for files in sources]
    assert not kernels[0] & kernels[1] and any(name.startswith("arm_") for name in kernels[1])
    said = (second.folder / "README.md").read_text()
    assert f"- {len(kernels[0])} of its kernels are in another export" in said
    main = tmp_path / "main.c"
    main.write_text(_BOTH)
    c_files = [
        made.folder / path
        for made, files in zip((first, second), sources, strict=True)
        for path in files
        if path.endswith(".c")
    ]
    include = [f"-I{made.folder / name}" for made in (first, second) for name in ("include", "src")]
    macros = ("-DAGAIN_STATIC_ARENA", "-DDIGITS_INT8_STATIC_ARENA")
    run("gcc", "-O0", *macros, *include, main, *c_files, "-lm", "-o", tmp_path / "program")
    run(tmp_path / "program")

    def refused(message: str, of: Path, out: str = "third") -> None:
        with pytest.raises(InputError, match=message):
            exported(models[1:2], out, of)

    (tmp_path / "empty").mkdir()
    refused("holds no kernels", tmp_path / "empty")
    refused("is the folder that is to be written", first.folder, "first")
    older = next(path for path in c_files if path.name == "thimble_softmax_s8.c")
    older.write_text("/* older */\n")
    refused("thimble_softmax_s8.c is another version", first.folder)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    options = ["--for", "cmake", "--chip", "STM32U575ZI", "--name", "reader", "-o", str(out)]
    assert thimble(["export", str(DIGITS), *options, "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["target"], told["models"]) == ("cmake", ["reader"])
    assert told["board"] == "stm32u575zi"
    assert told["cores"] == "Cortex-M4 and M7, and M33 with the DSP extension"
    assert sorted(told["files"]) == sorted(
        p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file() and p.name[0] != "."
    )
    assert "-mcpu=cortex-m33" in (out / "toolchain.cmake").read_text()
    boardless = [word for word in options if word not in ("--chip", "STM32U575ZI")]
    assert thimble(["export", str(DIGITS), *boardless]) == 0  # replaces what it wrote
    said = " ".join(capsys.readouterr().err.split())
    assert "No --board: planned for netduinoplus2. The package serves Cortex-M4 and M7" in said
    (out / "mine.c").write_text("")
    assert thimble(["export", str(DIGITS), *options]) == 2
    capsys.readouterr()
    assert thimble(["export", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in exporters())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--for", "keil"], "no target 'keil' to export for; there are arduino"),
        ([], "--for names the build system: one of arduino"),
        (["--for", "cmake", "--share-arena"], "one model has its arena alone"),
        (["--for", "cmake", "--name", "1x"], "1x"),
    ],
)
def test_what_cannot_be_exported(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert thimble(["export", str(DIGITS), *arguments, "-o", str(tmp_path / "out")]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_an_exporter_is_found_by_its_file() -> None:
    assert exporter("cmake") is exporters()["cmake"]


def test_registries_find_what_they_ask_for(export: Export) -> None:
    """packchk warns of a pack without <url> and release date (M304 and M395 of
    tools/packchk/README.md in Open-CMSIS-Pack/devtools); PlatformIO's registry wants a licence, a
    repository and authors."""
    pack = export("cmsis-pack")
    (file,) = (pack.folder / path for path in pack.files if path.endswith(".pdsc"))
    described = ElementTree.parse(file).getroot()
    assert described.findtext("url") == URL
    (release,) = described.iter("release")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", release.attrib["date"])
    manifest = json.loads((export("platformio").folder / "library.json").read_text())
    assert manifest["license"] == "Apache-2.0" and manifest["authors"][0]["name"]
    assert manifest["repository"]["url"].startswith(URL)


@pytest.mark.parametrize(
    ("chosen", "architectures"),
    [("nucleo-f446re", {"stm32", "nrf52"}), ("nucleo-h743zi", {"stm32", "mbed_portenta"})],
)
def test_arduino_names_the_architectures_whose_core_the_code_takes(
    chosen: str, architectures: set[str], export: Export
) -> None:
    """`architectures=*` offered it for an AVR, whose compiler stops at the code's #error."""
    lines = (export("arduino", chosen).folder / "library.properties").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("architectures="))
    named = set(line.partition("=")[2].split(","))
    assert architectures <= named and not named & {"*", "avr", "esp32"}
