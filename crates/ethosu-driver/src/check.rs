//! Everything that is checked before a job runs, and the register values that come out of it.

use ethosu_isa::registers::{Configuration, REGIONS};
use ethosu_isa::{Accelerator, MAX_STREAM_WORDS, Product};

use crate::config::FAST_MEMORY_REGION;
use crate::device::HardwareInfo;
use crate::hooks::{Place, Span};
use crate::job::{AcceleratorWord, Extent, Job};
use crate::ports::Setup;
use crate::reach::Reach;
use crate::target::Target;
use crate::{Config, Hooks, JobError};

/// The alignment of a base pointer and of a command stream. (Core driver 1.0.0, `MASK_16_BYTE_ALIGN`.)
const ALIGNMENT: u64 = 16;

/// A checked job as the registers take it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    pub(crate) stream: Span,
    pub(crate) qbase: u64,
    pub(crate) qsize: u32,
    pub(crate) qconfig: u32,
    pub(crate) regions: [Option<PreparedRegion>; REGIONS],
    pub(crate) regioncfg: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedRegion {
    /// As the CPU sees it.
    pub(crate) span: Span,
    /// As the NPU sees it.
    pub(crate) basep: u64,
    pub(crate) written: bool,
}

pub(crate) fn check<T: Target, H: Hooks>(
    job: &Job<'_>,
    info: &HardwareInfo,
    product: Product,
    config: &Config<T>,
    hooks: &H,
) -> Result<Prepared, JobError> {
    compiled_for(job, info)?;
    let bits = product.address_bits();

    let stream = job.stream_extent();
    if stream.bytes == 0 || !stream.bytes.is_multiple_of(4) || stream.bytes > 4 * MAX_STREAM_WORDS as u64 {
        return Err(JobError::Stream { bytes: stream.bytes });
    }
    let qbase = npu_address(Place::Commands, stream, bits, hooks)?;
    let qconfig = hooks.select(Place::Commands, qbase, config.commands).bits();

    let usage = job.usage();
    if let Some(command) = usage.branch {
        return Err(JobError::Branch { command });
    }
    let mut regions = [None; REGIONS];
    let mut regioncfg = 0;
    for ((slot, prepared), configured) in (0u8..).zip(&mut regions).zip(config.regions) {
        let index = usize::from(slot);
        let (touched, written) = (usage.touched() & 1 << slot != 0, usage.written & 1 << slot != 0);
        regioncfg |= configured.bits() << (2 * slot);
        let Some(mut extent) = job.extent(index) else {
            if touched {
                return Err(JobError::MissingRegion { region: slot });
            }
            continue;
        };
        if touched && extent.bytes == 0 {
            return Err(JobError::EmptyRegion { region: slot });
        }
        if written && job.is_constant(index) {
            return Err(JobError::Constant { region: slot });
        }
        let replaceable = slot == FAST_MEMORY_REGION && job.lends_fast() && !job.is_constant(index);
        if let Some(fast) = config.fast_memory.filter(|_| replaceable) {
            if extent.bytes > fast.bytes {
                return Err(JobError::FastMemory { needed: extent.bytes, available: fast.bytes });
            }
            // All of it is for jobs, so what a job leaves is padding.
            extent = Extent { address: fast.address, bytes: extent.bytes, room: fast.bytes };
        } else if !job.has_memory(index) {
            if touched {
                return Err(JobError::FastMemory { needed: extent.bytes, available: 0 });
            }
            continue;
        }
        let place = Place::Region(slot);
        let basep = npu_address(place, extent, bits, hooks)?;
        let reach = usage.reach.get(index).copied().unwrap_or_default();
        if touched && !reach.fits(extent.bytes) {
            let Reach { start, end, command } = reach;
            return Err(JobError::OutsideRegion { region: slot, command, start, end, bytes: extent.bytes });
        }
        let selector = hooks.select(place, basep, configured);
        regioncfg = regioncfg & !(3 << (2 * slot)) | selector.bits() << (2 * slot);
        if written && !config.ports.port(product, selector).can_write(product) {
            return Err(JobError::ReadOnlyPort { region: slot, selector: selector.bits() as u8 });
        }
        let mut owned = extent.bytes;
        if let Some(line) = config.cache_line.filter(|_| written) {
            let size = u64::from(line.max(1));
            let whole = extent.bytes.checked_next_multiple_of(size).unwrap_or(u64::MAX);
            if !extent.address.is_multiple_of(size) || whole > extent.room {
                let Extent { address, bytes, .. } = extent;
                return Err(JobError::CacheLine { region: slot, address, bytes, line });
            }
            // Whoever invalidates lines is given whole ones.
            owned = whole;
        }
        *prepared = Some(PreparedRegion {
            span: Span { place, address: extent.address, bytes: owned },
            basep,
            written,
        });
    }
    Ok(Prepared {
        stream: Span { place: Place::Commands, address: stream.address, bytes: stream.bytes },
        qbase,
        // At most 16 MiB, as checked.
        qsize: stream.bytes as u32,
        qconfig,
        regions,
        regioncfg,
    })
}

/// Checks that something lies where the NPU can reach it, and says at which address.
fn npu_address<H: Hooks>(place: Place, extent: Extent, bits: u32, hooks: &H) -> Result<u64, JobError> {
    let Extent { address, bytes, .. } = extent;
    if !address.is_multiple_of(ALIGNMENT) {
        return Err(JobError::Misaligned { place, address });
    }
    let address = hooks.translate(place, address);
    if !address.is_multiple_of(ALIGNMENT) {
        return Err(JobError::Misaligned { place, address });
    }
    match address.checked_add(bytes) {
        Some(end) if end <= 1 << bits => Ok(address),
        _ => Err(JobError::Address { place, address, bytes, bits }),
    }
}

/// Whether this NPU is the one the job was compiled for.
fn compiled_for(job: &Job<'_>, info: &HardwareInfo) -> Result<(), JobError> {
    let compiled_for = job.compiled_for();
    let hardware: Accelerator = info.accelerator;
    match compiled_for.accelerator {
        AcceleratorWord::Unknown => return Err(JobError::UnknownAccelerator),
        AcceleratorWord::Nonsense(word) => return Err(JobError::NoAccelerator { word }),
        AcceleratorWord::Known(found) if found != hardware => {
            return Err(JobError::Accelerator { found, hardware });
        }
        AcceleratorWord::Known(_) => {}
    }
    // What the core driver compares beside product and MACs.
    if let Some(found) = compiled_for.configuration {
        let hardware = info.configuration;
        let same = |a: Configuration, b: Configuration| a.stream_version() == b.stream_version();
        let what = if !same(found, hardware) {
            Some("command stream version")
        } else if found.custom_dma() && !hardware.custom_dma() {
            Some("need of a custom DMA")
        } else if found.ports() != hardware.ports() {
            Some("number of memory ports")
        } else {
            None
        };
        if let Some(what) = what {
            return Err(JobError::Configuration { what, found, hardware });
        }
    }
    if let Some(found) = compiled_for.architecture {
        let hardware = info.identity.architecture();
        if found.major != hardware.major || found.minor > hardware.minor {
            return Err(JobError::Architecture { found, hardware });
        }
    }
    Ok(())
}
