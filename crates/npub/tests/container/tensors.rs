//! The tensor table.

use npub::layout::table;
use npub::{
    Accel, Blob, BlobBuilder, BuildError, DType, Error, ErrorKind, Quantisation, Role, Shape, TensorEntry,
    TensorError, TensorFault, TensorKind,
};

use crate::sample::{STOP, int8, network, seal, set_table, slot};

#[test]
fn every_field_comes_back() {
    let long = "é".repeat(5000);
    let entries = [
        int8(TensorKind::Input, "first", &[1, 49, 10, 1], 0, 0),
        TensorEntry { place: None, ..int8(TensorKind::Input, "unused", &[3], 0, 0) },
        TensorEntry {
            dtype: DType::Float32,
            quantisation: None,
            ..int8(TensorKind::Output, &long, &[2, 3, 4, 5, 1, 1, 1, 2], 1, 16)
        },
        TensorEntry { fed_from: Some(4), ..int8(TensorKind::State, "", &[1, 8], 1, 0) },
        int8(TensorKind::NextState, "next", &[8], 1, 8),
        TensorEntry {
            dtype: DType::Int16,
            quantisation: Some(Quantisation { scale: f32::MIN_POSITIVE, zero_point: i32::MIN }),
            ..int8(TensorKind::State, "in place", &[], 1, 1000)
        },
    ];
    let mut builder = BlobBuilder::new(Accel::u55(64));
    builder.commands(&[STOP]);
    builder.runtime(Role::Input, 490);
    builder.runtime(Role::Scratch, 1002);
    for entry in &entries {
        builder.tensor(entry.clone());
    }
    let bytes = builder.build().expect("valid");
    let tensors = Blob::parse(&bytes).expect("valid").tensors().expect("has a table");

    assert_eq!(tensors.len(), entries.len());
    for (tensor, entry) in tensors.iter().zip(&entries) {
        assert_eq!((tensor.kind, tensor.name, tensor.dtype), (entry.kind, entry.name.as_str(), entry.dtype));
        assert_eq!((tensor.shape, tensor.quantisation), (entry.shape, entry.quantisation));
        assert_eq!((tensor.place, tensor.fed_from), (entry.place, entry.fed_from));
        assert_eq!(Some(tensor.size), entry.shape.bytes(entry.dtype));
    }
    assert_eq!(tensors.get(2).map(|tensor| tensor.size), Some(2 * 3 * 4 * 5 * 2 * 4));
    assert_eq!(tensors.get(entries.len()), None);
    assert_eq!(tensors.inputs().map(|tensor| tensor.name).collect::<Vec<_>>(), ["first", "unused"]);
    assert_eq!(tensors.outputs().count(), 1);
    assert_eq!(tensors.states().count(), 2);
    assert_eq!(tensors.find("next").map(|tensor| tensor.kind), Some(TensorKind::NextState));
    assert_eq!(tensors.find("absent"), None);
}

/// The numbers of docs/npu1.md, spelled out: a change of the wire format fails here.
#[test]
fn the_bytes_are_those_of_the_document() {
    let bytes = network(40);
    let region = Blob::parse(&bytes).expect("valid").region_bytes(slot::TENSORS).expect("baked");
    let words = |values: &[u32]| -> Vec<u8> { values.iter().flat_map(|word| word.to_le_bytes()).collect() };
    assert_eq!(region[..16], words(&[2, 80, 176, 15]));
    let scale = 0.5f32.to_bits();
    let zero_point = (-3i32).cast_unsigned();
    let none = u32::MAX;
    assert_eq!(
        region[16..96],
        words(&[0, 9, 0, 7, 3, 0, 490, 1, scale, zero_point, none, 4, 1, 49, 10, 1, 0, 0, 0, 0])
    );
    assert_eq!(
        region[96..176],
        words(&[1, 9, 7, 8, 4, 0, 12, 1, scale, zero_point, none, 2, 1, 12, 0, 0, 0, 0, 0, 0])
    );
    assert_eq!(&region[176..], b"input_1Identity");
}

#[test]
fn longer_records_of_a_later_producer_are_read() {
    let (head, record) = (16, 80);
    let old = network(40);
    let region = Blob::parse(&old).expect("valid").region_bytes(slot::TENSORS).expect("baked").to_vec();
    let start = old.len() - region.len();
    let mut longer = old[..start + head].to_vec();
    for index in 0..2 {
        longer.extend_from_slice(&region[head + index * record..head + (index + 1) * record]);
        longer.extend_from_slice(&[0xEE; 8]);
    }
    longer.extend_from_slice(&region[head + 2 * record..]);
    set_table(&mut longer, table::RECORD_STRIDE, 88);
    set_table(&mut longer, table::NAMES_OFFSET, 176 + 16);
    crate::sample::set_region(
        &mut longer,
        slot::TENSORS,
        npub::layout::region::SIZE,
        region.len() as u32 + 16,
    );
    let longer = seal(longer);
    let tensors = Blob::parse(&longer).expect("valid").tensors().expect("has a table");
    assert!(tensors.iter().eq(Blob::parse(&old).expect("valid").tensors().expect("has a table").iter()));
}

