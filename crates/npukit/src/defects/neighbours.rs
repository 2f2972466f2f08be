//! What goes wrong where two operators meet.
//!
//! Vela reads a slice through the operator behind it (`MoveSplitSliceToConsumer`), folds paddings into convolutions
//! (`ReplacePadByExplicitPadding`, both regor/compiler/graphir_optimiser.cpp), and writes a map into its place among others
//! without copying it. Not all operators bear it.

use ethosu_isa::Product;
use npukit_vela::tflite::{Operator, Tensor};

use super::graph::{Graph, axes};
use super::{Family, U55_U65, U85};

/// A defect of an operator for what stands before it.
pub(super) struct Behind {
    pub(super) family: Family,
    pub(super) products: &'static [Product],
    /// What stands before it.
    pub(super) behind: String,
}

/// Height and width.
const PLANE: [usize; 2] = [1, 2];
/// Axes that the masks of STRIDED_SLICE have bits for.
const MASK_BITS: usize = 31;

/// What the compiler gets wrong about an operator because of those before it.
pub(super) fn all<'a>(graph: &Graph<'_, 'a>, operator: &Operator<'a>) -> Vec<Behind> {
    let found = |family: Family, products, behind: &Operator<'a>| {
        Some(Behind { family, products, behind: behind.to_string() })
    };
    let name = operator.name();
    let mut defects = Vec::new();
    match name.as_ref() {
        "CONV_2D" | "DEPTHWISE_CONV_2D" | "MAX_POOL_2D" | "AVERAGE_POOL_2D" => {
            let folded = folded_pad(graph, operator);
            // The map that is read, once a PAD is folded away.
            let reader = folded.map_or(operator, |(pad, _)| pad);
            let padded = folded
                .map_or_else(|| Window::of(graph, operator).map(|one| one.front()), |(_, front)| Some(front));
            if let (Some(slice), Some(padded)) = (Slice::before(graph, reader, 0), padded)
                && PLANE.iter().zip(padded).any(|(&axis, padded)| padded > 0 && slice.stride(4, axis) > 1)
            {
                defects.extend(found(Family::StridedSlicePadded, &Product::ALL, slice.operator));
            }
            if let (Some((pad, _)), Some(window)) = (folded, Window::of(graph, operator))
                && name == "CONV_2D"
                && window.stride.iter().any(|&stride| stride > 3)
            {
                defects.extend(found(Family::PadLongStride, U55_U65, pad));
            }
        }
        "TRANSPOSE_CONV" => {
            let window = Window::of(graph, operator);
            let strided = Slice::before(graph, operator, 2)
                .zip(window.as_ref())
                .and_then(|(slice, window)| Some((transposed_padding(&slice, window)?, slice.operator)));
            if let Some((products, slice)) = strided {
                defects.extend(found(Family::StridedSlicePadded, products, slice));
            }
            if let (Some(cut), Some(window)) = (Cut::before(graph, operator, 2), window)
                && let Some(products) = transposed_slice(&cut, &window, strided.map(|(products, _)| products))
            {
                defects.extend(found(Family::SliceTransposed, products, cut.operator));
            }
        }
        "ADD" | "SUB" | "MUL" | "MAXIMUM" | "MINIMUM" => {
            for (one, other) in [(0, 1), (1, 0)] {
                if let Some(slice) = Slice::before(graph, operator, one)
                    && let Some(products) = beside_a_map(graph, operator, &slice, one, other)
                {
                    defects.extend(found(Family::StridedSliceElementwise, products, slice.operator));
                }
            }
        }
        // It subtracts the largest element of the slice, a map, from the slice.
        "SOFTMAX" => {
            if let Some(slice) = Slice::before(graph, operator, 0)
                && let Some(map) = graph.input(operator, 0)
                && (0..map.shape.len())
                    .any(|axis| slice.stride(map.shape.len(), axis) > 1 && map.shape[axis] > 1)
            {
                defects.extend(found(Family::StridedSliceElementwise, U55_U65, slice.operator));
            }
        }
        "REDUCE_MAX" | "REDUCE_MIN" => {
            if let Some(cut) = Cut::before(graph, operator, 0)
                && let Some(products) = reduced_slice(graph, operator, &cut)
            {
                defects.extend(found(Family::SliceReduced, products, cut.operator));
            }
        }
        "BATCH_MATMUL" => {
            if let Some(cut) = Cut::before(graph, operator, 0)
                && let Some(products) = multiplied_slice(operator, &cut)
            {
                defects.extend(found(Family::SliceMultiplied, products, cut.operator));
            }
        }
        "PAD" | "PADV2" => {
            let front = || graph.integers(operator, 1).unwrap_or_default().chunks(2).any(|pair| pair[0] != 0);
            let all_fold = || {
                let mut readers = graph.readers(operator).peekable();
                readers.peek().is_some() && readers.all(|reader| folded_pad(graph, reader).is_some())
            };
            let front_of_plane = || {
                let paddings = graph.integers(operator, 1).unwrap_or_default();
                paddings.len() == 8 && PLANE.iter().any(|axis| paddings[2 * axis] != 0)
            };
            if let Some(resize) = half_pixel_resize(graph, operator, 0)
                && front()
                && !all_fold()
            {
                defects.extend(found(Family::ResizedPadded, U55_U65, resize));
            }
            if let Some(transposed) = transposed_convolution(graph, operator, 0)
                && front_of_plane()
                && !all_fold()
            {
                defects.extend(found(Family::TransposedPadded, U85, transposed));
            }
        }
        "CONCATENATION" => {
            // The first of them starts where the output does.
            let resized =
                (1..operator.inputs.len()).find_map(|input| half_pixel_resize(graph, operator, input));
            defects.extend(resized.and_then(|resize| found(Family::ResizedPadded, U55_U65, resize)));
            let axis = operator.options.map_or(0, |options| options.number::<i32>(0, 0));
            let rank = graph.output(operator).map_or(0, |output| output.shape.len());
            if rank == 4 && axes(&[axis.into()], rank).iter().any(|axis| PLANE.contains(axis)) {
                let transposed = (1..operator.inputs.len())
                    .find_map(|input| transposed_convolution(graph, operator, input));
                defects.extend(transposed.and_then(|one| found(Family::TransposedPadded, U85, one)));
            }
        }
        "PACK" => {
            let slice = (0..operator.inputs.len()).find_map(|input| {
                let cut = Cut::before(graph, operator, input)?;
                Some((packed_slice(graph, operator, input, &cut)?, cut.operator))
            });
            defects.extend(slice.and_then(|(products, slice)| found(Family::SlicePacked, products, slice)));
        }
        "RESHAPE" | "SQUEEZE" | "EXPAND_DIMS" => {
            if let Some(pad) = graph.maker(operator, 0).filter(|maker| maker.name() == "MIRROR_PAD")
                && let Some(paddings) = graph.integers(pad, 1)
                && let [.., left, right, _, _] = paddings.as_slice()
                && (*left, *right) != (0, 0)
            {
                defects.extend(found(Family::MirrorPadReshaped, &Product::ALL, pad));
            }
        }
        _ => {}
    }
    defects
}

