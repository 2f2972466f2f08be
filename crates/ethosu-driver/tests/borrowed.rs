//! Jobs on memory that they borrow: this machine's own, which the NPU sees at addresses of its own.

mod common;

use std::sync::Mutex;

use common::copies;
use ethosu_driver::{
    Accelerator, Bus, Config, Device, Hooks, Job, Mmio, Place, Region, Span, Waiting, target::Any,
};
use ethosu_model::device::{Npu, SystemMemory};

const U65: Accelerator = Accelerator::U65_256;

/// A stretch of this machine's memory, and where the NPU sees it.
#[derive(Clone, Copy)]
struct Window {
    host: usize,
    npu: u64,
    bytes: usize,
}

impl Window {
    fn onto(bytes: &[u8], npu: u64) -> Window {
        Window { host: bytes.as_ptr().expose_provenance(), npu, bytes: bytes.len() }
    }
}

/// The memory behind windows.
struct Windows(Vec<Window>);

impl Windows {
    fn find(&self, address: u64, bytes: u64) -> Option<usize> {
        self.0.iter().find_map(|window| {
            let offset = address.checked_sub(window.npu)?;
            (offset + bytes <= window.bytes as u64).then_some(window.host + offset as usize)
        })
    }
}

impl SystemMemory for Windows {
    fn has(&self, address: u64, bytes: u64, _: bool) -> bool {
        self.find(address, bytes).is_some()
    }

    fn read(&self, address: u64, into: &mut [u8]) {
        let host = self.find(address, into.len() as u64).expect("there is memory");
        // SAFETY: the windows look onto buffers that outlive the NPU, and jobs borrow them while they run.
        unsafe { std::ptr::copy(std::ptr::with_exposed_provenance(host), into.as_mut_ptr(), into.len()) }
    }

    fn write(&mut self, address: u64, from: &[u8]) {
        let host = self.find(address, from.len() as u64).expect("there is memory");
        // SAFETY: as in `read`; what jobs write they borrow mutably.
        unsafe { std::ptr::copy(from.as_ptr(), std::ptr::with_exposed_provenance_mut(host), from.len()) }
    }
}

struct Registers(Mutex<Npu<Windows>>);

impl Bus for Registers {
    fn read(&self, offset: u32) -> u32 {
        self.0.lock().unwrap().read(offset)
    }

    fn write(&self, offset: u32, value: u32) {
        self.0.lock().unwrap().write(offset, value);
    }
}

/// Translates addresses as the windows lie.
struct Mapped(Vec<Window>);

impl Waiting for Mapped {}

impl Hooks for Mapped {
    type Argument = ();

    fn clean(&self, span: Span) {
        assert!(span.bytes > 0, "{span:?}");
    }

    fn translate(&self, place: Place, address: u64) -> u64 {
        let host = address as usize;
        let window = self.0.iter().find(|window| (window.host..window.host + window.bytes).contains(&host));
        let window = window.unwrap_or_else(|| panic!("{place} lies nowhere"));
        window.npu + (host - window.host) as u64
    }
}

/// Room for bytes at a multiple of 16, and the bytes in it.
fn aligned(bytes: &[u8]) -> Vec<u128> {
    let mut room = vec![0; bytes.len().div_ceil(16)];
    self::bytes(&mut room, bytes.len()).copy_from_slice(bytes);
    room
}

fn bytes(room: &mut [u128], length: usize) -> &mut [u8] {
    assert!(length <= 16 * room.len());
    // SAFETY: there is room for that many, and any bytes are valid.
    unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), length) }
}

fn device(windows: &[Window]) -> Device<Registers, Any, Mapped> {
    let npu = Npu::new(U65, Windows(windows.to_vec()));
    Device::with_hooks(Registers(Mutex::new(npu)), Config::new(), Mapped(windows.to_vec()))
}

#[test]
fn a_blob_and_its_arena() {
    // The blob's region 0 holds what is copied, region 1 is of the arena.
    let stream: Vec<u32> =
        copies(2, U65.product()).as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let constants: Vec<u8> = (0..128).map(|n| n * 2 + 1).collect();
    let mut builder = npub::BlobBuilder::new(npub::Accel::u65(256));
    builder.commands(&stream);
    builder.baked(npub::Role::Weights, &constants);
    builder.runtime(npub::Role::Output, 128);
    let built = builder.build().unwrap();
    let mut blob_lines = aligned(&built);
    let blob = bytes(&mut blob_lines, built.len());
    let mut arena_lines = aligned(&[0; 256]);
    let arena = bytes(&mut arena_lines, 256);

    let windows = [Window::onto(blob, 0x10_0000_0000), Window::onto(arena, 0x2000_0000)];
    let device = device(&windows);
    let mut npu = device.init().unwrap();
    let mut job = Job::load(blob, arena).unwrap();
    assert!(job.writes(1) && !job.writes(0) && !job.writes(8));
    assert_eq!(job.accelerator(), Some(U65));
    assert_eq!(job.region(0), None);
    assert_eq!(job.region_mut(2), None);
    for _ in 0..2 {
        job.region_mut(1).unwrap().fill(0);
        npu.invoke(&mut job).unwrap();
        assert_eq!(job.region(1), Some(&constants[..]));
    }
    assert_eq!(&arena[..128], constants, "the arena is the caller's again");
}

#[test]
fn a_payload_and_its_regions() {
    let payload = common::payload(U65, &copies(1, U65.product()));
    let mut payload_lines = aligned(&payload);
    let payload = bytes(&mut payload_lines, payload.len());
    let mut source_lines = aligned(&[7; 64]);
    let source = bytes(&mut source_lines, 64);
    let mut destination_lines = aligned(&[0; 64]);
    let destination = bytes(&mut destination_lines, 64);

    let windows =
        [Window::onto(payload, 0x1000), Window::onto(source, 0x2000), Window::onto(destination, 0x3000)];
    let device = device(&windows);
    let mut npu = device.init().unwrap();
    let regions = [Region::Constant(source), Region::Writable(destination)];
    let mut job = Job::from_payload(payload, regions).unwrap();
    assert_eq!(job.commands().len(), payload.len() - 32);
    assert_eq!(job.region(0).unwrap(), [7; 64]);
    assert_eq!(job.region_mut(0), None);
    npu.invoke(&mut job).unwrap();
    assert_eq!(job.region(1).unwrap(), [7; 64]);
    assert_eq!(job.region_mut(1).unwrap(), [7; 64]);
    let error = Job::from_payload(&payload[1..], []).unwrap_err();
    assert!(error.to_string().contains("0x"), "{error}");
}

#[test]
fn memory_mapped_registers() {
    let mut block = [0u32; 4];
    // SAFETY: plain memory behaves like registers that keep what is written, and nothing else looks at it meanwhile.
    let bus = unsafe { Mmio::new(block.as_mut_ptr().expose_provenance()) };
    bus.write(4, 0x1234);
    bus.write(12, 0xABCD);
    assert_eq!((bus.read(4), bus.read(0)), (0x1234, 0));
    assert_eq!(bus.base(), block.as_ptr().addr());
    assert_eq!(block, [0, 0x1234, 0, 0xABCD]);
}