/// One word of the sample's table is changed; its first record starts at 16, its second at 96.
#[test]
fn malformed_tables_are_refused() {
    let first = |field: usize| table::HEADER_BYTES + field;
    let bytes = 16 + 2 * 80 + 15;
    let table_end = |end| TensorError::Table { end, bytes };
    let fault = |cause| TensorError::Tensor { index: 0, cause };
    let none = u32::MAX;
    for (at, word, expected, kind) in [
        (table::COUNT, 3, table_end(16 + 240), ErrorKind::OutOfRange),
        (table::COUNT, u32::MAX, table_end(16 + 80 * u64::from(u32::MAX)), ErrorKind::OutOfRange),
        (table::RECORD_STRIDE, 0, TensorError::Stride { found: 0 }, ErrorKind::InvalidArg),
        (table::RECORD_STRIDE, 76, TensorError::Stride { found: 76 }, ErrorKind::InvalidArg),
        (table::RECORD_STRIDE, 82, TensorError::Stride { found: 82 }, ErrorKind::InvalidArg),
        (table::NAMES_OFFSET, 177, table_end(192), ErrorKind::OutOfRange),
        (table::NAMES_BYTES, u32::MAX, table_end(176 + u64::from(u32::MAX)), ErrorKind::OutOfRange),
        (first(table::KIND), 4, fault(TensorFault::Kind { found: 4 }), ErrorKind::InvalidArg),
        (first(table::DTYPE), 5, fault(TensorFault::DType { found: 5 }), ErrorKind::InvalidArg),
        (
            first(table::NAME_OFFSET),
            9,
            fault(TensorFault::Name { offset: 9, end: 16, names_bytes: 15 }),
            ErrorKind::OutOfRange,
        ),
        (
            first(table::NAME_BYTES),
            u32::MAX,
            fault(TensorFault::Name { offset: 0, end: u64::from(u32::MAX), names_bytes: 15 }),
            ErrorKind::OutOfRange,
        ),
        (first(table::REGION), 5, fault(TensorFault::Region { found: 5 }), ErrorKind::InvalidArg),
        (first(table::REGION), 6, fault(TensorFault::Region { found: 6 }), ErrorKind::InvalidArg),
        (first(table::REGION), 256, fault(TensorFault::Region { found: 256 }), ErrorKind::InvalidArg),
        (first(table::REGION), 4, outside(4, 0, 12), ErrorKind::OutOfRange),
        (first(table::OFFSET), 1, outside(3, 1, 490), ErrorKind::OutOfRange),
        (first(table::OFFSET), u32::MAX, outside(3, u32::MAX, 490), ErrorKind::OutOfRange),
        (
            first(table::SIZE),
            489,
            fault(TensorFault::Size { found: 489, expected: Some(490) }),
            ErrorKind::InvalidArg,
        ),
        (
            first(table::DIMS),
            u32::MAX,
            fault(TensorFault::Size { found: 490, expected: None }),
            ErrorKind::InvalidArg,
        ),
        (first(table::SCALE), 0, fault(TensorFault::Scale { bits: 0 }), ErrorKind::InvalidArg),
        (
            first(table::SCALE),
            0x7FC0_0000,
            fault(TensorFault::Scale { bits: 0x7FC0_0000 }),
            ErrorKind::InvalidArg,
        ),
        (
            first(table::SCALE),
            0x7F80_0000,
            fault(TensorFault::Scale { bits: 0x7F80_0000 }),
            ErrorKind::InvalidArg,
        ),
        (first(table::FED_FROM), 1, fault(TensorFault::FedFrom { found: 1 }), ErrorKind::InvalidArg),
        (first(table::RANK), 9, fault(TensorFault::Rank { found: 9 }), ErrorKind::InvalidArg),
        (first(table::RANK), u32::MAX, fault(TensorFault::Rank { found: u32::MAX }), ErrorKind::InvalidArg),
        (
            96 + table::REGION,
            none,
            TensorError::Tensor { index: 1, cause: TensorFault::Region { found: none } },
            ErrorKind::InvalidArg,
        ),
    ] {
        let mut blob = network(40);
        set_table(&mut blob, at, word);
        let error = Blob::parse(&seal(blob)).expect_err("malformed");
        assert_eq!(error, Error::Tensors { region: 5, cause: expected }, "word {at} = {word:#x}");
        assert_eq!(error.kind(), kind, "word {at} = {word:#x}");
    }
}

