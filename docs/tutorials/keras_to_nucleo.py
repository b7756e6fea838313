"""Keras to a Nucleo: train a small network, build firmware from it, and run it.

    pip install 'thimble-nn[keras,verify]' scikit-learn
    python keras_to_nucleo.py [BOARD]

The default board is an STM32F405, which QEMU emulates. Name your own as BOARD: nucleo-f446re.
"""

import sys

import keras
import numpy as np
from sklearn.datasets import load_digits

import thimble

# The task is to read handwritten digits of 8 x 8 pixels. In Keras, channels come last.
digits = load_digits()
images = (digits.images[..., None] / 16).astype(np.float32)
training, held_out = slice(0, 1400), slice(1400, None)

# A network that is small enough for a microcontroller, for a batch of 1 and more.
keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.layers.Input((8, 8, 1)),
        keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
        keras.layers.DepthwiseConv2D(3, strides=2, padding="same", activation="relu"),
        keras.layers.Conv2D(16, 1, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy")
model.fit(images[training], digits.target[training], epochs=8, verbose=0)

# Quantise the network to int8, generate C, and build firmware. The samples calibrate the ranges of
# int8, and the int8 network is compared with the float network on them.
board = sys.argv[1] if len(sys.argv) > 1 else "netduinoplus2"
built = thimble.compile_keras(
    model,
    images[training][:200],
    board=board,
    out="build/digits_keras",
    fail_on=["arena > 16K", "agreement < 95%"],
    force=True,
)
print(built)

# Compare the firmware (in QEMU, or on the board that is plugged in) with the network.
agree = 0
for image in images[held_out][:5]:
    (scores,) = built.run(image[None]).values()
    agree += int(np.argmax(scores) == np.argmax(model(image[None])))
print(f"{agree} of 5 held-out digits read alike by firmware and Keras")
verified = built.verify(runs=3)
print(f"{verified.differing} of {verified.elements} elements differ from LiteRT's")
if agree < 4 or not verified.passed:
    sys.exit("This is not what the network computes.")