/// A STRIDED_SLICE with a stride.
struct Slice<'m, 'a> {
    operator: &'m Operator<'a>,
    /// The stride along each axis of its output.
    strides: Vec<i64>,
}

impl<'m, 'a> Slice<'m, 'a> {
    /// That which makes an operator's input.
    fn before(graph: &Graph<'m, 'a>, operator: &Operator<'a>, input: usize) -> Option<Slice<'m, 'a>> {
        let slice = graph.maker(operator, input).filter(|maker| maker.name() == "STRIDED_SLICE")?;
        let mask = |field| slice.options.map_or(0, |options| options.number::<i32>(field, 0));
        let (ellipsis, new_axes, shrunk) = (mask(2), mask(3), mask(4));
        if ellipsis != 0 || new_axes != 0 {
            return None;
        }
        let strides = graph.integers(slice, 3)?;
        let rank = Some(graph.input(slice, 0)?.shape.len()).filter(|&rank| rank <= MASK_BITS)?;
        let kept = (0..rank).filter(|axis| shrunk >> axis & 1 == 0);
        let strides: Vec<i64> = kept.map(|axis| strides.get(axis).copied().unwrap_or(1)).collect();
        strides.iter().any(|&stride| stride > 1).then_some(Slice { operator: slice, strides })
    }

