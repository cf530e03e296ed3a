//! Configurations of Ramulator 2.0: a part of YAML, mappings by indentation with plain values. Lists are passed over by
//! name, and every other form is refused.
//!
//! A channel of DDR5 has 32 bits there (`channel_width`), half of a channel of a platform file.

use weir_model::diagnostic::quote;

use super::Memory;
use super::Value;
use super::media;
use crate::import::found::line;
use crate::import::found::{ImportError, whole};

pub(super) fn is(text: &str) -> bool {
    text.lines()
        .any(|line| line.trim_end().starts_with("MemorySystem:"))
}

/// Every value with its dotted path.
fn values(file: &str, text: &str) -> Result<Vec<Value>, ImportError> {
    let mut all = Vec::new();
    // The keys above a line, with their indentation.
    let mut above: Vec<(usize, String)> = Vec::new();
    for (at, whole) in text.lines().enumerate() {
        let plain = match whole.find(" #") {
            Some(end) => &whole[..end],
            None if whole.trim_start().starts_with('#') => "",
            None => whole,
        };
        let (depth, words) = (plain.len() - plain.trim_start().len(), plain.trim());
        if words.is_empty() || words == "---" {
            continue;
        }
        let wrong = |why: &str| line(file, at + 1, format!("`{}`: {why}", quote(words)));
        if plain[..depth].contains('\t') {
            return Err(wrong("YAML is indented with spaces"));
        }
        while above
            .last()
            .is_some_and(|(own, _)| *own >= depth && !words.starts_with('-'))
        {
            above.pop();
        }
        let path = |last: &str| {
            let keys = above.iter().map(|(_, key)| key.as_str());
            keys.chain([last]).collect::<Vec<_>>().join(".")
        };
        let (key, value) = match words.strip_prefix('-') {
            Some(item) => ("-", item.trim()),
            None => {
                let (key, value) = words
                    .split_once(':')
                    .ok_or_else(|| wrong("a key with `:` is wanted"))?;
                (key.trim(), value.trim())
            }
        };
        if value.starts_with(['&', '*', '{', '[', '|', '>', '!']) {
            return Err(wrong("only plain values of YAML are read here"));
        }
        if value.is_empty() && key != "-" {
            above.push((depth, key.to_owned()));
        } else {
            all.push(Value {
                key: path(key),
                text: value.trim_matches(['"', '\'']).to_owned(),
                place: format!("{file}:{}", at + 1),
            });
        }
    }
    Ok(all)
}

const DRAM: &str = "MemorySystem.DRAM.";

pub(super) fn read(file: &str, text: &str) -> Result<Memory, ImportError> {
    let mut values = values(file, text)?;
    let mut take = |key: &str| -> Option<Value> {
        let at = values
            .iter()
            .position(|v| v.key == format!("{DRAM}{key}"))?;
        Some(values.remove(at))
    };
    let lacks = |key: &str| whole(file, format!("there is no `{DRAM}{key}`"));
    let number = |value: &Value| -> Result<u32, ImportError> {
        let count = value.text.parse().ok().filter(|n| (1..=1024).contains(n));
        count.ok_or_else(|| {
            let (place, key) = (&value.place, &value.key);
            ImportError::File {
                file: place.clone(),
                message: format!(
                    "`{key}` is `{}`, but a whole number from 1 is wanted",
                    quote(&value.text)
                ),
            }
        })
    };
    let kind = take("impl").ok_or_else(|| lacks("impl"))?;
    let preset = take("timing.preset");
    let explicit = take("timing.rate");
    let source = explicit
        .as_ref()
        .or(preset.as_ref())
        .ok_or_else(|| lacks("timing.preset"))?;
    // `DDR4_2400R`: the digits after the kind are the rate.
    let tail = source.text.rsplit('_').next().unwrap_or_default();
    let digits = tail.trim_end_matches(|c: char| !c.is_ascii_digit());
    let rate: f64 = digits.parse().map_err(|_| {
        let why = format!(
            "{}: `{}` names no rate in MT/s",
            source.place,
            quote(&source.text)
        );
        whole(file, why)
    })?;
    let name = kind
        .text
        .split('-')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let found = media(file, &name, rate, &source.place)?;
    let said = |value: &Value| {
        format!(
            "{}: {} = {} (Ramulator 2)",
            value.place, value.key, value.text
        )
    };
    let count = take("org.channel");
    let channels = count.as_ref().map(number).transpose()?.unwrap_or(1);
    let width = match take("org.channel_width") {
        Some(value) => number(&value)?,
        None if name == "ddr5" => 32,
        None => 64,
    };
    let bits = channels * width;
    if bits % 64 != 0 {
        let why = format!(
            "{channels} channels of {width} bits are no whole number of channels of 64 bits"
        );
        return Err(whole(file, why));
    }
    let how = count
        .as_ref()
        .map_or("one channel by default (Ramulator 2)".into(), &said);
    let how = match width {
        64 => how,
        width => format!("{how}, of {width} bits each"),
    };
    let mut mapped = Vec::new();
    let ranks = take("org.rank");
    let rank = ranks.as_ref().map(number).transpose()?.unwrap_or(1);
    let how_ranks = ranks
        .as_ref()
        .map_or("one rank by default (Ramulator 2)".into(), &said);
    mapped.push(("dram.ranks", rank.to_string(), how_ranks));
    if let Some(org) = take("org.preset") {
        // `DDR4_8Gb_x8`: density and width of a chip.
        let mut parts = org.text.split('_').skip(1);
        let density = parts
            .next()
            .and_then(|p| p.strip_suffix("Gb")?.parse::<u64>().ok());
        let chip = parts
            .next()
            .and_then(|p| p.strip_prefix('x')?.parse::<u64>().ok());
        match density
            .zip(chip)
            .filter(|&(gb, chip)| (1..=1024).contains(&gb) && (1..=64).contains(&chip))
        {
            Some((gb, chip)) => {
                let gib = gb * u64::from(bits) / chip * u64::from(rank) / 8;
                let why = format!("{}, on {bits} data bits and {rank} ranks", said(&org));
                mapped.push(("dram.capacity", format!("{gib} GiB"), why));
            }
            None => values.push(org),
        }
    }
    values.retain(|value| !value.text.is_empty());
    Ok(Memory {
        tool: "Ramulator 2",
        mapped,
        media: (found, format!("{} and {}", said(&kind), said(source))),
        channels: (bits / 64, how),
        unmapped: values,
    })
}