fn outside(region: u8, offset: u32, region_size: u32) -> TensorError {
    TensorError::Tensor { index: 0, cause: TensorFault::Outside { region, offset, size: 490, region_size } }
}

#[test]
fn names_are_utf_8() {
    let mut blob = network(40);
    let name = blob.len() - 15;
    blob[name + 3] = 0xC3;
    let error = Blob::parse(&seal(blob)).expect_err("malformed");
    let cause = TensorError::Tensor { index: 0, cause: TensorFault::Utf8 { offset: 0, valid: 3 } };
    assert_eq!(error, Error::Tensors { region: 5, cause });
}

#[test]
fn a_table_shorter_than_its_header_is_refused() {
    let mut blob = network(40);
    crate::sample::set_region(&mut blob, slot::TENSORS, npub::layout::region::SIZE, 7);
    let error = Blob::parse(&seal(blob)).expect_err("malformed");
    assert_eq!(error, Error::Tensors { region: 5, cause: TensorError::Table { end: 16, bytes: 7 } });
}

/// A blob of `entries` with a baked region 0 and a runtime region 1 of 64 bytes each.
fn with(entries: &[TensorEntry]) -> Result<Vec<u8>, BuildError> {
    let mut builder = BlobBuilder::new(Accel::u55(64));
    builder.commands(&[STOP]);
    builder.baked(Role::Weights, &[0; 64]);
    builder.runtime(Role::Scratch, 64);
    for entry in entries {
        builder.tensor(entry.clone());
    }
    builder.build()
}

#[test]
fn what_is_written_does_not_lie_in_the_blob() {
    let refused = |kind| with(&[int8(kind, "x", &[8], 0, 0)]).expect_err("region 0 is baked");
    for kind in [TensorKind::Input, TensorKind::State, TensorKind::NextState] {
        let cause = TensorError::Tensor { index: 0, cause: TensorFault::ReadOnly { region: 0 } };
        assert_eq!(refused(kind), BuildError::Invalid(Error::Tensors { region: 2, cause }));
    }
    assert!(with(&[int8(TensorKind::Output, "constant", &[8], 0, 0)]).is_ok());
}

#[test]
fn a_state_is_fed_from_a_tensor_like_it() {
    let state = |source| TensorEntry { fed_from: Some(source), ..int8(TensorKind::State, "s", &[8], 1, 0) };
    let next = |shape: &[u32]| int8(TensorKind::NextState, "n", shape, 1, 8);
    assert!(with(&[state(1), next(&[8])]).is_ok());
    assert!(with(&[state(1), next(&[2, 4])]).is_ok(), "the shape may differ, the bytes don't");
    assert!(with(&[state(1), int8(TensorKind::Output, "o", &[8], 1, 8)]).is_ok());
    for (entries, found) in [
        (vec![state(1), next(&[4])], 1),
        (vec![state(1), int8(TensorKind::Input, "i", &[8], 1, 8)], 1),
        (vec![state(0), next(&[8])], 0),
        (vec![state(2), next(&[8])], 2),
        (vec![state(1), TensorEntry { dtype: DType::UInt8, ..next(&[8]) }], 1),
    ] {
        let cause = TensorError::Tensor { index: 0, cause: TensorFault::FedFrom { found } };
        assert_eq!(with(&entries), Err(BuildError::Invalid(Error::Tensors { region: 2, cause })));
    }
}

#[test]
fn shapes_and_types() {
    let shape = |dims: &[u32]| Shape::new(dims).expect("at most eight dimensions");
    assert_eq!(Shape::new(&[1; 9]), None);
    assert_eq!(shape(&[1, 96, 96, 3]).to_string(), "1x96x96x3");
    assert_eq!(shape(&[]).to_string(), "scalar");
    assert_eq!(shape(&[]).bytes(DType::Int64), Some(8));
    assert_eq!(shape(&[u32::MAX, 2]).bytes(DType::Int8), None);
    assert_eq!(shape(&[u32::MAX, u32::MAX, 0]).bytes(DType::Int8), Some(0));
    for (word, name, size) in
        [(0, "float32", 4), (3, "uint8", 1), (7, "int16", 2), (9, "int8", 1), (4, "int64", 8)]
    {
        let dtype = DType::from_word(word).expect("in use");
        assert_eq!((dtype.word(), dtype.to_string().as_str(), dtype.size()), (word, name, size));
    }
    assert_eq!(DType::from_word(5), None, "strings");
}
