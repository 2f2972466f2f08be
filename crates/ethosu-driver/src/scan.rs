//! Which regions a command stream reads and writes, and how far into them: a quick look at its operations, not a check of them.
//!
//! The NPU itself is the judge of commands: what it can't read it refuses. What the commands leave unset counts as zero.

use ethosu_isa::Product;
use ethosu_isa::registers::REGIONS;

use crate::reach::{Map, Reach, Registers, Window};

/// What a command stream does with its regions, by bit or by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) read: u8,
    pub(crate) written: u8,
    /// The operation that reaches furthest into each region.
    pub(crate) reach: [Reach; REGIONS],
    /// The first branch, in bytes from the start of the stream: what comes after it nobody has followed.
    pub(crate) branch: Option<u32>,
}

impl Usage {
    pub(crate) fn touched(&self) -> u8 {
        self.read | self.written
    }
}

/// Codes of the commands that matter, from the one place that has them.
pub(crate) mod code {
    use ethosu_isa::{
        AccFormat, Branch85, BranchCondition85, Command, DmaRegion, DmaStride, ElementwiseMode, PoolMode,
        ResizeMode85,
    };

    const DMA: DmaRegion = DmaRegion { region: 0, internal: false, stride_mode: DmaStride::D1 };

    pub(crate) const STOP: u16 = Command::Stop { mask: 0 }.code();
    pub(crate) const CONV: u16 = Command::Conv.code();
    pub(crate) const DEPTHWISE: u16 = Command::Depthwise.code();
    pub(crate) const POOL: u16 = Command::Pool(PoolMode::Max).code();
    pub(crate) const ELEMENTWISE: u16 = Command::Elementwise(ElementwiseMode::Add).code();
    pub(crate) const RESIZE: u16 = Command::Resize85(ResizeMode85::Nearest).code();
    pub(crate) const DMA_START: u16 = Command::DmaStart.code();
    pub(crate) const WEIGHT_REGION: u16 = Command::WeightRegion(0).code();
    pub(crate) const SCALE_REGION: u16 = Command::ScaleRegion(0).code();
    pub(crate) const DMA_SOURCE: u16 = Command::Dma0SrcRegion(DMA).code();
    pub(crate) const DMA_DESTINATION: u16 = Command::Dma0DstRegion(DMA).code();
    pub(crate) const DMA_INDEX: u16 = Command::Dma0IdxRegion(0).code();
    pub(crate) const ACC_FORMAT: u16 = Command::AccFormat(AccFormat::Int32).code();
    pub(crate) const BRANCH: u16 =
        Command::Branch85(Branch85 { condition: BranchCondition85::Always, target: 0 }).code();
    /// Set in the parameter of `IFM2_BROADCAST` when there is no second map.
    pub(crate) const SCALAR: u16 = 1 << 7;
    /// The same on the U85, for either input.
    pub(crate) const SCALAR_85: u16 = 1 << 3;
    /// Set in a DMA's region register for the NPU's internal memory.
    pub(crate) const INTERNAL: u16 = 1 << 8;
    /// Set in the U85's DMA region registers for a side whose rows an index array names.
    pub(crate) const INDEXED: u16 = 1 << 11;
    /// Set in the U85's `ACC_FORMAT` when an operation writes nothing.
    pub(crate) const OUTPUT_DISABLED: u16 = 1 << 6;
    /// Set in the U85's precision registers when a map isn't in memory.
    pub(crate) const NOT_IN_MEMORY: u16 = 1 << 15;
    /// The pool that adds up channels.
    pub(crate) const REDUCE_SUM: u16 = 2;
    /// The U85's pool that starts from the second input.
    pub(crate) const POOL_NONE: u16 = 4;
    /// A payload word follows.
    pub(crate) const PAYLOAD: u16 = 1 << 14;

    /// Whether an element-wise mode has one operand: LeakyReLU, ABS, CLZ, and the U85's NOT.
    pub(crate) const fn is_unary(mode: u16, u85: bool) -> bool {
        matches!(mode, 5..=7) || u85 && mode == 36
    }
}

impl Usage {
    /// Of a bare command stream for an NPU that reads so many streams of weights at once.
    pub(crate) fn of(stream: &[u8], product: Product, weight_streams: u32) -> Usage {
        let mut usage = Usage::default();
        let mut registers = Registers::new(product, weight_streams);
        let mut words =
            (0u32..).zip(stream.as_chunks::<4>().0).map(|(n, word)| (4 * n, u32::from_le_bytes(*word)));
        while let Some((at, word)) = words.next() {
            let (code, parameter) = (word as u16, (word >> 16) as u16);
            if code & code::PAYLOAD != 0 {
                let Some((_, payload)) = words.next() else { break };
                if code == code::BRANCH && product == Product::U85 && usage.branch.is_none() {
                    usage.branch = Some(at);
                }
                registers.set_payload(code, parameter, payload);
                continue;
            }
            let operation = Operation { registers: &registers, at, product };
            match code {
                code::STOP => break,
                code::CONV | code::DEPTHWISE | code::POOL | code::ELEMENTWISE | code::RESIZE => {
                    operation.kernel(code, parameter, &mut usage);
                }
                code::DMA_START => operation.transfer(&mut usage),
                _ => registers.set_parameter(code, parameter),
            }
        }
        usage
    }
}

