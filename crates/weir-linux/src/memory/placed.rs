//! Arrays of numbers on a node.

use std::marker::PhantomData;
use std::ops::Deref;
use std::slice;

use weir_model::machine::MachineError;
use weir_model::units::Bytes;

use super::{Pages, Policy, Region, Share};
use weir_loops::kernels::LINE;

/// A number of which every bit pattern is a value.
pub trait Number: Copy + Send + Sync + sealed::Sealed + 'static {}

impl Number for u32 {}
impl Number for f32 {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for f32 {}
}

/// Numbers whose pages are on a node, as the kernel confirmed.
#[derive(Debug)]
pub struct Placed<T> {
    region: Region,
    length: usize,
    of: PhantomData<T>,
}

// SAFETY: nothing writes to the region once it is made, so that threads may read it together.
unsafe impl<T: Number> Sync for Placed<T> {}

impl<T: Number> Placed<T> {
    /// The first `length` of these numbers, on the node of a share.
    ///
    /// # Errors
    /// The kernel has no such memory, cannot place pages, or put them elsewhere.
    pub fn copy(
        length: usize,
        numbers: impl IntoIterator<Item = T>,
        (share, pages, policy): (&Share, Pages, &Policy),
    ) -> Result<Self, MachineError> {
        let bytes = Bytes((length * size_of::<T>()).max(LINE) as u64);
        let region = Region::allocate(bytes, pages, slice::from_ref(share), policy)?;
        let first = region.base().cast::<T>();
        for (at, number) in numbers.into_iter().take(length).enumerate() {
            // SAFETY: `at` is below `length`, so that the number lies in the region, which is writable, aligned to pages,
            // and this function's alone.
            unsafe { first.add(at).write(number) };
        }
        Ok(Self {
            region,
            length,
            of: PhantomData,
        })
    }

    /// Whether the kernel confirmed the node of every page.
    pub fn is_verified(&self) -> bool {
        self.region.is_verified()
    }
}

impl<T: Number> Deref for Placed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the region has room for `length` numbers, all of its bytes were written when it was allocated, any bits
        // are a number, and nothing writes to it while this borrow lasts.
        unsafe { slice::from_raw_parts(self.region.base().cast::<T>(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::topology::TierName;

    #[test]
    fn numbers_are_read_back_and_are_where_they_were_asked_for() {
        let policy = Policy::probe();
        let share = Share {
            tier: TierName::dram(),
            node: policy.availability().is_ok().then_some(0),
            weight: 1,
        };
        let on = (&share, Pages::Base, &policy);
        let words = Placed::copy(5000, 0_u32.., on).unwrap();
        assert!(words.iter().copied().eq(0..5000));
        assert_eq!(words.is_verified(), share.node.is_some());
        // Those that are not given keep what the region had.
        let none: Placed<f32> = Placed::copy(0, [], on).unwrap();
        assert!(none.is_empty());
        assert_eq!(Placed::copy(1, [1.5, 2.5_f32], on).unwrap()[..], [1.5]);
    }
}
