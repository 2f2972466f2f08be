//! Vela's own disassembly, read back, and what each of its fields is called in ours.

use std::collections::BTreeMap;

use ethosu_isa::Product;

/// One command as Vela prints it.
#[derive(Debug)]
pub(crate) struct Line {
    /// Bytes from the start of the stream.
    pub(crate) offset: usize,
    /// The command word.
    pub(crate) control: u32,
    /// The payload word, if there is one.
    pub(crate) payload: Option<u32>,
    /// The command's name.
    pub(crate) name: String,
    /// Its fields.
    pub(crate) fields: Vec<(String, String)>,
}

/// The streams in Vela's standard output, each with the number of words Vela says it has.
pub(crate) fn streams(text: &str) -> Vec<(usize, Vec<Line>)> {
    let mut found: Vec<(usize, Vec<Line>)> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Register command stream: ") {
            let words = rest.strip_suffix(" words").and_then(|words| words.parse().ok());
            found.push((words.unwrap_or_else(|| panic!("no number of words: {line}")), Vec::new()));
        } else if let Some(command) = command(line) {
            found.last_mut().unwrap_or_else(|| panic!("before any stream: {line}")).1.push(command);
        }
    }
    found
}

/// Reads a line such as `0x000028: 00000000 0000 4000 - NPU_SET_IFM_BASE0                  0, addr = 0x0`.
fn command(line: &str) -> Option<Line> {
    let (offset, rest) = line.strip_prefix("0x")?.split_once(':')?;
    let (words, rest) = rest.split_once(" - ")?;
    let hex = |digits: &str| u32::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("not hex: {line}"));
    let words: Vec<u32> = words.split_whitespace().map(hex).collect();
    let (payload, parameter, code) = match words[..] {
        [parameter, code] => (None, parameter, code),
        [payload, parameter, code] => (Some(payload), parameter, code),
        _ => panic!("two or three numbers: {line}"),
    };
    let mut parts = rest.split(", ");
    let head = parts.next()?;
    let fields = parts.map(|field| {
        let (name, value) = field.split_once(" = ").unwrap_or_else(|| panic!("no field: {field}: {line}"));
        (name.to_owned(), value.to_owned())
    });
    Some(Line {
        offset: hex(offset) as usize,
        control: parameter << 16 | code,
        payload,
        name: head.split_whitespace().next()?.to_owned(),
        fields: fields.collect(),
    })
}

