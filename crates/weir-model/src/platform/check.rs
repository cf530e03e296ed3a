//! What single values cannot show: values that contradict each other or physics.

use super::assemble::Values;
use super::{Device, Host, ReadLimit, STORAGE_BLOCK, StorageDevice};
use crate::diagnostic::Collector;
use crate::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

/// Checks a whole host.
pub(crate) fn host(host: &Host, values: &Values<'_>, mistakes: &mut Collector<'_>) {
    let mut report = |key: &str, message: String, help: &str| {
        mistakes.report(values.span(key), Some(key), message, Some(help.into()));
    };

    let (l1, l2, llc) = (&host.l1, &host.l2, &host.llc);
    for (key, size, slices, ways) in [
        ("l1.size", l1.size.value, 1, l1.ways.value),
        ("l2.size", l2.size.value, 1, l2.ways.value),
        ("llc.size", llc.size.value, llc.slices.value, llc.ways.value),
    ] {
        if !divides(size, slices, ways) {
            let slices = if slices == 1 {
                String::new()
            } else {
                format!("{slices} slices of ")
            };
            report(
                key,
                format!(
                    "`{key}` is {size}, which does not divide into {slices}{ways} ways of whole lines"
                ),
                "size, ways and slices come from one processor: all three must be its own",
            );
        }
    }
    if host.l1.size.value >= host.l2.size.value {
        report(
            "l2.size",
            "the L2 cache is not larger than the L1".into(),
            "see `l1.size`",
        );
    }
    if !(host.tlb.page.value.get()).is_power_of_two() {
        report(
            "tlb.page",
            format!(
                "`tlb.page` is {}, which is no power of two",
                host.tlb.page.value
            ),
            "pages are 4 KiB, 2 MiB or 1 GiB",
        );
    }

    let measured = &host.dram.measured;
    let peak = host.dram.peak();
    let rates = format!(
        "{} x {} can move {peak:.1} at most",
        host.dram.channels.value,
        host.dram.media.name()
    );
    for (key, rate) in [
        ("dram.read", measured.read.value),
        ("dram.nt_write", measured.nt_write.value),
    ] {
        if rate > peak {
            report(
                key,
                format!("`{key}` is {rate}, which beats physics"),
                &rates,
            );
        }
    }
    if measured.idle.value <= host.llc.latency.value {
        report(
            "dram.idle",
            format!(
                "DRAM at {} would be no slower than the last-level cache at {}",
                measured.idle.value, host.llc.latency.value
            ),
            "`dram.idle` is the whole path from the core; `llc.latency` a hit on the way",
        );
    }
    if host.core.load_peak.value > measured.read.value {
        report(
            "core.load_peak",
            format!(
                "one core would load {}, more than all together ({})",
                host.core.load_peak.value, measured.read.value
            ),
            "see `dram.read`",
        );
    }
    let clusters = host.uncore.clusters.value.max(1);
    if !host.llc.slices.value.is_multiple_of(clusters) {
        report(
            "uncore.clusters",
            format!(
                "{} slices do not divide into {clusters} sub-NUMA clusters",
                host.llc.slices.value
            ),
            "see `llc.slices`",
        );
    }
    complexes(host, values, mistakes);
    ranks("dram.ranks", host.dram.ranks.value, values, mistakes);
    let upstream = host.switch.upstream.lanes.value;
    lanes("switch.lanes", upstream, values, mistakes);
    remote(host, values, mistakes);
}

