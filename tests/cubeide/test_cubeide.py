"""`thimble export --for cubeide` in a project as STM32CubeMX lays it out, built with Arm's gcc.

ST's drivers and device headers, and CMSIS's, are looked for in folders named by environment
variables: THIMBLE_HAL_STM32 (zephyrproject-rtos/hal_stm32, for its `stm32cube`) and THIMBLE_CMSIS
(ARM-software/CMSIS_6, for its `CMSIS/Core/Include`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.examples import GRADED, graded
from toolchain import compile_model, deployed, export_models
from toolchain.boards import board
from toolchain.errors import InputError
from toolchain.resources import RUNTIME_C

DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"
PARTS = {"STM32F446RE": "STM32F446xx", "STM32H743ZI": "STM32H743xx", "STM32U575ZI": "STM32U575xx"}

TOP = """\
cmake_minimum_required(VERSION 3.22)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_PROJECT_NAME reader)
project(${CMAKE_PROJECT_NAME})
enable_language(C ASM)
add_executable(${CMAKE_PROJECT_NAME})
add_subdirectory(cmake/stm32cubemx)
add_subdirectory(digits)
target_sources(${CMAKE_PROJECT_NAME} PRIVATE digits/example/digits_example.c)
target_link_libraries(${CMAKE_PROJECT_NAME} stm32cubemx)
"""
GENERATED = """\
cmake_minimum_required(VERSION 3.22)
add_library(stm32cubemx INTERFACE)
target_include_directories(stm32cubemx INTERFACE @CUBE@/drivers/include @CUBE@/soc @CMSIS@)
target_compile_definitions(stm32cubemx INTERFACE USE_HAL_DRIVER @DEVICE@)
add_library(STM32_Drivers OBJECT
  @CUBE@/soc/system_@FAMILY@xx.c
  @CUBE@/drivers/src/@FAMILY@xx_hal.c
  @CUBE@/drivers/src/@FAMILY@xx_hal_cortex.c
  @CUBE@/drivers/src/@FAMILY@xx_hal_rcc.c
  @CUBE@/drivers/src/@FAMILY@xx_hal_gpio.c
)
target_link_libraries(STM32_Drivers PUBLIC stm32cubemx)
target_sources(${CMAKE_PROJECT_NAME} PRIVATE ${CMAKE_SOURCE_DIR}/Core/Src/main.c)
target_link_libraries(${CMAKE_PROJECT_NAME} STM32_Drivers)
"""
TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS "@FLAGS@ -Wall -fdata-sections -ffunction-sections")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g3")
set(CMAKE_EXE_LINKER_FLAGS "--specs=nano.specs --specs=nosys.specs -Wl,--gc-sections")
"""
MAIN = """\
#include "@FAMILY@xx_hal.h"
#include "digits.h"

int digits_example(void);

int main(void)
{
    HAL_Init();
    while (digits_example() == 0) {
        HAL_Delay(1000);
    }
    return 1;
}
"""


def fetched(variable: str, below: str) -> Path:
    folder = os.environ.get(variable, "")
    if not folder:
        pytest.skip(f"needs ${variable} (see this file's first lines)")
    return Path(folder).resolve() / below


