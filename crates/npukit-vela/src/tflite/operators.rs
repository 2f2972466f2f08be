//! The names of TensorFlow Lite's built-in operators and data types (schema.fbs, enums BuiltinOperator and TensorType).

use std::fmt;

use npub::DType;

/// A built-in operator by its number in the schema. `Display` writes its name, such as `CONV_2D`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuiltinOperator(pub i32);

impl BuiltinOperator {
    /// Two-dimensional convolution.
    pub const CONV_2D: Self = Self(3);
    /// Depthwise convolution.
    pub const DEPTHWISE_CONV_2D: Self = Self(4);
    /// From quantised to float.
    pub const DEQUANTIZE: Self = Self(6);
    /// Fully connected layer.
    pub const FULLY_CONNECTED: Self = Self(9);
    /// An operator named by its custom code.
    pub const CUSTOM: Self = Self(32);
    /// From float to quantised, or from one quantisation to another.
    pub const QUANTIZE: Self = Self(114);
    /// Runs a subgraph once, to initialise variables.
    pub const CALL_ONCE: Self = Self(129);
    /// Names a resource variable.
    pub const VAR_HANDLE: Self = Self(142);
    /// Reads a resource variable.
    pub const READ_VARIABLE: Self = Self(143);
    /// Writes a resource variable.
    pub const ASSIGN_VARIABLE: Self = Self(144);

    /// The schema's name, if this reader knows the number.
    pub fn name(self) -> Option<&'static str> {
        usize::try_from(self.0).ok().and_then(|index| NAMES.get(index)).copied()
    }
}

impl fmt::Display for BuiltinOperator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.pad(name),
            None => write!(formatter, "operator {}", self.0),
        }
    }
}

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are the schema's and say it all")]
pub enum DataType {
    Float32,
    Float16,
    Int32,
    Uint8,
    Int64,
    String,
    Bool,
    Int16,
    Complex64,
    Int8,
    Float64,
    Complex128,
    Uint64,
    Resource,
    Variant,
    Uint32,
    Uint16,
    Int4,
    Bfloat16,
    /// A number that this reader has no name for.
    Other(i8),
}

impl DataType {
    pub(super) fn from_code(code: i8) -> Self {
        match code {
            0 => Self::Float32,
            1 => Self::Float16,
            2 => Self::Int32,
            3 => Self::Uint8,
            4 => Self::Int64,
            5 => Self::String,
            6 => Self::Bool,
            7 => Self::Int16,
            8 => Self::Complex64,
            9 => Self::Int8,
            10 => Self::Float64,
            11 => Self::Complex128,
            12 => Self::Uint64,
            13 => Self::Resource,
            14 => Self::Variant,
            15 => Self::Uint32,
            16 => Self::Uint16,
            17 => Self::Int4,
            18 => Self::Bfloat16,
            other => Self::Other(other),
        }
    }

    /// The element type of an `.npub`'s tensor table; `None` for types that have no place there.
    pub fn in_npub(self) -> Option<DType> {
        Some(match self {
            Self::Float32 => DType::Float32,
            Self::Float16 => DType::Float16,
            Self::Int32 => DType::Int32,
            Self::Uint8 => DType::UInt8,
            Self::Int64 => DType::Int64,
            Self::Bool => DType::Bool,
            Self::Int16 => DType::Int16,
            Self::Int8 => DType::Int8,
            Self::Float64 => DType::Float64,
            Self::Uint64 => DType::UInt64,
            Self::Uint32 => DType::UInt32,
            Self::Uint16 => DType::UInt16,
            _ => return None,
        })
    }

    /// Bytes an element takes, for types whose elements are whole bytes of a known number.
    pub fn bytes(self) -> Option<usize> {
        Some(match self {
            Self::Uint8 | Self::Int8 | Self::Bool => 1,
            Self::Float16 | Self::Bfloat16 | Self::Int16 | Self::Uint16 => 2,
            Self::Float32 | Self::Int32 | Self::Uint32 => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
            Self::String | Self::Resource | Self::Variant | Self::Int4 | Self::Other(_) => return None,
        })
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float16 | Self::Float32 | Self::Float64 | Self::Bfloat16)
    }

    /// NumPy's name of the type, such as `int8`; the schema's in lower case where NumPy has none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float16 => "float16",
            Self::Int32 => "int32",
            Self::Uint8 => "uint8",
            Self::Int64 => "int64",
            Self::String => "string",
            Self::Bool => "bool",
            Self::Int16 => "int16",
            Self::Complex64 => "complex64",
            Self::Int8 => "int8",
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::Uint64 => "uint64",
            Self::Resource => "resource",
            Self::Variant => "variant",
            Self::Uint32 => "uint32",
            Self::Uint16 => "uint16",
            Self::Int4 => "int4",
            Self::Bfloat16 => "bfloat16",
            Self::Other(_) => "a type this reader doesn't know",
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(code) => write!(formatter, "type {code}"),
            known => formatter.pad(known.name()),
        }
    }
}