    /// The stride along an axis of a map of so many axes: shorter shapes lack the first ones.
    fn stride(&self, rank: usize, axis: usize) -> i64 {
        let missing = rank.saturating_sub(self.strides.len());
        axis.checked_sub(missing).and_then(|axis| self.strides.get(axis)).copied().unwrap_or(1)
    }
}

/// A kernel on a plane: each of height, then width.
struct Window {
    same: bool,
    kernel: [i64; 2],
    stride: [i64; 2],
    dilation: [i64; 2],
    input: [i64; 2],
}

impl Window {
    /// That of a convolution or pool, by its options (schema.fbs) and the shape of its weights.
    fn of<'a>(graph: &Graph<'_, 'a>, operator: &Operator<'a>) -> Option<Window> {
        let options = operator.options?;
        let number = |field| i64::from(options.number::<i32>(field, 1));
        let name = operator.name();
        let dilation = match name.as_ref() {
            "CONV_2D" => [number(5), number(4)],
            "DEPTHWISE_CONV_2D" => [number(6), number(5)],
            _ => [1, 1],
        };
        let sides = |shape: &[i32]| Some([i64::from(*shape.get(1)?), i64::from(*shape.get(2)?)]);
        let kernel = match name.as_ref() {
            "MAX_POOL_2D" | "AVERAGE_POOL_2D" => [number(4), number(3)],
            _ => sides(&graph.input(operator, 1)?.shape)?,
        };
        let map = if name == "TRANSPOSE_CONV" { 2 } else { 0 };
        Some(Window {
            same: !options.flag(0),
            kernel,
            stride: [number(2).max(1), number(1).max(1)],
            dilation,
            input: sides(&graph.input(operator, map)?.shape)?,
        })
    }

    /// How far a kernel reaches along an axis.
    fn reach(&self, axis: usize) -> i64 {
        (self.kernel[axis] - 1) * self.dilation[axis] + 1
    }

    /// Elements of padding that SAME puts in front of height and width.
    fn front(&self) -> [i64; 2] {
        [0, 1].map(|axis| {
            if !self.same {
                return 0;
            }
            let (input, stride) = (self.input[axis], self.stride[axis]);
            let outputs = (input + stride - 1) / stride;
            ((outputs - 1) * stride + self.reach(axis) - input).max(0) / 2
        })
    }
}

/// The PAD that Vela makes part of a convolution, and what it puts in front of height and width.
fn folded_pad<'m, 'a>(
    graph: &Graph<'m, 'a>,
    operator: &Operator<'a>,
) -> Option<(&'m Operator<'a>, [i64; 2])> {
    if !matches!(operator.name().as_ref(), "CONV_2D" | "DEPTHWISE_CONV_2D") {
        return None;
    }
    let window = Window::of(graph, operator)?;
    let pad = graph.maker(operator, 0)?;
    let map = graph.input(pad, 0)?;
    let zero = match pad.name().as_ref() {
        "PAD" => true,
        "PADV2" => graph.code(pad, 2) == Some(map.quantisation.as_ref()?.zero_point()),
        _ => false,
    };
    let paddings = graph.integers(pad, 1)?;
    let &[0, 0, top, bottom, left, right, 0, 0] = paddings.as_slice() else { return None };
    let sizes = 0..=i64::from(i32::MAX);
    if window.same
        || !zero
        || map.shape.len() != 4
        || [top, bottom, left, right].iter().any(|one| !sizes.contains(one))
    {
        return None;
    }
    let mut sum = 0;
    for (axis, (before, after)) in [(top, bottom), (left, right)].into_iter().enumerate() {
        // What the last kernel doesn't reach is left out.
        let (size, stride, reach) = (i64::from(map.shape[1 + axis]), window.stride[axis], window.reach(axis));
        let outputs = (size + before + after - reach).max(0) / stride + 1;
        let after = ((outputs - 1) * stride + reach - size - before).max(0);
        if before >= reach || after >= reach {
            return None;
        }
        sum += before + after;
    }
    (sum > 0).then_some((pad, [top, left]))
}

