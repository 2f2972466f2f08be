//! The random numbers that inputs are drawn from: the same on every machine and in every version.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator that starts at `seed`.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }

    /// The next 64 bits.
    pub fn next_word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included; `low` where they are the wrong way round.
    ///
    /// The bias of the multiplication is below 2^-32 for every span that inputs are drawn from.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = i128::from(high) - i128::from(low) + 1;
        if span <= 1 {
            return low;
        }
        let offset = (u128::from(self.next_word()) * span.cast_unsigned()) >> 64;
        (i128::from(low) + offset.cast_signed()) as i64
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.between(1, n.into()) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        // The first outputs for seed 1234567, as Rosetta Code's "Pseudo-random numbers/Splitmix64" lists them.
        let mut random = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next_word()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut random = SplitMix64::new(7);
        let drawn: Vec<i64> = (0..1000).map(|_| random.between(-2, 3)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&-2), Some(&3)));
        assert_eq!(random.between(5, 5), 5);
        assert_eq!(random.between(5, 1), 5);
        assert!((0..100).any(|_| random.between(i64::MIN, i64::MAX) < 0));
    }
}
