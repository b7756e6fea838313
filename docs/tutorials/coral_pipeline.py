"""A Coral pipeline: cut a model into stages, one for each Edge TPU, and run frames through it.

    pip install 'thimble-nn[edgetpu]'
    python coral_pipeline.py [MODEL.tflite [STAGES]]

Without Edge TPUs the stages run on this computer's processor, and the timing is simulated. Nothing
here has run on Edge TPUs (docs/edgetpu-known.md says what was checked).
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
model = sys.argv[1] if len(sys.argv) > 1 else str(DIGITS)
stages = sys.argv[2] if len(sys.argv) > 2 else "2"


def thimble(*words: str) -> None:
    """A command of Thimble's, shown as you would type it."""
    print("$ thimble", *words, flush=True)
    subprocess.run([sys.executable, "-m", "toolchain.cli", *words], check=True)


# Plan. The plan has the operators and cached weights of each stage, the time between results, and
# whether it is proved optimal.
thimble("edgetpu", "plan", model, "--stages", stages, "--json", "plan.json")
plan = json.loads(Path("plan.json").read_text())
print(f"predicted: a result every {plan['period_ms']:.2f} ms; proved: {plan['proved_optimal']}")

# Split. This writes a .tflite file for each stage, and pipeline.json, and compiles the stages if
# Google's compiler is installed.
thimble("edgetpu", "split", model, "--stages", stages, "-o", "stages", "--force")

# Simulate frames on devices, event by event.
thimble("edgetpu", "simulate", "stages")

# Run frames in order, on Edge TPUs if there are any, otherwise on the processor.
thimble("edgetpu", "run", "stages", "--frames", "16", "--out", "piped.npz")

# Run the whole model as one stage, and compare the bytes.
thimble("edgetpu", "split", model, "--stages", "1", "-o", "whole", "--force")
thimble("edgetpu", "run", "whole", "--frames", "16", "--out", "alone.npz")
piped, alone = np.load("piped.npz"), np.load("alone.npz")
if any(not np.array_equal(piped[name], alone[name]) for name in alone.files):
    sys.exit("The pipeline's results are not those of the model.")
print(f"{len(alone.files)} output(s) of 16 frames: the same bytes as without a pipeline")