def run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")
@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.parametrize("part", PARTS)
def test_in_a_project_of_cubemx(part: str, tmp_path: Path) -> None:
    """Linked into a program with ST's HAL by one line; its files compiled with -O2 in a debug
    build, whose own are not optimised.
    """
    family = part[: len("STM32F4")].lower()
    values = {
        "@CUBE@": str(fetched("THIMBLE_HAL_STM32", f"stm32cube/{family}xx")),
        "@CMSIS@": str(fetched("THIMBLE_CMSIS", "CMSIS/Core/Include")),
        "@DEVICE@": PARTS[part],
        "@FAMILY@": family,
        "@FLAGS@": " ".join(board(part).compiler_flags),
    }
    for path, text in {
        "CMakeLists.txt": TOP,
        "cmake/stm32cubemx/CMakeLists.txt": GENERATED,
        "cmake/gcc-arm-none-eabi.cmake": TOOLCHAIN,
        "Core/Src/main.c": MAIN,
    }.items():
        for key, value in values.items():
            text = text.replace(key, value)
        file = tmp_path / "project" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    project, build = tmp_path / "project", tmp_path / "build"
    export_models([DIGITS], "cubeide", project / "digits", part, name="digits")
    toolchain = project / "cmake" / "gcc-arm-none-eabi.cmake"
    options = ("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    chosen = f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"
    run("cmake", "-S", project, "-B", build, "-GUnix Makefiles", *options, chosen)
    run("cmake", "--build", build)
    symbols = run("arm-none-eabi-nm", build / "reader")
    assert " T digits_run" in symbols and " T HAL_Init" in symbols
    commands = (build / "compile_commands.json").read_text().split('"command"')
    (kernel,) = [c for c in commands if "thimble_softmax_s8.c" in c]
    assert kernel.index("-O0") < kernel.index("-O2")
    assert not any("-O2" in c for c in commands if "_hal_rcc.c" in c)


WRITE = """\
int _write(int file, const char *from, int count);
int _write(int file, const char *from, int count)
{
    for (int i = 0; i < count; i++) { /* semihosting: SYS_WRITEC */
        register int operation __asm("r0") = 3;
        register const char *character __asm("r1") = &from[i];
        (void)file;
        __asm volatile("bkpt 0xAB" : "+r"(operation) : "r"(character) : "memory");
    }
    return count;
}
"""
MANAGED = "com.st.stm32cube.ide.mcu.gnu.managedbuild."


def test_the_ides_project_builds_what_it_names_and_runs(tmp_path: Path) -> None:
    """Compiled and linked as .cproject says; run in QEMU's STM32F405."""
    if not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    part = "STM32F405RG"
    folder = export_models([DIGITS], "cubeide", tmp_path / "out", part, name="digits").folder
    described = ElementTree.parse(folder / ".project").getroot()
    assert described.findtext("name") == "digits"
    root = ElementTree.parse(folder / ".cproject").getroot()
    options = {
        option.attrib["superClass"].removeprefix(MANAGED): option for option in root.iter("option")
    }
    values = {name: option.attrib.get("value", "") for name, option in options.items()}
    assert values["option.target_mcu"] == "STM32F405RGTx"
    include = [
        f"-I{(folder / 'Release' / v.attrib['value']).resolve()}"
        for v in options["tool.c.compiler.option.includepaths"]
    ]
    assert all(Path(flag[2:]).is_dir() for flag in include)
    entries = [folder / entry.attrib["name"] for entry in root.iter("entry")]
    sources = [str(path) for entry in entries for path in sorted(entry.rglob("*.c"))]
    named = {Path(source).name for source in sources}
    assert {"digits.c", "startup.c", "digits_example.c"} <= named
    graded(folder / "example" / "digits_example.c")
    script = values["tool.c.linker.option.script"].removeprefix("${workspace_loc:/${ProjName}/")
    written = tmp_path / "write.c"
    written.write_text(WRITE)
    flags = (
        "-mcpu=cortex-m4",
        "-mthumb",
        f"-mfpu={values['option.fpu'].rsplit('.', 1)[1]}",
        f"-mfloat-abi={values['option.floatabi'].rsplit('.', 1)[1]}",
        f"-{values['tool.c.compiler.option.optimization.level'].rsplit('.', 1)[1].upper()}",
        *("--specs=nano.specs", "--specs=nosys.specs", "-nostartfiles", "-Wl,--gc-sections"),
        f"-T{folder / script.removesuffix('}')}",
    )
    elf = tmp_path / "digits.elf"
    run("arm-none-eabi-gcc", *flags, *include, *sources, written, "-o", elf)
    machine = ("qemu-system-arm", "-machine", "netduinoplus2", "-display", "none")
    semihosting = ("-semihosting-config", "enable=on,target=native", "-kernel", str(elf))
    with subprocess.Popen(
        [*machine, "-serial", "none", "-monitor", "none", *semihosting],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        alarm = threading.Timer(300.0, process.kill)
        alarm.start()
        line = process.stderr.readline().decode()
        alarm.cancel()
        process.kill()
    compile_model(DIGITS, "host", tmp_path / "host")
    with deployed(tmp_path / "host") as deployment:
        (end,) = deployment.inputs
        (wanted,) = deployment.run({end.name: GRADED}).outputs.values()
    assert line == f"digits data: {' '.join(map(str, wanted.reshape(-1).tolist()))}\n"


def test_a_board_whose_part_is_not_known_has_no_project(tmp_path: Path) -> None:
    made = export_models([DIGITS], "cubeide", tmp_path / "out", "nucleo-f446re", name="digits")
    assert not {".project", ".cproject"} & set(made.files)


def test_it_is_for_a_chip(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="projects for ST's chips"):
        export_models([DIGITS], "cubeide", tmp_path / "out", "host")
    assert not (tmp_path / "out").exists()