/// An operation as it starts.
struct Operation<'r> {
    registers: &'r Registers,
    at: u32,
    product: Product,
}

impl Operation<'_> {
    fn add(&self, usage: &mut Usage, region: u16, writes: bool, (start, end): (i64, i64)) {
        let region = region & 7;
        let set = if writes { &mut usage.written } else { &mut usage.read };
        *set |= 1 << region;
        if let Some(reach) = usage.reach.get_mut(usize::from(region)) {
            reach.extend(Reach { start, end, command: self.at });
        }
    }

    fn is_u85(&self) -> bool {
        self.product == Product::U85
    }

    fn region(&self, code: u16) -> u16 {
        self.registers.parameter(code)
    }

    /// Whether a map is in memory; U55 and U65 have no others.
    fn is_stored(&self, map: Map) -> bool {
        !self.is_u85() || self.registers.parameter(map.precision()) & code::NOT_IN_MEMORY == 0
    }

    fn kernel(&self, code: u16, parameter: u16, usage: &mut Usage) {
        let registers = self.registers;
        let mut read = |map: Map, extent| {
            if self.is_stored(map) {
                self.add(usage, self.region(map.region()), false, registers.map(map, extent));
            }
        };
        match code {
            code::ELEMENTWISE => {
                let broadcast = |map: Map| registers.parameter(map.broadcast());
                let (first, second) = (broadcast(Map::Ifm), broadcast(Map::Ifm2));
                if !self.is_u85() {
                    read(Map::Ifm, registers.operand(0));
                } else if first & code::SCALAR_85 == 0 {
                    read(Map::Ifm, registers.operand(first));
                }
                let scalar = if self.is_u85() { code::SCALAR_85 } else { code::SCALAR };
                if second & scalar == 0 && !code::is_unary(parameter, self.is_u85()) {
                    read(Map::Ifm2, registers.operand(second));
                }
            }
            code::RESIZE => read(Map::Ifm, registers.resized()),
            code::POOL if self.is_u85() && parameter == code::POOL_NONE => {
                read(Map::Ifm, registers.window(Window::Flat));
                read(Map::Ifm2, registers.operand(0));
            }
            code::POOL if parameter != code::REDUCE_SUM => read(Map::Ifm, registers.window(Window::Flat)),
            code::DEPTHWISE => read(Map::Ifm, registers.window(Window::Flat)),
            _ => read(Map::Ifm, registers.window(Window::Deep)),
        }
        match code {
            // On U85 a bit of the command says that the second input has the weights.
            code::CONV if parameter != 0 => read(Map::Ifm2, registers.matrix()),
            code::CONV | code::DEPTHWISE => {
                registers
                    .weights(|stretch| self.add(usage, self.region(code::WEIGHT_REGION), false, stretch));
                registers.scales(|stretch| self.add(usage, self.region(code::SCALE_REGION), false, stretch));
            }
            _ => {}
        }
        let disabled = self.is_u85() && registers.parameter(code::ACC_FORMAT) & code::OUTPUT_DISABLED != 0;
        if self.is_stored(Map::Ofm) && !disabled {
            let stretch = registers.map(Map::Ofm, registers.stored_output());
            self.add(usage, self.region(Map::Ofm.region()), true, stretch);
        }
    }

    fn transfer(&self, usage: &mut Usage) {
        let (source, destination) = (self.region(code::DMA_SOURCE), self.region(code::DMA_DESTINATION));
        if source & code::INTERNAL == 0 {
            self.add(usage, source, false, self.registers.transfer(true));
        }
        if destination & code::INTERNAL == 0 {
            self.add(usage, destination, true, self.registers.transfer(false));
        }
        if self.is_u85() && (source | destination) & code::INDEXED != 0 {
            self.add(usage, self.region(code::DMA_INDEX), false, self.registers.indices());
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
        let usage = Usage::of(&stream(&commands, Product::U55), Product::U55, 1);
        assert_eq!((usage.read, usage.written), (0b1011, 0b1_0100));
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
            let usage = Usage::of(&stream(&commands, Product::U65), Product::U65, 1);
            assert_eq!((usage.read, usage.written), (read, 2));
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
                Usage::of(&bytes, product, 4);
            }
        }
    }
}
