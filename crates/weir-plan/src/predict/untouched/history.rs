//! What is known of a VM when it arrives: its size and type, and how much memory its customer's earlier VMs left untouched
//! (Pond, section 4.4 and Figure 14).
//!
//! Only VMs that have left before another arrives are in its history: the share that a VM never touches is known when it
//! leaves. Nothing of the future is looked at.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use crate::predict::tree::MISSING;
use crate::trace::{GIB, STAYS, Trace, UNKNOWN, Vm};

/// How long a VM that has left counts: Pond takes the last week (section 6.4.2).
const WEEK_S: u32 = 7 * 86_400;
/// Percentiles of untouched memory. Pond names 0, 25, 50, 75 and 100, and 80 to 99 as the most important; those below 25 are
/// ours, since low quantiles are predicted.
const PERCENTILES: [u32; 12] = [0, 5, 10, 25, 50, 75, 80, 85, 90, 95, 99, 100];
/// Columns before the percentiles.
const OWN: usize = 5;
/// The column that counts the VMs of the history.
const COUNT: usize = 4;
/// How many columns there are.
pub const COLUMNS: usize = OWN + PERCENTILES.len();

/// The columns of a VM.
pub type Row = [f32; COLUMNS];

/// Names of the columns.
pub fn names() -> Vec<String> {
    let own = ["memory (GiB)", "cores", "GiB a core", "type", "VMs before"];
    let untouched = PERCENTILES.map(|percentile| format!("untouched before, p{percentile} (%)"));
    own.into_iter()
        .map(str::to_owned)
        .chain(untouched)
        .collect()
}

/// Whether a customer had no VM that left within a week before this one arrived.
pub fn is_empty(row: &Row) -> bool {
    row[COUNT] == 0.0
}

/// Untouched memory of a VM, in percent; `None` where the trace does not say.
pub fn untouched_pct(vm: &Vm) -> Option<u8> {
    (vm.touched_pct != UNKNOWN).then(|| 100 - vm.touched_pct.min(100))
}

/// The columns of every VM of a trace, in its order.
pub fn rows(trace: &Trace) -> Vec<Row> {
    let mut known = Known::default();
    let mut rows = Vec::with_capacity(trace.len());
    for vm in trace.vms() {
        known.until(vm.arrival);
        rows.push(known.row(&vm));
        if let Some(untouched) = untouched_pct(&vm).filter(|_| vm.departure != STAYS) {
            let end = Reverse((vm.departure, vm.customer, untouched));
            known.running.push(end);
        }
    }
    rows
}

/// VMs by untouched percent.
type Counts = [u32; 101];

/// What is known at a time.
#[derive(Default)]
struct Known {
    /// VMs that have not left: departure, customer, untouched percent.
    running: BinaryHeap<Reverse<(u32, u32, u8)>>,
    /// VMs that have left, in the order of departure.
    left: VecDeque<(u32, u32, u8)>,
    customers: HashMap<u32, Box<Counts>>,
}

impl Known {
    /// Takes in VMs that left before a second, and forgets those that left more than a week before it.
    fn until(&mut self, second: u32) {
        while let Some(&Reverse(end)) = self.running.peek() {
            if end.0 >= second {
                break;
            }
            self.running.pop();
            self.left.push_back(end);
            let counts = self.customers.entry(end.1);
            counts.or_insert_with(|| Box::new([0; 101]))[usize::from(end.2)] += 1;
        }
        while let Some(&(at, customer, untouched)) = self.left.front() {
            if at.saturating_add(WEEK_S) >= second {
                break;
            }
            self.left.pop_front();
            if let Some(counts) = self.customers.get_mut(&customer) {
                counts[usize::from(untouched)] -= 1;
            }
        }
    }

    fn row(&self, vm: &Vm) -> Row {
        let memory = vm.memory_mib as f32 / GIB as f32;
        let cores = vm.millicores as f32 / 1000.0;
        let mut row = [MISSING as f32; COLUMNS];
        row[..OWN].copy_from_slice(&[memory, cores, memory / cores, f32::from(vm.kind), 0.0]);
        let Some(counts) = self.customers.get(&vm.customer) else {
            return row;
        };
        let all: u32 = counts.iter().sum();
        row[COUNT] = all as f32;
        if all > 0 {
            for (cell, percentile) in row[OWN..].iter_mut().zip(PERCENTILES) {
                *cell = nearest_rank(counts, all, percentile) as f32;
            }
        }
        row
    }
}

