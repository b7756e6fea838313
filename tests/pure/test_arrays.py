"""Arrays from files: what is taken, and what is refused before memory is."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolchain.errors import InputError
from toolchain.files.arrays import (
    _any_shape,
    read_array,
    read_named_arrays,
)
from toolchain.ir import DType, End, Quantisation, Tensor
from toolchain.preprocess.samples import MOST_INFERENCES, read_samples

END = End(Tensor("x", (2, 3), DType.INT8, Quantisation((0.1,), (0,))))


def _npy(shape: str = "(2, 3)", descr: str = "'|i1'", data: bytes = bytes(6)) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["i1", "<f8", ">i2", "?", "<u4", "<f2"])
def test_arrays_come_back(order: str, dtype: str, tmp_path: Path) -> None:
    values = np.asarray(np.arange(24).reshape(2, 3, 4) % 2, dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    np.savez_compressed(tmp_path / "a.npz", x=values, y=values[0])
    np.testing.assert_array_equal(read_array(tmp_path / "a.npy"), values)
    np.testing.assert_array_equal(read_array(tmp_path / "a.npz"), values)
    found = read_named_arrays(tmp_path / "a.npz", {"y": _any_shape, "x": _any_shape})
    np.testing.assert_array_equal(found["y"], values[0])
    assert found["x"].dtype == values.dtype


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b"hello, world", r"it begins with b'hello,'"),
        (_npy("(2, 4)"), "ends after 6 of 8 bytes of data"),
        (_npy("(2, 400)"), r"\[2, 400\] of int8, 800 bytes, and has"),
        (_npy(f"({'1, ' * 70})"), "70 dimensions"),
        (_npy("(1000000, 1000000)"), "1,000,000,000,000 bytes of data; the most is"),
        (_npy("(True, 3)"), "the shape is"),
        (_npy("(-2, 3)"), "the shape is"),
        (_npy(f"({'9' * 40}, 0)"), "the shape is"),
        (_npy("((2, 3))" + ")" * 50), r"\.npy header"),
        (_npy(descr="'|O'"), "holds object: an array of numbers"),
        (_npy(descr="'<U4'"), "an array of numbers"),
        (_npy(descr="[('a', '|i1')]"), "an array of numbers"),
        (_npy(descr="'<c8'"), "an array of numbers"),
        (b"\x93NUMPY\x09\x00" + bytes(20), r"version \(9, 0\) is unknown"),
        (b"PK\x03\x04", "name it .npz"),
    ],
)
def test_what_is_no_array_is_refused(data: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    file.write_bytes(data)
    with pytest.raises(InputError, match=said) as caught:
        read_array(file)
    assert str(file) in str(caught.value)
    entry = tmp_path / "b.npz"
    with zipfile.ZipFile(entry, "w") as archive:
        archive.writestr("x.npy", data)
    with pytest.raises(InputError, match=r"b\.npz, entry 'x\.npy'"):
        read_array(entry)


def test_a_small_file_takes_no_large_memory(tmp_path: Path) -> None:
    """A megabyte of zip that says it holds a terabyte, and one that does hold two gigabytes."""
    lying, bomb = tmp_path / "lying.npz", tmp_path / "bomb.npz"
    with zipfile.ZipFile(lying, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", _npy("(1000000, 1000)", data=bytes(1000)))
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("x.npy", _npy("(3, 1)", data=bytes(50_000_000)))
    np.testing.assert_array_equal(read_array(bomb), np.zeros((3, 1)))
    code = (
        "import sys, resource\n"
        "from pathlib import Path\n"
        "from toolchain.files.arrays import read_array\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for name in sys.argv[1:]:\n"
        "    try: read_array(Path(name))\n"
        "    except Exception as error: print(type(error).__name__)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", code, str(lying), str(bomb)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kind, grown = done.stdout.split()
    assert kind == "InputError"
    assert int(grown) < 20_000, "kilobytes"


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".bin"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_end_in_one_message(suffix: str, data: st.DataObject, tmp_path: Path) -> None:
    """Real files with bytes changed, cut off or added."""
    target = io.BytesIO()
    if suffix == ".npz":
        np.savez_compressed(target, x=np.arange(600, dtype=np.int16))
    else:
        np.save(target, np.arange(6, dtype=np.int8))
    content = bytearray(target.getvalue())
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    file = tmp_path / f"damaged{suffix}"
    file.write_bytes(content)
    try:
        read_samples([file], [END])
    except InputError as error:
        assert "\n" not in str(error)


def test_numbers_that_do_not_fit_are_refused_without_a_warning(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    file = tmp_path / "a.npy"
    np.save(file, np.full((2, 3), 1e300))
    with pytest.raises(InputError, match="do not fit"):
        read_samples([file], [END])
    floats = End(Tensor("x", (2, 3), DType.FLOAT32))
    with pytest.raises(InputError, match="beyond float32"):
        read_samples([file], [floats])
    assert not recwarn.list


def test_a_long_list_of_names_is_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "many.npz"
    np.savez(file, **{f"a{number}": np.zeros(1, np.int8) for number in range(40)})
    with pytest.raises(InputError, match=r"has no array 'x'; it has: a0, .*, a7 and 32 more$"):
        read_named_arrays(file, {"x": _any_shape})


def test_a_small_file_of_millions_of_inferences_is_refused(tmp_path: Path) -> None:
    """A thousand times its size when unpacked, and a sound array."""
    file = tmp_path / "frames.npz"
    np.savez_compressed(file, x=np.zeros((MOST_INFERENCES + 1, 2, 3), np.int8))
    assert file.stat().st_size < 20_000
    with pytest.raises(
        InputError, match=r"for 1,000,001 inferences of input 'x'; .* several files"
    ):
        read_samples([file], [END])