/// By number, from 0.
#[rustfmt::skip]
const NAMES: [&str; 210] = [
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE",
    "EMBEDDING_LOOKUP", "FLOOR", "FULLY_CONNECTED", "HASHTABLE_LOOKUP", "L2_NORMALIZATION", "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION", "LOGISTIC", "LSH_PROJECTION", "LSTM", "MAX_POOL_2D", "MUL", "RELU",
    "RELU_N1_TO_1", "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RNN", "SOFTMAX", "SPACE_TO_DEPTH", "SVDF", "TANH",
    "CONCAT_EMBEDDINGS", "SKIP_GRAM", "CALL", "CUSTOM", "EMBEDDING_LOOKUP_SPARSE", "PAD",
    "UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "TRANSPOSE", "MEAN", "SUB",
    "DIV", "SQUEEZE", "UNIDIRECTIONAL_SEQUENCE_LSTM", "STRIDED_SLICE", "BIDIRECTIONAL_SEQUENCE_RNN", "EXP",
    "TOPK_V2", "SPLIT", "LOG_SOFTMAX", "DELEGATE", "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM",
    "ARG_MAX", "MINIMUM", "LESS", "NEG", "PADV2", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT", "SLICE",
    "SIN", "TRANSPOSE_CONV", "SPARSE_TO_DENSE", "TILE", "EXPAND_DIMS", "EQUAL", "NOT_EQUAL", "LOG", "SUM", "SQRT",
    "RSQRT", "SHAPE", "POW", "ARG_MIN", "FAKE_QUANT", "REDUCE_PROD", "REDUCE_MAX", "PACK", "LOGICAL_OR", "ONE_HOT",
    "LOGICAL_AND", "LOGICAL_NOT", "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY", "SQUARE", "ZEROS_LIKE", "FILL",
    "FLOOR_MOD", "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU", "SQUARED_DIFFERENCE", "MIRROR_PAD", "ABS",
    "SPLIT_V", "UNIQUE", "CEIL", "REVERSE_V2", "ADD_N", "GATHER_ND", "COS", "WHERE", "RANK", "ELU",
    "REVERSE_SEQUENCE", "MATRIX_DIAG", "QUANTIZE", "MATRIX_SET_DIAG", "ROUND", "HARD_SWISH", "IF", "WHILE",
    "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2", "DENSIFY", "SEGMENT_SUM",
    "BATCH_MATMUL", "PLACEHOLDER_FOR_GREATER_OP_CODES", "CUMSUM", "CALL_ONCE", "BROADCAST_TO", "RFFT2D", "CONV_3D",
    "IMAG", "REAL", "COMPLEX_ABS", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
    "REDUCE_ALL", "CONV_3D_TRANSPOSE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "BROADCAST_ARGS",
    "RANDOM_STANDARD_NORMAL", "BUCKETIZE", "RANDOM_UNIFORM", "MULTINOMIAL", "GELU", "DYNAMIC_UPDATE_SLICE",
    "RELU_0_TO_1", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_SUM", "ATAN2",
    "UNSORTED_SEGMENT_MIN", "SIGN", "BITCAST", "BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_LOGISTIC", "STABLEHLO_ADD",
    "STABLEHLO_DIVIDE", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_RESHAPE", "STABLEHLO_CLAMP",
    "STABLEHLO_CONCATENATE", "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_CONVOLUTION", "STABLEHLO_SLICE",
    "STABLEHLO_CUSTOM_CALL", "STABLEHLO_REDUCE", "STABLEHLO_ABS", "STABLEHLO_AND", "STABLEHLO_COSINE",
    "STABLEHLO_EXPONENTIAL", "STABLEHLO_FLOOR", "STABLEHLO_LOG", "STABLEHLO_MINIMUM", "STABLEHLO_NEGATE",
    "STABLEHLO_OR", "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT",
    "STABLEHLO_SUBTRACT", "STABLEHLO_TANH", "STABLEHLO_SCATTER", "STABLEHLO_COMPARE", "STABLEHLO_CONVERT",
    "STABLEHLO_DYNAMIC_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_PAD", "STABLEHLO_IOTA",
    "STABLEHLO_DOT_GENERAL", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SORT", "STABLEHLO_WHILE", "STABLEHLO_GATHER",
    "STABLEHLO_TRANSPOSE", "DILATE", "STABLEHLO_RNG_BIT_GENERATOR", "REDUCE_WINDOW", "STABLEHLO_COMPOSITE",
    "STABLEHLO_SHIFT_LEFT", "STABLEHLO_CBRT", "STABLEHLO_CASE",
];
