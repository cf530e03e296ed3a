//! Checks across keys: values that contradict each other or physics.

use super::source_file::Values;
use super::{Device, Host, ReadLimit, STORAGE_BLOCK, StorageDevice};
use crate::diagnostic::Collector;
use crate::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};

/// The values of a file, and where mistakes go.
struct Check<'a> {
    values: &'a Values<'a>,
    mistakes: &'a Collector<'a>,
}

impl Check<'_> {
    fn wrong(&self, key: &str, message: String, help: Option<&str>) {
        let span = self.values.span(key);
        self.mistakes
            .report(span, Some(key), message, help.map(str::to_owned));
    }

    /// Two keys that are possible only together.
    fn pair(&self, one: &str, other: &str) {
        self.needs(one, other);
        self.needs(other, one);
    }

    /// A key that is possible only with another.
    fn needs(&self, there: &str, other: &str) {
        if self.values.is_given(there) && !self.values.is_given(other) {
            self.wrong(there, format!("`{there}` needs `{other}` too"), None);
        }
    }

    /// The lanes of a link.
    fn lanes(&self, key: &str, lanes: u32) {
        if !lanes.is_power_of_two() {
            let message = format!("a link has 1, 2, 4, 8 or 16 lanes, not {lanes}");
            let help = format!("`{key}` is the width of the link, not of the slot");
            self.wrong(key, message, Some(&help));
        }
    }

    /// The ranks of a channel.
    fn ranks(&self, key: &str, ranks: u32) {
        if !ranks.is_power_of_two() {
            let message = format!("a channel has 1, 2, 4, 8 or 16 ranks, not {ranks}");
            self.wrong(key, message, Some("count the ranks of all its modules"));
        }
    }

    /// A medium behind a device's DRAM.
    fn backing(&self, device: &Device) {
        let Some(backing) = &device.backing else {
            let mut keys = super::FileKind::Device.keys().iter().map(|key| key.path);
            let given = keys.find(|key| key.starts_with("backing.") && self.values.is_given(key));
            for part in super::Backing::PARTS {
                given.inspect(|given| self.needs(given, part));
            }
            return;
        };
        for (key, message, help) in backing.contradictions(*device.capacity) {
            self.wrong(key, message, Some(help));
        }
    }

    /// A turn of writes must end below the mark at which it begins.
    fn drain(&self, key: &str, at: f64, to: f64) {
        if to >= at {
            let message = format!(
                "`{key}` is {to}, but turns of writes begin at {at}: no turn would write anything"
            );
            self.wrong(key, message, Some("give less than `drain_at`"));
        }
    }
}

