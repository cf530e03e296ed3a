//! Every parameter of a platform as a row: for people, and hashed into the digest.

use schemars::JsonSchema;
use serde::Serialize;

use super::scalar::{Parameter, Scalar};
use super::schema::{FileKind, Key};
use super::{
    Attached, Definition, Device, Host, Place, Platform, Provenance, Sourced, StorageDevice,
};

/// One parameter with its value and where that comes from.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ParameterRow {
    /// The tier or part it belongs to: the host's name, or `cxl0: cxl-a`.
    pub part: String,
    /// The dotted key, as in the file.
    pub key: String,
    /// The value with its unit.
    pub value: String,
    /// What the key means.
    pub meaning: String,
    /// Where the value comes from.
    pub provenance: Provenance,
    /// The bare value, for the digest.
    #[serde(skip)]
    scalar: Scalar,
}

impl ParameterRow {
    /// Whether the value has no public source.
    pub fn is_assumed(&self) -> bool {
        matches!(self.provenance, Provenance::Assumed { .. })
    }
}

/// Collects rows under one part.
struct Rows {
    kind: FileKind,
    part: String,
    rows: Vec<ParameterRow>,
}

impl Rows {
    fn add<T: Parameter>(&mut self, key: &str, sourced: &Sourced<T>) {
        let scalar = sourced.value.to_scalar();
        self.rows.push(ParameterRow {
            part: self.part.clone(),
            key: key.to_string(),
            value: T::KIND.show(&scalar),
            meaning: self.kind.key(key).map_or("", |k: &Key| k.meaning).into(),
            provenance: sourced.provenance.clone(),
            scalar,
        });
    }
}

impl Host {
    /// Its parameters in the order of the reference.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        let mut r = Rows {
            kind: FileKind::Host,
            part: self.name.clone(),
            rows: Vec::new(),
        };
        r.add("sockets", &self.sockets);
        let core = &self.core;
        r.add("core.microarchitecture", &core.microarchitecture);
        r.add("core.count", &core.count);
        r.add("core.clock", &core.clock);
        r.add("core.reorder_buffer", &core.reorder_buffer);
        r.add("core.scheduler", &core.scheduler);
        r.add("core.integer_registers", &core.integer_registers);
        r.add("core.vector_registers", &core.vector_registers);
        r.add("core.store_buffer", &core.store_buffer);
        r.add("core.load_buffer", &core.load_buffer);
        r.add("core.line_fill_buffers", &core.line_fill_buffers);
        r.add("core.super_queue", &core.super_queue);
        r.add("core.load_peak", &core.load_peak);
        r.add("core.store_peak", &core.store_peak);
        r.add("core.nt_store_hold", &core.nt_store_hold);
        r.add("core.movdir64b_share", &core.movdir64b_share);
        r.add("core.mispredict", &core.mispredict);
        r.add("tlb.entries", &self.tlb.entries);
        r.add("tlb.page", &self.tlb.page);
        r.add("tlb.walk", &self.tlb.walk);
        r.add("tlb.fault", &self.tlb.fault);
        r.add("prefetch.l1_lines", &self.prefetch.l1_lines);
        r.add("prefetch.l2_lines", &self.prefetch.l2_lines);
        r.add("prefetch.training", &self.prefetch.training);
        r.add("prefetch.l2_degree", &self.prefetch.l2_degree);
        r.add("prefetch.l2_outstanding", &self.prefetch.l2_outstanding);
        r.add("prefetch.late_level", &self.prefetch.late_level);
        r.add("allocation.step", &self.allocation.step);
        r.add("allocation.tenth", &self.allocation.tenth);
        r.add("allocation.half", &self.allocation.half);
        r.add("l1.size", &self.l1.size);
        r.add("l1.ways", &self.l1.ways);
        r.add("l1.latency", &self.l1.latency);
        r.add("l2.size", &self.l2.size);
        r.add("l2.ways", &self.l2.ways);
        r.add("l2.latency", &self.l2.latency);
        r.add("llc.size", &self.llc.size);
        r.add("llc.ways", &self.llc.ways);
        r.add("llc.latency", &self.llc.latency);
        r.add("llc.slices", &self.llc.slices);
        r.add("uncore.clock", &self.uncore.clock);
        r.add("uncore.hop", &self.uncore.hop);
        r.add("uncore.tor", &self.uncore.tor);
        r.add("uncore.irq", &self.uncore.irq);
        r.add("uncore.flushed_line", &self.uncore.flushed_line);
        r.add("uncore.directory_write", &self.uncore.directory_write);
        r.add("uncore.clusters", &self.uncore.clusters);
        if let Some(complexes) = &self.uncore.complexes {
            r.add("uncore.complexes", &complexes.count);
            r.add("uncore.complex_read", &complexes.read);
            r.add("uncore.complex_write", &complexes.write);
            r.add("uncore.complex_crossing", &complexes.crossing);
        }
        let dsa = &self.accelerator;
        r.add("dsa.devices", &dsa.devices);
        r.add("dsa.work_queue", &dsa.work_queue);
        r.add("dsa.read_buffers", &dsa.read_buffers);
        r.add("dsa.peak", &dsa.peak);
        r.add("dsa.describe", &dsa.describe);
        r.add("dsa.submit", &dsa.submit);
        r.add("dsa.portal", &dsa.portal);
        r.add("dsa.decode", &dsa.decode);
        let io = &self.io;
        r.add("io.ways", &io.ways);
        r.add("io.write_buffer", &io.write_buffer);
        r.add("io.read_buffer", &io.read_buffer);
        r.add("io.submit", &io.submit);
        r.add("io.complete", &io.complete);
        r.add("io.interrupt", &io.interrupt);
        r.add("io.doorbell", &io.doorbell);
        r.add("io.lines", &io.lines);
        r.add("dram.media", &self.dram.media);
        r.add("dram.channels", &self.dram.channels);
        r.add("dram.ranks", &self.dram.ranks);
        r.add("dram.capacity", &self.dram.capacity);
        r.add("dram.read_queue", &self.dram.read_queue);
        r.add("dram.write_queue", &self.dram.write_queue);
        r.add("dram.idle", &self.dram.measured.idle);
        r.add("dram.read", &self.dram.measured.read);
        r.add("dram.nt_write", &self.dram.measured.nt_write);
        if let Some(remote) = &self.remote {
            r.add("remote.idle", &remote.idle);
            r.add("remote.read", &remote.read);
            if let Some(narrow) = &remote.narrow {
                r.add("remote.channels", &narrow.channels);
                r.add("remote.link", &narrow.link);
            }
        }
        let switch = &self.switch;
        r.add("switch.hop", &switch.hop);
        r.add("switch.lanes", &switch.upstream.lanes);
        r.add("switch.rate", &switch.upstream.rate);
        r.add("switch.efficiency", &switch.upstream.efficiency);
        r.rows
    }
}

