//! All events of some counters, open at the same time.

use std::collections::BTreeMap;

use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet, RunningShare};
use weir_model::events::{Amount, Amounts, Budget, Event, EventTable, Meaning, groups};

use super::attributes::Encoded;
use super::event::{Open, Reading, Scope, Target};
use super::units::Unit;
use super::{refusal, units, watchdog};
use crate::root::Root;

/// The counters that the kernel keeps, with its numbers for them (`enum perf_sw_ids`), and whether they
/// happen in kernel mode, so that a program without that permission would count none.
const SOFTWARE: [(Counter, u64, bool); 4] = [
    (Counter::TaskClock, 1, false),
    (Counter::PageFaults, 2, false),
    (Counter::ContextSwitches, 3, true),
    (Counter::CpuMigrations, 4, true),
];

/// Why there is no count of what used no processor time.
pub const NOTHING_RAN: &str = "nothing ran that it could count";

/// A session of counting events.
#[derive(Debug)]
pub struct Session {
    events: Vec<Counting>,
    /// Those that could not be opened, and why.
    refused: BTreeMap<String, Unavailable>,
    /// Notes for a reader of the counts.
    notes: Vec<String>,
}

/// One event on all units and tasks that count it.
#[derive(Debug)]
struct Counting {
    name: String,
    parts: Vec<Part>,
    /// Whether a unit of the uncore counts it, so that the number of units is relevant.
    units: Option<u32>,
}

#[derive(Debug)]
struct Part {
    open: Open,
    began: Reading,
    last: Reading,
}

impl Session {
    /// Opens the events of the counters. A refusal of the kernel is stored with its reason; a session may
    /// have no event.
    ///
    /// A core's events follow the targets, one group at a time; uncore events are counted for the whole
    /// machine, whatever the targets are.
    pub fn open(
        root: &Root,
        table: Option<&EventTable>,
        counters: &[Counter],
        targets: &[Target],
    ) -> Self {
        let mut session = Self {
            events: Vec::new(),
            refused: BTreeMap::new(),
            notes: Vec::new(),
        };
        for &(counter, number, in_kernel) in &SOFTWARE {
            if counters.contains(&counter) {
                session.open_software(root, counter, number, in_kernel, targets);
            }
        }
        if let Some(table) = table {
            let budget = Budget::of(table, watchdog(root));
            for group in groups(table, counters, budget) {
                match group.first() {
                    Some(first) if first.is_core() => session.open_core(root, &group, targets),
                    _ => session.open_uncore(root, &group),
                }
            }
        }
        session.start();
        session
    }

    fn open_software(
        &mut self,
        root: &Root,
        counter: Counter,
        number: u64,
        in_kernel: bool,
        targets: &[Target],
    ) {
        let mut open = |target| {
            let event = Encoded::software(number);
            match Open::one(event, target, None, Scope::All) {
                Err(error) if is_denied(&error) && !in_kernel => {
                    self.say_user_only();
                    Open::one(event, target, None, Scope::User)
                }
                result => result,
            }
        };
        let opened: Result<Vec<Open>, _> = targets.iter().map(|&target| open(target)).collect();
        match opened {
            Ok(open) => self.add(counter.name(), open, None),
            Err(error) => {
                let why = refusal::of_event(root, "the kernel", &error);
                self.refused.insert(counter.name().to_owned(), why);
            }
        }
    }