/// The products on which a transposed convolution of a slice with a stride is wrong, if any: found by trying kernels of 1 to 4
/// with strides of 1 and 2.
fn transposed_padding(slice: &Slice<'_, '_>, window: &Window) -> Option<&'static [Product]> {
    let strided = [0, 1].map(|axis| slice.stride(4, 1 + axis) > 1);
    if !strided.contains(&true) || window.kernel == [1, 1] {
        return None;
    }
    let everywhere = (0..2).any(|axis| strided[axis] && window.kernel[axis] > window.stride[axis]);
    Some(if everywhere { &Product::ALL } else { U55_U65 })
}

/// The products on which an element-wise operator of a slice with a stride and something else is wrong, if any.
fn beside_a_map<'a>(
    graph: &Graph<'_, 'a>,
    operator: &Operator<'a>,
    slice: &Slice<'_, 'a>,
    one: usize,
    other: usize,
) -> Option<&'static [Product]> {
    let (map, beside) = (graph.input(operator, one)?, graph.input(operator, other)?);
    let second = Slice::before(graph, operator, other);
    let rank = map.shape.len().max(beside.shape.len());
    let side = |tensor: &Tensor<'_>, axis: usize| {
        let missing = rank - tensor.shape.len();
        axis.checked_sub(missing).map_or(1, |axis| tensor.shape[axis])
    };
    let mut products = None;
    for axis in 0..rank {
        let stride = slice.stride(rank, axis);
        // Two slices of one stride are right.
        let alike = second.as_ref().is_some_and(|second| second.stride(rank, axis) == stride);
        if stride > 1 && !alike && side(beside, axis) > 1 {
            if side(map, axis) == 1 {
                // One element is left, and broadcast.
                return Some(&Product::ALL);
            }
            products = Some(U55_U65);
        }
    }
    products
}

/// What a slice takes out of a map, by the axes of that map.
struct Cut<'m, 'a> {
    operator: &'m Operator<'a>,
    /// The whole map.
    whole: Vec<i64>,
    begin: Vec<i64>,
    /// Elements that are taken.
    size: Vec<i64>,
    strides: Vec<i64>,
    /// A bit for each axis of the map that the slice doesn't have.
    dropped: i32,
}

