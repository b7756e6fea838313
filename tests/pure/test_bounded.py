"""Data of users are refused by what files say of their size, before they are read or unpacked."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from toolchain.errors import InputError
from toolchain.files import arrays
from toolchain.files.arrays import read_array
from toolchain.files.bounded import MOST_SAMPLE_BYTES, read_bounded
from toolchain.files.labels import read_labels
from toolchain.files.records import LARGEST_JSON_BYTES, LARGEST_TOML_BYTES, read_json, read_toml
from toolchain.files.tables import read_table
from toolchain.frontends import read_model_file
from toolchain.ir import DType, End, Tensor
from toolchain.preprocess import samples
from toolchain.preprocess.media import read_image, read_sound
from toolchain.preprocess.samples import read_samples

END = End(Tensor("x", (2, 3), DType.INT8))


def _npy(shape: tuple[int, ...], data: bytes) -> bytes:
    target = io.BytesIO()
    header = {"descr": "|i1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(target, header)
    return target.getvalue() + data


def _sparse(file: Path, begin: bytes, size: int) -> Path:
    """A file of `size` bytes that takes none on the disk."""
    file.write_bytes(begin)
    os.truncate(file, size)
    return file


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize(
    "shape, said",
    [((7,), r"takes shape \[2, 3\], not \[7\]"), ((1_000_001, 2, 3), "for 1,000,001 inferences")],
)
def test_an_array_is_refused_by_its_shape(
    shape: tuple[int, ...], said: str, suffix: str, tmp_path: Path
) -> None:
    """Its data are damaged, which nobody sees who does not read them."""
    file = tmp_path / f"a{suffix}"
    if suffix == ".npy":
        _sparse(file, _npy(shape, b""), 8_000_000)
    else:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("x.npy", _npy(shape, bytes(7_000_000)))
        content = bytearray(file.read_bytes())
        content[5_000_000] = 1  # the checksum differs
        file.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_samples([file], [END])


def test_a_header_that_says_it_is_large(tmp_path: Path) -> None:
    """Version 2 has 32 bits for the length of its header, which NumPy reads before it looks."""
    data = b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xFFFF_FFFF) + bytes(100)
    (tmp_path / "a.npy").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", data)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(InputError, match="its header has 4,294,967,295 bytes"):
            read_array(tmp_path / name)


def test_arrays_of_one_file_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = [End(Tensor(name, (100,), DType.INT8)) for name in ("x", "y")]
    file = tmp_path / "two.npz"
    np.savez_compressed(file, x=np.zeros((6, 100), np.int8), y=np.zeros((6, 100), np.int8))
    assert len(read_samples([file], ends)) == 6
    monkeypatch.setattr(arrays, "LARGEST_BYTES", 1_000)
    with pytest.raises(InputError, match=r"unpacks to 1,\d+ bytes; the most is 1,000"):
        read_samples([file], ends)


def test_a_declared_size_that_lies(tmp_path: Path) -> None:
    """The archive says 4 GB of an entry that has 1 KB."""
    file = tmp_path / "lies.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", _npy((1000,), bytes(1000)))
    content = bytearray(file.read_bytes())
    at = content.index(b"PK\x01\x02") + 24  # the size when unpacked, in the central directory
    content[at : at + 4] = struct.pack("<I", 0xFFFF_FFF0)
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"unpacks to 4,294,967,280 bytes"):
        read_samples([file], [END])


def test_all_numbers_of_a_command_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / f"{number}.npy" for number in range(3)]
    for file in files:
        np.save(file, np.zeros((2, 2, 3), np.int8))
    assert len(read_samples(files, [END])) == 6
    monkeypatch.setattr(samples, "MOST_ELEMENTS", 35)
    with pytest.raises(InputError, match=r"with .*2\.npy the data .* more than 35 numbers"):
        read_samples(files, [END])
    monkeypatch.setattr(arrays, "MOST_ELEMENTS", 11)
    with pytest.raises(InputError, match=r"0\.npy says that it holds 12 numbers"):
        read_samples(files, [END])


READERS: list[tuple[Callable[[Path], object], int]] = [
    (read_json, LARGEST_JSON_BYTES),
    (read_toml, LARGEST_TOML_BYTES),
    (read_labels, 1 << 20),
    (read_model_file, 1 << 30),
    (read_table, MOST_SAMPLE_BYTES),
    (read_sound, MOST_SAMPLE_BYTES),
    (lambda file: read_image(file, 8, 8, 3, False), MOST_SAMPLE_BYTES),
    (lambda file: read_samples([file], [END]), arrays.MOST_ELEMENTS),
]


@pytest.mark.parametrize("read, most", READERS)
def test_a_large_file_is_not_read(
    read: Callable[[Path], object],
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no bytes on the disk; a reader that begins to read it fails here."""
    file = _sparse(tmp_path / "large", b"", most + 1)

    class Unread(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            raise AssertionError("it is read")

    monkeypatch.setattr(Path, "open", lambda self, mode: Unread(self))
    with pytest.raises(InputError, match=f"large is larger than {most:,} bytes"):
        read(file)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_device_without_end() -> None:
    with pytest.raises(InputError, match="/dev/zero is larger than 1,000 bytes"):
        read_bounded(Path("/dev/zero"), 1_000)
