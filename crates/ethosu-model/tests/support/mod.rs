//! Compiled programs with their regions, and the demand that both engines do the same with them.
//!
//! The tests, the benchmarks and the fuzz target `stream_engines` share this file.

// Not every one of them needs all of it.
#![allow(dead_code)]

pub(crate) mod synthetic;

use std::sync::Arc;

use ethosu_isa::{Accelerator, Product};
use ethosu_model::fast::{Isa, Plan, Workspace};
use ethosu_model::{Limits, Memory, Program, REGIONS, Stop, reference};
use npub::{Blob, Storage};

/// What a region is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Region {
    /// Bytes that no command may write.
    Constant(Vec<u8>),
    /// So many bytes that commands may write.
    Writable(usize),
    /// The same bytes as an earlier region.
    Alias(u8),
}

/// A command stream and the regions it was compiled for.
#[derive(Debug, Clone)]
pub(crate) struct Fixture {
    /// What it was compiled for.
    pub(crate) accelerator: Accelerator,
    /// The command words.
    pub(crate) stream: Vec<u8>,
    /// Its regions, by number.
    pub(crate) regions: Vec<(u8, Region)>,
}

impl Fixture {
    /// Takes a blob apart. `None` if it isn't one, or one for an accelerator that isn't modelled.
    pub(crate) fn parse(blob: &[u8]) -> Option<Self> {
        let blob = Blob::parse(blob).ok()?;
        let product = match blob.accel().product()? {
            npub::Product::U55 => Product::U55,
            npub::Product::U65 => Product::U65,
            npub::Product::U85 => Product::U85,
            _ => return None,
        };
        let accelerator = Accelerator::new(product, blob.accel().macs().into())?;
        let mut regions = Vec::new();
        for (number, region) in (0u8..).zip(blob.regions()) {
            regions.push((
                number,
                match region.storage() {
                    Storage::Baked { .. } => Region::Constant(blob.region_bytes(number.into())?.to_vec()),
                    Storage::Runtime => Region::Writable(region.size as usize),
                    Storage::Alias { of } => Region::Alias(u8::try_from(of).ok()?),
                    _ => continue,
                },
            ));
        }
        Some(Self { accelerator, stream: blob.command_stream().bytes().to_vec(), regions })
    }

    /// Bytes of all regions together.
    pub(crate) fn bytes(&self) -> usize {
        self.regions
            .iter()
            .map(|(_, region)| match region {
                Region::Constant(bytes) => bytes.len(),
                Region::Writable(size) => *size,
                Region::Alias(_) => 0,
            })
            .sum()
    }

    /// The regions, writable ones filled with noise.
    pub(crate) fn memory(&self, mut seed: u64) -> Memory {
        let mut memory = Memory::new();
        for &(number, ref region) in &self.regions {
            match region {
                Region::Constant(bytes) => memory.bind_constant(number, Arc::from(bytes.as_slice())),
                Region::Writable(size) => {
                    memory.bind_writable(number, *size);
                    for byte in memory.bytes_mut(number).expect("bound above") {
                        // Knuth's multiplier (The Art of Computer Programming, volume 2, section 3.3.4).
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        *byte = (seed >> 56) as u8;
                    }
                }
                // One that names an unbound region stays unbound.
                Region::Alias(of) if memory.bytes(*of).is_some() => memory.bind_alias(number, *of),
                Region::Alias(_) => {}
            }
        }
        memory
    }

    /// Runs the stream by the reference engine, and by the fast one with the kernels of every instruction set.
    ///
    /// Returns how the runs ended, all of them alike.
    ///
    /// # Panics
    /// If two runs end differently, or leave a region differently.
    pub(crate) fn agree(&self, limits: &Limits, seed: u64) -> Result<(), Stop> {
        let program = Program::decode(&self.stream, self.accelerator, limits)?;
        let memory = self.memory(seed);
        let mut expected = memory.clone();
        let ended = reference::run(&program, &mut expected);
        for isa in Isa::available() {
            let plan = Plan::with_isa(&program, &memory, isa);
            let mut workspace = Workspace::default();
            // The second run meets what the first one left in the workspace.
            for run in ["first", "second"] {
                let mut found = memory.clone();
                let found_ended = plan.run(&mut found, &mut workspace);
                assert_eq!(found_ended, ended, "how the {run} run with {} ends", isa.name());
                for region in 0..REGIONS as u8 {
                    let (found, expected) = (found.bytes(region), expected.bytes(region));
                    if found == expected {
                        continue;
                    }
                    let (found, expected) = (found.unwrap_or_default(), expected.unwrap_or_default());
                    let first = found.iter().zip(expected).position(|(a, b)| a != b);
                    panic!(
                        "the {run} run with {} leaves region {region} differently, first at {first:x?}",
                        isa.name()
                    );
                }
            }
        }
        ended
    }
}

/// The blobs beside the tests: file name and bytes.
pub(crate) fn blobs() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/streams");
    let mut blobs: Vec<_> = std::fs::read_dir(folder)
        .expect("tests/streams is there")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "npub"))
        .map(|path| {
            let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a readable file"))
        })
        .collect();
    blobs.sort();
    assert!(!blobs.is_empty(), "no .npub in {folder}");
    blobs
}

/// The blobs beside the tests, taken apart.
pub(crate) fn fixtures() -> Vec<(String, Fixture)> {
    blobs()
        .into_iter()
        .map(|(name, blob)| {
            let fixture = Fixture::parse(&blob).unwrap_or_else(|| panic!("{name} is no blob for U55 or U65"));
            (name, fixture)
        })
        .collect()
}