fn complexes(host: &Host, values: &Values<'_>, mistakes: &mut Collector<'_>) {
    let mut report = |key: &str, message: String, help: &str| {
        mistakes.report(values.span(key), Some(key), message, Some(help.into()));
    };
    let Some(complexes) = &host.uncore.complexes else {
        if values.is_given("uncore.complexes") {
            report(
                "uncore.complexes",
                "core complexes need links to memory".into(),
                "add `complex_read`, `complex_write` and `complex_crossing`",
            );
        }
        return;
    };
    let count = complexes.count.value;
    let (cores, slices) = (host.core.count.value, host.llc.slices.value);
    if slices != count || !cores.is_multiple_of(count) || host.uncore.clusters.value != 1 {
        report(
            "uncore.complexes",
            format!("{count} complexes do not go with {cores} cores and {slices} slices"),
            "each complex has as many cores, and its part of the cache is one slice; clusters are of \
             hosts without complexes",
        );
    }
    let limits = complexes.limits(host.uncore.clock.value);
    let measured = &host.dram.measured;
    for (key, rate, limit) in [
        ("dram.read", measured.read.value, limits.read),
        ("dram.nt_write", measured.nt_write.value, limits.write),
    ] {
        if rate > limit {
            report(
                key,
                format!("`{key}` is {rate}, more than the complexes' links carry ({limit:.1})"),
                "see `uncore.complex_read`, `uncore.complex_write` and `uncore.clock`",
            );
        }
    }
}

fn remote(host: &Host, values: &Values<'_>, mistakes: &mut Collector<'_>) {
    pair(values, "remote.idle", "remote.read", mistakes);
    pair(values, "remote.channels", "remote.link", mistakes);
    let Some(remote) = &host.remote else { return };
    let mut report = |key: &str, message: String, help: &str| {
        mistakes.report(values.span(key), Some(key), message, Some(help.into()));
    };
    if host.sockets.value < 2 {
        report(
            "remote.idle",
            "a host of one socket has no other socket".into(),
            "leave `[remote]` out, or set `sockets`",
        );
    }
    if remote.idle.value <= host.dram.measured.idle.value {
        report(
            "remote.idle",
            format!(
                "the other socket's DRAM at {} would be no slower than this one's at {}",
                remote.idle.value, host.dram.measured.idle.value
            ),
            "both are the whole path from the core",
        );
    }
    if let Some(narrow) = &remote.narrow {
        let limit = host.remote_dram().peak().min(narrow.link.value);
        if remote.read.value > limit {
            report(
                "remote.read",
                format!(
                    "`remote.read` is {}, more than its channels and the link let through ({limit:.1})",
                    remote.read.value
                ),
                "see `remote.channels` and `remote.link`",
            );
        }
        return;
    }
    let local: GbPerSec = host.dram.measured.read.value;
    if remote.read.value > local {
        report(
            "remote.read",
            format!(
                "`remote.read` is {}, more than the DRAM gives ({local})",
                remote.read.value
            ),
            "see `dram.read`",
        );
    }
}

/// Checks a whole device.
pub(crate) fn device(device: &Device, values: &Values<'_>, mistakes: &mut Collector<'_>) {
    needs(values, "remote_idle", "remote_read", mistakes);
    lanes("lanes", device.link.lanes.value, values, mistakes);
    let mut report = |key: &str, message: String, help: &str| {
        mistakes.report(values.span(key), Some(key), message, Some(help.into()));
    };
    let measured = &device.measured;
    let limits = device.limits();
    if let Some(read) = &measured.read
        && read.value > limits.read
    {
        report(
            "read",
            format!("`read` is {}, which beats physics", read.value),
            &format!("at most {:.1} can be read: {}", limits.read, limits.basis),
        );
    }
    if measured.read.is_none() && measured.read_limit.value != ReadLimit::Media {
        report(
            "read_limit",
            format!(
                "`read_limit` says what limits `read`, but there is no `read`: nothing tells the {}'s rate",
                measured.read_limit.name()
            ),
            "add `read`, or leave `read_limit` out",
        );
    }
    if let Some(idle) = &measured.remote_idle
        && idle.value <= measured.idle.value
    {
        report(
            "remote_idle",
            format!(
                "from the other socket {} would be no slower than from its own at {}",
                idle.value, measured.idle.value
            ),
            "both are the whole path from the core",
        );
    }
    let remote = &measured.remote_read;
    if let Some(read) = &measured.read
        && remote.value > read.value
    {
        report(
            "remote_read",
            format!(
                "from the other socket {} would be more than from its own ({})",
                remote.value, read.value
            ),
            "see `read`",
        );
    }
    if !device.interleave.get().is_power_of_two() {
        report(
            "interleave",
            format!(
                "`interleave` is {}, which is no power of two",
                device.interleave.value
            ),
            "HDM decoders interleave by 256 B, 512 B, 1 KiB, and so on up to 16 KiB",
        );
    }
    ranks("ranks", device.ranks.value, values, mistakes);
}

