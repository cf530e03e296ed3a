//! Arrivals and departures of a trace, in the order in which they happen.

use crate::trace::{STAYS, Trace};

/// A VM arrives or leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, in seconds.
    pub time: u32,
    /// The VM's place in its trace.
    pub vm: u32,
    /// Whether it arrives; otherwise it leaves.
    pub arrives: bool,
}

/// Everything that happens up to the last arrival. VMs that leave in a second make room for those that arrive in it.
pub fn events(trace: &Trace) -> Vec<Event> {
    let end = trace.last_arrival();
    let mut leave: Vec<(u32, u32)> = (0u32..)
        .zip(trace.vms())
        .filter(|(_, vm)| vm.departure != STAYS && vm.departure <= end)
        .map(|(at, vm)| (vm.departure, at))
        .collect();
    leave.sort_unstable();
    let mut leave = leave.into_iter().peekable();
    let mut all = Vec::with_capacity(trace.len() + leave.len());
    for (vm, arriving) in (0u32..).zip(trace.vms()) {
        while let Some((time, vm)) = leave.next_if(|(time, _)| *time <= arriving.arrival) {
            all.push(Event {
                time,
                vm,
                arrives: false,
            });
        }
        all.push(Event {
            time: arriving.arrival,
            vm,
            arrives: true,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::generate::Generate;

    #[test]
    fn events_are_in_order_and_a_vm_leaves_once_and_after_it_arrived() {
        let generate = Generate {
            machines: 4,
            days: 20.0,
            ..Generate::default()
        };
        let trace = generate.run().unwrap();
        let events = events(&trace);
        assert!(events.is_sorted_by_key(|event| (event.time, event.arrives)));
        let mut there = vec![false; trace.len()];
        for event in &events {
            assert_ne!(there[event.vm as usize], event.arrives);
            there[event.vm as usize] = event.arrives;
        }
        let left = there.iter().filter(|there| !**there).count();
        assert_eq!(events.len(), trace.len() + left);
        assert!(left > 0);
    }
}
