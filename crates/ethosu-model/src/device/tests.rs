//! The register block by itself, without a driver.

use ethosu_isa::registers::{self, Status, command};
use ethosu_isa::{Accelerator, Command, DmaRegion, DmaStride, Product};
use proptest::prelude::*;

use super::*;

const FLASH: u64 = 0x1000_0000;
const SRAM: u64 = 0x2000_0000;

fn bytes(commands: &[Command], product: Product) -> Vec<u8> {
    let words =
        commands.iter().flat_map(|command| command.encode(product).unwrap().iter().collect::<Vec<_>>());
    words.flat_map(u32::to_le_bytes).collect()
}

/// An NPU with a stream in flash, region 0 there as well and all others in SRAM.
fn npu(accelerator: Accelerator, stream: &[u8]) -> Npu<Banks> {
    let mut banks = Banks::new();
    let mut flash = stream.to_vec();
    flash.resize(flash.len().next_multiple_of(16) + 4096, 3);
    banks.rom(FLASH, flash);
    banks.ram(SRAM, 0x8000);
    let mut npu = Npu::new(accelerator, banks);
    npu.write(registers::QBASE, FLASH as u32);
    npu.write(registers::QSIZE, stream.len() as u32);
    npu.write(registers::BASEP, (FLASH as u32 + stream.len() as u32).next_multiple_of(16));
    for region in 1..8 {
        npu.write(registers::BASEP + 8 * region, SRAM as u32 + 0x1000 * (region - 1));
    }
    npu
}

#[test]
fn reading_and_writing() {
    for accelerator in Accelerator::ALL {
        let mut npu = npu(accelerator, &[]);
        let product = accelerator.product();
        assert_eq!(
            (npu.read(registers::ID), npu.read(registers::CONFIG)),
            (product.id_word(), accelerator.config_word())
        );
        for (offset, kept) in [
            (registers::QBASE, u32::MAX),
            (registers::QBASE + 4, if product == Product::U55 { 0 } else { 0xFF }),
            (registers::QSIZE, u32::MAX),
            (registers::QCONFIG, 3),
            (registers::REGIONCFG, 0xFFFF),
            (registers::BASEP + 56, u32::MAX),
            (registers::AXI_LIMIT + 12, u32::MAX),
            (registers::AXI_EXT, if product == Product::U85 { u32::MAX } else { 0 }),
            (registers::POWER_CTRL, if product == Product::U85 { 0x3F } else { 0 }),
            (registers::ID, product.id_word()),
            (registers::CONFIG, accelerator.config_word()),
            (registers::PROT, 0),
            (registers::QREAD, 0),
            (0x2C, 0),
            (0x7C, 0),
            (0xC0, 0),
        ] {
            npu.write(offset, u32::MAX);
            assert_eq!(npu.read(offset), kept, "{offset:#x} on {accelerator}");
        }
    }
}

/// A small offset from a base far away is the same memory as a large one from a base at zero, but the model holds what lies between.
#[test]
fn what_a_job_may_reach_has_a_limit() {
    let side = |region| DmaRegion { region, internal: false, stride_mode: DmaStride::D1 };
    let stream = bytes(
        &[
            Command::Dma0SrcRegion(side(0)),
            Command::Dma0Src(0),
            Command::Dma0DstRegion(side(1)),
            Command::Dma0Dst(SRAM),
            Command::Dma0Len(16),
            Command::DmaStart,
            Command::Stop { mask: 0 },
        ],
        Product::U55,
    );
    let mut npu = npu(Accelerator::U55_64, &stream);
    npu.set_limits(crate::Limits::default(), 1 << 20);
    npu.write(registers::BASEP + 8, 0);
    npu.write(registers::CMD, command::RUN);
    assert!(npu.is_running(), "it isn't known how it ends");
    let limit = 1 << 20;
    assert_eq!(npu.refusal(), Some(&Refusal::Reach { region: 1, bytes: SRAM + 16, limit }));

    // The limit of what commands ask for is the caller's as well.
    npu.write(registers::RESET, 0);
    npu.read(registers::STATUS);
    npu.set_limits(crate::Limits { work: 1, map_elements: 1 }, 1 << 20);
    npu.write(registers::QBASE, FLASH as u32);
    npu.write(registers::QSIZE, stream.len() as u32);
    npu.write(registers::CMD, command::RUN);
    assert!(matches!(npu.refusal(), Some(Refusal::Stop(stop)) if stop.to_string().contains("limit of 1")));
}

#[test]
fn during_a_reset_only_the_status_can_be_read() {
    let mut npu = npu(Accelerator::U65_256, &[]);
    npu.write(registers::RESET, 0b11);
    npu.write(registers::QSIZE, 8);
    assert_eq!((npu.read(registers::CONFIG), npu.read(registers::PROT)), (0, 0));
    assert!(Status(npu.read(registers::STATUS)).has(Status::RESETTING));
    assert_eq!(npu.read(registers::STATUS), 0);
    assert_eq!(
        (npu.read(registers::PROT), npu.read(registers::QSIZE), npu.read(registers::CMD)),
        (3, 0, 0b1100)
    );
}

