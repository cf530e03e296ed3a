//! A search of many bytes at once, in whole numbers. The compiler makes vector instructions of a loop only where it
//! optimises for speed, and the command is linked for size.

/// Which of at most 64 bytes may be as wanted: all that are, and rarely one more in the eight bytes of one that is.
/// [`first`] says where the first of them is.
#[inline(always)]
pub fn alike<const N: usize>(bytes: &[u8; N], wanted: u8) -> u64 {
    const { assert!(N.is_multiple_of(8) && N <= 64) };
    /// The lowest bit of each byte, and the highest.
    const ONES: u64 = u64::MAX / 255;
    const HIGHEST: u64 = ONES << 7;
    let wanted = u64::from(wanted) * ONES;
    let eights = bytes.as_chunks::<8>().0.iter().enumerate();
    eights.fold(0, |found, (n, eight)| {
        let other = u64::from_le_bytes(*eight) ^ wanted;
        // A byte that is zero borrows from its highest bit, and a one after it does too.
        found | (other.wrapping_sub(ONES) & !other & HIGHEST) >> n
    })
}

/// The position of the first byte that was found, in the order of bits: byte `n` of eight bytes is in bits `8 n` to `8 n + 7`.
#[inline(always)]
pub fn first(found: u64) -> usize {
    let bit = found.trailing_zeros() as usize;
    (7 - bit % 8) * 8 + bit / 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_a_loop_finds(bytes: [u8; 32], few in 1u8..4, wanted: u8) {
            for bytes in [bytes, bytes.map(|byte| byte % few)] {
                for wanted in [wanted, wanted % few, bytes[7]] {
                    let (mut found, mut places) = (alike(&bytes, wanted), Vec::new());
                    while found != 0 {
                        places.push(first(found));
                        found &= found - 1;
                    }
                    places.retain(|&n| bytes[n] == wanted);
                    places.sort_unstable();
                    let all = (0..bytes.len()).filter(|&n| bytes[n] == wanted);
                    prop_assert_eq!(places, all.collect::<Vec<_>>());
                }
            }
        }
    }
}
