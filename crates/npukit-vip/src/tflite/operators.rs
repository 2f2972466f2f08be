//! TFLite's built-in operators and what VeriSilicon's TFLite delegate makes of them.
//!
//! Numbers and names are those of TensorFlow Lite's schema; the mapping is that of `op_map.cc` in
//! VeriSilicon/tflite-vx-delegate (MIT licence, revision 3f4759e) and of TIM-VX's operator files.

/// One built-in operator.
pub(super) struct Builtin {
    pub code: i32,
    pub name: &'static str,
    /// ovxlib's operator.
    pub op: &'static str,
    /// Which inputs become inputs of the node; the others become attributes. Empty: all of them.
    pub inputs: &'static [usize],
    /// Whether the delegate takes it.
    pub delegated: bool,
    /// The field of the operator's options that holds a fused activation.
    pub fused: Option<usize>,
}

const fn all(code: i32, name: &'static str, op: &'static str) -> Builtin {
    Builtin { code, name, op, inputs: &[], delegated: true, fused: None }
}

const fn some(code: i32, name: &'static str, op: &'static str, inputs: &'static [usize]) -> Builtin {
    Builtin { code, name, op, inputs, delegated: true, fused: None }
}

const fn fused(
    code: i32,
    name: &'static str,
    op: &'static str,
    inputs: &'static [usize],
    field: usize,
) -> Builtin {
    Builtin { code, name, op, inputs, delegated: true, fused: Some(field) }
}

/// An operator that ovxlib has and the delegate doesn't hand over.
const fn kept(code: i32, name: &'static str, op: &'static str, inputs: &'static [usize]) -> Builtin {
    Builtin { code, name, op, inputs, delegated: false, fused: None }
}

