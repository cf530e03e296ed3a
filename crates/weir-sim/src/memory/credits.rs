//! Credits of a device: how many requests of one class it takes before it has answered.

use std::collections::VecDeque;

use crate::clock::Ps;

/// Names the request for which a tier works, for its caller.
pub type Ticket = u32;

/// A request that waits for a credit.
pub struct Waiting {
    pub ticket: Ticket,
    pub line: u64,
    /// When it came to the link.
    pub at: Ps,
}

/// Credits of one class, and the requests of each host that wait for one, in order.
pub struct Credits<T> {
    free: u32,
    waiting: Vec<VecDeque<T>>,
    /// The host whose turn is next.
    turn: usize,
}

impl<T> Credits<T> {
    /// This many free credits (at least one), which this many hosts share.
    pub fn new(number: u32, hosts: usize) -> Self {
        Self {
            free: number.max(1),
            waiting: (0..hosts.max(1)).map(|_| VecDeque::new()).collect(),
            turn: 0,
        }
    }

    /// Takes a credit, if one is free.
    #[inline]
    pub fn take(&mut self) -> bool {
        let free = self.free > 0;
        self.free -= u32::from(free);
        free
    }

    /// Adds a request of a host that found no credit.
    pub fn wait(&mut self, host: usize, request: T) {
        self.waiting[host].push_back(request);
    }

    /// A credit comes back. It goes to the request of a host that has waited longest, if there is one; hosts take
    /// turns.
    #[inline]
    pub fn come_back(&mut self) -> Option<T> {
        for _ in 0..self.waiting.len() {
            let next = self.waiting[self.turn].pop_front();
            self.turn += 1;
            if self.turn == self.waiting.len() {
                self.turn = 0;
            }
            if next.is_some() {
                return next;
            }
        }
        self.free += 1;
        None
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
            let mut credits = Credits::new(number, 1);
            let (mut came, mut inside, mut entered) = (0, 0, Vec::new());
            for comes in comes {
                if comes {
                    match credits.take() {
                        true => {
                            entered.push(came);
                            inside += 1;
                        }
                        false => credits.wait(0, came),
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

        #[test]
        fn hosts_that_wait_take_turns_each_in_its_order(
            number in 1u32..9,
            waiting in prop::collection::vec(0usize..60, 1..5),
        ) {
            let mut credits = Credits::new(number, waiting.len());
            (0..number).for_each(|_| assert!(credits.take()));
            for (host, &count) in waiting.iter().enumerate() {
                (0..count).for_each(|n| credits.wait(host, (host, n)));
            }
            let mut entered = vec![0; waiting.len()];
            while let Some((host, n)) = credits.come_back() {
                prop_assert_eq!(entered[host], n);
                entered[host] += 1;
                // No host that waits is more than one turn behind another.
                for (other, &count) in waiting.iter().enumerate() {
                    prop_assert!(entered[other] == count || entered[other] + 1 >= entered[host]);
                }
            }
            prop_assert_eq!(entered, waiting);
        }
    }
}
