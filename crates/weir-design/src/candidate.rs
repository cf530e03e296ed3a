//! A design: the server that values of axes make, and its parts.

use weir_model::platform::{Platform, ReadLimit};
use weir_model::units::Bytes;
use weir_plan::prices::Prices;
use weir_steer::registry::Policy;

use crate::axis::{Key, policy};
use crate::silicon::{Channels, Parts, Silicon};
use crate::space::{Models, PartsOf, Space};

/// A server of the space.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The platform, as `--on` takes it.
    pub on: String,
    /// Where pages are, by tiers and weights.
    pub policy: Vec<(String, u32)>,
    /// What limits the tenants that run with the workloads.
    pub controller: Policy,
    /// Threads of every workload; `None` for those of its description.
    pub threads: Option<u32>,
    /// Figures of silicon.
    pub silicon: Silicon,
    /// Its parts, without what uses them.
    pub parts: Parts,
    /// Peak bandwidth of the channels of the socket and of devices, in GB/s.
    pub peaks: [f64; 2],
    /// What memory and cards cost, in USD.
    pub dollars: f64,
}

/// A part of an expression: `2xcxl-a@remote,idle=300 ns`.
#[derive(Debug, Clone)]
struct Term {
    count: u32,
    /// The name or path, and where it is attached.
    name: String,
    place: String,
    changes: String,
}

impl Term {
    fn read(whole: &str) -> Self {
        let (term, changes) = whole.split_at(whole.find(',').unwrap_or(whole.len()));
        let counted = term
            .split_once('x')
            .and_then(|(n, rest)| Some((n.trim().parse().ok()?, rest)));
        let (count, rest) = counted.unwrap_or((1, term));
        let (name, place) = match rest.rfind('@') {
            Some(at) if !rest[at..].contains('/') => rest.split_at(at),
            _ => (rest, ""),
        };
        Self {
            count,
            name: name.trim().to_owned(),
            place: place.to_owned(),
            changes: changes.to_owned(),
        }
    }

    fn change(&mut self, key: &str, value: &str) {
        self.changes.push_str(&format!(",{key}={value}"));
    }

    fn text(&self) -> String {
        let count = match self.count {
            1 => String::new(),
            count => format!("{count}x"),
        };
        format!("{count}{}{}{}", self.name, self.place, self.changes)
    }
}

impl Space {
    /// The design of these values, a value of each axis by its place.
    ///
    /// # Errors
    /// Such a server cannot be.
    pub fn design(&self, values: &[usize], models: &Models) -> Result<Candidate, String> {
        let chosen = self.axes.iter().zip(values);
        let chosen =
            chosen.filter_map(|(axis, &at)| Some((&axis.key, axis.values.get(at)?.as_str())));
        of(self, chosen, models)
    }
}

