//! Instructions between dispatch and retirement, numbered in order.

/// A ring of numbered things: the oldest leave first.
pub struct InOrder<T> {
    /// A power of two, so that a number says its place.
    slots: Vec<T>,
    oldest: u64,
    next: u64,
}

impl<T: Copy + Default> InOrder<T> {
    /// Empty; the first number is one. It grows only as far as needed, since a short ring stays in the
    /// processor's cache.
    pub fn new() -> Self {
        Self {
            slots: vec![T::default(); 8],
            oldest: 1,
            next: 1,
        }
    }

    #[inline(always)]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    /// The number of the oldest, and that of the next one to come.
    #[inline(always)]
    pub fn numbers(&self) -> (u64, u64) {
        (self.oldest, self.next)
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.oldest == self.next
    }

    /// The oldest.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        (!self.is_empty()).then(|| &self.slots[self.place(self.oldest)])
    }

    /// The one with this number, which must be there.
    #[inline(always)]
    pub fn get_mut(&mut self, number: u64) -> &mut T {
        debug_assert!((self.oldest..self.next).contains(&number), "{number} left");
        let place = self.place(number);
        &mut self.slots[place]
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, new: T) {
        if self.next - self.oldest == self.slots.len() as u64 {
            self.grow();
        }
        let place = self.place(self.next);
        self.slots[place] = new;
        self.next += 1;
    }

    /// Removes the oldest, which must be there.
    #[inline(always)]
    pub fn pop(&mut self) -> &T {
        debug_assert!(!self.is_empty());
        let place = self.place(self.oldest);
        self.oldest += 1;
        &self.slots[place]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut wider = vec![T::default(); 2 * self.slots.len()];
        for number in self.oldest..self.next {
            let place = number as usize & (wider.len() - 1);
            wider[place] = self.slots[self.place(number)];
        }
        self.slots = wider;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_found_by_its_number_until_it_leaves() {
        let mut ring = InOrder::new();
        for number in 1..1000u64 {
            ring.push(number);
            assert_eq!(ring.numbers().1, number + 1);
            if number % 10 < 7 && number > 3 {
                ring.pop();
            }
            let (oldest, next) = ring.numbers();
            assert_eq!(ring.front(), Some(&oldest));
            assert!((oldest..next).all(|number| *ring.get_mut(number) == number));
        }
    }
}
