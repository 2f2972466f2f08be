//! Names from x86-64 code: a load of a descriptor's address with one operator's name loaded near by.
//!
//! Instructions aren't decoded one after another here; the seven-byte form `lea reg, [rip + x]` is looked for at every
//! byte. A descriptor's address is hit by chance once in four thousand million tries, so a hit is one. Which name goes
//! with it is decided by nearness alone and stays an assumption: the two must be nearest to each other,
//! with nothing of their own sort beside them.

use super::image::Image;
use super::names::CodeName;
use crate::version::Certainty;
use std::collections::BTreeMap;

/// How far from the descriptor's load the name's load may be, in bytes: the checker's seven arguments take less.
const NEAR: u64 = 64;

enum Load<'a> {
    Descriptor(u64),
    Name(&'a str),
}

pub(super) fn names(image: &Image<'_>, descriptors: &BTreeMap<u64, usize>) -> Vec<CodeName> {
    let mut found = Vec::new();
    for segment in image.segments.iter().filter(|segment| segment.executable) {
        let Some(code) = image.slice(segment.address, segment.size) else { continue };
        let loads = loads(image, segment.address, code, descriptors);
        for (index, (at, load)) in loads.iter().enumerate() {
            let Load::Descriptor(descriptor) = load else { continue };
            // Two descriptors or two names side by side: a choice between two tables in one function, which nearness
            // would pair up wrongly.
            if beside(&loads, index, |load| matches!(load, Load::Descriptor(_))) {
                continue;
            }
            // The nearest name, if the nearest descriptor from there is this one again.
            for (instruction, name) in nearest(&loads, *at, |load| matches!(load, Load::Name(_))) {
                let back = nearest(&loads, *instruction, |load| matches!(load, Load::Descriptor(_)));
                let place = loads.partition_point(|(place, _)| place < instruction);
                if beside(&loads, place, |load| matches!(load, Load::Name(_))) {
                    continue;
                }
                let mutual = back.iter().all(|(_, load)| matches!(load, Load::Descriptor(other) if other == descriptor));
                if let Load::Name(name) = name
                    && mutual
                {
                    let (how, certainty) = ("code: loaded nearest to the descriptor", Certainty::Assumed);
                    found.push(CodeName { descriptor: *descriptor, name: (*name).to_owned(), instruction: *instruction, certainty, how });
                }
            }
        }
    }
    found
}

/// Whether the load before or after the one at an index is of one sort and near.
fn beside(loads: &[(u64, Load<'_>)], index: usize, sort: impl Fn(&Load<'_>) -> bool) -> bool {
    let Some((at, _)) = loads.get(index) else { return false };
    let neighbours = [index.checked_sub(1), index.checked_add(1)];
    neighbours.into_iter().flatten().filter_map(|n| loads.get(n)).any(|(place, load)| place.abs_diff(*at) <= NEAR && sort(load))
}

/// The loads of one sort that are nearest to a place: one, or two at the same distance.
fn nearest<'l, 'a>(loads: &'l [(u64, Load<'a>)], at: u64, wanted: impl Fn(&Load<'a>) -> bool) -> Vec<&'l (u64, Load<'a>)> {
    let middle = loads.partition_point(|(place, _)| *place < at);
    let reach = |(place, _): &&'l (u64, Load<'a>)| place.abs_diff(at) <= NEAR;
    let before = loads[..middle].iter().rev().take_while(reach).find(|(_, load)| wanted(load));
    let after = loads[middle..].iter().take_while(reach).find(|(_, load)| wanted(load));
    let distance = |load: Option<&(u64, Load<'_>)>| load.map_or(u64::MAX, |(place, _)| place.abs_diff(at));
    let least = distance(before).min(distance(after));
    [before, after].into_iter().flatten().filter(|load| distance(Some(load)) == least).collect()
}

/// Every load of a descriptor's or a name's address, in order.
fn loads<'a>(image: &Image<'a>, start: u64, code: &[u8], descriptors: &BTreeMap<u64, usize>) -> Vec<(u64, Load<'a>)> {
    let mut list = Vec::new();
    for (index, window) in code.windows(7).enumerate() {
        // REX.W (with or without R), 8D, ModRM with RIP-relative addressing.
        let [0x48 | 0x4C, 0x8D, modrm, d0, d1, d2, d3] = *window else { continue };
        if modrm & 0xC7 != 0x05 {
            continue;
        }
        let at = start + index as u64;
        let displacement = i64::from(i32::from_le_bytes([d0, d1, d2, d3]));
        let target = at.wrapping_add(7).wrapping_add_signed(displacement);
        if descriptors.contains_key(&target) {
            list.push((at, Load::Descriptor(target)));
        } else if let Some(name) = image.operator_name(target) {
            list.push((at, Load::Name(name)));
        }
    }
    list
}
