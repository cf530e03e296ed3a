//! The files of a machine while they are fitted.

use weir_model::platform::{Draft, FileKind, Host, Library, Mistakes, Platform, Provenance};
use weir_model::topology::{Tier, TierKind, TierName, Topology};
use weir_model::units::Bytes;

use crate::LabError;

/// A host and its devices as files that are not written yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Twin {
    /// The host.
    pub host: Draft,
    /// Devices with their tiers.
    pub devices: Vec<(TierName, Draft)>,
}

impl Twin {
    /// The files of a platform that is known, under new names.
    ///
    /// # Errors
    /// The platform has what these files cannot say: devices in places.
    pub fn based_on(library: &Library, base: &Platform, name: &str) -> Result<Self, LabError> {
        let taken = |draft: Option<Draft>, of: &str| {
            draft.ok_or_else(|| LabError::Nothing(format!("the base has no file `{of}`")))
        };
        let mut host = taken(Draft::of(library, &base.host.name), &base.host.name)?;
        host.name = name.into();
        host.summary = format!("fitted; what is not measured is that of {}", base.name);
        let mut twin = Self {
            host,
            devices: Vec::new(),
        };
        for (n, attached) in base.devices.iter().enumerate() {
            if attached.is_remote()
                || attached.ways > 1
                || attached.place != weir_model::platform::Place::Local
            {
                return Err(LabError::Nothing(format!(
                    "`{}` has devices that are remote, interleaved or behind a switch, which a fit \
                     does not take; name it with plain ones",
                    base.name
                )));
            }
            let of = &attached.device.name;
            twin.attach(n, taken(Draft::of(library, of), of)?);
        }
        twin.name_devices();
        Ok(twin)
    }

    /// What a machine says of itself: its topology, with the microarchitecture and the modules where their names are
    /// in its words.
    pub fn of_topology(
        library: &Library,
        topology: &Topology,
        from: &str,
        name: &str,
        core: Option<&str>,
    ) -> Self {
        let summary = format!("{}, fitted to {from}", topology.processor);
        let mut twin = Self {
            host: Draft::new(FileKind::Host, name, &summary),
            devices: Vec::new(),
        };
        let says = Provenance::Source(format!("the topology of the machine, {from}"));
        let mut set = |key: &str, value: String| twin.host.set(key, value, says.clone());
        set("sockets", topology.sockets.max(1).to_string());
        let known = library.microarchitectures();
        let found = known
            .into_iter()
            .find(|name| topology.processor.contains(name));
        let core = core.or(found);
        if let Some(core) = core {
            set("core.microarchitecture", core.into());
        }
        set("core.count", topology.cores.len().to_string());
        if let Some(clock) = topology.clock {
            set("core.clock", clock.to_string());
        }
        for level in &topology.caches {
            let (size, ways) = match level.name.as_str() {
                "L1d" => ("l1.size", "l1.ways"),
                "L2" => ("l2.size", "l2.ways"),
                "L3" => ("llc.size", "llc.ways"),
                _ => continue,
            };
            let is_last = level.name == "L3";
            let parts = if is_last {
                parts(topology, level.shared_by)
            } else {
                1
            };
            set(size, whole(Bytes(level.size.get() * u64::from(parts))));
            if let Some(n) = level.ways {
                set(ways, n.to_string());
            }
            if is_last && parts > 1 {
                set("uncore.complexes", parts.to_string());
                set("llc.slices", parts.to_string());
            }
        }
        let last = topology.caches.iter().find(|level| level.name == "L3");
        if let (Some(core), Some(last), None) = (core, last, twin.host.get("uncore.complexes")) {
            slices(&mut twin.host, library, core, last.size, last.ways);
        }
        let tiers = topology.tiers.iter();
        let mut cards = 0;
        for tier in tiers {
            match tier.kind {
                TierKind::Dram => modules(&mut twin.host, "dram.", tier, &says),
                TierKind::Cxl => {
                    let mut card = Draft::new(FileKind::Device, "", &tier.description);
                    modules(&mut card, "", tier, &says);
                    let lanes = tier
                        .description
                        .rsplit_once(" behind x")
                        .map(|(_, lanes)| lanes);
                    if let Some(lanes) = lanes.filter(|l| l.parse::<u32>().is_ok()) {
                        card.set("lanes", lanes, says.clone());
                    }
                    twin.attach(cards, card);
                    cards += 1;
                }
                _ => {}
            }
        }
        twin.name_devices();
        twin
    }

