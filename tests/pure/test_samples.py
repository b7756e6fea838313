"""Images, sounds, tables and arrays as a model's inputs."""

from __future__ import annotations

import io
import json
import re
import struct
import wave
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support import sounds
from toolchain.cli import run as thimble
from toolchain.errors import InputError
from toolchain.ir import Boundary, DType, End, Quantisation, Tensor
from toolchain.preprocess import media
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.audio_input import AudioInput, BoundAudio
from toolchain.preprocess.image import (
    BoundImage,
    ImageInput,
    PixelFormat,
    frame_of,
    levels_of,
)
from toolchain.preprocess.option import (
    bound_source,
    preprocess,
    preprocess_from_json,
    preprocess_json,
)
from toolchain.preprocess.samples import AS_STORED, Scaling, read_samples, real_values
from toolchain.resources import RUNTIME_C

Image = pytest.importorskip("PIL.Image", reason="needs pillow")
DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"


def q(scale: float, zero_point: int) -> Quantisation:
    return Quantisation((scale,), (zero_point,))


def sound(samples: np.ndarray, rate: int = 16_000) -> bytes:
    """A .wav of 16 bits."""
    written = io.BytesIO()
    with wave.open(written, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(rate)
        target.writeframes(samples.astype("<i2").tobytes())
    return written.getvalue()


def end(*shape: int, dtype: DType = DType.INT8, scale: float = 1 / 255, zero: int = -128) -> End:
    quantised = None if dtype is DType.FLOAT32 else q(scale, zero)
    return End(Tensor("image", shape, dtype, quantised))


def one(file: Path, of: End, scaling: Scaling = AS_STORED) -> NDArray[np.generic]:
    (sample,) = read_samples([file], [of], scaling)
    return sample[of.name]


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """4 high, 6 wide: red grows to the right, green downwards."""
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[..., 0], pixels[..., 1] = np.arange(6) * 50, np.arange(4)[:, None] * 80
    file = tmp_path / "photo.png"
    Image.fromarray(pixels).save(file)
    return file


def test_an_image_is_quantised_as_the_input_says(photo: Path) -> None:
    found = one(photo, end(1, 4, 6, 3), Scaling((0.0, 1.0)))
    assert found.dtype == np.int8 and found.shape == (1, 4, 6, 3)
    assert found[0, 2, 5].tolist() == [250 - 128, 160 - 128, -128]


def test_mean_and_deviation_of_each_channel(photo: Path) -> None:
    """As torchvision's models are trained, in a model of ONNX: channels first, float."""
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    scaling = Scaling((0.0, 1.0), mean, std)
    found = one(photo, end(1, 3, 4, 6, dtype=DType.FLOAT32), scaling)
    wanted = (np.array([250, 160, 0]) / 255 - mean) / std
    assert found.shape == (1, 3, 4, 6)
    assert np.allclose(found[0, :, 2, 5], wanted)


def test_the_layout_of_the_model_decides(photo: Path) -> None:
    """A graph that holds NHWC for a model of NCHW: 4 x 6 x 3 is read as channels first."""
    tensor = Tensor("image", (1, 4, 6, 3), DType.INT8, q(1 / 255, -128))
    boundary = Boundary("image", DType.INT8, q(1 / 255, -128), permutation=(0, 2, 3, 1))
    found = one(photo, End(tensor, boundary), Scaling((0.0, 1.0)))
    assert found.shape == (1, 3, 4, 6) and found[0, 0, 0, 5] == 250 - 128


def test_an_array_with_its_axes_in_another_order_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "nhwc.npy"
    np.save(file, np.zeros((1, 4, 6, 3), np.int8))
    with pytest.raises(
        InputError, match=r"shape \[1, 4, 6, 3\] does not .* in that order: transpose"
    ):
        read_samples([file], [end(1, 3, 4, 6)])
    np.save(file, np.zeros((5, 4, 6, 3), np.int8))
    with pytest.raises(InputError, match="in that order"):
        read_samples([file], [end(1, 3, 4, 6)])
    joined = ((3, 24), (7, 3, 24), (12, 6), (1, 3, 2, 2, 6), (72, 1))
    for shape in ((1, 3, 4, 6), (3, 4, 6), (7, 3, 4, 6), (72,), (2, 72), *joined):
        np.save(file, np.zeros(shape, np.int8))
        assert len(read_samples([file], [end(1, 3, 4, 6)])) == np.prod(shape) // 72


@pytest.mark.parametrize("shape", [(24, 3), (1, 24, 3), (5, 24, 3), (4, 18), (6, 4, 3), (3, 6, 4)])
def test_axes_in_another_order_that_are_joined_are_refused(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Rows of pixels for a model with the channels first: not one number would be in its place."""
    np.save(tmp_path / "joined.npy", np.zeros(shape, np.int8))
    with pytest.raises(InputError, match=r"joined.npy: .* in that order: transpose"):
        read_samples([tmp_path / "joined.npy"], [end(1, 3, 4, 6)])


def test_an_image_of_another_size_is_scaled_only_where_that_is_asked(photo: Path) -> None:
    with pytest.raises(InputError, match="4 pixels high and 6 wide, and the input 8 x 12"):
        one(photo, end(1, 8, 12, 3), Scaling((0.0, 1.0)))
    found = one(photo, end(1, 8, 12, 3), Scaling((0.0, 1.0), resize=True))
    assert found.shape == (1, 8, 12, 3)


def test_grey(photo: Path, tmp_path: Path) -> None:
    """A colour image for a grey model has its luma; a grey one for a colour model, three alike."""
    found = one(photo, end(1, 4, 6, 1), Scaling((0.0, 1.0)))
    assert abs(int(found[0, 0, 5, 0]) + 128 - 0.299 * 250) <= 1
    Image.fromarray(np.full((4, 6), 77, np.uint8)).save(tmp_path / "grey.bmp")
    grey = one(tmp_path / "grey.bmp", end(1, 4, 6, 3), Scaling((0.0, 255.0)))
    assert (grey == np.clip(77 * 255 - 128, -128, 127)).all()


@pytest.mark.parametrize("channels", [1, 3])
def test_grey_of_16_bits_is_not_clipped(channels: int, tmp_path: Path) -> None:
    file = tmp_path / "depth.png"
    Image.fromarray(np.array([[0, 255], [0x8000, 0xFFFF]], np.uint16)).save(file)
    found = media.read_image(file, 2, 2, channels, resize=False)
    assert found.min(-1).tolist() == found.max(-1).tolist() == [[0, 0], [0x80, 0xFF]]


def test_what_pixels_mean_must_be_said(photo: Path) -> None:
    with pytest.raises(InputError, match=r"int8, for 0 to 1\)\? Say what the stored 0 and 255"):
        one(photo, end(1, 4, 6, 3), Scaling())
    raw = one(photo, end(1, 4, 6, 3, dtype=DType.UINT8, zero=0), Scaling())
    assert raw[0, 2, 5].tolist() == [250, 160, 0]


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_sound_of_every_width(bits: int, tmp_path: Path) -> None:
    most = 1 << bits - 1
    numbers = [0, most - 1, -most, most // 2]
    stored = b"".join(
        struct.pack("<B", n + 128) if bits == 8 else struct.pack("<i", n)[: bits // 8]
        for n in numbers
    )
    file = tmp_path / "tone.wav"
    with wave.open(str(file), "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(bits // 8)
        target.setframerate(16_000)
        target.writeframes(stored)
    samples, told, rate = media.read_sound(file)
    assert samples.tolist() == numbers and (told, rate) == (bits, 16_000)
    scaled = one(file, end(1, 4, dtype=DType.FLOAT32), Scaling((-1.0, 1.0)))
    assert np.allclose(scaled, np.array(numbers) / most)


def extensible(sub_format: int, before: bytes = b"") -> bytes:
    """Two samples of 24 bits, 1 and -2, as most programs write such a .wav."""
    extra = struct.pack("<HHIH", 22, 24, 4, sub_format) + bytes.fromhex(
        "000000001000800000aa00389b71"
    )
    form = struct.pack("<HHIIHH", 0xFFFE, 1, 16_000, 48_000, 3, 24) + extra
    data = b"\1\0\0\xfe\xff\xff"
    chunks = b"WAVE" + before + b"fmt " + struct.pack("<I", len(form)) + form
    chunks += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


@pytest.mark.parametrize("before", [b"", b"JUNK" + struct.pack("<I", 3) + b"abc\0"])
def test_sound_of_the_extensible_format(before: bytes, tmp_path: Path) -> None:
    file = tmp_path / "studio.wav"
    file.write_bytes(extensible(1, before))
    samples, bits, rate = media.read_sound(file)
    assert samples.tolist() == [1, -2] and (bits, rate) == (24, 16_000)
    file.write_bytes(extensible(3, before))
    with pytest.raises(InputError, match=r"studio.wav is no .wav of PCM samples"):
        media.read_sound(file)


def test_stereo_is_averaged_and_windows_are_a_sequence(tmp_path: Path) -> None:
    file = tmp_path / "stereo.wav"
    with wave.open(str(file), "wb") as target:
        target.setnchannels(2)
        target.setsampwidth(2)
        target.setframerate(8_000)
        target.writeframes(np.array([[1, 3], [5, 7], [-9, -11], [2, 2], [8, 8]], "<i2").tobytes())
    found = read_samples([file], [end(1, 2, dtype=DType.INT16, scale=1.0, zero=0)])
    assert [sample["image"].tolist() for sample in found] == [[[2, 6]], [[-10, 2]]]
    with pytest.raises(InputError, match="it is too short"):
        read_samples([file], [end(1, 6, dtype=DType.INT16, scale=1.0, zero=0)])


def test_a_table(tmp_path: Path) -> None:
    file = tmp_path / "sensor.csv"
    file.write_text("x;y;z\n0.5;1;-1\n\n0.25; 0.75 ;0\n")
    found = read_samples([file], [end(1, 3, scale=1 / 128, zero=0)], Scaling(real=True))
    assert [sample["image"].tolist() for sample in found] == [[[64, 127, -128]], [[32, 96, 0]]]
    with pytest.raises(InputError, match="--real quantises them"):
        read_samples([file], [end(1, 3)])
    file.write_text("1,2\n3,four\n")
    with pytest.raises(InputError, match="line 2: 'four' is no number"):
        read_samples([file], [end(1, 2)])
    file.write_text("1,2\n3\n")
    with pytest.raises(InputError, match="line 2: 1 numbers, and 2 in the first row"):
        read_samples([file], [end(1, 2)])


def test_one_array_of_an_archive(tmp_path: Path) -> None:
    values = np.arange(8, dtype=np.int8).reshape(2, 4)
    np.savez(tmp_path / "all.npz", images=values, labels=np.zeros(2))
    given = [tmp_path / "all.npz:images"]
    (first, second) = (sample["image"] for sample in read_samples(given, [end(1, 4)]))
    assert [first.tolist(), second.tolist()] == values.reshape(2, 1, 4).tolist()
    with pytest.raises(InputError, match=r"takes shape \[1, 4\], not \[2\]"):
        read_samples([tmp_path / "all.npz:labels"], [end(1, 4)])
    with pytest.raises(InputError, match="pictures"):
        read_samples([tmp_path / "all.npz:pictures"], [end(1, 4)])


def test_folders_and_patterns(photo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("b.png", "a.png", ".hidden"):
        (folder / name).write_bytes(photo.read_bytes())
    of = end(1, 4, 6, 3)
    assert len(read_samples([folder], [of], Scaling((0.0, 1.0)))) == 2
    assert len(read_samples([folder / "a*"], [of], Scaling((0.0, 1.0)))) == 1
    with pytest.raises(InputError, match="no file matches"):
        read_samples([folder / "z*"], [of], Scaling((0.0, 1.0)))


@pytest.mark.parametrize("name", ["broken.png", "broken.jpg", "broken.wav", "broken.csv"])
@pytest.mark.parametrize(
    "content", [b"", b"RIFF\0\0\0\0WAVE", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"]
)
def test_broken_files_have_a_message(name: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InputError, match=name) as caught:
        read_samples([file], [end(1, 4, 6, 3)], Scaling((0.0, 1.0), real=True))
    assert re.search(r" 0x|[: ]$", str(caught.value)) is None


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("L", (1000, 1000)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(media, "MOST_PIXELS", 999_999)
    with pytest.raises(InputError, match="1000 x 1000 pixels, more than 999,999"):
        one(tmp_path / "bomb.png", end(1, 4, 6, 3), Scaling((0.0, 1.0), resize=True))


def test_the_real_values_of_outputs() -> None:
    stored = np.array([[-128, 127]], np.int8)
    found = real_values(stored, end(1, 2, scale=1 / 256))
    assert found is not None and found.tolist() == [[0.0, 255 / 256]]


def test_a_sound_is_no_spectrogram(tmp_path: Path) -> None:
    (tmp_path / "yes.wav").write_bytes(sound(np.zeros(4000)))
    for shape in ((1, 49, 40, 1), (49, 40)):
        with pytest.raises(InputError, match=r"is no row of samples.*--preprocess audio"):
            one(tmp_path / "yes.wav", end(*shape), Scaling((-1.0, 1.0)))
    assert one(tmp_path / "yes.wav", end(1, 1, 4000, 1), Scaling((-1.0, 1.0))).size == 4000


def test_floats_of_zero_and_one_are_no_stored_integers(tmp_path: Path) -> None:
    """As of a picture in black and white: as stored int8 they would all be nearly black."""
    file, eye = tmp_path / "a.npy", np.eye(4)
    np.save(file, eye)
    with pytest.raises(InputError, match="0 and 1 alone, and input 'image' is int8, for 0 to 1"):
        one(file, end(1, 4, 4))
    assert one(file, end(1, 4, 4), Scaling(real=True)).max() == 127
    assert one(file, end(1, 4, 4, dtype=DType.FLOAT32)).max() == 1
    for stored in (eye.astype(np.int8), 0 * eye, 2 * eye):
        np.save(file, stored)
        assert one(file, end(1, 4, 4)).max() == stored.max()


def test_a_sound_goes_through_the_features_that_were_compiled_in(tmp_path: Path) -> None:
    clip = sounds.clips()["speech"]
    file, audio = tmp_path / "clip.wav", AudioInput(AudioFeatures(step_ms=20), 2)
    file.write_bytes(sound(clip))
    into = end(1, 3, 40, scale=26 / 255)
    source = bound_source(audio, into.tensor, stateful=False)
    assert isinstance(source, BoundAudio)
    found = read_samples([file], [into], source=source)
    wanted = list(source.windows(clip))
    assert len(found) == len(wanted) > 1
    assert all(np.array_equal(f["image"], w) for f, w in zip(found, wanted, strict=True))
    with pytest.raises(InputError, match="leave out --range, --mean, --std and --real"):
        read_samples([file], [into], Scaling((0.0, 1.0)), source)
    file.write_bytes(sound(clip[:500]))
    with pytest.raises(InputError, match="500 samples: too few for the 3 frames"):
        read_samples([file], [into], source=source)
    file.write_bytes(sound(clip, rate=8000))
    with pytest.raises(InputError, match=r"8,000 samples a second.*for 16,000.*audio:rate=8000"):
        read_samples([file], [into], source=source)


@pytest.mark.parametrize("form", PixelFormat)
def test_an_image_goes_through_the_cut_and_size_that_were_compiled_in(
    form: PixelFormat, tmp_path: Path
) -> None:
    channels = 1 if form is PixelFormat.GREY8 else 3
    pixels = np.random.default_rng(3).integers(0, 256, (6, 8, channels), np.uint8)
    camera = ImageInput(width=8, height=6, format=form)
    frame = frame_of(pixels, camera)
    assert frame.size == camera.width * camera.height * form.pixel_bytes
    lost = 7 if form.pixel_bytes == 2 else 0  # the lower bits of 16
    levels = levels_of(frame, camera, channels).astype(int)
    assert np.abs(levels - pixels).max() <= lost
    into = end(1, 4, 4, channels)
    source = bound_source(camera, into.tensor, stateful=False)
    Image.fromarray(pixels.squeeze()).save(tmp_path / "a.png")
    (found,) = read_samples([tmp_path / "a.png"], [into], source=source)
    assert isinstance(source, BoundImage)
    assert np.array_equal(found["image"], source.input_of(frame))


@pytest.mark.parametrize(
    "text",
    ["audio:step_ms=20,stride=2,pcan=off", "image:width=8,height=6,format=grey8,mean=3,std=2"],
)
def test_a_folder_keeps_what_was_compiled_in(text: str) -> None:
    source = preprocess(text)
    kept = json.loads(json.dumps(preprocess_json(source)))
    assert preprocess_from_json(kept, "plan.json") == source
    with pytest.raises(InputError, match=r"plan.json is of 'video': it is audio or image"):
        preprocess_from_json({"video": {}}, "plan.json")


def test_a_picture_of_a_digit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a PNG to the name of its class, and from an array to the same."""
    samples = np.load(DIGITS.parent / "samples.npz")
    grey = np.round(samples["images"][0].reshape(8, 8) / 16 * 255).astype(np.uint8)
    Image.fromarray(grey).save(tmp_path / "digit.png")
    labels = tmp_path / "labels.txt"
    labels.write_text("".join(f"number {n}\n" for n in range(10)))
    out = tmp_path / "out"
    assert thimble(["compile", str(DIGITS), "--board", "host", "-o", str(out)]) == 0
    capsys.readouterr()
    given = ["--input", str(tmp_path / "digit.png"), "--range", "0..1", "--labels", str(labels)]
    assert thimble(["run", str(out), *given, "--json", "-"]) == 0
    ((best, *_),) = json.loads(capsys.readouterr().out)["top"].popitem()[1]
    assert best["label"] == f"number {samples['labels'][0]}" and best["score"] > 0.9
    assert thimble(["run", str(out), *given]) == 0
    shown = capsys.readouterr().out
    assert f"Best of 10 classes:\n  number {samples['labels'][0]} 0.9" in shown
    assert "Input serving_default_image:0: int8[1x8x8x1], -128 to 111, which means 0 to" in shown
    assert "random" not in shown
    np.save(tmp_path / "all.npy", samples["images"].astype(np.float32)[..., None] / 16)
    several = ["--input", str(tmp_path / "all.npy"), "--real", *given[-2:]]
    assert thimble(["run", str(out), *several]) == 0
    rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if "│" in line]
    classes = [cells[2].strip() for cells in rows if cells[1].strip().isdigit()]
    assert len(classes) == len(samples["labels"])
    right = np.array(classes) == [f"number {truth}" for truth in samples["labels"]]
    assert right.mean() > 0.9
    assert thimble(["run", str(out), "--seed", "7"]) == 0
    assert "No --input was given: random numbers, of --seed 7." in capsys.readouterr().out
    labels.write_text("one\n")
    assert thimble(["run", str(out), *given]) == 2
    assert "has 1 labels, but" in capsys.readouterr().err
    assert thimble(["run", str(out), *given[:2], "--range", "1..0"]) == 2
    assert "--range 1..0 has no extent" in capsys.readouterr().err