impl Device {
    /// Its parameters in the order of the reference.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        self.parameters_of(self.name.clone())
    }

    fn parameters_of(&self, part: String) -> Vec<ParameterRow> {
        let mut r = Rows {
            kind: FileKind::Device,
            part,
            rows: Vec::new(),
        };
        r.add("controller", &self.controller.kind);
        r.add("lanes", &self.link.lanes);
        r.add("rate", &self.link.rate);
        r.add("efficiency", &self.link.efficiency);
        r.add("queue", &self.controller.queue);
        r.add("write_buffer", &self.controller.write_buffer);
        r.add("reorder_window", &self.controller.reorder_window);
        r.add("media", &self.media);
        r.add("channels", &self.channels);
        r.add("ranks", &self.ranks);
        r.add("capacity", &self.capacity);
        r.add("interleave", &self.interleave);
        let measured = &self.measured;
        r.add("idle", &measured.idle);
        if let Some(read) = &measured.read {
            r.add("read", read);
        }
        r.add("read_limit", &measured.read_limit);
        if let Some(idle) = &measured.remote_idle {
            r.add("remote_idle", idle);
        }
        r.add("remote_hop", &measured.remote_hop);
        r.add("remote_read", &measured.remote_read);
        if let Some(tail) = &self.controller.tail {
            r.add("tail.share", &tail.share);
            r.add("tail.mean", &tail.mean);
        }
        r.rows
    }
}

