"""A wake word: train a model, and recognise the word in a WAV file on an emulated STM32F405.

    pip install 'thimble-nn[onnx,quantize]' scikit-learn
    python wake_word.py

The word is a whistle that rises and falls. `wake_word.c` beside this script is the whole firmware:
it reads the WAV file through QEMU; your firmware would get samples from a microphone's DMA. You
need arm-none-eabi-gcc and qemu-system-arm (`thimble doctor`).
"""

import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from sklearn.neural_network import MLPClassifier

import thimble
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.audio_input import FEATURE_SCALE
from toolchain.preprocess.features import features_of
from toolchain.quantise.post_training import quantise_samples

RATE, FRAMES, WORD = 16000, 30, 0.4
HERE, out = Path(__file__).parent, Path("build/wake_word")
out.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(0)
audio = AudioFeatures(step_ms=20)


def sound(kind: str, seconds: float = WORD) -> np.ndarray:
    """A whistle up and down ("wake"), one that only rises, a steady tone, or nothing; in noise."""
    t = np.linspace(0, 1, int(seconds * RATE))
    low, span = rng.uniform(600, 900), rng.uniform(1200, 1800)
    shape = {"wake": np.sin(np.pi * t), "rise": t, "tone": 0.5 + 0 * t, "quiet": 0 * t}[kind]
    whistle = np.sin(2 * np.pi * np.cumsum(low + span * shape) / RATE)
    loud = 0 if kind == "quiet" else rng.uniform(3000, 12000)
    return loud * whistle + rng.normal(0, rng.uniform(10, 300), t.size)


def clip(kinds: list[str]) -> np.ndarray:
    """Sounds one after the other, in quiet, as int16."""
    parts = [part for kind in kinds for part in (sound("quiet", 0.6), sound(kind))]
    return np.clip([*np.concatenate(parts), *sound("quiet", 0.6)], -32768, 32767).astype(np.int16)


def windows(samples: np.ndarray) -> np.ndarray:
    """What the model will see: FRAMES frames of 40 features, at each frame."""
    frames = features_of(audio, samples).astype(np.float32) * np.float32(FEATURE_SCALE)
    return np.stack([frames[i : i + FRAMES] for i in range(len(frames) - FRAMES + 1)])


# Sound k of a clip ends with frame 50 (k + 1). A window that ends within 10 frames of the end
# of the word is positive; windows that end a little earlier or later are left out.
found, labels = [], []
for _ in range(60):
    kinds = list(rng.choice(["wake", "rise", "tone", "quiet"], 3, p=[0.4, 0.3, 0.2, 0.1]))
    for i, window in enumerate(windows(clip(kinds))):
        after, k = (i + FRAMES) % 50, (i + FRAMES) // 50 - 1
        word = k >= 0 and kinds[k] == "wake"
        ahead = k < 2 and kinds[k + 1] == "wake"
        if not (word and 10 < after <= 18) and not (ahead and after > 42):
            found.append(window.reshape(-1))
            labels.append(int(word and after <= 10))
network = MLPClassifier((16,), alpha=0.01, max_iter=80, random_state=0).fit(np.array(found), labels)

# Write the network as a float ONNX file, then quantise it to int8.
(w1, w2), (b1, b2) = network.coefs_, network.intercepts_
tensors = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
weights = [numpy_helper.from_array(t.astype(np.float32), name) for name, t in tensors.items()]
nodes = [
    helper.make_node("Gemm", ["sound", "w1", "b1"], ["sums"]),
    helper.make_node("Relu", ["sums"], ["hidden"]),
    helper.make_node("Gemm", ["hidden", "w2", "b2"], ["logit"]),
    helper.make_node("Sigmoid", ["logit"], ["score"]),
]
ends = [
    helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, size])
    for name, size in (("sound", FRAMES * audio.channels), ("score", 1))
]
graph = helper.make_graph(nodes, "wake", ends[:1], ends[1:], weights)
opset = [helper.make_opsetid("", 17)]
onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), out / "float.onnx")
samples = [{"sound": window[None]} for window in found[:: len(found) // 200]]
quantise_samples(out / "float.onnx", samples, out / "wake.onnx")

# Generate a library that takes samples. It computes features every 20 ms, and runs the model at
# every fifth of them.
options = thimble.PlanOptions(preprocess="audio:step_ms=20,stride=5")
built = thimble.compile_library(
    out / "wake.onnx", "netduinoplus2", out / "library", options, name="wake", force=True
)

# Write a WAV file with two wake words among other sounds, build the firmware, and run it.
heard = clip(["rise", "wake", "tone", "wake", "rise"])
with wave.open(str(out / "heard.wav"), "wb") as file:
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(RATE)
    file.writeframes(heard.astype("<i2").tobytes())
library = out / "library"
sources = [*library.glob("*.c"), *library.rglob("runtime/**/*.c"), HERE / "wake_word.c"]
flags = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-O2"]
flags += ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-nostartfiles"]
flags += [f"-I{library}", f"-I{library}/runtime/include", "--specs=nosys.specs"]
elf = out / "wake_word.elf"
script = ["-T", str(HERE / "wake_word.ld"), "-o", str(elf)]
subprocess.run(["arm-none-eabi-gcc", *flags, *map(str, sources), *script, "-lm"], check=True)
machine = ["qemu-system-arm", "-machine", "netduinoplus2", "-display", "none", "-monitor", "none"]
machine += ["-semihosting-config", "enable=on,target=native", "-kernel", elf.name]
run = subprocess.run(machine, cwd=out, capture_output=True, text=True, check=True)
times = [float(line.split()[2]) / 1000 for line in (run.stdout + run.stderr).splitlines()]
print(f"arena {built.plan.arena.size_bytes} B; the word was heard after {times} s")

# The word ends 2 s and 4 s after the start of the WAV file, and must be heard within 0.4 s.
if len(times) != 2 or not all(0 <= t - end < 0.4 for t, end in zip(times, (2, 4), strict=True)):
    sys.exit("It heard something else.")
