//! Distances of vectors, a part at a time. They are here because this crate is compiled for speed.

/// The sum of squared differences. Values beyond the shorter vector do not count.
pub fn squares(a: &[f32], b: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        return unsafe { sum_avx2::<true>(a, b) };
    }
    sum(a, b, |x, y| (x - y) * (x - y))
}

/// The inner product, negated.
pub fn products(a: &[f32], b: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        return unsafe { sum_avx2::<false>(a, b) };
    }
    sum(a, b, |x, y| -(x * y))
}

/// Asks for the lines of a vector or a list ahead of their use, so that those of several come from memory at one time.
#[inline]
pub fn prefetch<T>(row: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in row.chunks((64 / size_of::<T>().max(1)).max(1)) {
        // SAFETY: a prefetch reads nothing and never faults.
        unsafe {
            std::arch::x86_64::_mm_prefetch(line.as_ptr().cast(), std::arch::x86_64::_MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

/// The same as [`sum`], to the last bit: no product is fused with a sum. The compiler makes scalar instructions of [`sum`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2<const SQUARES: bool>(a: &[f32], b: &[f32]) -> f32 {
    use std::arch::x86_64::*;

    let length = a.len().min(b.len());
    let ((a, a_rest), (b, b_rest)) = (a[..length].as_chunks(), b[..length].as_chunks());
    let mut sums = [_mm256_setzero_ps(); 2];
    for (a, b) in a.iter().zip(b) {
        sums = add_avx2::<SQUARES>(sums, a, b);
    }
    if !a_rest.is_empty() {
        // What is added for elements that are not there is a zero, which changes no sum.
        let (mut a, mut b) = ([0.0; 16], [0.0; 16]);
        a[..a_rest.len()].copy_from_slice(a_rest);
        b[..b_rest.len()].copy_from_slice(b_rest);
        sums = add_avx2::<SQUARES>(sums, &a, &b);
    }
    let [low, high] = sums;
    let eight = _mm256_add_ps(low, high);
    let four = _mm_add_ps(
        _mm256_castps256_ps128(eight),
        _mm256_extractf128_ps::<1>(eight),
    );
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn add_avx2<const SQUARES: bool>(
    [low, high]: [std::arch::x86_64::__m256; 2],
    a: &[f32; 16],
    b: &[f32; 16],
) -> [std::arch::x86_64::__m256; 2] {
    use std::arch::x86_64::*;

    let (a, b) = (a.as_ptr(), b.as_ptr());
    // SAFETY: both halves lie in the 16 elements; a load needs no alignment.
    let (a_low, a_high, b_low, b_high) = unsafe {
        (
            _mm256_loadu_ps(a),
            _mm256_loadu_ps(a.add(8)),
            _mm256_loadu_ps(b),
            _mm256_loadu_ps(b.add(8)),
        )
    };
    if SQUARES {
        let (one, other) = (_mm256_sub_ps(a_low, b_low), _mm256_sub_ps(a_high, b_high));
        [
            _mm256_add_ps(low, _mm256_mul_ps(one, one)),
            _mm256_add_ps(high, _mm256_mul_ps(other, other)),
        ]
    } else {
        [
            _mm256_sub_ps(low, _mm256_mul_ps(a_low, b_low)),
            _mm256_sub_ps(high, _mm256_mul_ps(a_high, b_high)),
        ]
    }
}

/// Sixteen sums side by side, and then their sum in a fixed order.
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
