//! Names from x86-64 code: a load of a descriptor's address with one operator's name loaded in the same straight line.
//!
//! Instructions aren't decoded one after another here; the seven-byte form `lea reg, [rip + x]` is looked for at every
//! byte. A descriptor's address is hit by chance once in four thousand million tries, so a hit is one. A name belongs to
//! a descriptor if nothing that could be a call, a jump or a return lies between the two loads, and if neither has a
//! second partner: a byte that only looks like a jump loses a name and never makes a wrong one. A conditional jump may
//! lie between, so the result stays an assumption.

use super::image::Image;
use super::names::CodeName;
use crate::version::Certainty;
use std::collections::BTreeMap;

/// How far from the descriptor's load the name's load may be, in bytes: the checker's seven arguments take less.
const NEAR: u64 = 64;
/// The length of the load.
const LOAD_BYTES: u64 = 7;

#[derive(Clone, Copy)]
enum Load<'a> {
    Descriptor(u64),
    Name(&'a str),
}

pub(super) fn names(image: &Image<'_>, descriptors: &BTreeMap<u64, usize>) -> Vec<CodeName> {
    let mut found = Vec::new();
    for segment in image.segments.iter().filter(|segment| segment.executable) {
        let Some(code) = image.slice(segment.address, segment.size) else { continue };
        let loads = loads(image, segment.address, code, descriptors);
        let line = Line { start: segment.address, code, loads: &loads };
        for (index, (_, load)) in loads.iter().enumerate() {
            let Load::Descriptor(descriptor) = *load else { continue };
            if let [other] = line.partners(index).as_slice()
                && let Some((instruction, Load::Name(name))) = loads.get(*other).copied()
                && line.partners(*other) == [index]
            {
                let how = "code: loaded beside the descriptor";
                found.push(CodeName {
                    descriptor,
                    name: name.to_owned(),
                    instruction,
                    certainty: Certainty::Assumed,
                    how,
                });
            }
        }
    }
    found
}

struct Line<'l, 'a> {
    start: u64,
    code: &'l [u8],
    loads: &'l [(u64, Load<'a>)],
}

impl Line<'_, '_> {
    /// All loads in one straight line with this one, of either sort.
    fn partners(&self, index: usize) -> Vec<usize> {
        let Some((at, _)) = self.loads.get(index) else { return Vec::new() };
        let near =
            |other: &usize| self.loads.get(*other).is_some_and(|(place, _)| place.abs_diff(*at) <= NEAR);
        let before = (0..index).rev().take_while(near);
        let after = (index + 1..self.loads.len()).take_while(near);
        before.chain(after).filter(|other| self.straight(index, *other)).collect()
    }

    /// No byte between two loads could start a call, a jump or a return.
    fn straight(&self, one: usize, other: usize) -> bool {
        let (Some((first, _)), Some((second, _))) =
            (self.loads.get(one.min(other)), self.loads.get(one.max(other)))
        else {
            return false;
        };
        let between = (first + LOAD_BYTES - self.start) as usize..(second - self.start) as usize;
        // Loads that overlap can't both be instructions.
        self.code
            .get(between)
            .is_some_and(|bytes| !bytes.iter().any(|byte| matches!(byte, 0xE8 | 0xE9 | 0xEB | 0xC3)))
    }
}

/// Every load of a descriptor's or a name's address, in order.
fn loads<'a>(
    image: &Image<'a>,
    start: u64,
    code: &[u8],
    descriptors: &BTreeMap<u64, usize>,
) -> Vec<(u64, Load<'a>)> {
    let mut list = Vec::new();
    for (index, window) in code.windows(LOAD_BYTES as usize).enumerate() {
        // REX.W (with or without R), 8D, ModRM with RIP-relative addressing.
        let [0x48 | 0x4C, 0x8D, modrm, d0, d1, d2, d3] = *window else { continue };
        if modrm & 0xC7 != 0x05 {
            continue;
        }
        let at = start + index as u64;
        let displacement = i64::from(i32::from_le_bytes([d0, d1, d2, d3]));
        let target = at.wrapping_add(LOAD_BYTES).wrapping_add_signed(displacement);
        if descriptors.contains_key(&target) {
            list.push((at, Load::Descriptor(target)));
        } else if let Some(name) = image.operator_name(target) {
            list.push((at, Load::Name(name)));
        }
    }
    list
}
