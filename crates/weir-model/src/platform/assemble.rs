//! From a file and the defaults below it to a [`Host`], a [`Device`] or a [`StorageDevice`].

use std::collections::BTreeMap;
use std::ops::Range;

use super::entry::known;
use super::scalar::Parameter;
use super::schema::{FileKind, Need};
use super::source_file::SourceFile;
use super::{
    Accelerator, BandwidthAllocation, Cache, Complexes, Controller, ControllerKind, Core, Device,
    DeviceIo, DeviceMeasured, Dram, DramMeasured, Host, LastLevelCache, Link, Media, NarrowRemote,
    Prefetch, Provenance, ReadLimit, RemoteSocket, Sourced, StorageDevice, StorageMeasured, Switch,
    Tail, Tlb, Uncore, check,
};
use crate::diagnostic::Collector;
use crate::units::GbPerSec;

/// What a platform file describes, complete with its defaults.
#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    /// A server.
    Host(Box<Host>),
    /// A CXL device.
    Device(Box<Device>),
    /// A storage device.
    Storage(Box<StorageDevice>),
}

impl Definition {
    /// The name in expressions.
    pub fn name(&self) -> &str {
        match self {
            Definition::Host(host) => &host.name,
            Definition::Device(device) => &device.name,
            Definition::Storage(device) => &device.name,
        }
    }

    /// One line for lists.
    pub fn summary(&self) -> &str {
        match self {
            Definition::Host(host) => &host.summary,
            Definition::Device(device) => &device.summary,
            Definition::Storage(device) => &device.summary,
        }
    }

    /// What stands behind `kind` in its file.
    pub fn kind(&self) -> FileKind {
        match self {
            Definition::Host(_) => FileKind::Host,
            Definition::Device(_) => FileKind::Device,
            Definition::Storage(_) => FileKind::Storage,
        }
    }
}

/// What files leave out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defaults {
    /// By microarchitecture.
    pub cores: BTreeMap<String, SourceFile>,
    /// Of every host.
    pub host: Option<SourceFile>,
    /// By kind of controller.
    pub controllers: BTreeMap<String, SourceFile>,
    /// Of every device.
    pub device: Option<SourceFile>,
}

/// The values of a file with defaults below, first one wins.
pub(crate) struct Values<'f> {
    file: &'f SourceFile,
    layers: Vec<&'f SourceFile>,
}

impl<'f> Values<'f> {
    pub(crate) fn get<T: Parameter>(&self, path: &str) -> Option<Sourced<T>> {
        let entry = self.layers.iter().find_map(|l| l.entries.get(path))?;
        Some(Sourced {
            value: T::from_scalar(&entry.sourced.value)?,
            provenance: entry.sourced.provenance.clone(),
        })
    }

    /// Where the file itself gives this key; else where it says what it is.
    pub(crate) fn span(&self, path: &str) -> Range<usize> {
        self.file
            .entries
            .get(path)
            .map_or_else(|| self.file.head.clone(), |entry| entry.span.clone())
    }

    /// Whether the file itself gives this key, readable or not.
    pub(crate) fn is_given(&self, path: &str) -> bool {
        self.file.entries.contains_key(path) || self.file.unreadable.contains(&path)
    }
}

/// Puts a host or device together. `None` where a mistake was reported, or for files of defaults.
pub(crate) fn assemble(
    file: &SourceFile,
    name: &str,
    defaults: &Defaults,
    mistakes: &mut Collector<'_>,
) -> Option<Definition> {
    let mut layers = vec![file];
    match file.kind {
        FileKind::Host => {
            layers.extend(core_defaults(file, defaults, mistakes));
            layers.extend(&defaults.host);
        }
        FileKind::Device => {
            layers.extend(controller_defaults(file, defaults));
            layers.extend(&defaults.device);
        }
        FileKind::Storage => {}
        FileKind::HostDefaults | FileKind::DeviceDefaults => return None,
    }
    let values = Values { file, layers };
    if file.is_whole {
        report_missing(&values, mistakes);
    }
    match file.kind {
        FileKind::Host => {
            let host = host(&values, name)?;
            check::host(&host, &values, mistakes);
            Some(Definition::Host(Box::new(host)))
        }
        FileKind::Storage => {
            let device = storage(&values, name)?;
            check::storage(&device, &values, mistakes);
            Some(Definition::Storage(Box::new(device)))
        }
        _ => {
            let device = device(&values, name)?;
            check::device(&device, &values, mistakes);
            Some(Definition::Device(Box::new(device)))
        }
    }
}