impl<'m, 'a> Cut<'m, 'a> {
    /// That of the operator which makes an input, if it is a slice.
    fn before(graph: &Graph<'m, 'a>, operator: &Operator<'a>, input: usize) -> Option<Cut<'m, 'a>> {
        let maker = graph.maker(operator, input)?;
        let taken = graph.input(operator, input)?;
        let name = maker.name();
        let source = graph.input(maker, usize::from(name == "SPLIT"))?;
        let whole: Vec<i64> = source.shape.iter().map(|&side| side.into()).collect();
        let rank = Some(whole.len()).filter(|&rank| rank <= MASK_BITS)?;
        let mut begin = vec![0; rank];
        let mut strides = vec![1; rank];
        // The axes that the slice doesn't have.
        let mut dropped = 0;
        match name.as_ref() {
            "SLICE" => begin = graph.integers(maker, 1)?,
            "STRIDED_SLICE" => {
                let mask = |field| maker.options.map_or(0, |options| options.number::<i32>(field, 0));
                if mask(2) != 0 || mask(3) != 0 {
                    return None;
                }
                dropped = mask(4);
                strides = graph.integers(maker, 3)?;
                let from = graph.integers(maker, 1)?;
                for (axis, from) in from.into_iter().enumerate().take(rank) {
                    let given = mask(0) >> axis & 1 == 0 || dropped >> axis & 1 == 1;
                    let from = if from < 0 { from.saturating_add(whole[axis]) } else { from };
                    begin[axis] = if given { from.min(whole[axis] - 1).max(0) } else { 0 };
                }
            }
            "SPLIT" | "SPLIT_V" | "UNPACK" => {
                let axis = match name.as_ref() {
                    "SPLIT" => *graph.integers(maker, 0)?.first()?,
                    "SPLIT_V" => *graph.integers(maker, 2)?.first()?,
                    _ => maker.options?.number::<i32>(1, 0).into(),
                };
                let axis = *axes(&[axis], rank).first()?;
                let read = (*operator.inputs.get(input)?)?;
                let before = maker.outputs.iter().take_while(|&&output| output != read);
                begin[axis] = if name == "UNPACK" {
                    dropped = 1 << axis;
                    before.count() as i64
                } else {
                    let side =
                        |&part: &usize| Some(i64::from(*graph.main().tensors.get(part)?.shape.get(axis)?));
                    before.map(side).sum::<Option<i64>>()?
                };
            }
            _ => return None,
        }
        let mut sides = taken.shape.iter().map(|&side| i64::from(side));
        let size: Option<Vec<i64>> =
            (0..rank).map(|axis| if dropped >> axis & 1 == 1 { Some(1) } else { sides.next() }).collect();
        let size = size.filter(|_| begin.len() == rank && strides.len() == rank)?;
        let cut = Cut { operator: maker, whole, begin, size, strides, dropped };
        (0..rank).any(|axis| !cut.keeps(axis)).then_some(cut)
    }

    /// Whether the slice has fewer axes than the map.
    fn drops_axes(&self) -> bool {
        self.dropped != 0
    }

    /// Whether all of an axis is taken.
    fn keeps(&self, axis: usize) -> bool {
        self.size[axis] == self.whole[axis]
    }

    /// Whether only one axis is cut, with no stride.
    fn cuts_only(&self, axis: usize) -> bool {
        self.strides.iter().all(|&stride| stride == 1)
            && (0..self.whole.len()).all(|one| one == axis || self.keeps(one))
    }

    /// The first axis of more than one element.
    fn outermost(&self) -> Option<usize> {
        self.whole.iter().position(|&side| side > 1)
    }
}

/// The products on which a REDUCE_MAX or REDUCE_MIN of a slice is wrong, if any: found by cutting each axis of maps of two to four
/// axes, from the start and not, and reducing each. The last axis is reduced from the start of the uncut map, in rows of all of
/// it; so is the height on U55 and U65.
fn reduced_slice<'a>(
    graph: &Graph<'_, 'a>,
    operator: &Operator<'a>,
    cut: &Cut<'_, 'a>,
) -> Option<&'static [Product]> {
    let map = graph.input(operator, 0)?;
    let rank = map.shape.len();
    let axes = axes(&graph.integers(operator, 1)?, rank);
    // An axis of one element, too.
    let reduces = |from_back: usize| rank.checked_sub(from_back).is_some_and(|axis| axes.contains(&axis));
    let maximum = operator.name() == "REDUCE_MAX";
    let from_start = cut.begin.iter().all(|&begin| begin == 0);
    let prefix = from_start && cut.outermost().is_some_and(|axis| cut.cuts_only(axis));
    let one_batch = map.shape.iter().rev().skip(3).all(|&side| side == 1);
    // The last axis is then reduced from what the other was reduced to.
    let after_another = one_batch && axes.len() == 2 && reduces(2);
    if reduces(1) && (!prefix || cut.drops_axes()) && !after_another {
        return Some(if maximum { &Product::ALL } else { U85 });
    }
    let columns = cut.whole.len().checked_sub(2);
    let first_columns = from_start && columns.is_some_and(|axis| cut.cuts_only(axis));
    let wrong = maximum && (cut.drops_axes() || reduces(3) && !first_columns);
    wrong.then_some(U55_U65)
}

