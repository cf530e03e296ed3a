//! Distances of vectors, a part at a time. They are here because this crate is compiled for speed.

/// The sum of squared differences. Values beyond the shorter vector do not count.
pub fn squares(a: &[f32], b: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        return unsafe { squares_avx2(a, b) };
    }
    sum(a, b, |x, y| (x - y) * (x - y))
}

/// The inner product, negated.
pub fn products(a: &[f32], b: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        return unsafe { products_avx2(a, b) };
    }
    sum(a, b, |x, y| -(x * y))
}

// Twice as many elements an instruction, and the same bits: no product is fused with a sum.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn squares_avx2(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| (x - y) * (x - y))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn products_avx2(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| -(x * y))
}

/// Sixteen sums side by side, which the compiler makes instructions on vectors of, and then their sum in a fixed order.
#[inline(always)]
fn sum(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0_f32; 16];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += term(*a, *b);
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *sum += term(*a, *b);
    }
    for half in [8, 4, 2, 1] {
        for at in 0..half {
            sums[at] += sums[at + half];
        }
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_has_the_same_bits() {
        let value = |n: u32| (n.wrapping_mul(2_654_435_761) >> 8) as f32 / 65_536.0 - 100.0;
        let a: Vec<f32> = (0..300).map(value).collect();
        let b: Vec<f32> = (300..600).map(value).collect();
        for length in [1, 15, 16, 17, 64, 96, 300] {
            let (a, b) = (&a[..length], &b[..length]);
            assert_eq!(
                squares(a, b).to_bits(),
                sum(a, b, |x, y| (x - y) * (x - y)).to_bits()
            );
            assert_eq!(
                products(a, b).to_bits(),
                sum(a, b, |x, y| -(x * y)).to_bits()
            );
        }
    }

    #[test]
    fn whole_numbers_are_summed_exactly_whatever_the_length() {
        for length in 0..70_u8 {
            let a: Vec<f32> = (0..length).map(f32::from).collect();
            let b: Vec<f32> = a.iter().map(|x| x + 2.0).collect();
            let inner: f32 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
            assert_eq!(squares(&a, &b), 4.0 * f32::from(length));
            assert_eq!(products(&a, &b), -inner);
        }
    }
}
