//! The counters of CXL devices: `cxl_pmu_memN.M` (Linux 6.5, drivers/perf/cxl_pmu.c; CXL 3.0 tables 3-46 and
//! 13-5). The events that the kernel names are used, in its encoding.

use std::collections::BTreeMap;

use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet, RunningShare};

use crate::perf::Encoded;
use crate::perf::event::{Open, Reading, Scope};
use crate::perf::format::Format;
use crate::perf::session::scaled;
use crate::perf::{Target, refusal};
use crate::root::Root;
use crate::topology::list;

const DEVICES: &str = "/sys/bus/event_source/devices";

/// Lines towards the host and away from it, by the kernel's names; partial writes are lines too.
const EVENTS: [(Counter, &[&str]); 2] = [
    (Counter::CxlRxMemData, &["s2m_drs_memdata"]),
    (
        Counter::CxlTxMemData,
        &["m2s_rwd_memwr", "m2s_rwd_memwrptl"],
    ),
];

/// The open events of all devices for lines that crossed.
#[derive(Debug)]
pub(crate) struct Devices {
    events: Vec<(Counter, Open, Reading)>,
    names: Vec<String>,
}

/// An event of a device before it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub device: String,
    pub counter: Counter,
    pub cpu: u32,
    pub encoded: Encoded,
}

impl Devices {
    /// Opens them.
    ///
    /// # Errors
    /// No device counts, or the kernel refuses.
    pub fn open(root: &Root) -> Result<Self, Unavailable> {
        let mut devices = Self {
            events: Vec::new(),
            names: Vec::new(),
        };
        for named in find(root)? {
            let target = Target::Cpu(named.cpu);
            let open = Open::one(named.encoded, target, None, Scope::All)
                .map_err(|error| refusal::of_event(root, &named.device, &error))?;
            let now = open.read().unwrap_or_default();
            devices.events.push((named.counter, open, now));
            if !devices.names.contains(&named.device) {
                devices.names.push(named.device);
            }
        }
        Ok(devices)
    }

    /// The devices, by the names of their counters.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Adds the lines that crossed since the last window, if the processor has not counted them.
    pub fn window(&mut self, set: &mut CounterSet) {
        let spans = self.events.iter_mut().map(|(counter, open, last)| {
            let now = open.read().map_err(|error| error.to_string());
            let span = now.map(|now| (std::mem::replace(last, now), now));
            (*counter, span)
        });
        add(set, spans);
    }
}

/// Adds the sums of counts, each between two readings and scaled to the whole time, if the processor has not counted
/// them.
fn add(
    set: &mut CounterSet,
    spans: impl Iterator<Item = (Counter, Result<(Reading, Reading), String>)>,
) {
    let mut sums: BTreeMap<Counter, (Result<u64, String>, RunningShare)> = BTreeMap::new();
    for (counter, span) in spans {
        let (lines, running) = match span {
            Ok((before, now)) => scaled(before, now),
            Err(why) => (Err(why), RunningShare::WHOLE),
        };
        let lines = lines.and_then(|lines| lines.ok_or_else(|| "it was not counted".to_owned()));
        let (sum, least) = sums.entry(counter).or_insert((Ok(0), RunningShare::WHOLE));
        *sum = sum.clone().and_then(|sum| Ok(sum.saturating_add(lines?)));
        if running < *least {
            *least = running;
        }
    }
    for (counter, (sum, running)) in sums {
        if set.get(counter).is_ok() {
            continue;
        }
        match sum {
            Ok(lines) => set.set_scaled(counter, lines, running),
            Err(why) => {
                let why = format!("the count of a device: {why}");
                set.set_unavailable(counter, Unavailable::because(why));
            }
        }
    }
}