impl StorageDevice {
    /// Its parameters in the order of the reference.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        self.parameters_of(self.name.clone())
    }

    fn parameters_of(&self, part: String) -> Vec<ParameterRow> {
        let mut r = Rows {
            kind: FileKind::Storage,
            part,
            rows: Vec::new(),
        };
        r.add("link", &self.link);
        r.add("capacity", &self.capacity);
        r.add("commands", &self.commands);
        r.add("dies", &self.dies);
        r.add("sense", &self.sense);
        let measured = &self.measured;
        r.add("read_idle", &measured.read_idle);
        r.add("write_idle", &measured.write_idle);
        r.add("random_read", &measured.random_read);
        r.add("random_write", &measured.random_write);
        r.add("sequential_read", &measured.sequential_read);
        r.add("sequential_write", &measured.sequential_write);
        r.rows
    }
}

impl Definition {
    /// Its parameters in the order of the reference.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        match self {
            Definition::Host(host) => host.parameters(),
            Definition::Device(device) => device.parameters(),
            Definition::Storage(device) => device.parameters(),
        }
    }
}

impl Attached {
    /// The parameters that matter where the device hangs, in the order of the reference.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        self.parameters_of(self.device.name.clone())
    }

    fn parameters_of(&self, part: String) -> Vec<ParameterRow> {
        let measured = self.device.measured.remote_idle.is_some();
        let mut rows = self.device.parameters_of(part);
        rows.retain(|row| match row.key.as_str() {
            "interleave" => self.ways > 1,
            "remote_hop" => self.is_remote() && !measured,
            "remote_idle" | "remote_read" => self.is_remote(),
            _ => true,
        });
        rows
    }

    /// What stands behind the device's name in an expression.
    fn places(&self) -> &'static str {
        match (self.ways > 1, self.place) {
            (false, Place::Local) => "",
            (false, Place::Remote) => "@remote",
            (false, Place::Switch) => "@switch",
            (true, Place::Local) => "@interleaved",
            (true, Place::Remote) => "@interleaved@remote",
            (true, Place::Switch) => "@interleaved@switch",
        }
    }
}

impl Platform {
    /// The host's parameters that matter for what hangs on it, in the order of the reference.
    pub fn host_parameters(&self) -> Vec<ParameterRow> {
        let switched = self.devices.iter().any(|d| d.place == Place::Switch);
        let mut rows = self.host.parameters();
        rows.retain(|row| switched || !row.key.starts_with("switch."));
        rows.retain(|row| !self.storage.is_empty() || !row.key.starts_with("io."));
        rows
    }

    /// Every parameter that matters, the host's first, with its value and provenance.
    pub fn describe(&self) -> Vec<ParameterRow> {
        let mut rows = self.host_parameters();
        for (n, attached) in self.devices.iter().enumerate() {
            let count = match attached.ways {
                1 => String::new(),
                ways => format!("{ways}x"),
            };
            let (name, places) = (&attached.device.name, attached.places());
            let part = format!("cxl{n}: {count}{name}{places}");
            rows.extend(attached.parameters_of(part));
        }
        for (n, device) in self.storage.iter().enumerate() {
            rows.extend(device.parameters_of(format!("ssd{n}: {}", device.name)));
        }
        rows
    }

    /// A hash over every value that matters, so that records tell whether they came from the same
    /// machine.
    ///
    /// Names, summaries and sources do not count: they change no result. Sixteen hexadecimal
    /// digits (64-bit FNV-1a).
    pub fn digest(&self) -> String {
        let mut hash = Fnv1a::new();
        hash.add_rows(&self.host_parameters());
        for attached in &self.devices {
            hash.add_rows(&attached.parameters());
            hash.add(match attached.place {
                Place::Local => b"@local",
                Place::Remote => b"@remote",
                Place::Switch => b"@switch",
            });
            if attached.ways > 1 {
                hash.add(&attached.ways.to_le_bytes());
            }
        }
        for device in &self.storage {
            hash.add_rows(&device.parameters());
            hash.add(b"@storage");
        }
        format!("{:016x}", hash.0)
    }
}

/// The 64-bit FNV-1a hash (Fowler, Noll, Vo): stable across versions and machines, unlike the
/// standard library's.
struct Fnv1a(u64);

impl Fnv1a {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add_rows(&mut self, rows: &[ParameterRow]) {
        for row in rows {
            self.add(row.key.as_bytes());
            match &row.scalar {
                Scalar::Number(n) => self.add(&n.to_bits().to_le_bytes()),
                Scalar::Word(word) => self.add(word.as_bytes()),
            }
        }
    }

    /// A part and its end, so that parts never run together.
    fn add(&mut self, part: &[u8]) {
        self.add_bytes(part);
        self.add_bytes(&(part.len() as u64).to_le_bytes());
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
