"""Finding CMSIS-NN, and which of its files a function needs. pip is real, its index a folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from toolchain.errors import InputError, MissingToolError
from toolchain.kernels import cmsis_nn
from toolchain.kernels.c_sources import CTree, source_closure

FOLDER = "aidge_export_arm_cortexm/_CMSIS-NN/CMSIS-NN"
WHEEL = "aidge_export_arm_cortexm-0.2.1-py3-none-any.whl"


def make_wheel(folder: Path, content: dict[str, bytes]) -> None:
    """A wheel of the pinned name and version that holds `content` below CMSIS-NN's folder."""
    info = "aidge_export_arm_cortexm-0.2.1.dist-info"
    metadata = b"Metadata-Version: 2.1\nName: aidge_export_arm_cortexm\nVersion: 0.2.1\n"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        for name, data in content.items():
            archive.writestr(f"{FOLDER}/{name}", data)
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def real_content() -> dict[str, bytes]:
    root = cmsis_nn.find()
    files = (p for part in ("Include", "Source") for p in (root / part).rglob("*") if p.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package index, an empty cache, no $CMSIS_NN_DIR."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.delenv(cmsis_nn.ENVIRONMENT_VARIABLE, raising=False)
    return folder


@pytest.mark.slow
def test_the_cache_is_filled_once_and_mended(index: Path, real_content: dict[str, bytes]) -> None:
    make_wheel(index, {**real_content, "Tests/huge.h": b"not needed", "../../evil": b""})
    said: list[str] = []
    assert cmsis_nn.installed() is None
    found = cmsis_nn.find(report=said.append)
    assert len(said) == 1 and "CMSIS-NN" in said[0]
    assert cmsis_nn.find(report=said.append) == found == cmsis_nn.installed()
    assert len(said) == 1
    assert not (found / "Tests").exists()
    assert [p.name for p in cmsis_nn.cache_folder().iterdir()] == [found.name]

    (found / "Include" / "arm_nnfunctions.h").write_text("damaged")
    assert cmsis_nn.installed() is None
    assert cmsis_nn.find() == found
    assert (found / "Include" / "arm_nnfunctions.h").read_bytes() == real_content[
        "Include/arm_nnfunctions.h"
    ]


@pytest.mark.slow
def test_two_processes_at_once(index: Path, real_content: dict[str, bytes]) -> None:
    make_wheel(index, real_content)
    finding = "from toolchain.kernels import cmsis_nn; print(cmsis_nn.find())"
    command = [sys.executable, "-c", finding]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {process.communicate()[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert said == {str(cmsis_nn.installed())}


@pytest.mark.slow
def test_another_wheel_is_refused(index: Path, real_content: dict[str, bytes]) -> None:
    make_wheel(index, {**real_content, "Source/extra.c": b"int x;"})
    with pytest.raises(MissingToolError, match="pinned"):
        cmsis_nn.find()
    (index / WHEEL).write_bytes(b"not a wheel")
    with pytest.raises(MissingToolError):
        cmsis_nn.find()
    assert cmsis_nn.installed() is None


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_no_wheel_says_what_to_do() -> None:
    with pytest.raises(MissingToolError, match="CMSIS_NN_DIR"):
        cmsis_nn.find()


def test_explicit_folder_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cmsis_nn.find()
    monkeypatch.setenv(cmsis_nn.ENVIRONMENT_VARIABLE, str(tmp_path))
    assert cmsis_nn.find(real) == real
    with pytest.raises(InputError, match=r"CMSIS_NN_DIR.*not CMSIS-NN"):
        cmsis_nn.find()
    with pytest.raises(InputError, match="--cmsis-nn"):
        cmsis_nn.find(tmp_path)


def names(functions: list[str], tree: CTree) -> set[str]:
    return {path.stem for path in source_closure(functions, [tree]).files}


def test_closure_on_cmsis_nn() -> None:
    tree = cmsis_nn.tree(cmsis_nn.find())
    conv = names(["arm_convolve_s8"], tree)
    assert {"arm_convolve_s8", "arm_nn_mat_mult_kernel_s8_s16"} <= conv
    assert "arm_convolve_1x1_s8" not in conv
    assert "arm_nntables" in names(["arm_nn_activation_s16"], tree)
    assert names(["arm_convolve_wrapper_s8_get_buffer_size"], tree) >= {
        "arm_convolve_get_buffer_sizes_s8"
    }
    assert source_closure(["arm_convolve_s8"], [tree]).headers == ("arm_nnfunctions.h",)


def test_closure_follows_calls_tables_inlines_and_macros_but_not_comments(tmp_path: Path) -> None:
    source, include = tmp_path / "source", tmp_path / "include"
    source.mkdir()
    include.mkdir()
    texts = {
        "first.c": "#include <a.h>\n\nint\nfirst(int x,\n      int y)\n{\n    return inlined(x) "
        '+ table[y];\n}\n/* commented() */\nconst char *s = "quoted()";\n',
        "tables.c": "const int table[2] = {\n    1, 2};\n",
        "called.c": "static int private(int x)\n{\n    return x;\n}\n"
        "long called(long x)\n{\n    return private(WRAP(x));\n}\n",
        "wrapped.c": "long wrapped(long x) { return x; }\n",
        "commented.c": "void commented(void)\n{\n}\n",
        "quoted.c": "void quoted(void)\n{\n}\n",
        "private.c": "void unrelated(void)\n{\n}\n",
    }
    for name, text in texts.items():
        (source / name).write_text(text)
    (include / "a.h").write_text(
        "int first(int x, int y);\n#define WRAP(x) \\\n    wrapped(x)\n"
        "static inline int inlined(int x)\n{\n#if A\n    if (x) {\n#else\n    if (!x) {\n#endif\n"
        "        return (int)called(x);\n    }\n    return 0;\n}\nvoid commented(void);\n"
    )
    tree = CTree(source, include)
    assert names(["first"], tree) == {"first", "tables", "called", "wrapped"}
    assert source_closure(["first"], [tree]).headers == ("a.h",)
    assert names(["inlined"], tree) == {"called", "wrapped"}
    assert source_closure(["inlined"], [tree]).headers == ("a.h",)
    with pytest.raises(MissingToolError, match="missing_one"):
        source_closure(["first", "missing_one"], [tree])
    with pytest.raises(MissingToolError, match="private"):
        source_closure(["private"], [tree])