pub(super) const BUILTINS: &[Builtin] = &[
    fused(0, "ADD", "ADD", &[], 0),
    fused(1, "AVERAGE_POOL_2D", "POOL", &[0], 5),
    fused(2, "CONCATENATION", "CONCAT", &[], 1),
    fused(3, "CONV_2D", "CONV2D", &[0, 1, 2], 3),
    fused(4, "DEPTHWISE_CONV_2D", "CONV2D", &[0, 1, 2], 4),
    some(5, "DEPTH_TO_SPACE", "DEPTH2SPACE", &[0]),
    some(6, "DEQUANTIZE", "DATACONVERT", &[0]),
    all(7, "EMBEDDING_LOOKUP", "EMBEDDING_LOOKUP"),
    all(8, "FLOOR", "FLOOR"),
    fused(9, "FULLY_CONNECTED", "FCL2", &[0, 1, 2], 0),
    all(10, "HASHTABLE_LOOKUP", "HASHTABLE_LOOKUP"),
    some(11, "L2_NORMALIZATION", "L2_NORMALIZE", &[0]),
    some(13, "LOCAL_RESPONSE_NORMALIZATION", "LRN2", &[0]),
    all(14, "LOGISTIC", "SIGMOID"),
    fused(17, "MAX_POOL_2D", "POOL", &[0], 5),
    fused(18, "MUL", "MULTIPLY", &[], 0),
    all(19, "RELU", "RELU"),
    all(20, "RELU_N1_TO_1", "RELU1"),
    all(21, "RELU6", "RELU6"),
    some(22, "RESHAPE", "RESHAPE2", &[0]),
    some(23, "RESIZE_BILINEAR", "RESIZE", &[0]),
    all(24, "RNN", "RNNCELL_OVXLIB"),
    some(25, "SOFTMAX", "SOFTMAX", &[0]),
    some(26, "SPACE_TO_DEPTH", "SPACE2DEPTH", &[0]),
    kept(27, "SVDF", "SVDF", &[]),
    all(28, "TANH", "TANH"),
    some(34, "PAD", "PAD", &[0]),
    all(35, "UNIDIRECTIONAL_SEQUENCE_RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"),
    some(36, "GATHER", "GATHER", &[0, 1]),
    some(37, "BATCH_TO_SPACE_ND", "BATCH2SPACE", &[0]),
    some(38, "SPACE_TO_BATCH_ND", "SPACE2BATCH", &[0]),
    some(39, "TRANSPOSE", "PERMUTE", &[0]),
    some(40, "MEAN", "REDUCE", &[0]),
    fused(41, "SUB", "SUBTRACT", &[], 0),
    fused(42, "DIV", "DIVIDE", &[], 0),
    some(43, "SQUEEZE", "SQUEEZE", &[0]),
    all(44, "UNIDIRECTIONAL_SEQUENCE_LSTM", "LSTM_OVXLIB"),
    some(45, "STRIDED_SLICE", "STRIDED_SLICE", &[0]),
    all(46, "BIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN"),
    all(47, "EXP", "EXP"),
    kept(48, "TOPK_V2", "TOPK", &[0]),
    some(49, "SPLIT", "SPLIT", &[1]),
    kept(50, "LOG_SOFTMAX", "LOG_SOFTMAX", &[0]),
    all(52, "BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"),
    some(53, "CAST", "CAST", &[0]),
    all(54, "PRELU", "PRELU"),
    all(55, "MAXIMUM", "MAXIMUM"),
    some(56, "ARG_MAX", "ARGMAX", &[0]),
    all(57, "MINIMUM", "MINIMUM"),
    all(58, "LESS", "RELATIONAL_OPS"),
    all(59, "NEG", "NEG"),
    kept(60, "PADV2", "PAD2", &[0]),
    all(61, "GREATER", "RELATIONAL_OPS"),
    all(62, "GREATER_EQUAL", "RELATIONAL_OPS"),
    all(63, "LESS_EQUAL", "RELATIONAL_OPS"),
    all(64, "SELECT", "SELECT"),
    some(65, "SLICE", "SLICE", &[0]),
    all(66, "SIN", "SIN"),
    some(67, "TRANSPOSE_CONV", "DECONVOLUTION", &[2, 1, 3]),
    kept(69, "TILE", "TILE", &[0]),
    some(70, "EXPAND_DIMS", "RESHAPE2", &[0]),
    all(71, "EQUAL", "RELATIONAL_OPS"),
    all(72, "NOT_EQUAL", "RELATIONAL_OPS"),
    all(73, "LOG", "LOG"),
    some(74, "SUM", "REDUCE", &[0]),
    all(75, "SQRT", "SQRT"),
    all(76, "RSQRT", "RSQRT"),
    all(78, "POW", "POW"),
    some(79, "ARG_MIN", "ARGMIN", &[0]),
    some(81, "REDUCE_PROD", "REDUCE", &[0]),
    some(82, "REDUCE_MAX", "REDUCE", &[0]),
    all(83, "PACK", "STACK"),
    all(84, "LOGICAL_OR", "LOGICAL_OPS"),
    some(85, "ONE_HOT", "ONE_HOT", &[0]),
    all(86, "LOGICAL_AND", "LOGICAL_OPS"),
    all(87, "LOGICAL_NOT", "LOGICAL_NOT"),
    some(88, "UNPACK", "UNSTACK", &[0]),
    some(89, "REDUCE_MIN", "REDUCE", &[0]),
    all(90, "FLOOR_DIV", "FLOORDIV"),
    some(91, "REDUCE_ANY", "REDUCE", &[0]),
    all(92, "SQUARE", "SQUARE"),
    kept(95, "FLOOR_MOD", "MOD", &[]),
    some(97, "RESIZE_NEAREST_NEIGHBOR", "RESIZE", &[0]),
    some(98, "LEAKY_RELU", "LEAKY_RELU", &[0]),
    some(100, "MIRROR_PAD", "PAD", &[0]),
    all(101, "ABS", "ABS"),
    some(102, "SPLIT_V", "SPLIT", &[0]),
    kept(104, "CEIL", "CEIL", &[]),
    some(105, "REVERSE_V2", "REVERSE", &[0]),
    all(106, "ADD_N", "ADDN"),
    all(107, "GATHER_ND", "GATHER_ND"),
    kept(108, "COS", "COS", &[]),
    all(111, "ELU", "ELU"),
    kept(112, "REVERSE_SEQUENCE", "REVERSESEQUENCE", &[]),
    some(114, "QUANTIZE", "DATACONVERT", &[0]),
    kept(116, "ROUND", "ROUND", &[]),
    all(117, "HARD_SWISH", "SWISH"),
    some(122, "SCATTER_ND", "SCATTER_ND", &[0, 1]),
    all(123, "SELECT_V2", "SELECT"),
    all(126, "BATCH_MATMUL", "MATRIXMUL"),
    kept(128, "CUMSUM", "CUMSUM", &[0]),
    some(130, "BROADCAST_TO", "EXPAND_BROADCAST", &[0]),
    all(132, "CONV_3D", "CONV3D"),
    all(150, "GELU", "GELU"),
];

pub(super) const CONV_2D: i32 = 3;
pub(super) const DEPTHWISE_CONV_2D: i32 = 4;
pub(super) const BROADCAST_TO: i32 = 130;

/// ovxlib's operator for a fused activation (`ProcessFusedActivation`).
pub(super) fn activation(code: u8) -> Option<&'static str> {
    match code {
        1 => Some("RELU"),
        2 => Some("RELU1"),
        3 => Some("RELU6"),
        4 => Some("TANH"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks;
    use crate::version::OvxlibVersion;

    #[test]
    fn every_operator_of_the_mapping_exists_in_ovxlib() {
        let (checks, _) = checks::for_version(OvxlibVersion::NEWEST).unwrap();
        let mut last = -1;
        for builtin in BUILTINS {
            assert!(checks.get(builtin.op).is_some(), "{} -> {}", builtin.name, builtin.op);
            assert!(builtin.code > last, "{}: sorted by number", builtin.name);
            last = builtin.code;
        }
        for code in 1..5 {
            assert!(checks.get(activation(code).unwrap()).is_some());
        }
    }
}
