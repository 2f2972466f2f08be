"""A random source whose numbers depend on its key alone, on any machine and NumPy version."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def float32(x: float) -> float:
    """The nearest float32, as a Python float: what a .tflite file can hold."""
    return float(np.float32(x))


class Draw:
    """Random draws for a key, e.g. `Draw("CONV_2D", "int8", 17)`.

    Built on `RandomState`, whose streams NumPy keeps frozen, and on integer draws: no library function
    whose last bit could differ between machines takes part.
    """

    def __init__(self, *key: object) -> None:
        digest = hashlib.sha256("/".join(str(part) for part in key).encode()).digest()
        self._state = np.random.RandomState(np.frombuffer(digest, "<u4"))

    def integer(self, low: int, high: int) -> int:
        """An integer in low..high, both included."""
        return int(self._state.randint(low, high + 1, dtype=np.int64))

    def integers(self, low: int, high: int, shape: Sequence[int]) -> np.ndarray:
        """An int64 array of integers in low..high, both included."""
        return self._state.randint(low, high + 1, size=tuple(shape), dtype=np.int64)

    def fraction(self) -> float:
        """A number in 0..1, a multiple of 2**-24."""
        return self.integer(0, (1 << 24) - 1) / (1 << 24)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.fraction() < probability

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.integer(0, len(items) - 1)]

    def weighted(self, items: Mapping[T, float]) -> T:
        """One of the keys, with probability in proportion to its value."""
        left = self.fraction() * sum(items.values())
        for item, weight in items.items():
            left -= weight
            if left < 0:
                return item
        return next(reversed(items))

    def magnitude(self, low_exponent: int, high_exponent: int) -> float:
        """A float32 in 2**low..2**(high + 1), its exponent uniform."""
        return float32(2.0 ** self.integer(low_exponent, high_exponent) * (1 + self.fraction()))

    def seed(self) -> int:
        """A 32-bit seed for another source."""
        return self.integer(0, (1 << 32) - 1)

    def permutation(self, values: np.ndarray) -> np.ndarray:
        """A one-dimensional array's values in random order."""
        return self._state.permutation(values)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in random order."""
        rest = list(items)
        return [rest.pop(self.integer(0, len(rest) - 1)) for _ in range(len(rest))]
