//! Which regions a command stream reads and writes: a quick look at its operations, not a check of them.
//!
//! The NPU itself is the judge of commands. What can't be followed here is passed over: on the U85 the second input and
//! index arrays.

use ethosu_isa::Product;

/// Regions by bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) read: u8,
    pub(crate) written: u8,
}

impl Usage {
    pub(crate) fn touched(self) -> u8 {
        self.read | self.written
    }
}

/// Codes of the commands that matter, from the one place that has them.
mod code {
    use ethosu_isa::{
        AccFormat, Command, DmaRegion, DmaStride, ElementSize, ElementwiseMode, Ifm2Broadcast, IfmPrecision,
        Layout, OfmPrecision, OfmScaleMode, OperandScaleMode, PoolMode, ResizeMode85, Rounding,
    };

    const DMA: DmaRegion = DmaRegion { region: 0, internal: false, stride_mode: DmaStride::D1 };
    const BROADCAST: Ifm2Broadcast = Ifm2Broadcast {
        height: false,
        width: false,
        depth: false,
        operand_order_reversed: false,
        scalar: false,
    };

    pub(super) const STOP: u32 = Command::Stop { mask: 0 }.code() as u32;
    pub(super) const CONV: u32 = Command::Conv.code() as u32;
    pub(super) const DEPTHWISE: u32 = Command::Depthwise.code() as u32;
    pub(super) const POOL: u32 = Command::Pool(PoolMode::Max).code() as u32;
    pub(super) const ELEMENTWISE: u32 = Command::Elementwise(ElementwiseMode::Add).code() as u32;
    pub(super) const RESIZE: u32 = Command::Resize85(ResizeMode85::Nearest).code() as u32;
    pub(super) const DMA_START: u32 = Command::DmaStart.code() as u32;
    pub(super) const IFM_REGION: u32 = Command::IfmRegion(0).code() as u32;
    pub(super) const OFM_REGION: u32 = Command::OfmRegion(0).code() as u32;
    pub(super) const IFM2_REGION: u32 = Command::Ifm2Region(0).code() as u32;
    pub(super) const WEIGHT_REGION: u32 = Command::WeightRegion(0).code() as u32;
    pub(super) const SCALE_REGION: u32 = Command::ScaleRegion(0).code() as u32;
    pub(super) const DMA_SOURCE: u32 = Command::Dma0SrcRegion(DMA).code() as u32;
    pub(super) const DMA_DESTINATION: u32 = Command::Dma0DstRegion(DMA).code() as u32;
    pub(super) const IFM2_BROADCAST: u32 = Command::Ifm2Broadcast(BROADCAST).code() as u32;
    pub(super) const ACC_FORMAT: u32 = Command::AccFormat(AccFormat::Int32).code() as u32;
    pub(super) const IFM_PRECISION: u32 = Command::IfmPrecision(IfmPrecision {
        signed: false,
        size: ElementSize::Bits8,
        layout: Layout::Nhwc,
        scale_mode: OperandScaleMode::Both16,
        rounding: Rounding::Double,
    })
    .code() as u32;
    pub(super) const OFM_PRECISION: u32 = Command::OfmPrecision(OfmPrecision {
        signed: false,
        size: ElementSize::Bits8,
        layout: Layout::Nhwc,
        scale_mode: OfmScaleMode::Global,
        rounding: Rounding::Double,
    })
    .code() as u32;
    /// Set in the parameter of `IFM2_BROADCAST` when there is no second map.
    pub(super) const SCALAR: u16 = 1 << 7;
    /// Element-wise modes of one operand: LeakyReLU, ABS and CLZ have 5 to 7 in U55 and U65 streams.
    pub(super) const UNARY: core::ops::RangeInclusive<u16> = 5..=7;
    /// Set in a DMA's region register for the NPU's internal memory.
    pub(super) const INTERNAL: u16 = 1 << 8;
    /// Set in the U85's `ACC_FORMAT` when an operation writes nothing.
    pub(super) const OUTPUT_DISABLED: u16 = 1 << 6;
    /// Set in the U85's precision registers when a map isn't in memory.
    pub(super) const NOT_IN_MEMORY: u16 = 1 << 15;
    /// A payload word follows.
    pub(super) const PAYLOAD: u32 = 1 << 14;
}

#[derive(Default)]
struct Registers {
    ifm: u16,
    ifm_precision: u16,
    ofm: u16,
    ofm_precision: u16,
    acc_format: u16,
    ifm2: Option<u16>,
    broadcast: u16,
    weight: u16,
    scale: u16,
    source: u16,
    destination: u16,
}

const fn bit(region: u16) -> u8 {
    1 << (region & 7)
}