/// The products on which a BATCH_MATMUL whose first operand is a slice is wrong, if any.
fn multiplied_slice(operator: &Operator<'_>, cut: &Cut<'_, '_>) -> Option<&'static [Product]> {
    let rank = cut.whole.len();
    let rows = rank.checked_sub(2)?;
    if operator.options.is_some_and(|options| options.flag(0)) {
        return None;
    }
    // Strides are along height and width, of which the first counts matrices in a map of four axes.
    if cut.strides[..rows].iter().any(|&stride| stride > 1) {
        return Some(&Product::ALL);
    }
    let tail = cut.begin[rows].saturating_add(cut.size[rows]) == cut.whole[rows];
    let last_rows = cut.outermost() == Some(rows) && cut.cuts_only(rows) && tail;
    (!last_rows).then_some(U55_U65)
}

/// The RESIZE_BILINEAR with half-pixel centres that makes an operator's input, from more than one element.
fn half_pixel_resize<'m, 'a>(
    graph: &Graph<'m, 'a>,
    operator: &Operator<'a>,
    input: usize,
) -> Option<&'m Operator<'a>> {
    let resize = graph.maker(operator, input).filter(|maker| maker.name() == "RESIZE_BILINEAR")?;
    // Its first two options are the sizes of old files.
    // With another reader it is written to a place of its own and copied.
    let half = resize.options.is_some_and(|options| options.flag(3)) && graph.is_read_once(resize);
    let plane = graph.input(resize, 0)?.shape.get(1..3)?.to_vec();
    (half && plane != [1, 1]).then_some(resize)
}

/// The TRANSPOSE_CONV that makes an operator's input and is read by nothing else.
fn transposed_convolution<'m, 'a>(
    graph: &Graph<'m, 'a>,
    operator: &Operator<'a>,
    input: usize,
) -> Option<&'m Operator<'a>> {
    let maker = graph.maker(operator, input)?;
    (maker.name() == "TRANSPOSE_CONV" && graph.is_read_once(maker)).then_some(maker)
}

/// The products on which a transposed convolution of a slice is wrong, less those where the stride is to blame: found by cutting
/// each axis, from the start and not, with kernels of 1 to 3 elements.
fn transposed_slice(
    cut: &Cut<'_, '_>,
    window: &Window,
    blamed: Option<&[Product]>,
) -> Option<&'static [Product]> {
    let kept: Vec<usize> = (0..cut.whole.len()).filter(|axis| cut.dropped >> axis & 1 == 0).collect();
    let begins = PLANE.iter().any(|&axis| kept.get(axis).is_some_and(|&axis| cut.begin[axis] > 0));
    let is_free = |product| blamed.is_none_or(|blamed| !blamed.contains(&product));
    let older = window.kernel.iter().any(|&side| side > 1) && is_free(Product::U55);
    match (older, begins && is_free(Product::U85)) {
        (true, true) => Some(&Product::ALL),
        (true, false) => Some(U55_U65),
        (false, true) => Some(U85),
        (false, false) => None,
    }
}

/// The products on which PACK takes a slice wrongly, if any: found by cutting maps of one to eight batches, and packing them on
/// each axis.
fn packed_slice<'a>(
    graph: &Graph<'_, 'a>,
    operator: &Operator<'a>,
    input: usize,
    cut: &Cut<'_, 'a>,
) -> Option<&'static [Product]> {
    let &[batches, height, _, _] = graph.input(operator, input)?.shape.as_slice() else { return None };
    let axis = operator.options.map_or(0, |options| options.number::<i32>(1, 0));
    let axis = *axes(&[axis.into()], 5).first()?;
    if cut.drops_axes() || !(axis == 0 || axis == 1 && batches == 1) {
        return None;
    }
    match (batches > 1, height > 1) {
        (true, _) => Some(&Product::ALL),
        (false, true) => Some(U85),
        (false, false) => None,
    }
}
