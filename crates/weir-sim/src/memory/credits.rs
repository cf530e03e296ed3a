//! Credits of a device: how many requests of one class it takes before it has answered.

use std::collections::VecDeque;

/// Credits of one class, and the requests that wait for one, in order.
pub struct Credits<T> {
    free: u32,
    waiting: VecDeque<T>,
}

impl<T> Credits<T> {
    /// This many free credits (at least one).
    pub fn new(number: u32) -> Self {
        Self {
            free: number.max(1),
            waiting: VecDeque::new(),
        }
    }

    /// Takes a credit, if one is free.
    #[inline]
    pub fn take(&mut self) -> bool {
        let free = self.free > 0;
        self.free -= u32::from(free);
        free
    }

    /// Adds a request that found no credit.
    pub fn wait(&mut self, request: T) {
        self.waiting.push_back(request);
    }

    /// A credit comes back. It goes to the request that has waited longest, if there is one.
    #[inline]
    pub fn come_back(&mut self) -> Option<T> {
        let next = self.waiting.pop_front();
        self.free += u32::from(next.is_none());
        next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn never_more_are_inside_than_there_are_credits_and_they_enter_in_order(
            number in 1u32..20,
            comes in prop::collection::vec(any::<bool>(), 1..400),
        ) {
            let mut credits = Credits::new(number);
            let (mut came, mut inside, mut entered) = (0, 0, Vec::new());
            for comes in comes {
                if comes {
                    match credits.take() {
                        true => {
                            entered.push(came);
                            inside += 1;
                        }
                        false => credits.wait(came),
                    }
                    came += 1;
                } else if inside > 0 {
                    match credits.come_back() {
                        Some(next) => entered.push(next),
                        None => inside -= 1,
                    }
                }
                prop_assert!(inside <= number);
                prop_assert_eq!(inside == number || entered.len() == came, true);
            }
            prop_assert!(entered.is_sorted());
        }
    }
}