impl Usage {
    /// Of a bare command stream.
    pub(crate) fn of(stream: &[u8], product: Product) -> Usage {
        let chained = matches!(product, Product::U85);
        let mut usage = Usage::default();
        let mut registers = Registers::default();
        let mut words = stream.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        while let Some(word) = words.next() {
            let (code, parameter) = (word & 0xFFFF, (word >> 16) as u16);
            if code & code::PAYLOAD != 0 {
                words.next();
                continue;
            }
            match code {
                code::STOP => break,
                code::IFM_REGION => registers.ifm = parameter,
                code::IFM_PRECISION => registers.ifm_precision = parameter,
                code::OFM_REGION => registers.ofm = parameter,
                code::OFM_PRECISION => registers.ofm_precision = parameter,
                code::ACC_FORMAT => registers.acc_format = parameter,
                code::IFM2_REGION => registers.ifm2 = Some(parameter),
                code::IFM2_BROADCAST => registers.broadcast = parameter,
                code::WEIGHT_REGION => registers.weight = parameter,
                code::SCALE_REGION => registers.scale = parameter,
                code::DMA_SOURCE => registers.source = parameter,
                code::DMA_DESTINATION => registers.destination = parameter,
                code::CONV | code::DEPTHWISE | code::POOL | code::ELEMENTWISE | code::RESIZE => {
                    usage.operation(&registers, code, parameter, chained);
                }
                code::DMA_START => {
                    if registers.source & code::INTERNAL == 0 {
                        usage.read |= bit(registers.source);
                    }
                    if registers.destination & code::INTERNAL == 0 {
                        usage.written |= bit(registers.destination);
                    }
                }
                _ => {}
            }
        }
        usage
    }

    fn operation(&mut self, registers: &Registers, code: u32, parameter: u16, chained: bool) {
        if !(chained && registers.ifm_precision & code::NOT_IN_MEMORY != 0) {
            self.read |= bit(registers.ifm);
        }
        let writes = !chained
            || registers.ofm_precision & code::NOT_IN_MEMORY == 0
                && registers.acc_format & code::OUTPUT_DISABLED == 0;
        if writes {
            self.written |= bit(registers.ofm);
        }
        match code {
            // On U85 a bit of the command says that the second input has the weights.
            code::CONV | code::DEPTHWISE if parameter == 0 => {
                self.read |= bit(registers.weight) | bit(registers.scale);
            }
            code::ELEMENTWISE if !chained => {
                let map = registers.broadcast & code::SCALAR == 0 && !code::UNARY.contains(&parameter);
                if let Some(ifm2) = registers.ifm2.filter(|_| map) {
                    self.read |= bit(ifm2);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use ethosu_isa::Command::{self, *};
    use ethosu_isa::{DmaRegion, DmaStride, ElementwiseMode, Product};

    use super::*;

    fn stream(commands: &[Command], product: Product) -> Vec<u8> {
        commands
            .iter()
            .flat_map(|command| command.encode(product).unwrap().iter().collect::<Vec<_>>())
            .flat_map(u32::to_le_bytes)
            .collect()
    }

    #[test]
    fn operations_decide_not_registers() {
        let region = |region, internal| DmaRegion { region, internal, stride_mode: DmaStride::D1 };
        let commands = [
            IfmRegion(1),
            OfmRegion(2),
            Ifm2Region(7),
            WeightRegion(0),
            ScaleRegion(3),
            IfmBase0(0x0000_0006),
            Conv,
            OfmRegion(4),
            Ifm2Broadcast(ethosu_isa::Ifm2Broadcast {
                height: true,
                width: true,
                depth: true,
                operand_order_reversed: false,
                scalar: true,
            }),
            Elementwise(ElementwiseMode::Add),
            Dma0SrcRegion(region(0, false)),
            Dma0DstRegion(region(5, true)),
            DmaStart,
            Stop { mask: 0xFFFF },
            OfmRegion(6),
            Conv,
        ];
        let usage = Usage::of(&stream(&commands, Product::U55), Product::U55);
        assert_eq!(usage, Usage { read: 0b1011, written: 0b1_0100 });
        assert_eq!(usage.touched(), 0b1_1111);
    }

    #[test]
    fn second_inputs_count_where_they_are_read() {
        let plain = ethosu_isa::Ifm2Broadcast {
            height: false,
            width: false,
            depth: false,
            operand_order_reversed: false,
            scalar: false,
        };
        for (mode, read) in
            [(ElementwiseMode::Mul, 0b1001), (ElementwiseMode::Clz, 0b1), (ElementwiseMode::Shr, 0b1001)]
        {
            let commands =
                [IfmRegion(0), OfmRegion(1), Ifm2Region(3), Ifm2Broadcast(plain), Elementwise(mode)];
            assert_eq!(Usage::of(&stream(&commands, Product::U65), Product::U65), Usage { read, written: 2 });
        }
    }

    #[test]
    fn any_bytes_will_do() {
        let mut state = 1u32;
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            for product in Product::ALL {
                Usage::of(&bytes, product);
            }
        }
    }
}
