//! Events in groups that a unit's counters hold at once, so that nothing inside a group is
//! multiplexed against the rest of it.

use super::{Event, EventTable};
use crate::counters::Counter;

/// Registers that select which responses an offcore event counts (MSR 0x1a6, 0x1a7).
const OFFCORE_REGISTERS: usize = 2;

/// Counters of one uncore unit, of every generation that is known here.
const UNCORE_COUNTERS: u32 = 4;

/// What counters there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Counters of a core for one hardware thread.
    pub core: u32,
    /// Counters of an uncore unit.
    pub uncore: u32,
}

impl Budget {
    /// A microarchitecture's counters, one less where the kernel's watchdog holds one.
    pub fn of(table: &EventTable, watchdog: bool) -> Self {
        Self {
            core: table
                .counters_per_thread
                .saturating_sub(u32::from(watchdog)),
            uncore: UNCORE_COUNTERS,
        }
    }
}

/// The events of these counters in groups, each of one unit, in the order of the counters. Events
/// of one counter are in one group; an event that several counters need is there once.
pub fn groups<'t>(
    table: &'t EventTable,
    counters: &[Counter],
    budget: Budget,
) -> Vec<Vec<&'t Event>> {
    let mut groups: Vec<Vec<&Event>> = Vec::new();
    for &counter in counters {
        let mut events = table.events_of(counter);
        events.retain(|event| {
            !groups
                .iter()
                .flatten()
                .any(|known| known.name == event.name)
        });
        let Some(first) = events.first() else {
            continue;
        };
        let (pmu, room) = (
            &first.pmu,
            if first.is_core() {
                budget.core
            } else {
                budget.uncore
            },
        );
        let open = groups.iter_mut().rfind(|group| group[0].pmu == *pmu);
        match open {
            Some(group) if fits(group.iter().chain(&events).copied(), room) => group.extend(events),
            _ => groups.push(events),
        }
    }
    groups
}

/// Whether every event finds a counter that can count it.
fn fits<'e>(events: impl Iterator<Item = &'e Event>, counters: u32) -> bool {
    let events: Vec<&Event> = events.filter(|event| !event.fixed).collect();
    let offcore = events
        .iter()
        .filter(|e| e.fields.contains_key("offcore_rsp"));
    if offcore.count() > OFFCORE_REGISTERS {
        return false;
    }
    // One event a counter: a matching, grown along augmenting paths.
    let mut holder: Vec<Option<usize>> = vec![None; counters as usize];
    (0..events.len()).all(|n| place(n, &events, &mut holder, &mut vec![false; counters as usize]))
}

fn place(n: usize, events: &[&Event], holder: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for counter in 0..holder.len() {
        let can = events[n]
            .on
            .as_ref()
            .is_none_or(|on| on.contains(&(counter as u32)));
        // The receiving side of a CXL port has its own counters, behind those of the sending side.
        let beyond = events[n]
            .on
            .as_ref()
            .is_some_and(|on| *on.start() as usize >= holder.len());
        if tried[counter] || !(can || beyond) {
            continue;
        }
        tried[counter] = true;
        let free = match holder[counter] {
            None => true,
            Some(other) => place(other, events, holder, tried),
        };
        if free {
            holder[counter] = Some(n);
            return true;
        }
    }
    false
}