    fn attach(&mut self, n: usize, mut device: Draft) {
        device.name = format!("{}-cxl{n}", self.host.name);
        self.devices.push((TierName::cxl(n), device));
    }

    fn name_devices(&mut self) {
        self.host.default_devices = self.devices.iter().map(|(_, d)| d.name.clone()).collect();
    }

    /// The tiers of its devices.
    pub fn tiers(&self) -> Vec<TierName> {
        self.devices.iter().map(|(tier, _)| tier.clone()).collect()
    }

    /// The host's file, then the devices'.
    pub fn drafts(&self) -> impl Iterator<Item = &Draft> {
        std::iter::once(&self.host).chain(self.devices.iter().map(|(_, device)| device))
    }

    /// The file that has the keys of a tier; the host's where none is named.
    pub fn draft_mut(&mut self, tier: Option<&TierName>) -> Option<&mut Draft> {
        let Some(tier) = tier else {
            return Some(&mut self.host);
        };
        let found = self.devices.iter_mut().find(|(name, _)| name == tier);
        found.map(|(_, device)| device)
    }

    /// Gives a key a value, and returns the name of the file that has it.
    pub fn set(
        &mut self,
        tier: Option<&TierName>,
        key: &str,
        value: &str,
        provenance: Provenance,
    ) -> Option<String> {
        let draft = self.draft_mut(tier)?;
        draft
            .set(key, value, provenance)
            .then(|| draft.name.clone())
    }

    /// Gives a key the value that a user wrote as `KEY=VALUE`, or `cxl0.KEY=VALUE` for a device.
    ///
    /// # Errors
    /// There is no such key.
    pub fn set_given(&mut self, text: &str) -> Result<(), LabError> {
        let wrong = |why: String| LabError::Nothing(format!("--set {text}: {why}"));
        let (path, value) = text
            .split_once('=')
            .ok_or_else(|| wrong("write KEY=VALUE, such as dram.media=ddr5-4800".into()))?;
        let device = path
            .split_once('.')
            .map(|(tier, key)| (TierName::named(tier), key));
        let device = device.filter(|(tier, _)| self.tiers().contains(tier));
        let (tier, key) = match &device {
            Some((tier, key)) => (Some(tier), *key),
            None => (None, path),
        };
        let source = Provenance::Source("given by the user of the fit".into());
        match self.set(tier, key.trim(), value.trim(), source) {
            Some(_) => Ok(()),
            None => Err(wrong(format!(
                "there is no key `{path}`; docs/platforms.md lists all, and those of a device are written \
                 cxl0.KEY"
            ))),
        }
    }

    /// What the files still lack.
    ///
    /// # Errors
    /// A required key has no value.
    pub fn complete(&self) -> Result<(), LabError> {
        let of_device = |draft: &Draft| {
            let found = self.devices.iter().find(|(_, device)| device == draft);
            found.map_or(String::new(), |(tier, _)| format!("{tier}."))
        };
        let lacks: Vec<String> = self
            .drafts()
            .flat_map(|draft| {
                let place = of_device(draft);
                draft.missing().into_iter().map(move |key| {
                    format!(
                        "--set {place}{}={}: {}",
                        key.path,
                        wanted(key.example),
                        key.meaning
                    )
                })
            })
            .collect();
        match lacks.is_empty() {
            true => Ok(()),
            false => Err(LabError::Nothing(format!(
                "neither the figures nor the machine say all that a platform file needs; add\n  {}\nor take \
                 them from a machine that is alike with --base PLATFORM",
                lacks.join("\n  ")
            ))),
        }
    }