fn core_defaults<'d>(
    file: &SourceFile,
    defaults: &'d Defaults,
    mistakes: &mut Collector<'_>,
) -> Option<&'d SourceFile> {
    let entry = file.entries.get("core.microarchitecture")?;
    let name = String::from_scalar(&entry.sourced.value)?;
    let found = defaults.cores.get(&name);
    if found.is_none() {
        let names: Vec<&str> = defaults.cores.keys().map(String::as_str).collect();
        mistakes.report(
            entry.span.clone(),
            Some("core.microarchitecture"),
            format!(
                "there are no defaults for the microarchitecture `{}`",
                crate::diagnostic::quote(&name)
            ),
            Some(known(&name, &names)),
        );
    }
    found
}

fn controller_defaults<'d>(file: &SourceFile, defaults: &'d Defaults) -> Option<&'d SourceFile> {
    let kind = [Some(file), defaults.device.as_ref()]
        .into_iter()
        .flatten()
        .find_map(|layer| layer.entries.get("controller"))
        .and_then(|entry| ControllerKind::from_scalar(&entry.sourced.value))?;
    defaults.controllers.get(kind.name())
}

fn report_missing(values: &Values<'_>, mistakes: &mut Collector<'_>) {
    let file = values.file;
    // With an unknown microarchitecture everything is missing; one mistake is enough.
    let whole_defaults = file.kind != FileKind::Host || values.layers.len() > 2;
    for key in file.kind.keys() {
        let wanted = match key.need {
            Need::Required => true,
            Need::Defaulted => whole_defaults,
            Need::Optional | Need::Derived => false,
        };
        let there = values
            .layers
            .iter()
            .any(|l| l.entries.contains_key(key.path));
        if !wanted || there || file.unreadable.contains(&key.path) {
            continue;
        }
        let (section, last) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        let place = match section {
            "" => String::new(),
            section => format!(" under `[{section}]`"),
        };
        mistakes.report(
            file.head.clone(),
            Some(key.path),
            format!("missing key `{}`", key.path),
            Some(format!(
                "add `{last} = {}`{place}: {}",
                key.example, key.meaning
            )),
        );
    }
}