    /// A group on every target. If the group as a whole is refused, each of its events is refused.
    fn open_core(&mut self, root: &Root, group: &[&Event], targets: &[Target]) {
        let found = units::find(root, &group[0].pmu).map_err(|why| refusal::of_cores(root, why));
        let encoded = found.and_then(|found| {
            // A hybrid processor has several kinds of cores; servers have one.
            let unit = &found[0];
            let encode = |event: &&Event| unit.format.encode(unit.kind, &event.fields);
            group
                .iter()
                .map(encode)
                .collect::<Result<Vec<Encoded>, _>>()
        });
        let encoded = match encoded {
            Ok(encoded) => encoded,
            Err(why) => return self.refuse(group, &why),
        };
        let mut scope = Scope::All;
        let mut opened: Vec<Vec<Open>> = group.iter().map(|_| Vec::new()).collect();
        for &target in targets {
            let mut attempt = open_group(&encoded, target, scope);
            if scope == Scope::All && attempt.as_ref().is_err_and(is_denied) {
                scope = Scope::User;
                attempt = open_group(&encoded, target, scope);
            }
            match attempt {
                Ok(members) => {
                    for (all, member) in opened.iter_mut().zip(members) {
                        all.push(member);
                    }
                }
                Err(error) => {
                    let why = refusal::of_event(root, &group[0].pmu, &error);
                    return self.refuse(group, &why);
                }
            }
        }
        if scope == Scope::User {
            self.say_user_only();
        }
        for (event, open) in group.iter().zip(opened) {
            self.add(&event.name, open, None);
        }
    }

    /// A group on every unit and every processor that must be read.
    fn open_uncore(&mut self, root: &Root, group: &[&Event]) {
        let found = match units::find(root, &group[0].pmu) {
            Ok(found) => found,
            Err(why) => return self.refuse(group, &why),
        };
        let mut opened: Vec<Vec<Open>> = group.iter().map(|_| Vec::new()).collect();
        for unit in &found {
            match open_unit(root, unit, group) {
                Ok(members) => {
                    for (all, members) in opened.iter_mut().zip(members) {
                        all.extend(members);
                    }
                }
                Err(why) => return self.refuse(group, &why),
            }
        }
        for (event, open) in group.iter().zip(opened) {
            let units = u32::try_from(open.len()).ok();
            self.add(&event.name, open, units);
        }
    }

    fn add(&mut self, name: &str, open: Vec<Open>, units: Option<u32>) {
        let parts = open.into_iter().map(|open| Part {
            open,
            began: Reading::default(),
            last: Reading::default(),
        });
        self.events.push(Counting {
            name: name.to_owned(),
            parts: parts.collect(),
            units,
        });
    }

    fn refuse(&mut self, group: &[&Event], why: &Unavailable) {
        for event in group {
            self.refused.insert(event.name.clone(), why.clone());
        }
    }

