"""Cases for which Vela 5.2.0 is known to make a program that computes something else than the references.

Each was found by running the compiled program; none is a matter of rounding.
"""

from __future__ import annotations

from .registry import Params

COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
REDUCTIONS = ("REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL")


def known_defect(params: Params, product: str) -> str | None:
    """Name of the defect that a case may show on a product, if any."""
    layers = params["layers"]
    if any(_slice_under_padding(a, b) for a, b in zip(layers, layers[1:])):
        return "STRIDED_SLICE before a padded kernel"
    if product != "u85" and _slice_beside_map(layers):
        return "STRIDED_SLICE before an element-wise operator"
    if product != "u85" and any(_pad_behind_resize(a, b) for a, b in zip(layers, layers[1:])):
        return "PAD behind RESIZE_BILINEAR"
    return next((name for layer in layers if (name := _defect(layer, params, product))), None)


def _defect(layer: Params, params: Params, product: str) -> str | None:
    op, dtype, shape = layer["op"], params["dtype"], params["input"]["shape"]
    u85 = product == "u85"
    if op == "NEG":
        return "NEG"  # the references negate the code, the program negates the real number and saturates
    if op == "MUL" and dtype == "int32" and layer["octave"] != 30:
        return "MUL int32"  # the product is shifted right by 30 bits
    if u85 and dtype == "int16" and layer.get("bias") == "int32":
        return "int16 convolution with int32 bias"  # the scale loses its upper bits
    if op == "TRANSPOSE" and dtype == "uint8" and not u85 and _moves(layer["order"], shape):
        return "TRANSPOSE uint8"  # codes are taken as signed and clipped to 0..127
    if op == "MIRROR_PAD" and any(layer["paddings"][-1]):
        return "MIRROR_PAD of channels"  # they are left unwritten
    if op == "SUM" and len(layer["axes"]) > 1:
        return "SUM over several axes"  # only one axis is summed
    if op in REDUCTIONS and not layer["keep_dims"] and _kept_before_reduced(layer["axes"]):
        return f"{op} without kept dimensions"  # the wrong axes are reduced
    if op == "ARG_MAX" and layer["output"] == "int64" and product == "u65":
        return "ARG_MAX int64"  # in the default memory mode the output sticks out of its region
    if op == "UNIDIRECTIONAL_SEQUENCE_LSTM" and layer["time_major"] and shape[0] == 1 < shape[1]:
        return "LSTM of one step, time major"  # wrong, and on U65 and U85 outside its region
    if op in COMPARISONS and not layer["same_quant"] and dtype != "int32":
        return "comparison of different scales"  # scales are ignored
    return None


def _slice_under_padding(first: Params, second: Params) -> bool:
    """Whether a slice is strided along an axis that the next layer pads: its first element is then skipped."""
    return (first["op"] == "STRIDED_SLICE" and second.get("padding") == "SAME"
            and any(stride > 1 and kernel > 1 for stride, kernel in zip(first["strides"][1:3], second["kernel"])))


def _slice_beside_map(layers: list[Params]) -> bool:
    """Whether a slice with a stride is one operand of two maps: the other one is then broadcast along the stride's axis."""
    for position, layer in enumerate(layers):
        other = layer.get("other")
        if not isinstance(other, dict) or other["kind"] == "scalar":
            continue
        operands = {position - 1, position - 1 - other["back"] if other["kind"] == "skip" else position - 1}
        if any(0 <= i and layers[i]["op"] == "STRIDED_SLICE" and max(layers[i]["strides"]) > 1 for i in operands):
            return True
    return False


def _pad_behind_resize(first: Params, second: Params) -> bool:
    """Whether elements are put in front of what is resized with half-pixel centres: the result isn't moved behind them."""
    return (first["op"] == "RESIZE_BILINEAR" and first["mode"] == "half_pixel_centers" and second["op"] in ("PAD", "PADV2")
            and any(front for front, _ in second["paddings"]))


def _kept_before_reduced(axes: list[int]) -> bool:
    """Whether some axis is kept in front of a reduced one, the batch apart."""
    return any(axis not in axes for axis in range(1, max(axes)))


def _moves(order: list[int], shape: list[int]) -> bool:
    """Whether a transposition moves data: axes of 1 may go anywhere."""
    kept = [axis for axis in order if shape[axis] > 1]
    return kept != sorted(kept)