fn host(v: &Values<'_>, name: &str) -> Option<Host> {
    let dram = dram(v)?;
    Some(Host {
        name: name.to_string(),
        summary: v.file.summary.clone(),
        sockets: v.get("sockets")?,
        default_devices: v.file.default_devices.clone(),
        log: v.file.log.clone(),
        core: Core {
            microarchitecture: v.get("core.microarchitecture")?,
            count: v.get("core.count")?,
            clock: v.get("core.clock")?,
            reorder_buffer: v.get("core.reorder_buffer")?,
            scheduler: v.get("core.scheduler")?,
            integer_registers: v.get("core.integer_registers")?,
            vector_registers: v.get("core.vector_registers")?,
            store_buffer: v.get("core.store_buffer")?,
            load_buffer: v.get("core.load_buffer")?,
            line_fill_buffers: v.get("core.line_fill_buffers")?,
            super_queue: v.get("core.super_queue")?,
            load_peak: v.get("core.load_peak")?,
            store_peak: v.get("core.store_peak")?,
            nt_store_hold: v.get("core.nt_store_hold")?,
            movdir64b_share: v.get("core.movdir64b_share")?,
            mispredict: v.get("core.mispredict")?,
        },
        tlb: Tlb {
            entries: v.get("tlb.entries")?,
            page: v.get("tlb.page")?,
            walk: v.get("tlb.walk")?,
            fault: v.get("tlb.fault")?,
        },
        prefetch: Prefetch {
            l1_lines: v.get("prefetch.l1_lines")?,
            l2_lines: v.get("prefetch.l2_lines")?,
            training: v.get("prefetch.training")?,
            l2_degree: v.get("prefetch.l2_degree")?,
            l2_outstanding: v.get("prefetch.l2_outstanding")?,
            late_level: v.get("prefetch.late_level")?,
        },
        allocation: BandwidthAllocation {
            step: v.get("allocation.step")?,
            tenth: v.get("allocation.tenth")?,
            half: v.get("allocation.half")?,
        },
        l1: Cache {
            size: v.get("l1.size")?,
            ways: v.get("l1.ways")?,
            latency: v.get("l1.latency")?,
        },
        l2: Cache {
            size: v.get("l2.size")?,
            ways: v.get("l2.ways")?,
            latency: v.get("l2.latency")?,
        },
        llc: LastLevelCache {
            size: v.get("llc.size")?,
            ways: v.get("llc.ways")?,
            latency: v.get("llc.latency")?,
            slices: v.get("llc.slices")?,
        },
        uncore: Uncore {
            clock: v.get("uncore.clock")?,
            hop: v.get("uncore.hop")?,
            tor: v.get("uncore.tor")?,
            irq: v.get("uncore.irq")?,
            flushed_line: v.get("uncore.flushed_line")?,
            directory_write: v.get("uncore.directory_write")?,
            clusters: v.get("uncore.clusters")?,
            complexes: complexes(v),
        },
        accelerator: Accelerator {
            devices: v.get("dsa.devices")?,
            work_queue: v.get("dsa.work_queue")?,
            read_buffers: v.get("dsa.read_buffers")?,
            peak: v.get("dsa.peak")?,
            describe: v.get("dsa.describe")?,
            submit: v.get("dsa.submit")?,
            portal: v.get("dsa.portal")?,
            decode: v.get("dsa.decode")?,
        },
        io: DeviceIo {
            ways: v.get("io.ways")?,
            write_buffer: v.get("io.write_buffer")?,
            read_buffer: v.get("io.read_buffer")?,
            submit: v.get("io.submit")?,
            complete: v.get("io.complete")?,
            interrupt: v.get("io.interrupt")?,
            doorbell: v.get("io.doorbell")?,
            lines: v.get("io.lines")?,
        },
        dram,
        remote: v
            .get("remote.idle")
            .zip(v.get("remote.read"))
            .map(|(idle, read)| RemoteSocket {
                idle,
                read,
                narrow: v
                    .get("remote.channels")
                    .zip(v.get("remote.link"))
                    .map(|(channels, link)| NarrowRemote { channels, link }),
            }),
        switch: Switch {
            hop: v.get("switch.hop")?,
            upstream: Link {
                lanes: v.get("switch.lanes")?,
                rate: v.get("switch.rate")?,
                efficiency: v.get("switch.efficiency")?,
            },
        },
    })
}

fn complexes(v: &Values<'_>) -> Option<Complexes> {
    Some(Complexes {
        count: v.get("uncore.complexes")?,
        read: v.get("uncore.complex_read")?,
        write: v.get("uncore.complex_write")?,
        crossing: v.get("uncore.complex_crossing")?,
    })
}

fn dram(v: &Values<'_>) -> Option<Dram> {
    let media: Sourced<Media> = v.get("dram.media")?;
    let channels: Sourced<u32> = v.get("dram.channels")?;
    let read: Sourced<GbPerSec> = v.get("dram.read")?;
    let peak = media.timing().channel_peak() * f64::from(channels.value);
    let nt_write = v
        .get("dram.nt_write")
        .unwrap_or_else(|| typical_nt_write(peak, read.value));
    Some(Dram {
        media,
        channels,
        ranks: v.get("dram.ranks")?,
        capacity: v.get("dram.capacity")?,
        read_queue: v.get("dram.read_queue")?,
        write_queue: v.get("dram.write_queue")?,
        measured: DramMeasured {
            idle: v.get("dram.idle")?,
            read,
            nt_write,
        },
    })
}