/// The untouched percent that this many percent of the VMs have at most.
fn nearest_rank(counts: &Counts, all: u32, percentile: u32) -> usize {
    let rank = (u64::from(all) * u64::from(percentile))
        .div_ceil(100)
        .max(1);
    let mut below = 0;
    let reaches = |count: &u32| {
        below += u64::from(*count);
        below >= rank
    };
    counts.iter().position(reaches).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vm(arrival: u32, departure: u32, customer: u32, touched_pct: u8) -> Vm {
        Vm {
            arrival,
            departure,
            millicores: 2000,
            memory_mib: 8 * GIB,
            customer,
            kind: 3,
            touched_pct,
            insensitive: None,
        }
    }

    fn trace(vms: &[Vm]) -> Trace {
        let mut trace = Trace::default();
        vms.iter().for_each(|vm| trace.push(*vm));
        trace.sort();
        trace
    }

    #[test]
    fn a_history_is_of_the_same_customers_vms_that_left_within_a_week_before() {
        let day = 86_400;
        let rows = rows(&trace(&[
            vm(0, day, 1, 40),
            vm(10, 2 * day, 1, 60),
            vm(20, 2 * day, 2, 0),
            vm(30, STAYS, 1, 99),
            vm(day, 3 * day, 1, 10),
            vm(day + 1, 3 * day, 1, 10),
            vm(2 * day + 1, 20 * day, 1, 10),
            vm(8 * day + 1, 20 * day, 1, 10),
            vm(8 * day + 1, 20 * day, 3, 10),
        ]));
        let counts: Vec<f32> = rows.iter().map(|row| row[COUNT]).collect();
        // What leaves in the second of an arrival has not left before it.
        assert_eq!(counts, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0]);
        assert_eq!(rows[5][OWN..], [60.0; PERCENTILES.len()]);
        let at = |row: &Row, percentile| {
            row[OWN + PERCENTILES.iter().position(|p| *p == percentile).unwrap()]
        };
        assert_eq!(
            [0, 50, 75, 100].map(|p| at(&rows[6], p)),
            [40.0, 40.0, 60.0, 60.0]
        );
        assert!(is_empty(&rows[8]) && rows[8][OWN..].iter().all(|cell| *cell == -1.0));
    }

    #[test]
    fn a_vm_of_which_nothing_is_known_is_in_no_history() {
        let rows = rows(&trace(&[vm(0, 10, 1, UNKNOWN), vm(20, 30, 1, 50)]));
        assert!(is_empty(&rows[1]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_columns_are_those_of_a_slow_count_and_never_of_the_future(
            vms in prop::collection::vec((0..2_000_000u32, 1..900_000u32, 0..3u32, 0..=100u8), 1..60), cut in 0..2_000_000u32,
        ) {
            let vms: Vec<Vm> = vms.iter().map(|(at, life, customer, touched)| vm(*at, at + life, *customer, *touched)).collect();
            let all = trace(&vms);
            let found = rows(&all);
            for (row, vm) in found.iter().zip(all.vms()) {
                let before = |other: &Vm| other.customer == vm.customer
                    && other.departure < vm.arrival
                    && other.departure + WEEK_S >= vm.arrival;
                let mut history: Vec<u8> = all.vms().filter(before).map(|vm| 100 - vm.touched_pct).collect();
                history.sort_unstable();
                prop_assert_eq!(row[COUNT] as usize, history.len());
                for (cell, percentile) in row[OWN..].iter().zip(PERCENTILES) {
                    let rank = (history.len() * percentile as usize).div_ceil(100).max(1);
                    let wanted = history.get(rank - 1).map_or(-1.0, |untouched| f32::from(*untouched));
                    prop_assert_eq!(*cell, wanted);
                }
            }
            // VMs that leave later, and those that arrive later, may be anything.
            let mut other = Trace::default();
            for mut vm in all.vms() {
                if vm.arrival > cut {
                    continue;
                }
                if vm.departure > cut {
                    vm.touched_pct = 100 - vm.touched_pct;
                    vm.departure += 77;
                }
                other.push(vm);
            }
            for (changed, row) in rows(&other).iter().zip(&found) {
                prop_assert_eq!(changed, row);
            }
        }
    }
}
