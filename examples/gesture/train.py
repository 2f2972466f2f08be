"""Makes synthetic accelerometer gestures, trains a 1-D network on them and writes it with int16 activations.

    pip install numpy==2.4.6 flatbuffers==25.12.19
    python -m examples.gesture.train           # from the repository's root; some ten seconds

Writes gesture_int16.tflite, samples.npy, and their labels beside this file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from conformance.tflite_writer import Quant
from examples.quantise import quantise_layers, run_integer, to_codes, write_model
from examples.tinycnn import Layer, run, train

SEED = 20240301
CLASSES = ("still", "shake", "circle", "walk", "tap", "turn over")
RATE_HZ = 50.0
LENGTH = 64  # readings per window, 1.28 s
TRAIN_PER_CLASS, HELD_OUT_PER_CLASS, SAMPLES_PER_CLASS = 250, 60, 3
EPOCHS = 60
#: A sensor with a range of +-4 g and 16 bits; the network sees g.
INPUT_QUANT = Quant(4.0 / 32768)


def network() -> list[Layer]:
    """About 2 500 weights; the readings lie along the width."""
    return [
        Layer("conv", (1, 5), (1, 2), channels=12, relu=True),
        Layer("depthwise", (1, 5), relu=True),
        Layer("conv", channels=16, relu=True),
        Layer("conv", (1, 5), (1, 2), channels=24, relu=True),
        Layer("average_pool", (1, 16), (1, 16)),
        Layer("flatten"),
        Layer("dense", channels=len(CLASSES)),
    ]


def direction(rng: np.random.RandomState) -> np.ndarray:
    """A random unit vector."""
    v = rng.standard_normal(3)
    return v / np.sqrt((v * v).sum())


def window(kind: str, rng: np.random.RandomState) -> np.ndarray:
    """One window of readings in g, shape [LENGTH, 3]: gravity, the gesture, and the sensor's noise."""
    t = np.arange(LENGTH) / RATE_HZ
    gravity, axis = direction(rng), direction(rng)
    phase, size = rng.uniform(0, 2 * np.pi), rng.uniform(0.6, 1.4)
    g = np.repeat(gravity[None], LENGTH, axis=0)
    if kind == "shake":
        g = g + size * np.sin(2 * np.pi * rng.uniform(4, 7) * t + phase)[:, None] * axis
    elif kind == "circle":
        other = np.cross(axis, direction(rng))
        other /= np.sqrt((other * other).sum())
        angle = 2 * np.pi * rng.uniform(1.2, 2.2) * t + phase
        g = g + size * (np.cos(angle)[:, None] * axis + np.sin(angle)[:, None] * other)
    elif kind == "walk":
        step = 2 * np.pi * rng.uniform(1.6, 2.2) * t + phase
        g = g * (1 + 0.4 * size * np.sin(step) + 0.15 * size * np.sin(2 * step + 1))[:, None]
    elif kind == "tap":
        for _ in range(rng.randint(1, 3)):
            since = np.maximum(t - rng.uniform(0.1, 1.1), 0)
            g = g + (2 * size * np.exp(-since * 40) * np.sin(2 * np.pi * 18 * since))[:, None] * axis
    elif kind == "turn over":
        turn = np.clip((t - rng.uniform(0.2, 0.5)) / rng.uniform(0.3, 0.6), 0, 1)
        blend = np.cos(np.pi * turn)
        g = g * blend[:, None] + 0.8 * np.sin(np.pi * turn)[:, None] * axis
    return g + 0.03 * rng.standard_normal((LENGTH, 3))


def dataset(per_class: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Windows [N, 1, LENGTH, 3] and labels, class after class."""
    windows = [window(kind, rng) for kind in CLASSES for _ in range(per_class)]
    return np.stack(windows)[:, None], np.repeat(np.arange(len(CLASSES)), per_class)


def main() -> None:
    """Makes the committed files."""
    here = Path(__file__).parent
    rng = np.random.RandomState(SEED)
    train_x, train_y = dataset(TRAIN_PER_CLASS, rng)
    test_x, labels = dataset(HELD_OUT_PER_CLASS, rng)

    layers = network()
    train(layers, train_x, train_y, rng, epochs=EPOCHS)
    print(f"float: {(run(layers, test_x)[-1].argmax(axis=1) == labels).mean():.2%} of {len(labels)} held-out windows")

    quantised = quantise_layers(layers, train_x, INPUT_QUANT, "int16")
    codes = to_codes(test_x, INPUT_QUANT, "int16")
    right = run_integer(quantised, codes, INPUT_QUANT, "int16").argmax(axis=1) == labels
    print(f"int16: {right.mean():.2%}")

    model = write_model("npukit example: accelerometer gestures", quantised, (1, 1, LENGTH, 3), INPUT_QUANT, "int16",
                        softmax=False)
    (here / "gesture_int16.tflite").write_bytes(model)
    print(f"gesture_int16.tflite: {len(model)} bytes")
    chosen = (np.arange(SAMPLES_PER_CLASS) + HELD_OUT_PER_CLASS * np.arange(len(CLASSES))[:, None]).ravel()
    np.save(here / "samples.npy", codes[chosen])
    (here / "samples_labels.txt").write_text("".join(f"{c}\n" for c in labels[chosen]))
    (here / "classes.txt").write_text("".join(f"{c}\n" for c in CLASSES))


if __name__ == "__main__":
    main()
