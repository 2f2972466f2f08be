"""The operators the generator knows, and how parameters for one are drawn and built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .draw import Draw
from .net import Net, Tensor

#: Parameters of one layer or a whole case: plain JSON values.
Params = dict[str, object]

DrawInput = Callable[[Draw, str], Params]
DrawLayer = Callable[[Draw, Tensor, str], Params]
Apply = Callable[[Net, Tensor, Params], list[Tensor]]

PRODUCTS = ("u55", "u65", "u85")


@dataclass(frozen=True)
class Operator:
    """One operator of the suite.

    `draw_input(draw, dtype)` gives the first input's shape, scale and zero point;
    `draw_layer(draw, x, product)` the layer's parameters for that input;
    `apply(net, x, params)` appends the layer and returns its outputs, or raises `Invalid`.
    """

    name: str
    dtypes: tuple[str, ...]
    u85_dtypes: tuple[str, ...]
    draw_input: DrawInput
    draw_layer: DrawLayer
    apply: Apply

    def dtypes_for(self, product: str) -> tuple[str, ...]:
        """Dtypes that Vela places on this product."""
        return self.dtypes + self.u85_dtypes if product == "u85" else self.dtypes


OPERATORS: dict[str, Operator] = {}


def register(
    name: str, draw_input: DrawInput, draw_layer: DrawLayer, apply: Apply,
    dtypes: tuple[str, ...], u85_dtypes: tuple[str, ...] = (),
) -> None:
    """Adds an operator. `u85_dtypes` are those that only U85 takes."""
    OPERATORS[name] = Operator(name, dtypes, u85_dtypes, draw_input, draw_layer, apply)
