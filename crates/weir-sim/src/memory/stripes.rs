//! Lines interleaved over devices that form one tier, as HDM decoders do (Compute Express Link specification
//! 2.0 section 8.2.5.12): each device gets a run of bytes in turn.

/// The interleaving. Ways and runs are powers of two, as the decoders' are.
#[derive(Debug, Clone, Copy)]
pub struct Stripes {
    /// Address bits within a run.
    run_bits: u32,
    /// Address bits that select the device.
    way_bits: u32,
}

impl Stripes {
    /// Runs of `run` lines over `ways` devices, both powers of two.
    pub fn new(ways: u32, run: u64) -> Self {
        Self {
            run_bits: run.max(1).ilog2(),
            way_bits: ways.max(1).ilog2(),
        }
    }

    /// The device of a line, and the line's number within it.
    #[inline(always)]
    pub fn locate(&self, line: u64) -> (u32, u64) {
        if self.way_bits == 0 {
            return (0, line);
        }
        let run = line >> self.run_bits;
        let way = run & ((1 << self.way_bits) - 1);
        let within = line & ((1 << self.run_bits) - 1);
        let above = (run >> self.way_bits) << self.run_bits;
        (way as u32, above | within)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_line_has_a_place_of_its_own_and_runs_stay_together(
            ways in 0u32..4,
            run in 0u32..9,
            first in 0u64..1 << 40,
        ) {
            let (ways, run) = (1 << ways, 1u64 << run);
            let stripes = Stripes::new(ways, run);
            let block = run * u64::from(ways);
            let first = first / block * block;
            let mut seen = HashSet::new();
            let mut lines = vec![0u64; ways as usize];
            for line in first..first + 4 * block {
                let (way, within) = stripes.locate(line);
                prop_assert!(seen.insert((way, within)));
                prop_assert_eq!(u64::from(way), line / run % u64::from(ways));
                prop_assert_eq!(within, first / u64::from(ways) + lines[way as usize]);
                lines[way as usize] += 1;
            }
        }
    }
}
