//! Names from AArch64 code: which string and which descriptor a call gets together.
//!
//! The checker takes the descriptor as its sixth argument (x5) and the name as its seventh (x6). The walk goes through
//! the code in a line and keeps, for every register, the address that ADR, ADRP and ADD made of it. At a place where
//! branches join, a register's value is known only if both ways agree; the first walk forgets all of them there. What it
//! finds holds, unless a jump through a register is near, whose targets aren't known. A second walk doesn't forget, and
//! what it adds is an assumption.

use super::image::Image;
use super::names::CodeName;
use crate::version::Certainty;
use std::collections::{BTreeMap, BTreeSet};

const DESCRIPTOR_REGISTER: usize = 5;
const NAME_REGISTER: usize = 6;
/// How near a jump through a register makes a place a possible target of it: functions with a table of jumps are
/// seldom longer.
const JUMP_REACH: u64 = 0x1000;

pub(super) fn names(image: &Image<'_>, descriptors: &BTreeMap<u64, usize>) -> Vec<CodeName> {
    let mut found = Vec::new();
    for segment in image.segments.iter().filter(|segment| segment.executable) {
        let Some(start) = segment.address.checked_next_multiple_of(4) else { continue };
        let Some(size) = segment.size.checked_sub(start - segment.address) else { continue };
        let Some(code) = image.slice(start, size & !3) else { continue };
        let words = || {
            let place = |index: usize| start.wrapping_add(4 * index as u64);
            code.chunks_exact(4).enumerate().map(move |(index, bytes)| (place(index), Image::word32(bytes)))
        };
        let joins: BTreeSet<u64> = words().filter_map(|(pc, word)| branch_target(pc, word)).collect();
        let mut before = 0;
        let jumps: Vec<u64> = words()
            .filter(|(_, word)| {
                // The stubs of the procedure linkage table end in a jump that leads out of the file: add x16, x16, #n; br x17.
                let stub = before & 0xFFC0_03FF == 0x9100_0210;
                before = *word;
                word & 0xFFFF_FC1F == 0xD61F_0000 && !stub
            })
            .map(|(pc, _)| pc)
            .collect();
        let jump_near = |pc: u64| {
            let next = jumps.partition_point(|jump| jump.saturating_add(JUMP_REACH) < pc);
            jumps.get(next).is_some_and(|jump| *jump < pc.saturating_add(JUMP_REACH))
        };
        for forget in [true, false] {
            let mut registers = Registers([None; 32]);
            for (pc, word) in words() {
                if forget && joins.contains(&pc) {
                    registers = Registers([None; 32]);
                }
                let pair = (registers.0[DESCRIPTOR_REGISTER], registers.0[NAME_REGISTER]);
                if is_call_or_tail(word)
                    && let (Some(descriptor), Some(name)) = pair
                    && descriptors.contains_key(&descriptor)
                    && let Some(name) = image.operator_name(name)
                {
                    let how = if forget {
                        "code: x5 and x6 of one call"
                    } else {
                        "code: x5 and x6 of one call, across a join"
                    };
                    let certainty =
                        if forget && !jump_near(pc) { Certainty::Known } else { Certainty::Assumed };
                    found.push(CodeName {
                        descriptor,
                        name: name.to_owned(),
                        instruction: pc,
                        certainty,
                        how,
                    });
                }
                registers.step(pc, word);
            }
        }
    }
    found
}

fn sign_extend(value: u64, bits: u32) -> u64 {
    ((value << (64 - bits)) as i64 >> (64 - bits)) as u64
}

fn is_call_or_tail(word: u32) -> bool {
    // BL, B, BLR, BR: a tail call is a plain branch.
    matches!(word >> 26, 0b10_0101 | 0b00_0101) || word & 0xFFDF_FC1F == 0xD61F_0000
}

fn branch_target(pc: u64, word: u32) -> Option<u64> {
    let word = u64::from(word);
    let offset = if word >> 26 == 0b00_0101 {
        sign_extend(word & 0x3FF_FFFF, 26)
    } else if word & 0xFF00_0010 == 0x5400_0000 || word & 0x7E00_0000 == 0x3400_0000 {
        sign_extend(word >> 5 & 0x7_FFFF, 19)
    } else if word & 0x7E00_0000 == 0x3600_0000 {
        sign_extend(word >> 5 & 0x3FFF, 14)
    } else {
        return None;
    };
    Some(pc.wrapping_add(offset << 2))
}

/// The address that each register is known to hold. The 32nd is SP or XZR and never known.
struct Registers([Option<u64>; 32]);

impl Registers {
    fn set(&mut self, register: u32, value: Option<u64>) {
        let index = (register & 31) as usize;
        self.0[index] = if index == 31 { None } else { value };
    }

