"""One module per family of operators; importing this package registers them all."""

from . import (  # noqa: F401
    binary,
    convolution,
    logic,
    lstm,
    matmul,
    pooling,
    quantise,
    reduction,
    resize,
    shape,
    slicing,
    unary,
)