/// Checks a whole host.
pub(crate) fn host(host: &Host, values: &Values<'_>, mistakes: &Collector<'_>) {
    let check = Check { values, mistakes };
    let report = |key: &str, message: String, help: &str| check.wrong(key, message, Some(help));

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
            "it must be larger than `l1.size`",
        );
    }
    if !(host.tlb.page.value.get()).is_power_of_two() {
        report(
            "tlb.page",
            format!(
                "`tlb.page` is {}, which is not a power of two",
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
                format!("`{key}` is {rate}, which is more than physics allows"),
                &rates,
            );
        }
    }
    if measured.idle.value <= host.llc.latency.value {
        report(
            "dram.idle",
            format!(
                "the latency of DRAM is {}, which is not more than the {} of the last-level cache",
                measured.idle.value, host.llc.latency.value
            ),
            "`dram.idle` is the latency of the whole path from the core; `llc.latency` is that of a cache hit",
        );
    }
    if host.core.load_peak.value > measured.read.value {
        report(
            "core.load_peak",
            format!(
                "one core loads {}, which is more than all cores together load ({})",
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
    if host.uncore.cluster_tiers() > clusters {
        report(
            "uncore.cluster_tiers",
            format!(
                "{} clusters have tiers, but the socket has {clusters}",
                host.uncore.cluster_tiers()
            ),
            "see `uncore.clusters`",
        );
    }
    complexes(host, &check);
    check.ranks("dram.ranks", host.dram.ranks.value);
    check.drain("dram.drain_to", *host.dram.drain_at, *host.dram.drain_to);
    check.lanes("switch.lanes", host.switch.lanes.value);
    remote(host, &check);
}

fn complexes(host: &Host, check: &Check<'_>) {
    let report = |key: &str, message: String, help: &str| check.wrong(key, message, Some(help));
    let Some(complexes) = &host.uncore.complexes else {
        if check.values.is_given("uncore.complexes") {
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
            format!("{count} complexes do not match {cores} cores and {slices} slices"),
            "every complex has the same number of cores, and its part of the cache is one slice; only hosts \
             without complexes have clusters",
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

fn remote(host: &Host, check: &Check<'_>) {
    check.pair("remote.idle", "remote.read");
    check.pair("remote.channels", "remote.link");
    let Some(remote) = &host.remote else { return };
    let report = |key: &str, message: String, help: &str| check.wrong(key, message, Some(help));
    if host.sockets.value < 2 {
        report(
            "remote.idle",
            "a host with one socket has no remote socket".into(),
            "leave `[remote]` out, or set `sockets`",
        );
    }
    if remote.idle.value <= host.dram.measured.idle.value {
        report(
            "remote.idle",
            format!(
                "the latency of the other socket's DRAM is {}, which is not more than the {} of this socket's DRAM",
                remote.idle.value, host.dram.measured.idle.value
            ),
            "both are the latency of the whole path from the core",
        );
    }
    if let Some(narrow) = &remote.narrow {
        let limit = host.remote_dram().peak().min(narrow.link.value);
        if remote.read.value > limit {
            report(
                "remote.read",
                format!(
                    "`remote.read` is {}, more than its channels and the link carry ({limit:.1})",
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
                "`remote.read` is {}, more than the DRAM delivers ({local})",
                remote.read.value
            ),
            "see `dram.read`",
        );
    }
}

/// Checks a whole device.
pub(crate) fn device(device: &Device, values: &Values<'_>, mistakes: &Collector<'_>) {
    let check = Check { values, mistakes };
    check.needs("remote_idle", "remote_read");
    check.lanes("lanes", device.link.lanes.value);
    let report = |key: &str, message: String, help: &str| check.wrong(key, message, Some(help));
    let measured = &device.measured;
    let limits = device.limits();
    if let Some(read) = &measured.read
        && read.value > limits.read
    {
        report(
            "read",
            format!(
                "`read` is {}, which is more than physics allows",
                read.value
            ),
            &format!("at most {:.1} can be read: {}", limits.read, limits.basis),
        );
    }
    if measured.read.is_none() && measured.read_limit.value != ReadLimit::Media {
        report(
            "read_limit",
            format!(
                "`read_limit` says that the {} limits `read`, but there is no `read`",
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
                "the latency from the other socket is {}, which is not more than the {} from the device's own socket",
                idle.value, measured.idle.value
            ),
            "both are the latency of the whole path from the core",
        );
    }
    let remote = &measured.remote_read;
    if let Some(read) = &measured.read
        && remote.value > read.value
    {
        report(
            "remote_read",
            format!(
                "reads from the other socket are {}, which is more than from the device's own socket ({})",
                remote.value, read.value
            ),
            "see `read`",
        );
    }
    if !device.interleave.get().is_power_of_two() {
        report(
            "interleave",
            format!(
                "`interleave` is {}, which is not a power of two",
                device.interleave.value
            ),
            "HDM decoders interleave by 256 B, 512 B, 1 KiB, and so on up to 16 KiB",
        );
    }
    check.ranks("ranks", device.ranks.value);
    check.backing(device);
    let controller = &device.controller;
    check.drain("drain_to", *controller.drain_at, *controller.drain_to);
    if let (Some(total), Some(read)) = (&measured.total, &measured.read)
        && total.value < read.value
    {
        report(
            "total",
            format!(
                "reads and writes together are {}, which is less than reads alone ({})",
                total.value, read.value
            ),
            "see `read`",
        );
    }
}

/// Checks a whole storage device.
pub(crate) fn storage(device: &StorageDevice, values: &Values<'_>, mistakes: &Collector<'_>) {
    let check = Check { values, mistakes };
    let report = |key: &str, message: String, help: &str| check.wrong(key, message, Some(help));
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
            "random writes are faster than random reads".into(),
            "see `random_read`; measure `random_write` on a device whose spare blocks are used up",
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
            "its known parts are `sense` and 4 KiB on the `link`",
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
                "{} dies with a read time of {} can make at most {most:.0} reads a second",
                device.dies.value, device.sense.value
            ),
            "see `dies` and `sense`",
        );
    }
}

/// Whether a cache divides into whole lines over its slices and ways.
fn divides(size: Bytes, slices: u32, ways: u32) -> bool {
    let places = u64::from(slices) * u64::from(ways) * LINE_BYTES;
    size.get() > 0 && size.get().is_multiple_of(places.max(1))
}