/// The fields of `line` as our disassembly has to show them, or the field that has no counterpart.
pub(crate) fn translated(line: &Line, product: Product) -> Result<BTreeMap<String, String>, String> {
    let mut ours = BTreeMap::new();
    let mut put = |name: &str, value: &str| {
        ours.insert(name.to_owned(), value.to_owned());
    };
    // Strides and dilations are split over fields in Vela's text.
    if line.name == "NPU_SET_KERNEL_STRIDE" {
        let theirs: BTreeMap<&str, &str> =
            line.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        let one_more = |low: &str, high: &str| -> String {
            let bit = |name: &str| theirs[name].parse::<u32>().expect("a number");
            (1 + bit(low) + 2 * bit(high)).to_string()
        };
        put("stride_x", &one_more("stride_x_lsb", "stride_x_msb"));
        put("stride_y", &one_more("stride_y_lsb", "stride_y_msb"));
        put("part_kernel_first", word(theirs["weight_order"])?);
        put("dilation_x", word(theirs["dilation_x"])?);
        put("dilation_y", word(theirs["dilation_y"])?);
        put("decomposition", word(theirs["decomposition"])?);
        return Ok(ours);
    }
    for (name, value) in &line.fields {
        match (&**name, &*line.name) {
            ("addr", register) if register.contains("_STRIDE") => put("stride", &signed(value, product)),
            ("addr", register) if register.contains("_SKIP") => put("skip", &signed(value, product)),
            ("addr", "NPU_SET_DMA0_LEN") => put("length", value),
            ("addr", _) => put("addr", value),
            ("scalar", "NPU_SET_OP_SCALAR") => put("scalar", &op_scalar(value, line.payload)?),
            ("zero_point" | "clip_boundary", _) | ("scalar", "NPU_SET_IFM2_SCALAR") => {
                put(name, &either(value))
            }
            ("k" | "n", _) => put("outstanding", value),
            ("dbl_rnd", _) => put("double_round", value),
            ("resize_x_scale_n_m1" | "resize_y_scale_n_m1", _) => put("scale_n_m1", value),
            ("resize_x_offset" | "resize_y_offset", _) => put("offset", value),
            ("branch_target", _) => put("target", value),
            ("enable", _) => put("enable", yes(value == "1")),
            ("weights_ifm2", _) => put("weights_from_ifm2", yes(value == "1")),
            ("broadcast_mode", _) => {
                let axes = value.strip_prefix("BROADCAST_MODE_").ok_or(value)?;
                let scalar = axes == "SCALAR";
                put("scalar", yes(scalar));
                for (axis, letter) in [("height", 'H'), ("width", 'W'), ("depth", 'C')] {
                    put(axis, yes(!scalar && axes != "NONE" && axes.contains(letter)));
                }
            }
            ("activation_type", _) => put("signed", word(value)?),
            ("activation_precision", _) => put("size", word(value)?),
            ("activation_format", _) => put("layout", word(value)?),
            ("activation_storage", _) => put("storage", word(value)?),
            ("activation_reverse", _) => put("reverse", word(value)?),
            ("activation_transpose", _) => put("transpose", word(value)?),
            ("activation_function", _) => put("function", word(value)?),
            ("activation_clip_range", _) => put("clip", word(value)?),
            ("round_mode", _) => put("rounding", word(value)?),
            ("scale_mode", _) => put("scale_mode", word(value)?),
            ("acc_format", _) => put("format", word(value)?),
            ("acc_input", _) => put("input", word(value)?),
            ("acc_output", _) => put("output_disabled", word(value)?),
            ("microblock", _) => put("microblock", word(value)?),
            ("region_mode", _) => put("internal", word(value)?),
            ("stride_mode", _) => put("stride_mode", word(value)?),
            ("idx_mode", _) => put("indexed", word(value)?),
            ("broadcast_h", _) => put("height", word(value)?),
            ("broadcast_w", _) => put("width", word(value)?),
            ("broadcast_c", _) => put("depth", word(value)?),
            ("broadcast_constant", _) => put("scalar", word(value)?),
            ("operand_order", _) => put("operand_order_reversed", word(value)?),
            ("weight_format", _) => put("encoding", word(value)?),
            ("weight_sparsity", _) => put("sparse", word(value)?),
            ("branch_cond", _) => put("condition", word(value)?),
            ("mode" | "pooling_mode" | "elementwise_mode" | "resize_mode" | "parallel_mode", _) => {
                put("mode", word(value)?);
            }
            (
                "mask" | "pad" | "depth_m1" | "width_m1" | "height_m1" | "region" | "ib_end" | "ib_start"
                | "ab_start" | "blockdep" | "size" | "length" | "shift" | "scale" | "table" | "scalar"
                | "idx_max" | "one_step_int" | "blk_step_int" | "one_step_mod" | "blk_step_mod",
                _,
            ) => put(name, value),
            (name, _) => return Err(format!("Vela's field {name} = {value} has no counterpart")),
        }
    }
    Ok(ours)
}

