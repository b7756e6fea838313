"""PyTorch to a Nucleo: train a small network, build firmware from it, and run it.

    pip install 'thimble-nn[torch]' scikit-learn
    python pytorch_to_nucleo.py [BOARD]

The default board is an STM32F405, which QEMU emulates. Name your own as BOARD: nucleo-f446re.
"""

import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import thimble

# The task is to read handwritten digits of 8 x 8 pixels. In PyTorch, channels come first.
digits = load_digits()
images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
labels = torch.tensor(digits.target)
training, held_out = slice(0, 1400), slice(1400, None)

# A network that is small enough for a microcontroller.
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(8, 16, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16 * 4 * 4, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(60):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images[training]), labels[training])
    loss.backward()
    optimizer.step()

# Quantise the network to int8, generate C, and build firmware. The samples calibrate the ranges of
# int8, and the int8 network is compared with the float network on them.
board = sys.argv[1] if len(sys.argv) > 1 else "netduinoplus2"
built = thimble.compile_torch(
    model,
    images[training][:200],
    board=board,
    out="build/digits_torch",
    fail_on=["arena > 16K", "agreement < 95%"],
    force=True,
)
print(built)

# Compare the firmware (in QEMU, or on the board that is plugged in) with the network.
agree = 0
model.eval()
for image in images[held_out][:5]:
    (scores,) = built.run(image[None].numpy()).values()
    agree += int(np.argmax(scores) == int(model(image[None]).argmax()))
print(f"{agree} of 5 held-out digits read alike by firmware and PyTorch")
verified = built.verify(runs=3)
print(f"{verified.differing} of {verified.elements} elements differ from ONNX Runtime's")
if agree < 4 or not verified.passed:
    sys.exit("This is not what the network computes.")
