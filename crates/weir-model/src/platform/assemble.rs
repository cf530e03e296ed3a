//! From a file and the defaults below it to a [`Host`], a [`Device`] or a [`StorageDevice`].

use std::collections::BTreeMap;

use super::check;
use super::definition::Definition;
use super::group::Group;
use super::key::{FileKind, Need};
use super::scalar::Parameter;
use super::source_file::{SourceFile, Values};
use super::{
    ControllerKind, Device, Host, Media, Medium, Provenance, ReadLimit, Sourced, StorageDevice,
};
use crate::diagnostic::{Collector, quote};
use crate::toml::known;
use crate::units::GbPerSec;

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

impl Values<'_> {
    /// Peak non-temporal stores that are not given: they reach 55 to 78 % of a DDR channel's peak on the
    /// servers that publish them (MEMO §4.3.1 prints 55 %), and never more than reads.
    fn derive_nt_write(&mut self) -> Option<()> {
        if self.get::<GbPerSec>("dram.nt_write").is_some() {
            return None;
        }
        let media: Sourced<Media> = self.get("dram.media")?;
        let channels: Sourced<u32> = self.get("dram.channels")?;
        let read = self.get::<GbPerSec>("dram.read")?.value;
        let peak = media.timing().channel_peak() * f64::from(channels.value);
        let provenance = Provenance::Assumed {
            low: format!("{:.1}", (peak * 0.55).min(read)),
            high: format!("{:.1}", (peak * 0.78).min(read)),
            why: "72 % of the channels' peak, at most the reads; servers that publish it reach 55 to 78 %"
                .into(),
        };
        let value = (peak * 0.72).min(read).to_scalar();
        self.derive("dram.nt_write", value, provenance);
        Some(())
    }

    /// What a device's peak limits: nothing where no peak is given.
    fn derive_read_limit(&mut self) {
        if self.get::<GbPerSec>("read").is_none() && !self.is_given("read_limit") {
            let provenance = Provenance::Assumed {
                low: ReadLimit::Link.name().into(),
                high: ReadLimit::Media.name().into(),
                why: "without a measured peak no parameter is set from it".into(),
            };
            self.derive("read_limit", ReadLimit::Media.to_scalar(), provenance);
        }
    }

    /// The default of reads from the other socket and its range, for a device that is slower than those it
    /// was taken from.
    fn derive_remote_read(&mut self) -> Option<()> {
        let most = self.get::<GbPerSec>("read")?.value;
        if self.is_given("remote_read") {
            return None;
        }
        let default: Sourced<GbPerSec> = self.get("remote_read")?;
        let end = |text: String| match text.parse::<GbPerSec>() {
            Ok(end) if end > most => most.to_string(),
            _ => text,
        };
        let provenance = match default.provenance {
            Provenance::Assumed { low, high, why } => Provenance::Assumed {
                low: end(low),
                high: end(high),
                why,
            },
            source => source,
        };
        let value = default.value.min(most).to_scalar();
        self.derive("remote_read", value, provenance);
        Some(())
    }

    /// What is known of the medium behind a device's DRAM, where the file leaves it out.
    fn derive_medium(&mut self) {
        if let Some(medium) = self.get::<Medium>("backing.medium") {
            for (key, value, provenance) in medium.value.values() {
                if !self.is_given(key) {
                    self.derive(key, value, provenance);
                }
            }
        }
    }

    /// Reports the keys that neither the file nor its defaults have.
    fn report_missing(&self, mistakes: &Collector<'_>) {
        let file = self.file;
        // With an unknown microarchitecture everything is missing; one mistake is enough.
        let whole_defaults = file.kind != FileKind::Host || self.layers.len() > 2;
        for key in file.kind.keys() {
            let wanted = match key.need {
                Need::Required => true,
                Need::Defaulted => whole_defaults,
                Need::Optional | Need::Derived => false,
            };
            let there = self.layers.iter().any(|l| l.entries.contains_key(key.path));
            if !wanted || there || file.unreadable.contains(&key.path) {
                continue;
            }
            let place = match key.path.rsplit_once('.') {
                Some((section, _)) => format!(" under `[{section}]`"),
                None => String::new(),
            };
            let (last, example, meaning) = (key.last(), key.written_example(), key.meaning);
            mistakes.report(
                file.head.clone(),
                Some(key.path),
                format!("missing key `{}`", key.path),
                Some(format!("add `{last} = {example}`{place}: {meaning}")),
            );
        }
    }
}

/// Puts a host or device together. `None` where a mistake was reported, or for files of defaults.
pub(crate) fn assemble(
    file: &SourceFile,
    defaults: &Defaults,
    mistakes: &Collector<'_>,
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
    let derived = BTreeMap::new();
    let mut values = Values {
        layers,
        file,
        derived,
    };
    if file.is_whole {
        values.report_missing(mistakes);
    }
    match file.kind {
        FileKind::Host => {
            values.derive_nt_write();
            let host = Host::take(&values)?;
            check::host(&host, &values, mistakes);
            Some(Definition::Host(Box::new(host)))
        }
        FileKind::Storage => {
            let device = StorageDevice::take(&values)?;
            check::storage(&device, &values, mistakes);
            Some(Definition::Storage(Box::new(device)))
        }
        _ => {
            values.derive_read_limit();
            values.derive_remote_read();
            values.derive_medium();
            let device = Device::take(&values)?;
            check::device(&device, &values, mistakes);
            Some(Definition::Device(Box::new(device)))
        }
    }
}

fn core_defaults<'d>(
    file: &SourceFile,
    defaults: &'d Defaults,
    mistakes: &Collector<'_>,
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
                quote(&name)
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