    fn step(&mut self, pc: u64, word: u32) {
        let (rd, rn, rm) = (word & 31, word >> 5 & 31, word >> 16 & 31);
        let immediate = u64::from(word >> 10 & 0xFFF) << if word & 0x40_0000 != 0 { 12 } else { 0 };
        if word & 0x1F00_0000 == 0x1000_0000 {
            let offset = sign_extend(u64::from(word >> 29 & 3) | u64::from(word >> 5 & 0x7_FFFF) << 2, 21);
            let page = word & 0x8000_0000 != 0;
            self.set(
                rd,
                Some(if page { (pc & !0xFFF).wrapping_add(offset << 12) } else { pc.wrapping_add(offset) }),
            );
        } else if word & 0xFF80_0000 == 0x9100_0000 {
            self.set(rd, self.0[rn as usize].map(|value| value.wrapping_add(immediate)));
        } else if word & 0xFF80_0000 == 0xD100_0000 {
            self.set(rd, self.0[rn as usize].map(|value| value.wrapping_sub(immediate)));
        } else if word & 0xFFE0_FFE0 == 0xAA00_03E0 {
            self.set(rd, self.0[rm as usize]);
        } else if word >> 26 == 0b10_0101 || word & 0xFFFF_FC1F == 0xD63F_0000 {
            // A call keeps x19 to x28.
            self.0[..19].fill(None);
            self.0[29..].fill(None);
        } else if word >> 26 == 0b00_0101
            || word & 0xFFDF_FC1F == 0xD61F_0000
            || word & 0xFFFF_FC1F == 0xD65F_0000
        {
            // Behind an unconditional branch or a return comes other code.
            self.0 = [None; 32];
        } else if word & 0x0A00_0000 == 0x0800_0000 {
            self.load_or_store(word, rd, rn);
        } else if word & 0x7C00_0000 != 0x3400_0000 && word & 0xFE00_0000 != 0x5400_0000 {
            self.set(rd, None);
        }
    }

    fn load_or_store(&mut self, word: u32, rt: u32, rn: u32) {
        let pair = word & 0x3A00_0000 == 0x2800_0000;
        let load = if pair {
            word & 0x40_0000 != 0
        } else {
            word & 0xC0_0000 != 0 || word & 0x3B00_0000 == 0x1800_0000
        };
        if load {
            self.set(rt, None);
            if pair {
                self.set(word >> 10 & 31, None);
            }
        }
        // Pre- and post-indexed forms write the base.
        let writes_back = if pair { word & 0x80_0000 != 0 } else { word & 0x3B20_0400 == 0x3800_0400 };
        if writes_back {
            self.set(rn, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_followed_through_adrp_add_and_mov() {
        let mut registers = Registers([None; 32]);
        // adrp x5, +0x2000; add x5, x5, #0x18; mov x20, x5; bl; add x6, x20, #0x1000
        for (pc, word) in [
            (0x400_104, 0xD000_0005),
            (0x400_108, 0x9100_60A5),
            (0x400_10C, 0xAA05_03F4),
            (0x400_110, 0x9400_0001),
            (0x400_114, 0x9140_0686),
        ] {
            registers.step(pc, word);
        }
        assert_eq!(registers.0[20], Some(0x402_018));
        assert_eq!(registers.0[5], None, "a call clobbers x5");
        assert_eq!(registers.0[6], Some(0x403_018));
        // adr x1, -4; ldr x1, [x2]; adr x3, .; stp x3, x4, [sp, #-16]!; ldp x3, x4, [x20], #16
        registers.step(0x400_118, 0x10FF_FFE1);
        assert_eq!(registers.0[1], Some(0x400_114));
        for word in [0xF940_0041, 0x1000_0003, 0xA9BF_13E3] {
            registers.step(0x400_11C, word);
        }
        assert_eq!((registers.0[1], registers.0[3]), (None, Some(0x400_11C)));
        registers.step(0x400_120, 0xA8C1_1283);
        assert_eq!((registers.0[3], registers.0[20]), (None, None));
    }

    #[test]
    fn branch_targets() {
        assert_eq!(branch_target(0x1000, 0x1400_0002), Some(0x1008));
        assert_eq!(branch_target(0x1000, 0x17FF_FFFF), Some(0xFFC));
        assert_eq!(branch_target(0x1000, 0x5400_0040), Some(0x1008));
        assert_eq!(branch_target(0x1000, 0xB400_0040), Some(0x1008));
        assert_eq!(branch_target(0x1000, 0x3600_0040), Some(0x1008));
        assert_eq!(branch_target(0x1000, 0x9400_0002), None, "a call returns");
        assert!(
            is_call_or_tail(0x9400_0002) && is_call_or_tail(0xD63F_0100) && !is_call_or_tail(0xD65F_03C0)
        );
    }
}
