//! Commands that leave their regions, or whose path can't be followed, are refused before anything runs.

mod common;

use std::fs;

use common::*;
use ethosu_driver::{Accelerator, Config, Device, Job, JobError, Product};
use ethosu_isa::{
    Branch85, BranchCondition85, Command, Decoder, DmaDestination85, DmaSource85, DmaStride,
    ElementwiseMode85,
};
use ethosu_model::{Limits, Program};
use npub::Blob;

const EACH: [Accelerator; 3] = [Accelerator::U55_128, Accelerator::U65_256, Accelerator::U85_256];
const BASE: u64 = 0x1000_0000;

/// What the driver says about commands that have so many bytes in each region.
fn verdict(accelerator: Accelerator, stream: &[u8], sizes: &[usize]) -> Result<(), JobError> {
    let payload = payload(accelerator, stream);
    let memory = memory(&[]);
    let device: Device<_> = Device::new(Sim::new(accelerator, &memory), Config::new());
    let bases: Vec<u64> = (0..sizes.len() as u64).map(|region| BASE + (region << 24)).collect();
    let job = Job::from_addresses(&payload, Some(BASE - 0x80_0000), &bases, sizes).unwrap();
    device.init().unwrap().check(&job)
}

#[test]
fn transfers_end_where_their_regions_do() {
    for accelerator in EACH {
        let stream = copies(2, accelerator.product());
        assert_eq!(verdict(accelerator, &stream, &[128, 128]), Ok(()), "{accelerator}");
        for (sizes, region, bytes) in [([127, 128], 0, 127), ([128, 16], 1, 16)] {
            let error = verdict(accelerator, &stream, &sizes).unwrap_err();
            assert!(
                matches!(error, JobError::OutsideRegion { region: r, start: 64, end: 128, bytes: b, .. }
                    if (r, b) == (region, bytes)),
                "{accelerator}: {error:?}"
            );
        }
        let message = verdict(accelerator, &stream, &[128, 16]).unwrap_err().to_string();
        assert!(
            message.ends_with(" of the command stream uses bytes 0x40 to 0x80 of region 1, which has 0x10"),
            "{message}"
        );
    }
}

/// A stream, and the bytes of each of its regions.
struct Compiled {
    case: String,
    accelerator: Accelerator,
    stream: Vec<u8>,
    sizes: Vec<usize>,
}

/// The streams that the model is tested with: Vela's, of all products and operators.
fn compiled() -> Vec<Compiled> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../ethosu-model/tests/streams");
    let paths = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|ending| ending == "npub"));
    let mut all: Vec<Compiled> = files
        .map(|path| {
            let bytes = fs::read(&path).unwrap();
            let blob = Blob::parse(&bytes).unwrap();
            let product = match blob.accel().product().unwrap() {
                npub::Product::U55 => Product::U55,
                npub::Product::U65 => Product::U65,
                _ => Product::U85,
            };
            Compiled {
                case: path.display().to_string(),
                accelerator: Accelerator::new(product, blob.accel().macs().into()).unwrap(),
                stream: blob.command_stream().bytes().to_vec(),
                sizes: blob.regions().iter().map(|region| region.size as usize).collect(),
            }
        })
        .collect();
    all.sort_by(|a, b| a.case.cmp(&b.case));
    all
}

