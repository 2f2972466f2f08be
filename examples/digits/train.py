"""Trains, quantises and writes the int8 digit classifier of this folder.

    pip install numpy==2.4.6 flatbuffers==25.12.19 scikit-learn==1.9.1
    python -m examples.digits.train            # from the repository's root; some ten seconds

Writes digits_int8.tflite, samples.npy, labels.txt and the whole held-out set beside this file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from conformance.tflite_writer import Quant
from examples.quantise import as_float32, quantise_layers, run_integer, to_codes, write_model
from examples.tinycnn import Layer, run, train

SEED = 20240229
HELD_OUT = 360
SAMPLES_PER_CLASS = 2
EPOCHS = 40
INPUT_QUANT = Quant(as_float32(1 / 255), -128)  # pixels as real numbers in 0..1


def network() -> list[Layer]:
    """About 2 100 weights."""
    return [
        Layer("conv", (3, 3), channels=16, relu=True),
        Layer("depthwise", (3, 3), (2, 2), relu=True),
        Layer("conv", channels=32, relu=True),
        Layer("average_pool", (2, 2), (2, 2)),
        Layer("flatten"),
        Layer("dense", channels=10),
    ]


def shift(images: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Moves each image by up to one pixel, half of them not at all."""
    moved = images.copy()
    for index in np.flatnonzero(rng.random_sample(len(images)) < 0.5):
        dy, dx = rng.randint(-1, 2, 2)
        moved[index] = np.roll(np.pad(images[index], ((1, 1), (1, 1), (0, 0))), (dy, dx), (0, 1))[1:-1, 1:-1]
    return moved


def main() -> None:
    """Makes the committed files."""
    here = Path(__file__).parent
    digits = load_digits()
    images = digits.images[..., None] / 16.0
    rng = np.random.RandomState(SEED)
    order = rng.permutation(len(images))
    train_set, test_set = order[HELD_OUT:], order[:HELD_OUT]

    layers = network()
    train(layers, images[train_set], digits.target[train_set], rng, epochs=EPOCHS, augment=shift)
    labels = digits.target[test_set]
    right = run(layers, images[test_set])[-1].argmax(axis=1) == labels
    print(f"float: {right.mean():.2%} of {HELD_OUT} held-out images")

    quantised = quantise_layers(layers, images[train_set], INPUT_QUANT, "int8")
    codes = to_codes(images[test_set], INPUT_QUANT, "int8")
    right = run_integer(quantised, codes, INPUT_QUANT, "int8").argmax(axis=1) == labels
    print(f"int8:  {right.mean():.2%}")

    model = write_model("npukit example: handwritten digits", quantised, (1, 8, 8, 1), INPUT_QUANT, "int8",
                        softmax=True)
    (here / "digits_int8.tflite").write_bytes(model)
    print(f"digits_int8.tflite: {len(model)} bytes")
    chosen = np.concatenate([np.flatnonzero(labels == c)[:SAMPLES_PER_CLASS] for c in range(10)])
    for stem, index in (("samples", chosen), ("heldout", np.arange(HELD_OUT))):
        np.save(here / f"{stem}.npy", codes[index])
        (here / f"{stem}_labels.txt").write_text("".join(f"{c}\n" for c in labels[index]))
    (here / "classes.txt").write_text("".join(f"{c}\n" for c in range(10)))


if __name__ == "__main__":
    main()
