//! A CXL device's description of its own memory: its Coherent Device Attribute Table (CDAT specification
//! 1.03, sections 2.1 to 2.3).

use weir_model::capability::Unavailable;
use weir_model::units::{GbPerSec, Nanos};

use super::node::Access;
use crate::root::Reading;

/// Length, revision, checksum, six reserved bytes, sequence.
const HEADER: usize = 16;
/// Both structures that are read here have the same length.
const STRUCTURE: usize = 24;

/// Device Scoped Memory Affinity Structure: a range of the device's memory.
const DSMAS: u8 = 0;
/// Its flag for memory that outlives a power failure.
const NON_VOLATILE: u8 = 1 << 2;
/// Device Scoped Latency and Bandwidth Information Structure.
const DSLBIS: u8 = 1;

/// Latency and bandwidth of the first range of volatile memory, without the path to the device.
pub(super) fn access(table: &[u8]) -> Result<Access, Unavailable> {
    let length = table.get(..4).and_then(|b| b.try_into().ok());
    let length = length.map_or(0, u32::from_le_bytes) as usize;
    let Some(body) = table.get(HEADER..length) else {
        return Err(Unavailable::because(format!(
            "a CDAT of {} bytes says that it has {length}",
            table.len()
        )));
    };
    let sum = table[..length]
        .iter()
        .fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    if sum != 0 {
        return Err(Unavailable::because("the CDAT's checksum is wrong"));
    }
    let range = structures(body)
        .find(|s| s[0] == DSMAS && s[5] & NON_VOLATILE == 0)
        .ok_or_else(|| Unavailable::because("the CDAT describes no volatile memory"))?[4];
    // The low four bits of the flags separate memory (0) from caches of memory.
    let of_range = |s: &&[u8]| s[0] == DSLBIS && s[4] == range && s[5] & 0xf == 0;
    // A structure for both directions replaces a missing structure for one direction.
    let value = |kind: u8, both: u8, what: &str| {
        let of_kind = |kind| structures(body).filter(of_range).find(|s| s[6] == kind);
        let found = of_kind(kind).or_else(|| of_kind(both)).and_then(scaled);
        found.ok_or_else(|| Unavailable::because(format!("the CDAT gives no {what}")))
    };
    // Latency is in picoseconds, bandwidth in MB/s.
    let latency = |kind, what| reading(value(kind, 0, what).map(|ps| Nanos(ps / 1e3)));
    let bandwidth = |kind, what| reading(value(kind, 3, what).map(|mb| GbPerSec(mb / 1e3)));
    Ok(Access {
        initiators: Vec::new(),
        read_latency: latency(1, "read latency"),
        write_latency: latency(2, "write latency"),
        read_bandwidth: bandwidth(4, "read bandwidth"),
        write_bandwidth: bandwidth(5, "write bandwidth"),
    })
}

fn reading<T>(value: Result<T, Unavailable>) -> Reading<T> {
    match value {
        Ok(value) => Reading::Known(value),
        Err(why) => Reading::Absent(why),
    }
}

/// The structures of a known length, in order, as long as their lengths are valid.
fn structures(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_le_bytes([*rest.get(2)?, *rest.get(3)?]));
        let (structure, after) = rest.split_at_checked(length).filter(|_| length >= 4)?;
        rest = after;
        Some(structure)
    })
    .filter(|structure| structure.len() >= STRUCTURE)
}

