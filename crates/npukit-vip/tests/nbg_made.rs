//! NBG files made here, one for every layout, and what lies about them does.

use npukit_vip::chip::Engine;
use npukit_vip::nbg::{
    Answer, Checksum, Depth, Device, IoQuant, Nbg, NbgError, OperationRole, Understanding, check, compare,
    crc32,
};
use npukit_vip::version::Certainty;
use proptest::prelude::*;

/// Writes a small network in the layout of a version: an input, an output, two layers, a software, a shader, an NN and a
/// TP operation between the records that start and (in old versions) end the list.
struct Made {
    version: u32,
    bytes: Vec<u8>,
    list: usize,
    sections: usize,
}

fn put(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

impl Made {
    fn new(version: u32) -> Made {
        let mut list = 0x178;
        if version < 0x1_0003 {
            list -= 256;
        }
        if version < 0x1_0008 {
            list -= 8;
        }
        let sections = match version {
            0x1_0020.. => 68,
            0x1_001E.. => 27,
            0x1_000F.. => 17,
            0x1_000E.. => 16,
            0x1_000C.. => 15,
            _ => 12,
        };
        let mut made = Made { version, bytes: vec![0; list + 8 * sections], list, sections };
        made.fill();
        made
    }

    fn modern(&self) -> bool {
        self.version >= 0x1_001E
    }

    fn section(&mut self, index: usize, content: &[u8]) {
        let offset = self.bytes.len() as u32;
        put(&mut self.bytes, self.list + 8 * index, offset);
        put(&mut self.bytes, self.list + 8 * index + 4, content.len() as u32);
        self.bytes.extend(content);
    }

    fn align(&mut self) {
        let aligned = self.bytes.len().next_multiple_of(64);
        self.bytes.resize(aligned, 0);
    }

    fn fill(&mut self) {
        let version = self.version;
        self.bytes[..4].copy_from_slice(b"VPMN");
        for (offset, value) in [(4, version), (8, 0xBA), (0x4C, 2), (0x50, 6), (0x54, 1), (0x58, 1)] {
            put(&mut self.bytes, offset, value);
        }
        self.bytes[0xC..0x10].copy_from_slice(b"made");
        if version >= 0x1_0003 {
            put(&mut self.bytes, 0x5C, 0b10011);
            put(&mut self.bytes, 0x60, 1);
            put(&mut self.bytes, 0x64, 3);
        }
        let pool = self.list - if version >= 0x1_0008 { 28 } else { 20 };
        put(&mut self.bytes, pool, 4096);
        put(&mut self.bytes, pool + 4, 64);
        put(&mut self.bytes, pool + 16, 7);

        let words = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let io = |name: &str, quant: u32| {
            let mut record = words(&[2, 8, 4, 1, 1]);
            if version >= 0x1_000B {
                record.extend(words(&[1, 1]));
            }
            record.extend(words(&[2, 0, quant, 5, 0.5f32.to_bits(), 128]));
            if version >= 0x1_0004 {
                let mut text = name.as_bytes().to_vec();
                text.resize(64, 0);
                record.extend(text);
            }
            record
        };
        self.section(0, &io("in", 2));
        self.section(1, &io("out", 1));
        let layer = |name: &str, id: u32, count: u32| {
            let mut record = name.as_bytes().to_vec();
            record.resize(64, 0);
            record.extend(words(&[id, count]));
            if version >= 0x1_0008 {
                record.extend(words(&[40 + id]));
            }
            record
        };
        self.section(
            2,
            &[
                layer("ConvolutionReluPoolingLayer2", 0, 3),
                layer("Softmax2Layer", 1, if self.modern() { 2 } else { 1 }),
            ]
            .concat(),
        );
        let none = 0xFFFF;
        let ends = [if self.modern() { 4 } else { 0xFFFE }, if self.modern() { 1 } else { none }];
        let operations = [
            [none, none, none, 0, 0, 1],
            [3, 0, 0, 0, 1, 1],
            [2, 0, 0, 1, 0, 2],
            [1, 0, 0, 2, 0, 0],
            [4, 0, 1, 0, 0, 0],
            [ends[0], if self.modern() { 0 } else { none }, ends[1], 0, 9999, 0],
        ];
        let mut records = Vec::new();
        for (operation, ordinal) in operations.iter().zip(-1i32..) {
            records.extend(words(operation));
            if self.modern() {
                records.extend(words(&[0, ordinal as u32]));
            }
        }
        self.section(3, &records);
        self.section(6, &[0x11; 128]);
        self.section(7, &vec![0x22; if self.modern() { 192 } else { 128 }]);
        self.section(8, &words(if version >= 0x1_000E { &[0, 0] } else { &[0] }));
        self.section(9, &vec![0; 2 * if self.modern() { 40 } else { 28 }]);
        let mut software = words(&[77]);
        software.extend(b"cpu_softmax");
        software.resize(68, 0);
        self.section(11, &software);
        if !self.modern() {
            self.section(4, &words(&[0, 16, 64, 32, 96, 16]));
            self.align();
            self.section(5, &[0x33; 112]);
        } else {
            self.section(22, &words(&[0, 16]));
            self.section(24, &words(&[0, 32]));
            self.section(26, &words(&[0, 16, 64, 16, 80, 16]));
            self.align();
            self.section(23, &[0x44; 16]);
            self.align();
            self.section(18, &[0x55; 32]);
            self.align();
            let mut states = vec![0x66; 16];
            states.resize(64, 0);
            states.extend([0x66; 32]);
            self.section(20, &states);
        }
        if self.version == 0x1_001E {
            put(&mut self.bytes, 0x6C, 0);
            let crc = crc32(&[&self.bytes]);
            put(&mut self.bytes, 0x6C, crc);
        }
    }
}

const VERSIONS: [u32; 10] =
    [0x1_0001, 0x1_0003, 0x1_0004, 0x1_0008, 0x1_0009, 0x1_000B, 0x1_000E, 0x1_000F, 0x1_001E, 0x1_0020];

#[test]
fn every_layout_is_read() {
    for version in VERSIONS {
        let made = Made::new(version);
        let nbg = Nbg::parse(&made.bytes).unwrap_or_else(|error| panic!("{version:#x}: {error}"));
        assert_eq!(nbg.depth, Depth::Whole);
        assert_eq!(nbg.header.name, "made");
        assert_eq!(nbg.sections.len(), made.sections);
        let counts =
            [Engine::Shader, Engine::NeuralNetwork, Engine::TensorProcessor].map(|engine| nbg.count(engine));
        assert_eq!(counts, [1, 1, 1], "{version:#x}");
        assert_eq!(nbg.inputs[0].quant, IoQuant::Affine { scale: 0.5, zero_point: 128 });
        assert_eq!(nbg.outputs[0].quant, IoQuant::Dfp { fl: 5 });
        assert_eq!(nbg.inputs[0].dims, [8, 4]);
        assert_eq!(nbg.inputs[0].bytes(), Some(32));
        assert_eq!(nbg.inputs[0].name, if version >= 0x1_0004 { "in" } else { "" });
        assert_eq!(nbg.layers[1].uid, (version >= 0x1_0008).then_some(41));
        assert_eq!(
            nbg.features.map(|f| (f.cores, f.change_ppu_param)),
            (version >= 0x1_0003).then_some((3, true))
        );
        let memory = nbg.memory.unwrap();
        assert_eq!((memory.pool_bytes, memory.axi_sram_bytes), (4096, 7));
        assert_eq!(memory.vip_sram_bytes, (version >= 0x1_0008).then_some(0));
        assert_eq!(nbg.software[0].name, "cpu_softmax");
        assert_eq!(nbg.operations[0].role, OperationRole::Init);
        assert_eq!(nbg.operations[1].ordinal, made.modern().then_some(0));
        assert!(nbg.coverage.is_whole(made.bytes.len() as u64));
        let unclaimed: Vec<_> =
            nbg.coverage.spans.iter().filter(|span| span.understanding == Understanding::Unknown).collect();
        assert_eq!(
            unclaimed.len(),
            usize::from(!made.modern()),
            "LCD bytes that no entry claims: {unclaimed:?}"
        );
        let met = [0x1_0009, 0x1_000E, 0x1_000F, 0x1_001E, 0x1_0020].contains(&version);
        assert_eq!(nbg.layout, if met { Certainty::Known } else { Certainty::Assumed });
        assert_eq!(nbg.findings.is_empty(), met);
        assert!(nbg.to_string().contains("made"));
    }
}

#[test]
fn checksums() {
    let mut made = Made::new(0x1_001E);
    assert!(matches!(Nbg::parse(&made.bytes).unwrap().checksum, Checksum::Match { .. }));
    put(&mut made.bytes, 0x6C, 0);
    assert!(matches!(Nbg::parse(&made.bytes).unwrap().checksum, Checksum::Mismatch { stored: 0, .. }));
    let mut newer = Made::new(0x1_0020);
    assert_eq!(Nbg::parse(&newer.bytes).unwrap().checksum, Checksum::Absent);
    put(&mut newer.bytes, 0x6C, 5);
    assert!(matches!(Nbg::parse(&newer.bytes).unwrap().checksum, Checksum::Unknown { stored: 5, .. }));
    let verdict = check(&Nbg::parse(&newer.bytes).unwrap(), &Device { target: 0xBA, ..Device::default() });
    assert_eq!(verdict.answer, Answer::Unknown);
}

#[test]
fn version_2_is_header_only_and_says_so() {
    let mut made = Made::new(0x1_001E);
    put(&mut made.bytes, 4, 0x2_0000);
    let nbg = Nbg::parse(&made.bytes).unwrap();
    assert_eq!((nbg.depth, nbg.layout), (Depth::HeaderOnly, Certainty::Unknown));
    assert_eq!(nbg.coverage.unknown, made.bytes.len() as u64 - 0x5C);
    assert!(nbg.coverage.is_whole(made.bytes.len() as u64));
    assert!(nbg.findings[0].contains("only the header"));
    let device = |target| Device { target, axi_sram_bytes: Some(0), vip_sram_bytes: Some(0) };
    assert_eq!(check(&nbg, &device(0xBA)).answer, Answer::Unknown);
    assert_eq!(check(&nbg, &device(0x88)).answer, Answer::No);
    assert_eq!(Nbg::parse(&made.bytes[..0x5C]).unwrap().coverage.unknown, 0);
    assert!(matches!(Nbg::parse(&made.bytes[..0x5B]), Err(NbgError::Short { .. })));
}

#[test]
fn trailing_text_is_read_and_trailing_bytes_are_unknown() {
    let mut made = Made::new(0x1_0009);
    let text = b"tensorname:made/out0_0,uid:3:customer:input,0,0:";
    made.bytes.extend(text);
    let nbg = Nbg::parse(&made.bytes).unwrap();
    assert_eq!(nbg.trailer.as_deref(), Some("tensorname:made/out0_0,uid:3:customer:input,0,0:"));
    made.bytes.extend([1, 2, 3]);
    let nbg = Nbg::parse(&made.bytes).unwrap();
    assert_eq!(nbg.trailer, None);
    assert_eq!(nbg.coverage.spans.last().unwrap().understanding, Understanding::Unknown);
}

#[test]
fn lies_are_named() {
    let made = Made::new(0x1_001E);
    let lie = |offset: usize, value: u32| {
        let mut bytes = made.bytes.clone();
        put(&mut bytes, offset, value);
        Nbg::parse(&bytes).unwrap_err()
    };
    let entry = |index: usize| made.list + 8 * index;
    assert!(matches!(Nbg::parse(b"VPMM...."), Err(NbgError::Magic { .. })));
    assert!(matches!(lie(4, 0x30001), NbgError::Version(0x30001)));
    assert!(matches!(lie(4, 0), NbgError::Version(0)));
    // Four gigabytes of anything.
    assert!(matches!(lie(entry(23) + 4, u32::MAX), NbgError::Section { size: u32::MAX, .. }));
    assert!(matches!(lie(entry(23), u32::MAX), NbgError::Section { offset: u32::MAX, .. }));
    assert!(matches!(lie(0x4C, u32::MAX), NbgError::Count { count: u32::MAX, .. }));
    assert!(matches!(lie(0x50, u32::MAX), NbgError::Count { .. }));
    assert!(matches!(lie(0x54, 0x8000_0000), NbgError::Count { .. }));
    // The section list that never ends, or ends inside itself.
    assert!(matches!(lie(entry(0), made.list as u32), NbgError::SectionList { .. }));
    assert!(matches!(lie(entry(0), 0x7FFF_FFF8), NbgError::SectionList { .. }));
    assert!(matches!(lie(entry(0), made.list as u32 + 97), NbgError::SectionList { .. }));
    // A section inside the fixed part; two sections in one place.
    assert!(matches!(lie(entry(23), 0x10), NbgError::InFixedPart { offset: 0x10, .. }));
    let inputs = u32::from_le_bytes(made.bytes[entry(0)..entry(0) + 4].try_into().unwrap());
    assert!(matches!(lie(entry(1), inputs), NbgError::Overlap { .. }));
    // Records that point outside.
    let at = |index: usize| {
        u32::from_le_bytes(made.bytes[entry(index)..entry(index) + 4].try_into().unwrap()) as usize
    };
    assert!(matches!(lie(at(0), 7), NbgError::Dimensions { value: 7, limit: 6, .. }));
    let operation = |index: usize, field: usize| at(3) + 32 * index + 4 * field;
    for (index, field) in [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (3, 3), (4, 1)] {
        for value in [100, u32::MAX] {
            let error = lie(operation(index, field), value);
            assert!(matches!(error, NbgError::Reference { .. }), "operation {index} field {field}: {error}");
        }
    }
    assert!(matches!(lie(at(26) + 4, 0xFFFF_FFFF), NbgError::Reference { .. }));
    assert!(matches!(lie(entry(9) + 4, 41), NbgError::Records { record: 40, .. }));
    // Operations of a type that isn't known are kept as their number.
    let mut odd = made.bytes.clone();
    put(&mut odd, operation(1, 0), 99);
    let nbg = Nbg::parse(&odd).unwrap();
    assert_eq!(nbg.operations[1].role, OperationRole::Unknown(99));
    assert!(nbg.to_string().contains("unknown type 0x63"));
    // Entries that share bytes, and layers that count wrongly, are told.
    let mut odd = made.bytes.clone();
    put(&mut odd, at(26) + 8, 8);
    put(&mut odd, at(2) + 68, 9);
    let findings = Nbg::parse(&odd).unwrap().findings;
    assert_eq!(findings.len(), 2, "{findings:?}");
}

#[test]
fn a_comparison_names_the_first_differing_byte_where_nothing_else_differs() {
    let a = Made::new(0x1_0009).bytes;
    let mut b = a.clone();
    *b.last_mut().unwrap() ^= 0xFF;
    let parse = |bytes: &[u8]| Nbg::parse(bytes).unwrap();
    let comparison = compare((&parse(&a), &a), (&parse(&b), &b));
    assert!(!comparison.identical);
    assert_eq!(comparison.differences.len(), 1);
    assert_eq!(comparison.differences[0].what, "LCD");
    // The network's name behind its NUL isn't read.
    let mut c = a.clone();
    c[0x30] = 9;
    let comparison = compare((&parse(&a), &a), (&parse(&c), &c));
    assert!(comparison.differences[0].what.contains("0x30"), "{comparison}");
    assert!(compare((&parse(&a), &a), (&parse(&a), &a)).identical);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_files_end_in_an_error_or_a_whole_map(
        version in 0..VERSIONS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let mut bytes = Made::new(VERSIONS[version]).bytes;
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(nbg) = Nbg::parse(&bytes) {
            prop_assert!(nbg.coverage.is_whole(bytes.len() as u64));
            let _ = nbg.to_string();
            let _ = check(&nbg, &Device { target: 0xBA, ..Device::default() });
        }
    }

    #[test]
    fn any_bytes_behind_the_magic(mut bytes in prop::collection::vec(any::<u8>(), 0..2000), minor in 0u32..0x30) {
        let head = [b"VPMN".as_slice(), &(0x1_0000 + minor).to_le_bytes()].concat();
        let shared = head.len().min(bytes.len());
        bytes[..shared].copy_from_slice(&head[..shared]);
        if let Ok(nbg) = Nbg::parse(&bytes) {
            prop_assert!(nbg.coverage.is_whole(bytes.len() as u64));
        }
    }
}

/// The fuzzer starts from these files. With NPUKIT_WRITE_SEEDS set the test writes them instead of comparing.
#[test]
fn fuzz_seeds_are_these_files() {
    let folder = npukit_testkit::repository().join("fuzz/seeds/nbg_parse");
    for version in [0x1_0001, 0x1_0009, 0x1_000E, 0x1_001E, 0x1_0020] {
        let path = folder.join(format!("made_{version:x}.nb"));
        let made = Made::new(version).bytes;
        if std::env::var_os("NPUKIT_WRITE_SEEDS").is_some() {
            std::fs::write(&path, made).unwrap();
        } else {
            assert_eq!(std::fs::read(&path).unwrap(), made, "{}", path.display());
        }
    }
}
