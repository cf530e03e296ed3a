//! `config.ini` and `config.json` of gem5 (20.1 to 24.0): the objects of type `DRAMInterface`, and `DRAMCtrl` of earlier
//! versions, with the `MemCtrl` above each.
//!
//! The kind of DRAM is not in it, and follows from the length of a burst and the groups of banks.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use weir_model::diagnostic::quote;

use super::Memory;
use super::Value;
use super::media;
use crate::import::found::line;
use crate::import::found::{ImportError, whole};

const TYPES: [&str; 2] = ["DRAMInterface", "DRAMCtrl"];

pub(super) fn is(text: &str) -> bool {
    let of_ini = |line: &str| TYPES.iter().any(|t| line.trim() == format!("type={t}"));
    match text.trim_start().starts_with('{') {
        true => TYPES.iter().any(|t| text.contains(&format!("\"{t}\""))),
        false => text.lines().any(of_ini),
    }
}

/// An object: its values by key.
type Object = BTreeMap<String, Value>;

fn objects(file: &str, text: &str) -> Result<BTreeMap<String, Object>, ImportError> {
    let mut all: BTreeMap<String, Object> = BTreeMap::new();
    if text.trim_start().starts_with('{') {
        let json: Json = serde_json::from_str(text)
            .map_err(|error| line(file, error.line(), format!("this is no JSON: {error}")))?;
        walk(file, "", &json, &mut all, 0);
        return Ok(all);
    }
    let mut section = String::new();
    for (at, text) in text.lines().enumerate() {
        let text = text.trim();
        if let Some(name) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, value)) = text.split_once('=') {
            let value = Value {
                key: format!("{section}.{key}"),
                text: value.to_owned(),
                place: format!("{file}:{}", at + 1),
            };
            all.entry(section.clone())
                .or_default()
                .insert(key.to_owned(), value);
        }
    }
    Ok(all)
}

/// Objects of JSON deeper than this are not looked at.
const DEEPEST: u32 = 64;

fn walk(file: &str, path: &str, json: &Json, all: &mut BTreeMap<String, Object>, depth: u32) {
    if depth > DEEPEST {
        return;
    }
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match json {
        Json::Object(fields) => {
            for (key, value) in fields {
                let text = match value {
                    Json::String(text) => Some(text.clone()),
                    Json::Number(_) | Json::Bool(_) => Some(value.to_string()),
                    _ => None,
                };
                match text {
                    Some(text) => {
                        let value = Value {
                            key: below(key),
                            text,
                            place: file.to_owned(),
                        };
                        all.entry(path.to_owned())
                            .or_default()
                            .insert(key.clone(), value);
                    }
                    None => walk(file, &below(key), value, all, depth + 1),
                }
            }
        }
        Json::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                walk(file, &format!("{path}{n}"), item, all, depth + 1);
            }
        }
        _ => {}
    }
}

fn number(object: &Object, key: &str) -> Result<f64, ImportError> {
    let Some(value) = object.get(key) else {
        return Err(whole(
            "gem5",
            format!("an interface of DRAM has no `{key}`"),
        ));
    };
    let number: Option<f64> = value.text.parse().ok();
    let number = number.filter(|n| n.is_finite() && *n >= 0.0 && *n < 1e15);
    number.ok_or_else(|| {
        let why = format!(
            "`{}` is `{}`, but a number is wanted",
            value.key,
            quote(&value.text)
        );
        whole(&value.place, why)
    })
}

