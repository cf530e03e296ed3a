//! The event by which this processor samples accesses.

use std::collections::BTreeMap;

use weir_model::capability::Unavailable;

use crate::perf::Encoded;
use crate::perf::attributes::Every;
use crate::perf::units;
use crate::root::Root;

const DEVICES: &str = "/sys/bus/event_source/devices";

/// Loads that take fewer cycles hit a cache of the core (Intel's `ldlat`).
const LEAST_CYCLES: u64 = 64;
/// Samples a second of each processor: each costs about a microsecond there.
const RATE: u64 = 20;

/// The sampled event, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The unit that samples, for messages.
    pub unit: String,
    /// The event.
    pub encoded: Encoded,
    /// An event that some processors require to be open at the same time.
    pub auxiliary: Option<Encoded>,
    /// How exactly the address belongs to the instruction (`precise_ip`).
    pub precise: u8,
    /// How often a sample is taken.
    pub every: Every,
}

impl Source {
    /// The first access to every page: every kernel can sample it.
    pub fn page_faults() -> Self {
        Self {
            unit: "the kernel".into(),
            encoded: Encoded::software(2),
            auxiliary: None,
            precise: 0,
            every: Every::Times(1),
        }
    }
}

/// The event of this processor that samples addresses of loads.
///
/// # Errors
/// It has none, or the kernel does not list it.
pub fn source(root: &Root) -> Result<Source, Unavailable> {
    intel(root).or_else(|of_intel| {
        amd(root).map_err(|of_amd| {
            Unavailable::because(format!(
                "neither PEBS ({}) nor IBS ({})",
                of_intel.reason, of_amd.reason
            ))
        })
    })
}

fn intel(root: &Root) -> Result<Source, Unavailable> {
    let unit = units::find(root, "cpu")?.swap_remove(0);
    let event = |name: &str| {
        let text = root.text(&format!("{DEVICES}/cpu/events/{name}"));
        text.get().map(|text| fields(text))
    };
    let mut loads = event("mem-loads")?;
    // Absent if the processor does not measure the latency of a load.
    if let Some(least) = loads.get_mut("ldlat") {
        *least = LEAST_CYCLES;
    }
    let auxiliary = match event("mem-loads-aux") {
        Ok(aux) => Some(unit.format.encode(unit.kind, &aux)?),
        Err(_) => None,
    };
    Ok(Source {
        encoded: unit.format.encode(unit.kind, &loads)?,
        unit: unit.name,
        auxiliary,
        precise: 2,
        every: Every::PerSecond(RATE),
    })
}

fn amd(root: &Root) -> Result<Source, Unavailable> {
    let unit = units::find(root, "ibs_op")?.swap_remove(0);
    let counted = BTreeMap::from([("cnt_ctl".to_owned(), 1)]);
    Ok(Source {
        // Without the field, cycles are counted instead of instructions.
        encoded: (unit.format.encode(unit.kind, &counted))
            .or_else(|_| unit.format.encode(unit.kind, &BTreeMap::new()))?,
        unit: unit.name,
        auxiliary: None,
        precise: 0,
        every: Every::PerSecond(RATE),
    })
}

/// `event=0xcd,umask=0x1,ldlat=3`; a name alone means 1.
fn fields(text: &str) -> BTreeMap<String, u64> {
    let field = |part: &str| {
        let (name, value) = part.trim().split_once('=').unwrap_or((part.trim(), "1"));
        let value = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => value.parse().ok()?,
        };
        Some((name.to_owned(), value))
    };
    text.split(',').filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(&DEVICES[1..]).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(folder.path());
        (folder, root)
    }

    #[test]
    fn each_vendors_event_is_found() {
        let format = [
            ("cpu/type", "4\n"),
            ("cpu/format/event", "config:0-7\n"),
            ("cpu/format/umask", "config:8-15\n"),
            ("cpu/format/ldlat", "config1:0-15\n"),
        ];
        let (_folder, empty) = root(&[]);
        let why = source(&empty).unwrap_err().reason;
        assert!(why.contains("PEBS") && why.contains("IBS"), "{why}");
        let (_folder, without) = root(&format);
        assert!(source(&without).unwrap_err().reason.contains("mem-loads"));
        let loads = ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
        let (_folder, skylake) = root(&[&format[..], &[loads]].concat());
        let found = source(&skylake).unwrap();
        assert_eq!(found.encoded.config, [0x1cd, LEAST_CYCLES, 0]);
        assert_eq!(
            (found.encoded.kind, found.auxiliary, found.precise),
            (4, None, 2)
        );
        let aux = ("cpu/events/mem-loads-aux", "event=0x03,umask=0x82\n");
        let (_folder, sapphire) = root(&[&format[..], &[loads, aux]].concat());
        let auxiliary = source(&sapphire).unwrap().auxiliary.unwrap();
        assert_eq!(auxiliary.config, [0x8203, 0, 0]);
        let (_folder, zen) = root(&[
            ("ibs_op/type", "9\n"),
            ("ibs_op/format/cnt_ctl", "config:19\n"),
        ]);
        let found = source(&zen).unwrap();
        assert_eq!((found.encoded.kind, found.encoded.config[0]), (9, 1 << 19));
    }

    proptest! {
        #[test]
        fn garbage_has_fields_with_numbers_or_none(text in "([a-z]{1,4}=(0x)?[0-9a-f]{0,20},?|.){0,6}") {
            for (name, _) in fields(&text) {
                prop_assert!(text.contains(&name));
            }
        }
    }
}