/// What our disassembly shows for one of Vela's names.
fn word(vela: &str) -> Result<&'static str, String> {
    let pairs = [
        ("ACTIVATION_TYPE_UNSIGNED", "no"),
        ("ACTIVATION_TYPE_SIGNED", "yes"),
        ("ACTIVATION_PRECISION_B8", "8"),
        ("ACTIVATION_PRECISION_B16", "16"),
        ("ACTIVATION_PRECISION_B32", "32"),
        ("ACTIVATION_PRECISION_B64", "64"),
        ("ACTIVATION_FORMAT_NHWC", "NHWC"),
        ("ACTIVATION_FORMAT_NHCWB16", "NHCWB16"),
        ("ACTIVATION_STORAGE_TILE2X2", "tile-2x2"),
        ("ACTIVATION_STORAGE_TILE3X1", "tile-3x1"),
        ("ACTIVATION_STORAGE_CHAINED", "chained"),
        ("ACTIVATION_STORAGE_NONE", "none"),
        ("ACTIVATION_REVERSE_NONE", "none"),
        ("ACTIVATION_REVERSE_H", "H"),
        ("ACTIVATION_REVERSE_W", "W"),
        ("ACTIVATION_REVERSE_C", "C"),
        ("ACTIVATION_TRANSPOSE_HWC", "HWC"),
        ("ACTIVATION_TRANSPOSE_WHC", "WHC"),
        ("ACTIVATION_TRANSPOSE_HCW", "HCW"),
        ("ACTIVATION_TRANSPOSE_WCH", "WCH"),
        ("ACTIVATION_TRANSPOSE_CHW", "CHW"),
        ("ACTIVATION_TRANSPOSE_CWH", "CWH"),
        ("ACTIVATION_FUNCTION_RELU", "none"),
        ("ACTIVATION_FUNCTION_TANH", "tanh"),
        ("ACTIVATION_FUNCTION_SIGMOID", "sigmoid"),
        ("ACTIVATION_FUNCTION_TABLE_0", "table-0"),
        ("ACTIVATION_FUNCTION_TABLE_1", "table-1"),
        ("ACTIVATION_FUNCTION_TABLE_2", "table-2"),
        ("ACTIVATION_FUNCTION_TABLE_3", "table-3"),
        ("ACTIVATION_FUNCTION_TABLE_4", "table-4"),
        ("ACTIVATION_FUNCTION_TABLE_5", "table-5"),
        ("ACTIVATION_FUNCTION_TABLE_6", "table-6"),
        ("ACTIVATION_FUNCTION_TABLE_7", "table-7"),
        ("ACTIVATION_FUNCTION_LUT_NONE", "none"),
        ("ACTIVATION_FUNCTION_LUT_U8_U8", "LUT-U8-U8"),
        ("ACTIVATION_FUNCTION_LUT_S8_S8", "LUT-S8-S8"),
        ("ACTIVATION_FUNCTION_LUT_S8_S16", "LUT-S8-S16"),
        ("ACTIVATION_FUNCTION_LUT_S8_S32", "LUT-S8-S32"),
        ("ACTIVATION_FUNCTION_LUT_S16_S16", "LUT-S16-S16"),
        ("ACTIVATION_FUNCTION_LUT_S16_S32", "LUT-S16-S32"),
        ("ACTIVATION_FUNCTION_LUT_TANH", "LUT-TANH"),
        ("ACTIVATION_FUNCTION_LUT_SIGMOID", "LUT-SIGMOID"),
        ("ACTIVATION_CLIP_RANGE_OFM_PRECISION", "OFM"),
        ("ACTIVATION_CLIP_RANGE_FORCE_UINT8", "uint8"),
        ("ACTIVATION_CLIP_RANGE_FORCE_INT8", "int8"),
        ("ACTIVATION_CLIP_RANGE_FORCE_INT16", "int16"),
        ("ACTIVATION_CLIP_RANGE_B16", "min-max"),
        ("ACTIVATION_CLIP_RANGE_NONE", "none"),
        ("IFM_SCALE_MODE_OPA_OPB_16", "both-16"),
        ("IFM_SCALE_MODE_OPA_32", "A-32"),
        ("IFM_SCALE_MODE_OPB_32", "B-32"),
        ("OFM_SCALE_MODE_PER_CHANNEL", "per-channel"),
        ("OFM_SCALE_MODE_GLOBAL", "global"),
        ("ROUND_MODE_DBL", "double"),
        ("ROUND_MODE_TRUNCATE", "truncate"),
        ("ROUND_MODE_NATURAL", "natural"),
        ("ROUND_MODE_IFM_DOUBLE_SYMMETRIC", "double"),
        ("ROUND_MODE_IFM_NATURAL", "natural"),
        ("ROUND_MODE_OFM_DOUBLE_SYMMETRIC", "double"),
        ("ROUND_MODE_OFM_NATURAL", "natural"),
        ("ROUND_MODE_OFM_DOUBLE_ASYMMETRIC", "double-asymmetric"),
        ("ROUND_MODE_OFM_SYMMETRIC", "symmetric"),
        ("ROUND_MODE_OFM_TRUNCATE_TO_ZERO", "truncate-to-zero"),
        ("ROUND_MODE_OFM_TRUNCATE_TO_LOWER", "truncate-to-lower"),
        ("IFM_UPSCALE_MODE_NONE", "none"),
        ("IFM_UPSCALE_MODE_NEAREST", "nearest"),
        ("IFM_UPSCALE_MODE_ZEROS", "zeros"),
        ("WEIGHT_ORDER_DEPTH_FIRST", "no"),
        ("WEIGHT_ORDER_PART_KERNEL_FIRST", "yes"),
        ("KERNEL_DILATION_NONE", "1"),
        ("KERNEL_DILATION_X2", "2"),
        ("KERNEL_DECOMPOSITION_D8X8", "8x8"),
        ("KERNEL_DECOMPOSITION_D4X4", "4x4"),
        ("PARALLEL_MODE_SINGLE_CORE", "single-core"),
        ("PARALLEL_MODE_DUAL_CORE_DEPTH", "dual-core-depth"),
        ("ACC_FORMAT_I32", "int32"),
        ("ACC_FORMAT_I40", "int40"),
        ("ACC_FORMAT_F16", "float16"),
        ("ACC_FORMAT_I48", "int48"),
        ("ACC_INPUT_RESET", "reset"),
        ("ACC_INPUT_KEEP", "keep"),
        ("ACC_INPUT_IFM2", "IFM2"),
        ("ACC_OUTPUT_ENABLE", "no"),
        ("ACC_OUTPUT_DISABLE", "yes"),
        ("MICROBLOCK_U1X1", "1x1"),
        ("MICROBLOCK_U1X2", "1x2"),
        ("MICROBLOCK_U1X4", "1x4"),
        ("MICROBLOCK_U2X2", "2x2"),
        ("MICROBLOCK_U2X4", "2x4"),
        ("MICROBLOCK_U4X4", "4x4"),
        ("DMA_REGION_MODE_EXTERNAL", "no"),
        ("DMA_REGION_MODE_INTERNAL", "yes"),
        ("DMA_STRIDE_MODE_D1", "1D"),
        ("DMA_STRIDE_MODE_D2", "2D"),
        ("DMA_STRIDE_MODE_D3", "3D"),
        ("DMA_IDX_MODE_DISABLED", "no"),
        ("DMA_IDX_MODE_ENABLED", "yes"),
        ("BROADCAST_MODE_DISABLE", "no"),
        ("BROADCAST_MODE_ENABLE", "yes"),
        ("IFM2_OPERAND_ORDER_ORDER_B", "no"),
        ("IFM2_OPERAND_ORDER_ORDER_A", "yes"),
        ("WEIGHT_FORMAT_SWD", "standard"),
        ("WEIGHT_FORMAT_FWD", "fast"),
        ("WEIGHT_SPARSITY_NONE", "no"),
        ("WEIGHT_SPARSITY_SPARSE_2_4", "yes"),
        ("BRANCH_COND_ALWAYS", "always"),
        ("BRANCH_COND_RF_TRUE", "RF-true"),
        ("POOLING_MODE_MAX", "max"),
        ("POOLING_MODE_AVERAGE", "average"),
        ("POOLING_MODE_REDUCE_SUM", "reduce-sum"),
        ("POOLING_MODE_SUM", "sum"),
        ("POOLING_MODE_NONE", "none"),
        ("POOLING_MODE_MIN", "min"),
        ("POOLING_MODE_ARGMAX_X", "argmax-x"),
        ("POOLING_MODE_ARGMAX_Y", "argmax-y"),
        ("ELEMENTWISE_MODE_MUL", "mul"),
        ("ELEMENTWISE_MODE_ADD", "add"),
        ("ELEMENTWISE_MODE_SUB", "sub"),
        ("ELEMENTWISE_MODE_MIN", "min"),
        ("ELEMENTWISE_MODE_MAX", "max"),
        ("ELEMENTWISE_MODE_LRELU", "leaky-relu"),
        ("ELEMENTWISE_MODE_ABS", "abs"),
        ("ELEMENTWISE_MODE_CLZ", "clz"),
        ("ELEMENTWISE_MODE_SHR", "shr"),
        ("ELEMENTWISE_MODE_SHL", "shl"),
        ("ELEMENTWISE_MODE_LSR", "lsr"),
        ("ELEMENTWISE_MODE_DIV", "div"),
        ("ELEMENTWISE_MODE_CMP_EQ", "cmp-eq"),
        ("ELEMENTWISE_MODE_CMP_NE", "cmp-ne"),
        ("ELEMENTWISE_MODE_CMP_GE", "cmp-ge"),
        ("ELEMENTWISE_MODE_CMP_GT", "cmp-gt"),
        ("ELEMENTWISE_MODE_AND", "and"),
        ("ELEMENTWISE_MODE_OR", "or"),
        ("ELEMENTWISE_MODE_XOR", "xor"),
        ("ELEMENTWISE_MODE_NOT", "not"),
        ("ELEMENTWISE_MODE_AND_NOT", "and-not"),
        ("RESIZE_MODE_BILINEAR", "bilinear"),
        ("RESIZE_MODE_REPLICATE", "replicate"),
        ("RESIZE_MODE_NEAREST", "nearest"),
    ];
    let found = pairs.iter().find(|(theirs, _)| *theirs == vela);
    found.map(|(_, ours)| *ours).ok_or_else(|| format!("Vela's {vela} has no counterpart"))
}

fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Sixteen bits, with their two's complement where that differs.
fn either(value: &str) -> String {
    let number: u16 = value.parse().expect("sixteen bits");
    let signed = i32::from(number) - if number < 0x8000 { 0 } else { 0x1_0000 };
    if signed < 0 { format!("{number} or {signed}") } else { number.to_string() }
}

/// Vela 5.2.0 prints a negative scalar as an unsigned number that is one too small: it means to take the two's complement,
/// and does so in unsigned arithmetic with the largest signed number instead of one more than that.
fn op_scalar(value: &str, payload: Option<u32>) -> Result<String, String> {
    let payload = payload.ok_or("a scalar without a payload")?;
    let printed = if payload < 0x8000_0000 { payload } else { payload - 1 };
    if value != printed.to_string() {
        return Err(format!("Vela shows the scalar {payload:#x} as {value}"));
    }
    Ok((payload as i32).to_string())
}

/// A 40-bit address of Vela's text as the two's complement number that a stride is; on U55 it has 32 bits.
fn signed(value: &str, product: Product) -> String {
    let digits = value.strip_prefix("0x").expect("a hexadecimal number");
    let number = i128::from_str_radix(digits, 16).expect("a hexadecimal number");
    let modulus = 1_i128 << if product == Product::U55 { 32 } else { 40 };
    let number = number % modulus;
    (if number < modulus / 2 { number } else { number - modulus }).to_string()
}