/// The design of some values, each of a key. Figures were checked when the space was read.
///
/// # Errors
/// The base has no such part, or the server cannot be.
pub fn of<'v>(
    space: &Space,
    chosen: impl Iterator<Item = (&'v Key, &'v str)> + Clone,
    models: &Models,
) -> Result<Candidate, String> {
    let number = |value: &str| {
        value
            .parse::<f64>()
            .map_err(|_| format!("`{value}` is no number"))
    };
    let platforms = chosen.clone().filter(|(key, _)| **key == Key::Platform);
    let written = platforms
        .map(|(_, value)| value)
        .last()
        .unwrap_or(&space.base);
    let mut terms: Vec<Term> = written.split('+').map(Term::read).collect();
    let plain = (models.compose)(written)?;
    let mut silicon = Silicon::builtin().map_err(|mistakes| mistakes.to_string())?;
    let prices = Prices::builtin().map_err(|mistakes| mistakes.to_string())?;
    let (mut dram, mut card) = (prices.server_dram.get(), prices.card.get());
    let (mut threads, mut pages) = (None, space.policy.as_str());
    let mut controller = space.controller;
    for (key, value) in chosen {
        match key {
            Key::Platform => {}
            Key::Policy => pages = value,
            Key::Controller => {
                let named = Policy::named(value);
                controller = named.ok_or_else(|| format!("no controller is called `{value}`"))?;
            }
            Key::Threads => threads = Some(number(value)? as u32),
            Key::Silicon(item) => silicon = silicon.with(*item, number(value)?),
            Key::DramPrice => dram = number(value)?,
            Key::CardPrice => card = number(value)?,
            Key::Cards(part) => {
                let mut all = devices(&mut terms, part.as_deref())?;
                match all.as_mut_slice() {
                    [one] => one.count = number(value)? as u32,
                    _ => return Err("name the device that is meant: part = \"cxl-a\"".into()),
                }
            }
            Key::Ddr => of_channels(&mut terms, &plain, number(value)?)?,
            Key::Premium => {
                let idle = plain.host.dram.measured.idle.value.get() + number(value)?;
                for term in devices(&mut terms, None)? {
                    term.change("idle", &format!("{idle} ns"));
                }
            }
            Key::File {
                path,
                of_host: true,
                ..
            } => {
                if let Some(host) = terms.first_mut() {
                    host.change(path, value);
                }
            }
            Key::File { path, part, .. } => {
                for term in devices(&mut terms, part.as_deref())? {
                    for (key, value) in with_limits(&plain, term, path, value) {
                        term.change(key, &value);
                    }
                }
            }
        }
    }
    terms.retain(|term| term.count > 0);
    let texts: Vec<String> = terms.iter().map(Term::text).collect();
    let on = texts.join("+");
    let platform = (models.compose)(&on)?;
    let own = space.parts.iter().find(|own| own.on == written);
    let bytes = platform.host.dram.capacity.value.as_gib()
        + of_devices(&platform, |d| d.capacity.value.as_gib());
    let cards: u32 = platform.devices.iter().map(|attached| attached.ways).sum();
    Ok(Candidate {
        policy: policy(pages)?,
        controller,
        threads,
        silicon,
        parts: parts(&platform, own),
        peaks: peaks(&platform),
        dollars: bytes * dram + f64::from(cards) * card,
        on,
    })
}

/// The devices of an expression, or the one that is named; never the host.
fn devices<'t>(terms: &'t mut [Term], part: Option<&str>) -> Result<Vec<&'t mut Term>, String> {
    let of = |term: &&mut Term| part.is_none_or(|part| term.name == part);
    let found: Vec<&mut Term> = terms.iter_mut().skip(1).filter(of).collect();
    match (found.is_empty(), part) {
        (false, _) => Ok(found),
        (true, Some(part)) => Err(format!(
            "the base has no part `{part}`; write it out behind a `+`"
        )),
        (true, None) => Err("the base names no device; write it out, as in emr2s+cxl-a".into()),
    }
}

/// A change of a device, with what it reads at most where that follows from it: in proportion to the lanes or channels that
/// limit it, and no more than the peak of its channels. Each change is checked by itself: a lower limit comes first.
fn with_limits<'k>(
    plain: &Platform,
    term: &Term,
    path: &'k str,
    value: &str,
) -> Vec<(&'k str, String)> {
    let own = (path, value.to_owned());
    let Some((read, remote, more)) = reads(plain, term, path, value) else {
        return vec![own];
    };
    let (read, remote) = (
        ("read", format!("{read} GB/s")),
        ("remote_read", format!("{remote} GB/s")),
    );
    match more {
        true => vec![own, read],
        false => vec![remote, read, own],
    }
}

/// What a device then reads from its own socket and from the other, and whether that is more than now.
fn reads(plain: &Platform, term: &Term, path: &str, value: &str) -> Option<(f64, f64, bool)> {
    let stem = std::path::Path::new(&term.name).file_stem()?.to_str()?;
    let mut devices = plain.devices.iter().map(|attached| &attached.device);
    let device = devices.find(|device| device.name == stem)?;
    let (lanes, channels) = (device.link.lanes.value, device.channels.value);
    let wanted: f64 = value.parse().ok()?;
    let (now, channels) = match (path, device.measured.read_limit.value) {
        ("lanes", ReadLimit::Link) => (lanes, f64::from(channels)),
        ("channels", ReadLimit::Media) => (channels, wanted),
        _ => return None,
    };
    let read = device.measured.read.as_ref()?.value.get() * wanted / f64::from(now);
    let read = read.min(device.media.value.timing().channel_peak().get() * channels);
    let remote = device.measured.remote_read.value.get().min(read);
    Some((read, remote, wanted > f64::from(now)))
}