/// The first entry of a DSLBIS times its unit; `None` if it was not provided.
fn scaled(structure: &[u8]) -> Option<f64> {
    let unit = u64::from_le_bytes(structure.get(8..16)?.try_into().ok()?);
    let entry = u16::from_le_bytes(structure.get(16..18)?.try_into().ok()?);
    (entry != 0 && entry != u16::MAX).then(|| unit as f64 * f64::from(entry))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A table with a checksum, with a range and its properties.
    fn table(flags: u8, entries: &[(u8, u64, u16)]) -> Vec<u8> {
        let mut table = vec![0; HEADER];
        table.extend([DSMAS, 0, 24, 0, 7, flags, 0, 0]);
        table.extend([0; 16]);
        for &(kind, unit, entry) in entries {
            table.extend([DSLBIS, 0, 24, 0, 7, 0, kind, 0]);
            table.extend(unit.to_le_bytes());
            table.extend(entry.to_le_bytes());
            table.extend([0; 6]);
        }
        seal(table)
    }

    fn seal(mut table: Vec<u8>) -> Vec<u8> {
        let length = u32::try_from(table.len()).unwrap();
        table[..4].copy_from_slice(&length.to_le_bytes());
        table[5] = 0;
        let sum = table.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        table[5] = sum.wrapping_neg();
        table
    }

    #[test]
    fn an_emulated_device_is_read_as_its_maker_wrote_it() {
        // As in QEMU 10: 150 ns and 250 ns, 16 GB/s.
        let entries = [
            (1, 10_000, 15),
            (2, 10_000, 25),
            (4, 1000, 16),
            (5, 1000, 16),
        ];
        let access = access(&table(0, &entries)).unwrap();
        assert_eq!(access.read_latency, Reading::Known(Nanos(150.0)));
        assert_eq!(access.write_latency, Reading::Known(Nanos(250.0)));
        assert_eq!(access.read_bandwidth, Reading::Known(GbPerSec(16.0)));
        assert_eq!(access.write_bandwidth, Reading::Known(GbPerSec(16.0)));
    }

    #[test]
    fn one_figure_for_both_directions_stands_for_each() {
        let access = access(&table(0, &[(0, 1000, 90), (1, 1000, 80), (3, 100, 0xffff)])).unwrap();
        assert_eq!(access.read_latency, Reading::Known(Nanos(80.0)));
        assert_eq!(access.write_latency, Reading::Known(Nanos(90.0)));
        assert!(matches!(access.read_bandwidth, Reading::Absent(_)));
    }

    #[test]
    fn the_figures_are_those_of_the_volatile_range_and_of_memory() {
        let mut both = vec![0; HEADER];
        // Another range, and a cache in front of the memory, come first.
        for (handle, flags) in [(6, NON_VOLATILE), (7, 0)] {
            both.extend([DSMAS, 0, 24, 0, handle, flags, 0, 0]);
            both.extend([0; 16]);
        }
        for (handle, flags, ps) in [(6, 0, 500_000_u64), (7, 1, 20_000), (7, 0, 90_000)] {
            both.extend([DSLBIS, 0, 24, 0, handle, flags, 1, 0]);
            both.extend(ps.to_le_bytes());
            both.extend(1_u16.to_le_bytes());
            both.extend([0; 6]);
        }
        let access = access(&seal(both)).unwrap();
        assert_eq!(access.read_latency, Reading::Known(Nanos(90.0)));
    }

    #[test]
    fn persistent_memory_and_broken_tables_are_reasons() {
        let reason = |table: &[u8]| access(table).unwrap_err().reason;
        assert!(reason(&table(NON_VOLATILE, &[(1, 1, 1)])).contains("no volatile"));
        assert!(reason(&[]).contains("0 bytes"));
        let mut wrong = table(0, &[(1, 1, 1)]);
        wrong[20] ^= 1;
        assert!(reason(&wrong).contains("checksum"));
        let cut = &table(0, &[(1, 1, 1)])[..30];
        assert!(reason(cut).contains("30 bytes"));
    }

    proptest! {
        #[test]
        fn garbage_is_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = access(&bytes);
            if bytes.len() >= HEADER {
                let _ = access(&seal(bytes));
            }
        }

        #[test]
        fn every_figure_is_unit_times_entry(unit in 1u64..1 << 40, entry in 1u16..u16::MAX) {
            let access = access(&table(0, &[(1, unit, entry)])).unwrap();
            let wanted = Nanos(unit as f64 * f64::from(entry) / 1e3);
            prop_assert_eq!(access.read_latency, Reading::Known(wanted));
        }
    }
}
