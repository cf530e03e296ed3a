//! Where the kernel expects the fields of an encoding: `format/` of a unit in sysfs.
//!
//! Each file there states one field's place in the attribute block, such as `config:8-15,32-63` or
//! `config1:0-63` (Documentation/ABI/testing/sysfs-bus-event_source-devices-format).

use std::collections::BTreeMap;

use weir_model::capability::Unavailable;

use super::attributes::Encoded;
use crate::root::Root;

/// The fields of a unit's events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format(BTreeMap<String, Place>);

/// The place of a field: its lowest bits first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// `config`, `config1` or `config2`: 0, 1, 2.
    word: usize,
    /// Ranges of bits, both ends included.
    bits: Vec<(u32, u32)>,
}

impl Format {
    /// Reads `format/` in a unit's folder. An invalid field is left out.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn of(root: &Root, folder: &str) -> Result<Self, Unavailable> {
        let base = format!("{folder}/format");
        let names = root.list(&base);
        let fields = names.get()?.iter().filter_map(|name| {
            let text = root.text(&format!("{base}/{name}"));
            Some((name.clone(), place(text.known()?)?))
        });
        Ok(Self(fields.collect()))
    }

    /// The words of an attribute block with these fields.
    ///
    /// # Errors
    /// The unit has no such field, or the value does not fit into it.
    pub fn encode(
        &self,
        kind: u32,
        fields: &BTreeMap<String, u64>,
    ) -> Result<Encoded, Unavailable> {
        let mut encoded = Encoded {
            kind,
            config: [0; 3],
        };
        for (name, &value) in fields {
            let place = self.0.get(name).ok_or_else(|| {
                Unavailable::because(format!("the kernel knows no field `{name}` of this unit"))
            })?;
            let mut rest = value;
            for &(low, high) in &place.bits {
                let width = high - low + 1;
                let mask = u64::MAX >> (64 - width);
                encoded.config[place.word] |= (rest & mask) << low;
                rest = rest.checked_shr(width).unwrap_or(0);
            }
            if rest != 0 {
                return Err(Unavailable::because(format!(
                    "this kernel's field `{name}` is too narrow for {value:#x}"
                )));
            }
        }
        Ok(encoded)
    }
}

/// `config:8-15,32-63`.
fn place(text: &str) -> Option<Place> {
    let (word, bits) = text.trim().split_once(':')?;
    let word = ["config", "config1", "config2"]
        .iter()
        .position(|w| *w == word)?;
    let range = |part: &str| -> Option<(u32, u32)> {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (low <= high && high < 64).then_some((low, high))
    };
    let bits: Option<Vec<_>> = bits.split(',').map(range).collect();
    Some(Place { word, bits: bits? })
}
