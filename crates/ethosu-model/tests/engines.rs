//! The two engines do the same, with real streams and with what is left of them after mutation.

mod support;

use std::ops::Range;
use std::sync::LazyLock;

use ethosu_isa::Decoder;
use ethosu_model::Limits;
use proptest::prelude::*;
use support::{Fixture, Region, fixtures};

/// Limits that keep any mutated stream short.
const LIMITS: Limits = Limits { work: 1 << 22, map_elements: 1 << 18 };

/// Streams whose 32-bit results leave 32 bits when the inputs are noise; the model refuses to say what hardware stores then.
const OVERFLOWS: [&str; 2] = ["add_int32_11_u65_512", "mul_int32_2_u55_128"];

#[test]
fn engines_agree_on_real_streams() {
    for (name, fixture) in fixtures() {
        println!("{name}");
        for seed in 0..4 {
            match fixture.agree(&Limits::default(), seed) {
                Err(stop) if !OVERFLOWS.contains(&name.as_str()) => panic!("{name}: {stop}"),
                Err(stop) => assert!(!stop.is_fault(), "{name}: {stop}"),
                Ok(()) => {}
            }
        }
    }
}

/// A change to a program, in numbers that fit any of them.
#[derive(Debug, Clone)]
enum Mutation {
    /// A word of the stream becomes another.
    Word(usize, u32),
    /// A bit of a word is flipped.
    Bit(usize, u32),
    /// The parameter of a one-word command becomes a small number.
    Parameter(usize, u16),
    /// So much is added to the payload of a two-word command.
    Payload(usize, i32),
    /// A command of any fixture takes the place of one, or goes before it.
    Graft { at: usize, from: usize, before: bool },
    /// A word is left out.
    Drop(usize),
    /// A word comes twice.
    Repeat(usize),
    /// Two words change places.
    Swap(usize, usize),
    /// The stream ends early.
    Cut(usize),
    /// A byte of constant data.
    Constant(usize, u8),
    /// A region has another size.
    Resize(usize, usize),
    /// A region becomes an alias of another.
    Alias(usize, usize),
    /// A constant region becomes a writable one, or the other way round.
    Kind(usize),
    /// A region isn't there.
    Unbind(usize),
}

fn mutations() -> impl Strategy<Value = Mutation> {
    let at = any::<usize>;
    prop_oneof![
        1 => (at(), any::<u32>()).prop_map(|(at, word)| Mutation::Word(at, word)),
        2 => (at(), 0u32..32).prop_map(|(at, bit)| Mutation::Bit(at, 1 << bit)),
        10 => (at(), 0u16..70).prop_map(|(at, value)| Mutation::Parameter(at, value)),
        6 => (at(), -40i32..40, prop_oneof![Just(1), Just(16), Just(1 << 16)])
            .prop_map(|(at, add, unit)| Mutation::Payload(at, add * unit)),
        6 => (at(), at(), any::<bool>()).prop_map(|(at, from, before)| Mutation::Graft { at, from, before }),
        1 => at().prop_map(Mutation::Drop),
        1 => at().prop_map(Mutation::Repeat),
        1 => (at(), at()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        1 => at().prop_map(Mutation::Cut),
        3 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Constant(at, byte)),
        2 => (at(), 0usize..5000).prop_map(|(at, size)| Mutation::Resize(at, size)),
        1 => (at(), at()).prop_map(|(at, of)| Mutation::Alias(at, of)),
        1 => at().prop_map(Mutation::Kind),
        1 => at().prop_map(Mutation::Unbind),
    ]
}

/// Where a stream's commands lie, as far as it can be decoded.
fn commands(fixture: &Fixture) -> Vec<Range<usize>> {
    Decoder::new(&fixture.stream, fixture.accelerator.product())
        .map_while(Result::ok)
        .map(|instruction| instruction.offset..instruction.offset + instruction.words.bytes())
        .collect()
}

