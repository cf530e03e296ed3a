//! Memory of other simulators as that of a platform file: speed grade, channels, ranks, capacity, queues.
//!
//! A configuration has no path from a core to memory, so no latency and no bandwidth that is measured: these stay those of
//! a base, assumed. What has no key is named line by line in the comments of the file.

mod gem5;
mod ramulator;

use std::fmt::Write as _;

use weir_model::platform::{Draft, Library, Media, Platform, Provenance};
use weir_model::units::GbPerSec;

use crate::import::found::{ImportError, whole};

/// A value of a configuration, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The path of its key.
    pub key: String,
    /// As it is written.
    pub text: String,
    /// `FILE:LINE`, or `FILE` and the path in JSON.
    pub place: String,
}

/// What a configuration says of memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// The simulator.
    pub tool: &'static str,
    /// What has a key: the key, its value, and why.
    pub mapped: Vec<(&'static str, String, String)>,
    /// Its DRAM, with what says so.
    pub media: (Media, String),
    /// Channels of 64 bits, with what says so.
    pub channels: (u32, String),
    /// What has no key.
    pub unmapped: Vec<Value>,
}

/// Whether a text is such a configuration.
pub fn is(text: &str) -> bool {
    gem5::is(text) || ramulator::is(text)
}

/// Reads one.
///
/// # Errors
/// It is not such a file, has a form that is not read, or DRAM of which the model has no timing.
pub fn read(file: &str, text: &str) -> Result<Memory, ImportError> {
    if gem5::is(text) {
        return gem5::read(file, text);
    }
    if ramulator::is(text) {
        return ramulator::read(file, text);
    }
    let wanted = "`MemorySystem:` of Ramulator 2 (YAML), or `type=DRAMInterface` of gem5 (config.ini, config.json)";
    Err(whole(
        file,
        format!("there is no configuration of memory: wanted is {wanted}"),
    ))
}

/// The speed grade nearest to a rate in MT/s, within 1 %.
fn media(file: &str, kind: &str, rate: f64, place: &str) -> Result<Media, ImportError> {
    let of_kind = |media: &Media| media.name().starts_with(&format!("{kind}-"));
    let near = |media: &Media| (media.timing().rate.get() * 1e3 / rate - 1.0).abs() < 0.01;
    let found = Media::ALL
        .into_iter()
        .find(|media| of_kind(media) && near(media));
    found.ok_or_else(|| {
        let names: Vec<&str> = Media::ALL.iter().map(|media| media.name()).collect();
        let why = format!(
            "{place} is {kind}-{rate:.0}, of which the model has no timing; it has {}",
            names.join(", ")
        );
        whole(file, why)
    })
}

impl Memory {
    /// The file of a platform with this memory; all else is that of a base.
    ///
    /// # Errors
    /// The base has no file of its own.
    pub fn platform(
        &self,
        library: &Library,
        base: &Platform,
        name: &str,
        file: &str,
    ) -> Result<String, ImportError> {
        let own = &base.host.name;
        let Some(mut draft) = Draft::of(library, own) else {
            return Err(whole(file, format!("the base has no file `{own}`")));
        };
        draft.name = name.into();
        draft.summary = format!(
            "memory of {} ({}), the rest of {own}",
            short(file),
            self.tool
        );
        draft.log = None;
        let peak =
            |media: Media, channels: u32| media.timing().channel_peak() * f64::from(channels);
        let now = peak(self.media.0, self.channels.0);
        let before = peak(base.host.dram.media.value, base.host.dram.channels.value);
        for (key, value, why) in &self.mapped {
            draft.set(key, value.clone(), Provenance::Source(why.clone()));
        }
        let (media, why) = &self.media;
        draft.set("dram.media", media.name(), Provenance::Source(why.clone()));
        let (channels, why) = &self.channels;
        draft.set(
            "dram.channels",
            channels.to_string(),
            Provenance::Source(why.clone()),
        );
        for key in ["dram.read", "dram.nt_write"] {
            let own = draft
                .get(key)
                .and_then(|text| text.parse::<GbPerSec>().ok());
            let Some(own) = own else { continue };
            let scaled = GbPerSec((own.get() * (now / before)).min(now.get()));
            let why = format!(
                "not in the configuration: that of {}, by the peak of the channels",
                base.host.name
            );
            let low = GbPerSec(now.get() * 0.5).min(scaled);
            draft.set(key, rate(scaled), assumed(rate(low), rate(now), &why));
        }
        // The other socket's memory is the same DRAM behind a link.
        let of = |key: &str| {
            draft
                .get(key)
                .and_then(|text| text.parse::<GbPerSec>().ok())
        };
        if let Some(limit) = of("dram.read").filter(|limit| of("remote.read") > Some(*limit)) {
            let why = format!("that of {} is more than this DRAM delivers", base.host.name);
            let low = GbPerSec(limit.get() * 0.5);
            draft.set(
                "remote.read",
                rate(limit),
                assumed(rate(low), rate(limit), &why),
            );
        }
        if let Some(idle) = draft.get("dram.idle").map(str::to_owned)
            && let Ok(ns) = idle.parse::<weir_model::units::Nanos>()
        {
            let why = format!(
                "not in the configuration, which has no path from core to memory: that of {}",
                base.host.name
            );
            let low = format!("{:.0} ns", ns.get() * 0.7);
            let high = format!("{:.0} ns", ns.get() * 1.5);
            draft.set("dram.idle", idle, assumed(low, high, &why));
        }
        let mut text = draft.text();
        let _ = write!(text, "\n# Of {file}, these have no key here:\n");
        if self.unmapped.is_empty() {
            text.push_str("# nothing\n");
        }
        for value in &self.unmapped {
            let line = format!("{}: {} = {}", value.place, value.key, value.text);
            let plain: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
            let _ = writeln!(text, "# {plain}");
        }
        Ok(text)
    }
}

fn assumed(low: String, high: String, why: &str) -> Provenance {
    Provenance::Assumed {
        low,
        high,
        why: why.into(),
    }
}

fn rate(rate: GbPerSec) -> String {
    format!("{:.1} GB/s", rate.get())
}

fn short(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

#[cfg(test)]
mod tests;
