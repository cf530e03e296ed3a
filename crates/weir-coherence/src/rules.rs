//! What holds in every state of memory that hosts share.

use crate::explore::Machine;
use crate::hdm_db::{Act, Cache, Shared, State, Step};

/// One cache may write at a time, and none reads then.
pub const TWO_WRITERS: &str = "a host may write a line that another has";
/// A read returns what was written last.
pub const STALE: &str = "a copy that may be read is older than the last write";
/// The filter tracks all that is cached.
pub const NOT_COVERED: &str = "a host has a line that the snoop filter does not track";
/// The filter has a size.
pub const OVERFULL: &str = "the snoop filter tracks more lines than it has entries";
/// A value that was written is somewhere.
pub const LOST: &str = "nobody has the last write";

impl<const H: usize, const L: usize> Machine for Shared<H, L> {
    type State = State<H, L>;
    type Step = Step;

    fn first(&self) -> State<H, L> {
        State::new()
    }

    fn next(&self, state: &State<H, L>, all: &mut Vec<(Step, State<H, L>)>) {
        self.onward(state, all);
        self.begin(state, all);
    }

    fn broken(&self, state: &State<H, L>) -> Option<&'static str> {
        state.broken(self.filter)
    }

    fn canonical(&self, state: &State<H, L>) -> State<H, L> {
        state.canonical()
    }

    fn begins(&self, step: &Step) -> bool {
        matches!(
            step.act,
            Act::Load
                | Act::Store
                | Act::Upgrade
                | Act::Hit
                | Act::Evict
                | Act::Drop
                | Act::CleanEvict
        )
    }

    fn rests(&self, state: &State<H, L>) -> Option<bool> {
        Some(state.rests())
    }
}

impl<const H: usize, const L: usize> State<H, L> {
    fn broken(&self, filter: usize) -> Option<&'static str> {
        let rests = self.rests();
        let mut tracked = 0;
        for (cells, home) in self.cells.iter().zip(&self.homes) {
            let has = |cache: &dyn Fn(Cache) -> bool| {
                (0..H)
                    .filter(|&host| cache(cells[host].cache))
                    .fold(0_u8, |all, host| all | 1 << host)
            };
            let any = has(&|cache| cache != Cache::I);
            let alone = has(&|cache| matches!(cache, Cache::E | Cache::M));
            let modified = has(&|cache| cache == Cache::M);
            tracked += usize::from(home.holders != 0);
            if alone != 0 && any.count_ones() > 1 {
                return Some(TWO_WRITERS);
            }
            if cells.iter().any(|cell| cell.is_stale()) {
                return Some(STALE);
            }
            if any & !home.holders != 0 {
                return Some(NOT_COVERED);
            }
            if rests && modified == 0 && !home.is_fresh() {
                return Some(LOST);
            }
        }
        (tracked > filter).then_some(OVERFULL)
    }

    /// The least of all states in which hosts or lines have other numbers. Hosts beyond three keep theirs: walks do not
    /// ask.
    fn canonical(&self) -> Self {
        let mut least = *self;
        let orders: &[&[usize]] = match H {
            2 => &[&[0, 1], &[1, 0]],
            3 => &[
                &[0, 1, 2],
                &[0, 2, 1],
                &[1, 0, 2],
                &[1, 2, 0],
                &[2, 0, 1],
                &[2, 1, 0],
            ],
            _ => return least,
        };
        for order in orders {
            let mut state = self.with_hosts(order);
            // Lines are equal parts too: sorted, they are in their least order.
            let mut lines: [usize; L] = std::array::from_fn(|line| line);
            lines.sort_unstable_by_key(|&line| (state.cells[line], state.homes[line]));
            state = Self {
                cells: lines.map(|line| state.cells[line]),
                homes: lines.map(|line| state.homes[line]),
            };
            least = least.min(state);
        }
        // The state as it is may be in no sorted order.
        least
    }
}