pub(super) fn read(file: &str, text: &str) -> Result<Memory, ImportError> {
    let objects = objects(file, text)?;
    let of_type = |object: &Object| {
        object
            .get("type")
            .is_some_and(|t| TYPES.contains(&t.text.as_str()))
    };
    let mut drams: Vec<(&String, &Object)> = objects.iter().filter(|(_, o)| of_type(o)).collect();
    drams.sort_by_key(|(name, _)| *name);
    let Some(&(name, first)) = drams.first() else {
        return Err(whole(file, "there is no object of type DRAMInterface"));
    };
    let plain = [
        "tCK",
        "burst_length",
        "device_bus_width",
        "devices_per_rank",
        "ranks_per_channel",
    ];
    for (other, object) in &drams[1..] {
        for key in plain {
            let same = object.get(key).map(|v| &v.text) == first.get(key).map(|v| &v.text);
            if !same {
                let why = format!(
                    "`{name}` and `{other}` differ in `{key}`; a platform has one kind of DRAM on the host"
                );
                return Err(whole(file, why));
            }
        }
    }
    let (clock, burst) = (number(first, "tCK")?, number(first, "burst_length")?);
    let beats = number(first, "beats_per_clock").unwrap_or(2.0);
    let groups = number(first, "bank_groups_per_rank").unwrap_or(0.0);
    let kind = match (burst as u32, groups as u32) {
        (8, 0 | 1) => "ddr3",
        (8, _) => "ddr4",
        (16, 2..) => "ddr5",
        (burst, groups) => {
            let why = format!(
                "`{name}` has bursts of {burst} and {groups} groups of banks, as no DRAM of the model"
            );
            return Err(whole(file, why));
        }
    };
    if clock <= 0.0 {
        return Err(whole(file, format!("`{name}.tCK` is 0")));
    }
    let place = |key: &str| {
        first.get(key).map_or(String::new(), |v| {
            format!("{}: {} = {} (gem5)", v.place, v.key, v.text)
        })
    };
    let found = media(file, kind, beats * 1e6 / clock, &place("tCK"))?;
    let why = format!(
        "{}; {kind} by bursts of {burst} and {groups} groups of banks",
        place("tCK")
    );
    let width = number(first, "device_bus_width")? * number(first, "devices_per_rank")?;
    let bits = width * drams.len() as f64;
    let channels = (bits / 64.0) as u32;
    if bits <= 0.0 || bits % 64.0 != 0.0 || bits > 64.0 * 64.0 {
        let why = format!(
            "{} interfaces of {width} bits are no whole number of channels of 64 bits",
            drams.len()
        );
        return Err(whole(file, why));
    }
    let of_channels = format!(
        "{} objects of {width} bits such as {name} (gem5)",
        drams.len()
    );
    let mut mapped = vec![(
        "dram.ranks",
        number(first, "ranks_per_channel")?.to_string(),
        place("ranks_per_channel"),
    )];
    let mut used = vec![
        "type",
        "tCK",
        "burst_length",
        "beats_per_clock",
        "bank_groups_per_rank",
    ];
    used.extend(["device_bus_width", "devices_per_rank", "ranks_per_channel"]);
    let chip = number(first, "device_size").unwrap_or(0.0);
    let bytes = chip
        * number(first, "devices_per_rank")?
        * number(first, "ranks_per_channel")?
        * drams.len() as f64;
    let mib = bytes / f64::from(1 << 20);
    if mib >= 64.0 && mib.fract() == 0.0 {
        mapped.push((
            "dram.capacity",
            format!("{mib} MiB"),
            format!("{} on all chips", place("device_size")),
        ));
        used.push("device_size");
    }
    // Queues and thresholds are of the interface, or of the controller above it.
    let above = name
        .rsplit_once('.')
        .and_then(|(above, _)| objects.get(above));
    for (key, own, share) in [
        ("dram.read_queue", "read_buffer_size", false),
        ("dram.write_queue", "write_buffer_size", false),
        ("dram.drain_at", "write_high_thresh_perc", true),
        ("dram.drain_to", "write_low_thresh_perc", true),
    ] {
        let of = [Some(first), above]
            .into_iter()
            .flatten()
            .find(|o| o.contains_key(own));
        let Some(object) = of else { continue };
        let value = number(object, own)?;
        let value = if share { value / 100.0 } else { value };
        let Some(source) = object.get(own) else {
            continue;
        };
        mapped.push((
            key,
            value.to_string(),
            format!("{}: {} = {} (gem5)", source.place, source.key, source.text),
        ));
        used.push(own);
    }
    let rest = |object: &Object| -> Vec<Value> {
        let others = object
            .iter()
            .filter(|(key, _)| !used.contains(&key.as_str()));
        others.map(|(_, value)| value.clone()).collect()
    };
    let mut unmapped = rest(first);
    unmapped.extend(above.into_iter().flat_map(rest));
    Ok(Memory {
        tool: "gem5",
        mapped,
        media: (found, why),
        channels: (channels, of_channels),
        unmapped,
    })
}
