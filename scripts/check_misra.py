#!/usr/bin/env python3
"""Holds generated C, kernels and firmware against MISRA C:2012, by cppcheck's addon, and lists
what docs/misra.md has no deviation for.

    scripts/check_misra.py [--write] [--list RULE]

Generated C is that of small models of every shape, and of models in ../shared/models where they
are there. Needs cppcheck (apt install cppcheck). The exit code is 1 where a rule is broken that the
document does not list, where a mandatory rule or anything else that cppcheck knows is broken, and
where the document lists a rule that nothing breaks. `--write` renews the counts in the document;
`--list` prints every place of one rule.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.c_samples import CORTEX_M4, write_samples  # noqa: E402
from toolchain.boards import HOST, board  # noqa: E402
from toolchain.deployment.compile import compile_library  # noqa: E402
from toolchain.device.build import BuildOptions, firmware_defines  # noqa: E402
from toolchain.kernels import runtime_c  # noqa: E402
from toolchain.resources import RUNTIME_C  # noqa: E402

DOCUMENT = ROOT / "docs" / "misra.md"
MODELS = ROOT.parent / "shared" / "models"
SHARED = {
    "mlperf_tiny_kws_dscnn_int8.tflite": "nucleo-l4r5zi",
    "mlperf_tiny_vww_mbv1_025_96_int8.tflite": "nucleo-l4r5zi",
    "esphome_v2_okay_nabu.tflite": "nucleo-f446re",
    "tflm_mnist_lstm_int8.tflite": "nucleo-h743zi",
}
MANDATORY = frozenset(
    {
        *("9.1", "12.5", "13.6", "17.3", "17.4", "17.6", "19.1", "21.13", "21.17", "21.18"),
        *("21.19", "21.20", "22.2", "22.4", "22.5", "22.6"),
    }
)
PLAIN = ("-UTHIMBLE", "-D__BYTE_ORDER__=1234", "-D__ORDER_LITTLE_ENDIAN__=1234")
"""What a compiler defines on a core without extensions. Some definition there must be: without any,
cppcheck tries all that the files ask for."""
DSP = (
    *PLAIN,
    *("-D__arm__=1", "-D__ARM_ARCH=7", "-D__ARM_ARCH_7EM__=1", "-D__ARM_FP=4"),
    *("-D__ARM_FEATURE_DSP=1", "-D__ARM_FEATURE_SAT=1", "-D__GNUC__=12"),
)
"""The same on a Cortex-M4 with an FPU."""
_CHECKER = ("cppcheck", "--addon=misra", "--std=c99", "--platform=arm32-wchar_t4", "--quiet")
_OPTIONS = (
    *("--inline-suppr", "--suppress=missingInclude", "--suppress=missingIncludeSystem"),
    "--template={file}:{line}:{id}",
)
_FOUND = re.compile(r"^(?P<file>.+?):(?P<line>\d+):(?:misra-c2012-)?(?P<rule>[\w.]+)$", re.M)
_ROW = re.compile(r"^\| (\d+\.\d+) \| (required|advisory)(?: \| *[\d,]*){3} \|(.*)$", re.M)


@dataclass(frozen=True, order=True)
class Finding:
    """A rule's number (or the name of another of cppcheck's checks), and where it is broken."""

    rule: str
    file: str
    line: int


def check(files: Sequence[Path], include: Iterable[Path], defines: Sequence[str]) -> set[Finding]:
    """What cppcheck finds in C files and the headers that they include."""
    folders = [f"-I{folder}" for folder in include]
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(
            [*_CHECKER, *_OPTIONS, f"--cppcheck-build-dir={work}", *defines, *folders, *files],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"cppcheck failed: {done.stdout}{done.stderr}")
    unread = [line for line in done.stderr.splitlines() if not _FOUND.match(line)]
    if unread:
        raise RuntimeError("cppcheck said\n" + "\n".join(unread))
    return {
        Finding(found["rule"], found["file"], int(found["line"]))
        for found in _FOUND.finditer(done.stderr)
    }


def check_kernels(files: Sequence[Path]) -> set[Finding]:
    """What it finds in our kernels, as a Cortex-M4 compiles them and as a plain core does."""
    include = runtime_c.KERNEL_INCLUDES
    with ThreadPoolExecutor() as pool:
        plain = pool.submit(check, files, include, PLAIN)
        return check(files, include, DSP) | plain.result()


def check_firmware() -> set[Finding]:
    """What it finds in the firmware that the command builds."""
    sources = RUNTIME_C / "firmware"
    defines = [*DSP, *firmware_defines(board("nucleo-f446re"), BuildOptions())]
    return check(sorted(sources.rglob("*.c")), [sources / "include", runtime_c.INCLUDE], defines)


def check_generated(library: Path, defines: Sequence[str]) -> set[Finding]:
    """What it finds in the generated files of a library, without the kernels' own headers."""
    found = check(sorted(library.glob("*.c")), [library, runtime_c.INCLUDE], defines)
    shared = {"thimble_info.h"}
    return {
        one
        for one in found
        if (library in Path(one.file).parents and "runtime" not in Path(one.file).parts)
        or Path(one.file).name in shared
    }