    /// The machine that the files describe now.
    ///
    /// # Errors
    /// A value is not possible for its key, or contradicts others.
    pub fn compose(&self, library: &Library) -> Result<Platform, LabError> {
        let mut library = library.clone();
        let failed = |mistakes: Mistakes| {
            LabError::Nothing(format!(
                "the figures give no platform; correct them, or values with --set\n{mistakes}"
            ))
        };
        for draft in self.drafts() {
            library
                .add(&format!("{}.toml", draft.name), &draft.text())
                .map_err(failed)?;
        }
        library
            .compose(&self.host.name)
            .map_err(|error| LabError::Nothing(error.to_string()))
    }

    /// What the host's file describes, with its defaults.
    ///
    /// # Errors
    /// As [`compose`](Self::compose).
    pub fn host(&self, library: &Library) -> Result<Host, LabError> {
        Ok(self.compose(library)?.host)
    }
}

/// What stands for a value: a figure that is only an example would read like a proposal.
fn wanted(example: &str) -> &str {
    match example.rsplit_once(' ').map(|(_, unit)| unit) {
        Some("ns") => "TIME",
        Some("GB/s") => "BANDWIDTH",
        Some("GHz") => "FREQUENCY",
        Some("GiB" | "MiB" | "KiB") => "SIZE",
        _ if example.parse::<f64>().is_ok() => "NUMBER",
        _ => example,
    }
}

/// Last-level caches of a socket.
fn parts(topology: &Topology, shared_by: u32) -> u32 {
    let cores = topology.cores.len() as u32;
    match shared_by {
        0 => 1,
        n => (cores / n).max(1),
    }
}

/// A size that reads back as itself.
pub fn whole(bytes: Bytes) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = |(bits, _): &(u32, &str)| bytes.get() > 0 && bytes.get().trailing_zeros() >= *bits;
    units.into_iter().find(fits).map_or_else(
        || format!("{} B", bytes.get()),
        |(bits, unit)| format!("{} {unit}", bytes.get() >> bits),
    )
}

/// Slices, which no topology names: as large as those of other hosts with the microarchitecture, or one.
fn slices(host: &mut Draft, library: &Library, core: &str, size: Bytes, ways: Option<u32>) {
    let fits = |slice: &u64| {
        *slice > 0
            && size.get().is_multiple_of(*slice)
            && ways.is_none_or(|w| slice.is_multiple_of(64 * u64::from(w)))
    };
    // Of a host whose slices are assumed nothing follows.
    let alike = library.list().into_iter().find_map(|definition| {
        let weir_model::platform::Definition::Host(host) = definition else {
            return None;
        };
        let slices = &host.llc.slices;
        let is_alike = host.core.microarchitecture.value == core
            && host.uncore.complexes.is_none()
            && matches!(slices.provenance, Provenance::Source(_));
        let slice = host.llc.size.get() / u64::from(slices.value);
        (is_alike && fits(&slice)).then(|| (host.name.clone(), slice))
    });
    let (count, why) = match alike {
        Some((name, slice)) => (
            size.get() / slice,
            format!("slices as large as those of {name}, which has such cores"),
        ),
        None => (1, "no topology names slices; one for all cores".into()),
    };
    let (low, high) = ((count / 2).max(1).to_string(), (count * 2).to_string());
    host.set(
        "llc.slices",
        count.to_string(),
        Provenance::Assumed { low, high, why },
    );
    if count.is_multiple_of(4) {
        let why = "no topology says whether the caches of a socket are in clusters".into();
        let (low, high) = ("1".into(), "4".into());
        host.set(
            "uncore.clusters",
            "1",
            Provenance::Assumed { low, high, why },
        );
    }
}

/// Capacity of a tier, and its modules where its description says them: `8 x DDR5-4800`.
fn modules(draft: &mut Draft, section: &str, tier: &Tier, says: &Provenance) {
    draft.set(
        &format!("{section}capacity"),
        whole(tier.capacity),
        says.clone(),
    );
    let words = &tier.description;
    let Some((before, after)) = words.split_once(" x DDR") else {
        return;
    };
    let channels = before.rsplit(' ').next().unwrap_or_default();
    let grade = after.split([' ', ',']).next().unwrap_or_default();
    if channels.parse::<u32>().is_ok() {
        draft.set(&format!("{section}channels"), channels, says.clone());
        draft.set(
            &format!("{section}media"),
            format!("ddr{}", grade.to_lowercase()),
            says.clone(),
        );
    }
}