/// Non-temporal stores reach 55 to 78 % of a DDR channel's peak on the servers that publish it
/// (MEMO §4.3.1 prints 55 %), and never more than reads.
fn typical_nt_write(peak: GbPerSec, read: GbPerSec) -> Sourced<GbPerSec> {
    Sourced {
        value: (peak * 0.72).min(read),
        provenance: Provenance::Assumed {
            low: format!("{:.1}", (peak * 0.55).min(read)),
            high: format!("{:.1}", (peak * 0.78).min(read)),
            why: "72 % of the channels' peak, at most the reads; servers that publish it reach 55 to 78 %"
                .into(),
        },
    }
}

fn device(v: &Values<'_>, name: &str) -> Option<Device> {
    let read: Option<Sourced<GbPerSec>> = v.get("read");
    let read_limit = if read.is_none() && !v.is_given("read_limit") {
        Sourced {
            value: ReadLimit::Media,
            provenance: Provenance::Assumed {
                low: ReadLimit::Link.name().into(),
                high: ReadLimit::Media.name().into(),
                why: "without a measured peak no parameter is set from it".into(),
            },
        }
    } else {
        v.get("read_limit")?
    };
    let mut remote_read = v.get("remote_read")?;
    if let (Some(read), false) = (&read, v.is_given("remote_read")) {
        remote_read = at_most(remote_read, read.value);
    }
    Some(Device {
        name: name.to_string(),
        summary: v.file.summary.clone(),
        log: v.file.log.clone(),
        link: Link {
            lanes: v.get("lanes")?,
            rate: v.get("rate")?,
            efficiency: v.get("efficiency")?,
        },
        controller: Controller {
            kind: v.get("controller")?,
            queue: v.get("queue")?,
            write_buffer: v.get("write_buffer")?,
            reorder_window: v.get("reorder_window")?,
            tail: v
                .get("tail.share")
                .zip(v.get("tail.mean"))
                .map(|(share, mean)| Tail { share, mean }),
        },
        media: v.get("media")?,
        channels: v.get("channels")?,
        ranks: v.get("ranks")?,
        capacity: v.get("capacity")?,
        interleave: v.get("interleave")?,
        measured: DeviceMeasured {
            idle: v.get("idle")?,
            read,
            read_limit,
            remote_idle: v.get("remote_idle"),
            remote_hop: v.get("remote_hop")?,
            remote_read,
        },
    })
}

fn storage(v: &Values<'_>, name: &str) -> Option<StorageDevice> {
    Some(StorageDevice {
        name: name.to_string(),
        summary: v.file.summary.clone(),
        link: v.get("link")?,
        capacity: v.get("capacity")?,
        commands: v.get("commands")?,
        dies: v.get("dies")?,
        sense: v.get("sense")?,
        measured: StorageMeasured {
            read_idle: v.get("read_idle")?,
            write_idle: v.get("write_idle")?,
            random_read: v.get("random_read")?,
            random_write: v.get("random_write")?,
            sequential_read: v.get("sequential_read")?,
            sequential_write: v.get("sequential_write")?,
        },
    })
}

/// A default and its range, for a device that is slower than those it was taken from.
fn at_most(default: Sourced<GbPerSec>, most: GbPerSec) -> Sourced<GbPerSec> {
    let end = |text: String| match text.parse::<GbPerSec>() {
        Ok(end) if end > most => most.to_string(),
        _ => text,
    };
    Sourced {
        value: default.value.min(most),
        provenance: match default.provenance {
            Provenance::Assumed { low, high, why } => Provenance::Assumed {
                low: end(low),
                high: end(high),
                why,
            },
            source => source,
        },
    }
}