/// Applies a mutation to whatever its numbers fall on. `pool` has the commands of all fixtures.
fn mutate(fixture: &mut Fixture, mutation: &Mutation, pool: &[Vec<u8>]) {
    let commands = commands(fixture);
    let of_length = |at: usize, bytes: usize| {
        let mut fitting = commands.iter().filter(|command| command.len() == bytes).cycle();
        fitting.nth(at % commands.len().max(1)).cloned()
    };
    let words = fixture.stream.len() / 4;
    let regions = fixture.regions.len();
    if words == 0 || regions == 0 {
        return;
    }
    let stream = &mut fixture.stream;
    let word = |at: usize| at % words * 4..at % words * 4 + 4;
    match *mutation {
        Mutation::Word(at, value) => stream[word(at)].copy_from_slice(&value.to_le_bytes()),
        Mutation::Bit(at, bit) => {
            for (byte, flip) in stream[word(at)].iter_mut().zip(bit.to_le_bytes()) {
                *byte ^= flip;
            }
        }
        Mutation::Parameter(at, value) => {
            if let Some(command) = of_length(at, 4) {
                stream[command][2..].copy_from_slice(&value.to_le_bytes());
            }
        }
        Mutation::Payload(at, add) => {
            if let Some(command) = of_length(at, 8) {
                let payload = &mut stream[command][4..];
                let old = i32::from_le_bytes([payload[0], payload[1], payload[2], payload[3]]);
                payload.copy_from_slice(&old.wrapping_add(add).to_le_bytes());
            }
        }
        Mutation::Graft { at, from, before } => {
            if let Some(command) = commands.get(at % commands.len().max(1)) {
                let end = if before { command.start } else { command.end };
                stream.splice(command.start..end, pool[from % pool.len()].iter().copied());
            }
        }
        Mutation::Drop(at) => drop(stream.drain(word(at))),
        Mutation::Repeat(at) => {
            let copy = stream[word(at)].to_vec();
            stream.splice(word(at).start..word(at).start, copy);
        }
        Mutation::Swap(a, b) => {
            let first = stream[word(a)].to_vec();
            stream.copy_within(word(b), word(a).start);
            stream[word(b)].copy_from_slice(&first);
        }
        Mutation::Cut(at) => stream.truncate(word(at).start),
        Mutation::Constant(at, value) => {
            for (_, region) in &mut fixture.regions {
                if let Region::Constant(bytes) = region
                    && !bytes.is_empty()
                {
                    let at = at % bytes.len();
                    bytes[at] = value;
                }
            }
        }
        Mutation::Resize(at, size) => match &mut fixture.regions[at % regions].1 {
            Region::Constant(bytes) => bytes.resize(size, 0x5A),
            Region::Writable(old) => *old = size,
            Region::Alias(of) => *of = size as u8 % 8,
        },
        Mutation::Alias(at, of) => {
            let of = fixture.regions[of % regions].0;
            fixture.regions[at % regions].1 = Region::Alias(of);
        }
        Mutation::Kind(at) => {
            let region = &mut fixture.regions[at % regions].1;
            *region = match region {
                Region::Constant(bytes) => Region::Writable(bytes.len()),
                Region::Writable(size) => Region::Constant(vec![0x11; *size]),
                Region::Alias(of) => Region::Alias(*of),
            };
        }
        Mutation::Unbind(at) => drop(fixture.regions.remove(at % regions)),
    }
}

/// All fixtures with their names, and all their commands.
type Fixtures = (Vec<(String, Fixture)>, Vec<Vec<u8>>);

static FIXTURES: LazyLock<Fixtures> = LazyLock::new(|| {
    let fixtures = fixtures();
    let pool = fixtures
        .iter()
        .flat_map(|(_, fixture)| {
            commands(fixture).into_iter().map(|command| fixture.stream[command].to_vec())
        })
        .collect();
    (fixtures, pool)
});

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), ..ProptestConfig::default() })]

    #[test]
    fn engines_agree_on_mutated_streams(
        which in any::<prop::sample::Index>(), changes in prop::collection::vec(mutations(), 1..6), seed in any::<u64>(),
    ) {
        let (fixtures, pool) = &*FIXTURES;
        let mut fixture = which.get(fixtures).1.clone();
        for change in &changes {
            mutate(&mut fixture, change, pool);
        }
        // How it ends is of no matter, only that all runs end so.
        let _ = fixture.agree(&LIMITS, seed);
    }

    /// Any words at all, with any regions.
    #[test]
    fn engines_agree_on_any_words(
        which in any::<prop::sample::Index>(), words in prop::collection::vec(any::<u32>(), 0..40), at in any::<usize>(),
        sizes in prop::collection::vec(0usize..3000, 0..8), seed in any::<u64>(),
    ) {
        let mut fixture = which.get(&FIXTURES.0).1.clone();
        let at = at % (fixture.stream.len() / 4 + 1) * 4;
        fixture.stream.splice(at..at, words.iter().flat_map(|word| word.to_le_bytes()));
        fixture.regions.truncate(sizes.len());
        for ((_, region), size) in fixture.regions.iter_mut().zip(&sizes) {
            if let Region::Writable(old) = region {
                *old = *size;
            }
        }
        let _ = fixture.agree(&LIMITS, seed);
    }
}