/// The events of all devices.
///
/// # Errors
/// There is none, or the files of one are invalid.
pub(crate) fn find(root: &Root) -> Result<Vec<Named>, Unavailable> {
    let names = root.list(DEVICES);
    let names = names.known().map_or(&[][..], Vec::as_slice);
    let mut all = Vec::new();
    for device in names.iter().filter(|name| name.starts_with("cxl_pmu_mem")) {
        let folder = format!("{DEVICES}/{device}");
        let kind = root.value::<u32>(&format!("{folder}/type"));
        let cpus = root.text(&format!("{folder}/cpumask"));
        let format = Format::of(root, &folder)?;
        let cpu = list::parse(cpus.get()?)?.first().copied().ok_or_else(|| {
            Unavailable::because(format!("{device} has no processor on which it can be read"))
        })?;
        for (counter, words) in EVENTS {
            for word in words {
                let text = root.text(&format!("{folder}/events/{word}"));
                // A device implements the events that it chooses.
                let Some(text) = text.known() else { continue };
                let fields = fields(text).ok_or_else(|| {
                    Unavailable::because(format!("{device} names {word} as `{text}`"))
                })?;
                all.push(Named {
                    device: device.clone(),
                    counter,
                    cpu,
                    encoded: format.encode(*kind.get()?, &fields)?,
                });
            }
        }
    }
    if all.is_empty() {
        return Err(Unavailable::because(format!(
            "no CXL device counts its traffic (no cxl_pmu_mem in {DEVICES}; CONFIG_CXL_PMU, and a device that has counters)"
        )));
    }
    Ok(all)
}

/// `vid=0x1e98,gid=0x21,mask=0x1`.
fn fields(text: &str) -> Option<BTreeMap<String, u64>> {
    let field = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => value.parse().ok()?,
        };
        Some((name.trim().to_owned(), value))
    };
    text.trim().split(',').map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording;

    /// A device as drivers/perf/cxl_pmu.c lists it, on a server with two sockets.
    fn machine(extra: &str) -> Root {
        let folder = "/sys/bus/event_source/devices/cxl_pmu_mem0.0";
        let text = format!(
            "weir/machine/1\n{folder}/type: 31\n{folder}/cpumask: 56\n\
             {folder}/format/mask: config:0-31\n{folder}/format/gid: config:32-47\n\
             {folder}/format/vid: config:48-63\n\
             {folder}/events/s2m_drs_memdata: vid=0x1e98,gid=0x0021,mask=0x00000001\n{extra}end\n"
        );
        let tree = recording::parse("test.machine", &text).unwrap_or_else(|e| panic!("{e}"));
        Root::recorded(tree)
    }

    #[test]
    fn the_events_that_a_device_names_are_encoded_as_its_format_says() {
        let named = find(&machine("")).unwrap();
        assert_eq!(named.len(), 1);
        assert_eq!(
            (named[0].counter, named[0].cpu),
            (Counter::CxlRxMemData, 56)
        );
        let config = 0x1e98_u64 << 48 | 0x21 << 32 | 1;
        assert_eq!(
            named[0].encoded,
            Encoded {
                kind: 31,
                config: [config, 0, 0]
            }
        );
        let folder = "/sys/bus/event_source/devices/cxl_pmu_mem0.0";
        let odd = machine(&format!("{folder}/events/m2s_rwd_memwr: often\n"));
        assert!(find(&odd).unwrap_err().reason.contains("`often`"));
    }

    #[test]
    fn a_count_is_scaled_to_the_whole_time_and_never_zero_if_it_was_not_counted() {
        let reading = |value, enabled, running| Reading {
            value,
            enabled,
            running,
        };
        let (received, sent) = (Counter::CxlRxMemData, Counter::CxlTxMemData);
        let begin = reading(0, 0, 0);
        let mut set = CounterSet::default();
        let spans = [
            (received, Ok((begin, reading(100, 1000, 1000)))),
            (received, Ok((begin, reading(100, 1000, 500)))),
            (sent, Ok((begin, reading(100, 1000, 1000)))),
            (sent, Ok((begin, reading(0, 1000, 0)))),
        ];
        add(&mut set, spans.into_iter());
        assert_eq!(set.get(received), Ok(300));
        assert_eq!(set.running_share(received), RunningShare(0.5));
        let why = set.get(sent).unwrap_err();
        assert!(why.reason.contains("never on a hardware counter"), "{why}");
    }

    #[test]
    fn a_host_without_such_devices_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let why = find(&Root::at(folder.path())).unwrap_err();
        assert!(why.reason.contains("CONFIG_CXL_PMU"), "{why}");
    }
}
