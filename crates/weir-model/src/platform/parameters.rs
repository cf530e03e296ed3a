//! Every parameter of a platform as a row: for people, and hashed into the digest.

use super::group::{ParameterRow, Rows};
use super::key::{FileKind, When};
use super::scalar::Scalar;
use super::{Attached, Definition, Device, Host, Place, Platform, Ports, StorageDevice};

impl Host {
    /// Its parameters in the order of the reference.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        Rows::of(FileKind::Host.keys(), self.name.clone(), self)
    }
}

impl Device {
    /// Its parameters in the order of the reference.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        Rows::of(FileKind::Device.keys(), self.name.clone(), self)
    }
}

impl StorageDevice {
    /// Its parameters in the order of the reference.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        Rows::of(FileKind::Storage.keys(), self.name.clone(), self)
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
    /// The parameters that matter for how the device is attached, in the order of the reference.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        self.parameters_of(self.device.name.clone())
    }

    fn parameters_of(&self, part: String) -> Vec<ParameterRow> {
        let is_measured = self.device.measured.remote_idle.is_some();
        let mut rows = Rows::of(FileKind::Device.keys(), part, &self.device);
        rows.retain(|row| match row.when {
            When::Interleaved => self.ways > 1,
            When::Remote => self.is_remote(),
            When::RemoteUnmeasured => self.is_remote() && !is_measured,
            _ => true,
        });
        rows
    }

    /// The suffix of the device's name in an expression.
    fn places(&self) -> String {
        let interleaved = if self.ways > 1 { "@interleaved" } else { "" };
        let place = match (self.place, self.ports) {
            (Place::Local, _) => "",
            (Place::Remote, _) => "@remote",
            (Place::Switch, Ports::MultiHeaded) => "@switch",
            (Place::Switch, Ports::MultiLogical) => "@switch@logical",
        };
        format!("{interleaved}{place}")
    }
}

impl Platform {
    /// The host's parameters that matter with these devices, in the order of the reference.
    pub fn host_parameters(&self) -> Vec<ParameterRow> {
        let switched = self.devices.iter().any(|d| d.place == Place::Switch);
        let mut rows = self.host.parameters();
        rows.retain(|row| match row.when {
            When::Switch => switched,
            When::Storage => !self.storage.is_empty(),
            _ => true,
        });
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
            let part = format!("ssd{n}: {}", device.name);
            rows.extend(Rows::of(FileKind::Storage.keys(), part, device));
        }
        rows
    }

    /// A hash over every value that matters, so that records show whether they came from the same
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
            if attached.ports == Ports::MultiLogical {
                hash.add(b"@logical");
            }
            if attached.ways > 1 {
                hash.add(&attached.ways.to_le_bytes());
            }
        }
        for device in &self.storage {
            hash.add_rows(&device.parameters());
            hash.add(b"@storage");
        }
        if self.hosts > 1 {
            hash.add(b"@hosts");
            hash.add(&self.hosts.to_le_bytes());
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
