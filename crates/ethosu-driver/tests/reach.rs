//! Commands that leave their regions, or whose path can't be followed, are refused before anything runs.

mod common;

use std::fs;

use common::*;
use ethosu_driver::{Accelerator, Config, Device, Job, JobError, Product};
use ethosu_isa::{
    Branch85, BranchCondition85, Command, DmaDestination85, DmaSource85, DmaStride, ElementwiseMode85,
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

#[test]
fn compiled_networks_have_exactly_what_they_use() {
    // The streams that the model is tested with: Vela's, of all products and operators.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../ethosu-model/tests/streams");
    let mut compared = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "npub") {
            continue;
        }
        let case = path.display();
        let bytes = fs::read(&path).unwrap();
        let blob = Blob::parse(&bytes).unwrap();
        let product = match blob.accel().product().unwrap() {
            npub::Product::U55 => Product::U55,
            npub::Product::U65 => Product::U65,
            _ => Product::U85,
        };
        let accelerator = Accelerator::new(product, blob.accel().macs().into()).unwrap();
        let stream = blob.command_stream().bytes();
        let used = Program::decode(stream, accelerator, &Limits::default()).unwrap().regions();
        let whole: Vec<usize> = blob.regions().iter().map(|region| region.size as usize).collect();
        assert_eq!(verdict(accelerator, stream, &whole), Ok(()), "{case}");
        for (region, used) in used.iter().enumerate().filter(|(_, used)| used.is_used()) {
            let mut sizes = whole.clone();
            sizes[region] = used.bytes as usize - 1;
            let error = verdict(accelerator, stream, &sizes).unwrap_err();
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
