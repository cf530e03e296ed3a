//! The port of a device: lines on its link, and lines that the host has outstanding for it.

use std::collections::VecDeque;

use crate::clock::Ps;

/// Lines of a request that are still to cross, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// The thread of the request, and the request's number in the thread.
    pub thread: u16,
    pub slot: u32,
    /// The next line, and the line after the last.
    pub next: u64,
    pub end: u64,
}

/// One direction of a port.
#[derive(Debug)]
pub struct Lane {
    work: VecDeque<Lines>,
    /// Lines outstanding in the host, and their limit.
    under_way: u32,
    most: u32,
    /// Time of a line on the link, and when the next line may start.
    line: Ps,
    free: Ps,
    /// Whether an event that continues is pending.
    awake: bool,
}

/// The next step of a lane.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// This line of a request starts now.
    Starts(Lines),
    /// The link is busy until this time; the caller must schedule an event.
    Later(Ps),
    /// There is nothing to do, or a pending event will continue.
    Nothing,
}

impl Lane {
    /// An idle lane.
    pub fn new(most: u32, line: Ps) -> Self {
        Self {
            work: VecDeque::new(),
            under_way: 0,
            most: most.max(1),
            line,
            free: 0,
            awake: false,
        }
    }

    /// More lines to cross.
    pub fn add(&mut self, lines: Lines) {
        if lines.next < lines.end {
            self.work.push_back(lines);
        }
    }

    /// Adds lines which do not wait behind others: completions, whose data has crossed already.
    pub fn add_first(&mut self, lines: Lines) {
        if lines.next < lines.end {
            self.work.push_front(lines);
        }
    }

    /// The step at `now`. The line that starts is the `next` of the value returned.
    pub fn next(&mut self, now: Ps) -> Next {
        if self.under_way == self.most || self.awake {
            return Next::Nothing;
        }
        let Some(front) = self.work.front_mut() else {
            return Next::Nothing;
        };
        if self.free > now {
            self.awake = true;
            return Next::Later(self.free);
        }
        let starts = *front;
        front.next += 1;
        if front.next == front.end {
            self.work.pop_front();
        }
        self.under_way += 1;
        self.free = now + self.line;
        Next::Starts(starts)
    }

    /// The event that was scheduled.
    pub fn woken(&mut self) {
        self.awake = false;
    }

    /// The host has finished a line.
    pub fn done(&mut self) {
        self.under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_line_crosses_once_in_order_and_no_faster_than_the_link(
            most in 1u32..9,
            line in 1u64..50,
            requests in prop::collection::vec(0u64..40, 1..30),
            held in 1u64..300,
        ) {
            let mut lane = Lane::new(most, line);
            for (slot, &n) in requests.iter().enumerate() {
                lane.add(Lines { thread: 0, slot: slot as u32, next: 0, end: n });
            }
            let expected: Vec<(u32, u64)> = requests
                .iter()
                .enumerate()
                .flat_map(|(slot, &n)| (0..n).map(move |i| (slot as u32, i)))
                .collect();
            let (mut now, mut started, mut ends) = (0, Vec::new(), VecDeque::new());
            let mut last = None;
            while started.len() < expected.len() {
                while ends.front().is_some_and(|&end| end <= now) {
                    ends.pop_front();
                    lane.done();
                }
                match lane.next(now) {
                    Next::Starts(lines) => {
                        prop_assert!(last.is_none_or(|before| now >= before + line));
                        last = Some(now);
                        started.push((lines.slot, lines.next));
                        ends.push_back(now + held);
                        prop_assert!(ends.len() <= most as usize);
                    }
                    Next::Later(at) => {
                        prop_assert!(at > now);
                        now = at;
                        lane.woken();
                    }
                    Next::Nothing => {
                        let Some(&end) = ends.front() else {
                            return Err(TestCaseError::fail("it makes no progress"));
                        };
                        now = now.max(end);
                    }
                }
            }
            prop_assert_eq!(started, expected);
            prop_assert_eq!(lane.next(now + held), Next::Nothing);
        }
    }
}