/// Checks a whole storage device.
pub(crate) fn storage(device: &StorageDevice, values: &Values<'_>, mistakes: &mut Collector<'_>) {
    let mut report = |key: &str, message: String, help: &str| {
        mistakes.report(values.span(key), Some(key), message, Some(help.into()));
    };
    let measured = &device.measured;
    let (link, block) = (device.link.value, STORAGE_BLOCK);
    let blocks = |a_second: u32| GbPerSec(f64::from(a_second) * block.get() as f64 / 1e9);
    for (key, rate) in [
        ("sequential_read", measured.sequential_read.value),
        ("sequential_write", measured.sequential_write.value),
        ("random_read", blocks(measured.random_read.value)),
        ("random_write", blocks(measured.random_write.value)),
    ] {
        if rate > link {
            report(
                key,
                format!("`{key}` is {rate:.2}, more than the link carries ({link})"),
                "see `link`; requests are of 4 KiB",
            );
        }
    }
    if measured.random_write.value > measured.random_read.value {
        report(
            "random_write",
            "flash would be written at random faster than it is read".into(),
            "see `random_read`; `random_write` is that of a device whose spare blocks are used up",
        );
    }
    let transfer = Nanos(block.get() as f64 / link.get());
    let known = device.sense.value + transfer;
    if measured.read_idle.value <= known {
        report(
            "read_idle",
            format!(
                "a read of {} is shorter than its known parts, which take {known:.1}",
                measured.read_idle.value
            ),
            "a die's `sense` and 4 KiB on the `link` are parts of it",
        );
    }
    if measured.write_idle.value <= transfer {
        report(
            "write_idle",
            format!(
                "a write of {} is shorter than 4 KiB on the link, which take {transfer:.1}",
                measured.write_idle.value
            ),
            "see `link`",
        );
    }
    let most = f64::from(device.dies.value) / device.sense.value.get() * 1e9;
    if f64::from(measured.random_read.value) > most {
        report(
            "random_read",
            format!(
                "{} dies that read for {} each give {most:.0} reads a second at most",
                device.dies.value, device.sense.value
            ),
            "see `dies` and `sense`",
        );
    }
}

/// Rank bits are bits of the address.
fn ranks(key: &str, ranks: u32, values: &Values<'_>, mistakes: &mut Collector<'_>) {
    if !ranks.is_power_of_two() {
        mistakes.report(
            values.span(key),
            Some(key),
            format!("a channel has 1, 2, 4, 8 or 16 ranks, not {ranks}"),
            Some("count the ranks of all its modules".into()),
        );
    }
}

/// A link's lanes.
fn lanes(key: &str, lanes: u32, values: &Values<'_>, mistakes: &mut Collector<'_>) {
    if !lanes.is_power_of_two() {
        mistakes.report(
            values.span(key),
            Some(key),
            format!("a link has 1, 2, 4, 8 or 16 lanes, not {lanes}"),
            Some(format!("`{key}` is the width of the link, not of the slot")),
        );
    }
}

/// Two keys that mean something only together.
fn pair(values: &Values<'_>, one: &str, other: &str, mistakes: &mut Collector<'_>) {
    needs(values, one, other, mistakes);
    needs(values, other, one, mistakes);
}

/// A key that means something only beside another.
fn needs(values: &Values<'_>, there: &str, other: &str, mistakes: &mut Collector<'_>) {
    if values.is_given(there) && !values.is_given(other) {
        mistakes.report(
            values.span(there),
            Some(there),
            format!("`{there}` needs `{other}` beside it"),
            None,
        );
    }
}

/// Whether a cache divides into whole lines over its slices and ways.
fn divides(size: Bytes, slices: u32, ways: u32) -> bool {
    let places = u64::from(slices) * u64::from(ways) * LINE_BYTES;
    size.get() > 0 && size.get().is_multiple_of(places.max(1))
}