/// Another number of DDR channels, each with the bandwidth that a channel has now.
fn of_channels(terms: &mut [Term], plain: &Platform, count: f64) -> Result<(), String> {
    let host = &plain.host;
    let dram = &host.dram;
    let share = count / f64::from(dram.channels.value);
    let capacity = Bytes((dram.capacity.value.0 as f64 * share) as u64);
    let (read, write) = (
        dram.measured.read.value.get(),
        dram.measured.nt_write.value.get(),
    );
    // The wider limit first: each change is checked by itself.
    let mut changes = vec![
        ("dram.channels", format!("{count}")),
        ("dram.capacity", capacity.to_string()),
        ("dram.read", format!("{} GB/s", read * share)),
        ("dram.nt_write", format!("{} GB/s", write * share)),
    ];
    // The other socket is alike, and delivers no more than its own channels.
    if let Some(remote) = host
        .remote
        .as_ref()
        .filter(|remote| remote.narrow.is_none())
    {
        let remote = remote.read.value.get().min(read * share);
        changes.push(("remote.read", format!("{remote} GB/s")));
    }
    if share < 1.0 {
        changes.reverse();
    }
    let term = terms.first_mut().ok_or("there is no host")?;
    for (key, value) in changes {
        term.change(key, &value);
    }
    Ok(())
}

fn of_devices(platform: &Platform, figure: impl Fn(&weir_model::platform::Device) -> f64) -> f64 {
    let all = platform.devices.iter();
    all.map(|attached| f64::from(attached.ways) * figure(&attached.device))
        .sum()
}

/// Peak bandwidth of the socket's channels and of the devices'.
fn peaks(platform: &Platform) -> [f64; 2] {
    let dram = &platform.host.dram;
    let of = |media: weir_model::platform::Media, channels: u32| {
        media.timing().channel_peak().get() * f64::from(channels)
    };
    [
        of(dram.media.value, dram.channels.value),
        of_devices(platform, |device| {
            of(device.media.value, device.channels.value)
        }),
    ]
}

/// The parts of the socket on which threads run, and of its devices: first the socket's channels, then each device's.
fn parts(platform: &Platform, own: Option<&PartsOf>) -> Parts {
    let host = &platform.host;
    let ddr = f64::from(host.dram.channels.value);
    let channels = |count: f64, bytes: Bytes| Channels {
        count,
        gib: bytes.as_gib() / count.max(1.0),
        utilisation: 0.0,
    };
    let behind = platform.devices.iter().map(|attached| {
        let one = channels(
            f64::from(attached.device.channels.value),
            attached.device.capacity.value,
        );
        Channels {
            count: one.count * f64::from(attached.ways),
            ..one
        }
    });
    let mut all = vec![channels(ddr, host.dram.capacity.value)];
    all.extend(behind);
    let default = PartsOf::default();
    let own = own.unwrap_or(&default);
    if let Some(wanted) = own.channels {
        let known: f64 = all.iter().map(|own| own.count).sum();
        all.iter_mut()
            .for_each(|own| own.count *= wanted / known.max(1.0));
    }
    let lanes = of_devices(platform, |device| f64::from(device.link.lanes.value));
    Parts {
        cores: own.cores.unwrap_or(f64::from(host.core.count.value)),
        llc_mb: own
            .llc_mb
            .unwrap_or(host.llc.size.value.0 as f64 / f64::from(1 << 20)),
        ddr: own.ddr.unwrap_or(ddr),
        lanes: own.lanes.unwrap_or(lanes),
        channels: all,
    }
}