def check_samples(folder: Path) -> set[Finding]:
    """What it finds in generated C of every shape."""
    found: set[Finding] = set()
    for core, defines in ((CORTEX_M4, DSP), (HOST, PLAIN)):
        for library in write_samples(folder / core.name, core).values():
            found |= check_generated(library, defines)
    return found


def check_shared(folder: Path) -> set[Finding]:
    """The same of well-known models, where they are there."""
    found: set[Finding] = set()
    for model, name in SHARED.items():
        if (MODELS / model).is_file():
            compile_library(MODELS / model, name, folder / model)
            found |= check_generated(folder / model, DSP)
    return found


def deviations() -> frozenset[str]:
    """The rules that the document has deviations for."""
    return frozenset(row[0] for row in _ROW.findall(DOCUMENT.read_text(encoding="utf-8")))


def undocumented(found: Iterable[Finding]) -> list[Finding]:
    """What breaks a rule without a deviation, or one that cannot have any."""
    allowed = deviations() - MANDATORY
    return sorted(one for one in found if one.rule not in allowed)


def counted(text: str, parts: Sequence[Iterable[Finding]]) -> str:
    """The document with the numbers of places in each part."""
    counts = [Counter(one.rule for one in found) for found in parts]

    def row(match: re.Match[str]) -> str:
        rule, category, reason = match.groups()
        numbers = " | ".join(f"{count[rule]:,}" for count in counts)
        return f"| {rule} | {category} | {numbers} |{reason}"

    return _ROW.sub(row, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="renew the document's counts")
    parser.add_argument("--list", metavar="RULE", help="print every place of a rule")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        generated = check_samples(Path(folder) / "samples") | check_shared(Path(folder) / "shared")
        parts = (generated, check_kernels(runtime_c.tree().files()), check_firmware())
        found = {one for part in parts for one in part}
        for one in sorted(found) if arguments.list else ():
            if one.rule == arguments.list:
                text = Path(one.file).read_text(encoding="utf-8").splitlines()[one.line - 1]
                print(f"{Path(one.file).name}:{one.line}: {text.strip()}")
    if arguments.write:
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(counted(text, parts), encoding="utf-8")
    wrong = undocumented(found)
    for one in wrong:
        print(
            f"{one.file}:{one.line}: {one.rule} is broken, for which {DOCUMENT.name} has no reason"
        )
    unused = sorted(deviations() - {one.rule for one in found})
    for rule in unused:
        print(f"{DOCUMENT.name}: nothing breaks {rule}; remove its row")
    print(f"{len(found):,} places, {len(wrong)} without a reason in {DOCUMENT.name}")
    return 1 if wrong or unused else 0


if __name__ == "__main__":
    sys.exit(main())