    fn say_user_only(&mut self) {
        let note = "events in the kernel are left out, which this user may not count \
                    (perf_event_paranoid)";
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// Counts before this moment are not used.
    pub fn start(&mut self) {
        for part in self.events.iter_mut().flat_map(|event| &mut event.parts) {
            let now = part.open.read().unwrap_or_default();
            (part.began, part.last) = (now, now);
        }
    }

    /// The counts since the last window ended, or since the session began.
    pub fn window(&mut self) -> Amounts {
        self.amounts(|part, now| {
            let before = std::mem::replace(&mut part.last, now);
            (before, now)
        })
    }

    /// The counts since the session began.
    pub fn total(&mut self) -> Amounts {
        self.amounts(|part, now| (part.began, now))
    }

    fn amounts(
        &mut self,
        mut span: impl FnMut(&mut Part, Reading) -> (Reading, Reading),
    ) -> Amounts {
        let mut amounts: Amounts = self
            .refused
            .iter()
            .map(|(name, why)| {
                let amount = Amount {
                    value: Err(why.clone()),
                    running: RunningShare::WHOLE,
                    units: None,
                };
                (name.clone(), amount)
            })
            .collect();
        for event in &mut self.events {
            let mut sum = Amount {
                value: Ok(0),
                running: RunningShare::WHOLE,
                units: event.units,
            };
            let mut ran = false;
            for part in &mut event.parts {
                let (value, running) = match part.open.read() {
                    Ok(now) => {
                        let (before, now) = span(part, now);
                        scaled(before, now)
                    }
                    Err(error) => (Err(format!("reading it: {error}")), RunningShare::WHOLE),
                };
                ran |= value != Ok(None);
                let value = value.map(Option::unwrap_or_default);
                sum.value = match (sum.value, value) {
                    (Ok(sum), Ok(value)) => sum
                        .checked_add(value)
                        .ok_or_else(|| Unavailable::because("the sum is beyond 64 bits")),
                    (Err(why), _) => Err(why),
                    (_, Err(why)) => Err(Unavailable::because(why)),
                };
                if running < sum.running {
                    sum.running = running;
                }
            }
            if !ran {
                sum.value = Err(Unavailable::because(NOTHING_RAN));
            }
            amounts.insert(event.name.clone(), sum);
        }
        amounts
    }

    /// The portable counters of these counts: the hardware's, if there is a table, and the kernel's.
    pub fn counters(table: Option<&EventTable>, amounts: &Amounts, of_all: bool) -> CounterSet {
        let mut set = match table {
            Some(table) => Meaning { table, of_all }.of(amounts),
            None => CounterSet::default(),
        };
        for &level in Counter::ALL.iter().filter(|c| of_all && c.is_level()) {
            let why = "it is no event: resctrl has it for a monitoring group";
            set.set_unavailable(level, Unavailable::because(why));
        }
        for (counter, ..) in SOFTWARE {
            match amounts.get(counter.name()).map(|a| (&a.value, a.running)) {
                Some((Ok(value), running)) => set.set_scaled(counter, *value, running),
                Some((Err(why), _)) => set.set_unavailable(counter, why.clone()),
                None => {}
            }
        }
        set
    }

    /// Notes for a reader of the counts.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

fn is_denied(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn open_group(events: &[Encoded], target: Target, scope: Scope) -> std::io::Result<Vec<Open>> {
    let mut members: Vec<Open> = Vec::with_capacity(events.len());
    for &event in events {
        members.push(Open::one(event, target, members.first(), scope)?);
    }
    Ok(members)
}

/// A group on the processors of one unit, event by event.
fn open_unit(root: &Root, unit: &Unit, group: &[&Event]) -> Result<Vec<Vec<Open>>, Unavailable> {
    let encode = |event: &&Event| unit.format.encode(unit.kind, &event.fields);
    let encoded: Vec<Encoded> = group.iter().map(encode).collect::<Result<_, _>>()?;
    if unit.cpus.is_empty() {
        return Err(Unavailable::because(format!(
            "{} has no cpumask to ask it by",
            unit.name
        )));
    }
    let mut opened: Vec<Vec<Open>> = group.iter().map(|_| Vec::new()).collect();
    for &cpu in &unit.cpus {
        let members = open_group(&encoded, Target::Cpu(cpu), Scope::All)
            .map_err(|error| refusal::of_event(root, &unit.name, &error))?;
        for (all, member) in opened.iter_mut().zip(members) {
            all.push(member);
        }
    }
    Ok(opened)
}

/// The count between two readings, scaled to the whole time; `None` if there was no time.
pub(crate) fn scaled(before: Reading, now: Reading) -> (Result<Option<u64>, String>, RunningShare) {
    let less = |now: u64, before: u64| now.checked_sub(before);
    let (Some(value), Some(enabled), Some(running)) = (
        less(now.value, before.value),
        less(now.enabled, before.enabled),
        less(now.running, before.running),
    ) else {
        let why = format!(
            "a negative difference: {} after {}",
            now.value, before.value
        );
        return (Err(why), RunningShare::WHOLE);
    };
    if enabled == 0 {
        return (Ok(None), RunningShare::WHOLE);
    }
    if running == 0 {
        let why = "it was never on a hardware counter".to_owned();
        return (Err(why), RunningShare(0.0));
    }
    let scaled = u128::from(value) * u128::from(enabled) / u128::from(running);
    match u64::try_from(scaled) {
        Ok(value) => {
            let share = (running as f64 / enabled as f64).min(1.0);
            (Ok(Some(value)), RunningShare(share))
        }
        Err(_) => (
            Err(format!("{scaled} is beyond 64 bits")),
            RunningShare::WHOLE,
        ),
    }
}
