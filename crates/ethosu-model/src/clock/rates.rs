//! How fast each accelerator's units work.

use ethosu_isa::{Accelerator, Block, Product};

use crate::map::Extent;

/// Output cycles of an element on U55 and U65, by class (Vela 5.2.0, `ethos_u55.cpp`, `ethos_u65.cpp`).
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputRates {
    /// 32-bit inputs, one operand.
    pub(super) unary32: f64,
    /// 32-bit inputs, two operands.
    pub(super) binary32: f64,
    /// Multiplication to 32 bits.
    pub(super) multiply32: f64,
    /// Other multiplications, and sums in 40-bit accumulators.
    pub(super) multiply: f64,
    /// Additions and subtractions.
    pub(super) add: f64,
    /// Maxima.
    pub(super) maximum: f64,
    /// All else.
    pub(super) other: f64,
    /// Tables and built-in functions.
    pub(super) table: f64,
    /// Clamps.
    pub(super) clamp: f64,
}

const fn rates(classes: [f64; 7], activations: [f64; 2]) -> OutputRates {
    let [unary32, binary32, multiply32, multiply, add, maximum, other] = classes;
    let [table, clamp] = activations;
    OutputRates { unary32, binary32, multiply32, multiply, add, maximum, other, table, clamp }
}

static U55_32: OutputRates = rates([2.0, 3.0, 3.0, 3.0, 6.0, 1.0, 2.0], [1.0, 1.0]);
static U55_64: OutputRates = rates([1.0, 1.5, 1.5, 1.5, 3.0, 0.5, 1.0], [1.0, 1.0]);
static U55_128: OutputRates = rates([0.75, 1.25, 0.75, 0.75, 1.5, 0.25, 0.5], [1.0, 0.5]);
static U55_256: OutputRates = rates([0.625, 1.125, 0.5, 0.375, 0.75, 0.125, 0.25], [1.0, 0.25]);
static U65_512: OutputRates = rates([0.3125, 0.5625, 0.25, 0.1875, 0.375, 0.0625, 0.125], [0.5, 0.125]);

/// Output cycles of an element on U85, and what its read channels buffer (Vela 5.2.0, `ethos_u85.cpp`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates85 {
    /// Outputs of 8, 16, 32 and 64 bits.
    pub(super) bits: [f64; 4],
    /// Two 32-bit operands to fewer bits, or 32 bits to or from a chain buffer.
    pub(super) narrowing32: f64,
    /// Two 32-bit operands to 32 bits.
    pub(super) binary32: f64,
    /// Stored in order, and with rows and columns exchanged.
    pub(super) order: [f64; 2],
    /// Resizes by a large and by a small factor, each of 8 and 16 bits.
    pub(super) resize: [[f64; 2]; 2],
    /// 16-byte words that the channels of [`Channel`] buffer.
    pub(super) buffered_words: [u32; 6],
}

/// What a U85 reads through one of its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Transfer,
    Stream,
    Weights,
    FastWeights,
    Ifm,
    Scales,
    /// All that is written.
    Write,
}

impl Channel {
    pub(super) const COUNT: usize = 7;
}

static U85_128: Rates85 = Rates85 {
    bits: [0.5, 0.5, 0.5, 1.0],
    narrowing32: 1.0,
    binary32: 1.0,
    order: [0.5, 1.0],
    resize: [[0.5, 1.0], [0.5, 1.0]],
    buffered_words: [64, 64, 128, 128, 104, 16],
};
static U85_256: Rates85 = Rates85 {
    bits: [0.25, 0.25, 0.25, 0.5],
    narrowing32: 0.5,
    binary32: 0.5,
    order: [0.25, 0.5],
    resize: [[0.25, 0.5], [0.25, 0.5]],
    buffered_words: [104, 104, 128, 128, 128, 16],
};
static U85_512: Rates85 = Rates85 {
    bits: [0.125, 0.125, 0.25, 0.5],
    narrowing32: 0.25,
    binary32: 0.25,
    order: [0.125, 0.25],
    resize: [[0.125, 0.25], [0.125, 0.25]],
    buffered_words: [128, 128, 256, 256, 128, 16],
};
static U85_1024: Rates85 = Rates85 {
    bits: [0.0625, 0.125, 0.25, 0.5],
    narrowing32: 0.125,
    binary32: 0.25,
    order: [0.0625, 0.125],
    resize: [[0.0625, 0.125], [0.125, 0.125]],
    buffered_words: [256, 256, 416, 208, 256, 16],
};
static U85_2048: Rates85 = Rates85 {
    bits: [0.03125, 0.0625, 0.125, 0.25],
    narrowing32: 0.0625,
    binary32: 0.125,
    order: [0.03125, 0.0625],
    resize: [[0.03125, 0.0625], [0.0625, 0.0625]],
    buffered_words: [256, 256, 512, 256, 256, 16],
};

/// The rates of an accelerator.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rates {
    U55(&'static OutputRates),
    U85(&'static Rates85),
}

impl Rates {
    pub(super) fn of(accelerator: Accelerator) -> Self {
        match (accelerator.product(), accelerator.macs()) {
            (Product::U55, 32) => Self::U55(&U55_32),
            (Product::U55, 64) => Self::U55(&U55_64),
            (Product::U55, 128) => Self::U55(&U55_128),
            (Product::U55 | Product::U65, 256) => Self::U55(&U55_256),
            (Product::U55 | Product::U65, _) => Self::U55(&U65_512),
            (Product::U85, 128) => Self::U85(&U85_128),
            (Product::U85, 256) => Self::U85(&U85_256),
            (Product::U85, 512) => Self::U85(&U85_512),
            (Product::U85, 1024) => Self::U85(&U85_1024),
            (Product::U85, _) => Self::U85(&U85_2048),
        }
    }
}

/// Rows and columns in which a U85 allocates its input buffer, and the channels where that has to be whole, for a block of
/// `bits` a position (Vela 5.2.0, `ethos_u85.cpp`).
pub(super) fn allocation_unit(
    accelerator: Accelerator,
    microblock: Block,
    depth: usize,
    element_bits: usize,
) -> Extent {
    let step = match depth.saturating_mul(element_bits) {
        0..=128 => 0,
        129..=256 => 1,
        _ => 2,
    };
    let flat = (microblock.height, microblock.width) == (1, 4);
    let rows_columns = match (accelerator.macs(), flat) {
        (128, _) => [(1, 2), (1, 1), (1, 1)],
        (256 | 512, true) => [(1, 4), (1, 2), (1, 1)],
        (256 | 512, false) => [(2, 2), (1, 2), (1, 1)],
        (1024, true) => [(2, 4), (1, 4), (1, 2)],
        (1024, false) => [(2, 4), (2, 2), (1, 2)],
        (_, true) => [(4, 4), (2, 4), (1, 4)],
        (_, false) => [(4, 4), (2, 4), (2, 2)],
    };
    let planes = if accelerator.macs() == 128 { [1, 2, 2] } else { [1, 2, 4] };
    let (height, width) = rows_columns[step];
    Extent { height, width, depth: planes[step] * 128 / element_bits }
}