#[test]
fn a_fault_lasts_until_a_reset() {
    let stop = bytes(&[Command::Stop { mask: 0x5 }], Product::U55);
    let mut npu = npu(Accelerator::U55_32, &stop);
    npu.inject(Injection::Ecc { offset: 0 });
    npu.write(registers::CMD, command::RUN);
    assert!(npu.interrupt() && !npu.is_running());
    npu.write(registers::CMD, command::CLEAR_IRQ | command::RUN);
    assert_eq!(npu.read(registers::STATUS), Status::ECC, "it doesn't start again");
    assert_eq!(npu.jobs(), 1);
    npu.write(registers::RESET, 0);
    npu.read(registers::STATUS);
    npu.write(registers::QBASE, FLASH as u32);
    npu.write(registers::QSIZE, stop.len() as u32);
    npu.write(registers::CMD, command::RUN);
    assert_eq!(npu.read(registers::STATUS), 5 << 16 | Status::END | Status::IRQ);
    npu.write(registers::CMD, 4 << command::CLEAR_HISTORY | command::CLEAR_IRQ);
    assert_eq!(npu.read(registers::STATUS), 1 << 16 | Status::END);
    npu.write(registers::QSIZE, stop.len() as u32);
    assert_eq!(npu.read(registers::STATUS), 1 << 16);
}

/// Copies them from region 0 to region 1.
fn sixteen_bytes() -> [Command; 6] {
    let region = |region| DmaRegion { region, internal: false, stride_mode: DmaStride::D1 };
    [
        Command::Dma0SrcRegion(region(0)),
        Command::Dma0DstRegion(region(1)),
        Command::Dma0Src(0),
        Command::Dma0Dst(0),
        Command::Dma0Len(16),
        Command::DmaStart,
    ]
}

#[test]
fn what_comes_before_a_bad_command_has_run() {
    let mut stream = bytes(&sixteen_bytes(), Product::U55);
    let bad = stream.len() as u32;
    stream.extend(0x0000_03FFu32.to_le_bytes());
    stream.extend(bytes(&[Command::Stop { mask: 0 }], Product::U55));
    let mut npu = npu(Accelerator::U55_128, &stream);
    npu.write(registers::CMD, command::RUN);
    assert_eq!(npu.read(registers::STATUS), Status::PARSE | Status::IRQ);
    assert_eq!(npu.read(registers::QREAD), bad);
    assert_eq!(npu.memory().bytes(SRAM, 17).unwrap()[15..], [3, 0]);

    // A stream without an end is read to its end.
    npu.write(registers::RESET, 0);
    npu.read(registers::STATUS);
    npu.write(registers::QBASE, FLASH as u32);
    npu.write(registers::QSIZE, bad - 4);
    npu.write(registers::CMD, command::RUN);
    assert_eq!(npu.read(registers::STATUS), Status::PARSE | Status::IRQ);
    // And one that isn't there isn't read at all.
    npu.write(registers::RESET, 0);
    npu.read(registers::STATUS);
    npu.write(registers::QBASE, 0x10);
    npu.write(registers::QSIZE, u32::MAX);
    npu.write(registers::QCONFIG, 2);
    npu.write(registers::CMD, command::RUN);
    assert_eq!(npu.read(registers::STATUS), Status::BUS | Status::IRQ | 1 << 11);
}

#[test]
fn a_u55_that_is_to_write_through_its_second_port_is_refused() {
    let copy = [&sixteen_bytes()[..], &[Command::Stop { mask: 0 }]].concat();
    for (accelerator, refused) in [(Accelerator::U55_64, true), (Accelerator::U65_256, false)] {
        let mut npu = npu(accelerator, &bytes(&copy, accelerator.product()));
        npu.write(registers::REGIONCFG, 2 << 2);
        npu.write(registers::CMD, command::RUN);
        assert_eq!(npu.is_running(), refused);
        assert_eq!(npu.refusal().cloned(), refused.then_some(Refusal::ReadOnlyPort { region: 1 }));
    }
}

/// Bytes that often are commands.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    // Operations, the registers of a transfer and of a map, and anything.
    let code = prop_oneof![
        prop::sample::select(vec![0u32, 2, 3, 5, 6, 7, 0x10, 0x10, 0x10, 0x130, 0x131, 0x132, 0x133, 0x134]),
        prop::sample::select(vec![0x4030u32, 0x4031, 0x4032, 0x4033, 0x4034, 0x4035, 0x4039, 0x403A]),
        0x100u32..0x190,
        (0u32..0x94).prop_map(|code| code | 0x4000),
        any::<u32>(),
    ];
    let operand = (any::<u32>(), 0u32..32).prop_map(|(bits, shift)| bits >> shift);
    prop::collection::vec((code, operand.clone(), operand), 0..80).prop_map(|commands| {
        let mut words = Vec::new();
        for (code, parameter, payload) in commands {
            words.push(code | parameter << 16);
            if code & 0x4000 != 0 {
                words.push(payload);
            }
        }
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_stream_ends_or_is_refused(
        stream in streams(), accelerator in prop::sample::select(&Accelerator::ALL[..]), hole in any::<bool>(),
    ) {
        let mut npu = npu(accelerator, &stream);
        let flash = npu.memory().bytes(FLASH, stream.len()).unwrap().to_vec();
        if hole {
            npu.inject(Injection::BusError { address: SRAM + 0x100 });
        }
        npu.write(registers::CMD, command::RUN);
        let status = Status(npu.read(registers::STATUS));
        prop_assert!(status.is_over() != npu.refusal().is_some());
        prop_assert!(npu.read(registers::QREAD) as usize <= stream.len());
        prop_assert_eq!(npu.memory().bytes(FLASH, stream.len()).unwrap(), flash);
    }
}