#[test]
fn compiled_networks_have_exactly_what_they_use() {
    let mut compared = 0;
    for Compiled { case, accelerator, stream, sizes: whole } in compiled() {
        let used = Program::decode(&stream, accelerator, &Limits::default()).unwrap().regions();
        assert_eq!(verdict(accelerator, &stream, &whole), Ok(()), "{case}");
        for (region, used) in used.iter().enumerate().filter(|(_, used)| used.is_used()) {
            let mut sizes = whole.clone();
            sizes[region] = used.bytes as usize - 1;
            let error = verdict(accelerator, &stream, &sizes).unwrap_err();
            let named = if used.bytes == 1 {
                JobError::EmptyRegion { region: region as u8 }
            } else {
                let JobError::OutsideRegion { command, start, end, bytes, .. } = error else {
                    panic!("{case}: {error:?}");
                };
                // The driver goes by the length that the commands give streams of scales, the model by what it reads of them.
                assert!((used.bytes..used.bytes + 16).contains(&(end as u64)), "{case}: {error:?}");
                JobError::OutsideRegion { region: region as u8, command, start, end, bytes }
            };
            assert_eq!(error, named, "{case}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

/// Whether a U85's stream has results thrown away. The driver knows that, the model doesn't.
fn disables_output(stream: &[u8], product: Product) -> bool {
    Decoder::new(stream, product).flatten().any(
        |instruction| matches!(instruction.command, Command::AccFormat85(format) if format.output_disabled),
    )
}

/// Commands that no compiler made: whatever the model can follow reaches no further than the driver sees.
#[test]
fn changed_streams_reach_no_further_than_the_driver_sees() {
    const ROOM: u64 = 1 << 24;
    let mut state = 1u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let (mut outside, mut inside, mut before) = (0, 0, 0);
    for Compiled { case, accelerator, stream, .. } in compiled() {
        // A long stream takes long, and has little that short ones haven't.
        for _ in 0..400_000 / stream.len().max(400) {
            let mut changed = stream.clone();
            let changes: Vec<(usize, u8)> =
                (0..=below(3)).map(|_| (below(changed.len()), 1 << below(8))).collect();
            for &(byte, bit) in &changes {
                changed[byte] ^= bit;
            }
            let Ok(program) = Program::decode(&changed, accelerator, &Limits::default()) else { continue };
            let used = program.regions();
            if used.iter().any(|used| used.bytes >= ROOM) {
                continue;
            }
            let exact = used.map(|used| used.bytes as usize);
            if disables_output(&changed, accelerator.product()) {
                continue;
            }
            let case = format!("{case} {changes:?}");
            if used.iter().any(|used| used.before > 0) {
                let verdict = verdict(accelerator, &changed, &[ROOM as usize; 8]);
                assert!(
                    matches!(verdict, Err(JobError::OutsideRegion { start: ..0, .. })),
                    "{case}: {verdict:?}"
                );
                before += 1;
                continue;
            }
            for region in (0..8).filter(|&region| used[region].bytes > 0) {
                let mut sizes = [ROOM as usize; 8];
                sizes[region] = exact[region] - 1;
                assert!(verdict(accelerator, &changed, &sizes).is_err(), "{case}: region {region}");
                outside += 1;
            }
            // Scales, whose lengths the model doesn't read, may have been changed.
            inside += usize::from(verdict(accelerator, &changed, &exact.map(|bytes| bytes + 16)).is_ok());
        }
    }
    assert!(outside > 1000 && inside > 500 && before > 0, "{outside} {inside} {before}");
}

fn words(commands: &[Command]) -> Vec<u8> {
    commands
        .iter()
        .flat_map(|command| command.encode(Product::U85).unwrap().iter().collect::<Vec<_>>())
        .flat_map(u32::to_le_bytes)
        .collect()
}

#[test]
fn nobody_follows_a_branch() {
    let branch = Branch85 { condition: BranchCondition85::Always, target: 12 };
    let mut stream = words(&[Command::Branch85(branch), Command::Stop { mask: 0 }]);
    stream.extend(copies(1, Product::U85));
    let error = verdict(Accelerator::U85_256, &stream, &[64, 64]).unwrap_err();
    assert_eq!(error, JobError::Branch { command: 0 });
    assert_eq!(error.to_string(), "the command at byte 0x0 is a branch, which nobody can follow beforehand");
}

#[test]
fn a_second_input_or_index_array_that_is_not_there() {
    let add = words(&[
        Command::IfmRegion(0),
        Command::OfmRegion(1),
        Command::Ifm2Region(3),
        Command::Elementwise85(ElementwiseMode85::Add),
        Command::Stop { mask: 0 },
    ]);
    let error = verdict(Accelerator::U85_256, &add, &[64, 64]).unwrap_err();
    assert_eq!(error, JobError::MissingRegion { region: 3 });

    let gather = words(&[
        Command::Dma0SrcRegion85(DmaSource85 {
            region: 0,
            internal: false,
            stride_mode: DmaStride::D2,
            indexed: true,
        }),
        Command::Dma0DstRegion85(DmaDestination85 { region: 1, internal: false, indexed: false }),
        Command::Dma0IdxRegion(2),
        Command::Dma0Idx(16),
        Command::Dma0IdxMax(4),
        Command::Dma0Size0(3),
        Command::Dma0Len(32),
        Command::Dma0SrcStride0(32),
        Command::Dma0DstStride0(32),
        Command::DmaStart,
        Command::Stop { mask: 0 },
    ]);
    let verdict = |sizes: &[usize]| verdict(Accelerator::U85_256, &gather, sizes);
    assert_eq!(verdict(&[160, 96]), Err(JobError::MissingRegion { region: 2 }));
    assert_eq!(verdict(&[160, 96, 28]), Ok(()));
    for (sizes, region) in [([159, 96, 28], 0), ([160, 95, 28], 1), ([160, 96, 27], 2)] {
        let error = verdict(&sizes).unwrap_err();
        assert!(matches!(error, JobError::OutsideRegion { region: found, .. } if found == region));
    }
}
