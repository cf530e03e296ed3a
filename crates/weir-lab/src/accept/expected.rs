//! The file that says what a server must be.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::diagnostic::Mistakes;
use weir_model::toml::{self, Table};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Nanos};

/// What such a file is, in messages.
const FILE: &str = "an acceptance file";
/// The most tiers of one.
const MOST_TIERS: usize = 64;
/// Shares by which a figure may differ. More than a whole is a percentage that was meant: 10 would let a machine pass
/// which is eleven times as slow.
const WITHIN: RangeInclusive<f64> = 0.001..=1.0;
/// How far from the firmware's word a figure may be, where no file says so. Kernels sort tiers by it, and firmware
/// rounds to steps of a few percent.
const FIRMWARE_WITHIN: f64 = 0.25;

weir_model::named! {
    /// A figure of a tier.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum What {
        /// Mean latency of dependent loads whose translations the TLB has, on an idle machine, in ns.
        Latency = "latency",
        /// Loads, by as many threads as are fastest, in GB/s.
        Read = "read",
        /// Non-temporal stores, by as many threads as are fastest, in GB/s.
        Write = "write",
        /// Capacity, in GiB.
        Capacity = "capacity",
    }
}

impl What {
    /// Its unit.
    pub const fn unit(self) -> &'static str {
        match self {
            What::Latency => "ns",
            What::Read | What::Write => "GB/s",
            What::Capacity => "GiB",
        }
    }
}

/// What a server must be.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// What it is, in a line.
    pub summary: String,
    /// What is promised of its tiers.
    pub promised: Vec<Promised>,
    /// By what share it may differ from what the firmware says; `None` where that is not asked.
    pub firmware: Option<f64>,
    /// A platform that it is to be like.
    pub platform: Option<PlatformLike>,
}

/// A bound for a figure of a tier, with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Promised {
    /// The tier.
    pub tier: TierName,
    /// The figure.
    pub what: What,
    /// The most of a latency, the least of everything else; in the unit of [`What::unit`].
    pub bound: f64,
    /// Where it is from.
    pub source: String,
}

/// A platform that a server is to be like.
#[derive(Debug, Clone, PartialEq)]
pub struct PlatformLike {
    /// As `--on` takes it.
    pub name: String,
    /// Where the file has it, in bytes.
    pub at: usize,
    /// The share by which each figure may differ.
    pub within: f64,
}

impl Default for Expected {
    /// What is expected without a file: what the firmware says.
    fn default() -> Self {
        Self {
            summary: String::new(),
            promised: Vec::new(),
            firmware: Some(FIRMWARE_WITHIN),
            platform: None,
        }
    }
}

impl Expected {
    /// Reads a file; `file` names it in messages.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn read(file: &str, text: &str) -> Result<Self, Mistakes> {
        toml::read(file, text, FILE, read)
    }
}

fn read(root: &Table<'_>) -> Option<Expected> {
    root.expect_kind("acceptance", FILE)?;
    let summary = match root.get("summary") {
        Some(field) => field.text()?.to_owned(),
        None => String::new(),
    };
    let tiers = match root.get("tier") {
        Some(field) => field.tables(MOST_TIERS)?.iter().map(promised).collect(),
        None => Some(Vec::new()),
    };
    let firmware = root.has("firmware").then(|| {
        let table = root.section("firmware");
        let within = within(&table);
        table.done("what the firmware says");
        within
    });
    let platform = root.has("platform").then(|| {
        let table = root.section("platform");
        let name = table.need("name", "\"emr2s+cxl-a\"");
        let at = name.as_ref().map_or(0, |field| field.span().start);
        let name = name.and_then(|f| f.text());
        let within = within(&table);
        table.done("a platform");
        Some(PlatformLike {
            name: name?.to_owned(),
            at,
            within: within?,
        })
    });
    root.get("firmware");
    root.get("platform");
    root.done(FILE);
    let promised: Vec<Promised> = tiers?.into_iter().flatten().collect();
    if promised.is_empty() && firmware.is_none() && platform.is_none() && root.is_whole() {
        root.wrong(
            "kind",
            "this file expects nothing",
            Some("add `[[tier]]`, `[firmware]` or `[platform]`".into()),
        );
        return None;
    }
    Some(Expected {
        summary,
        promised,
        firmware: match firmware {
            Some(within) => Some(within?),
            None => None,
        },
        platform: match platform {
            Some(platform) => Some(platform?),
            None => None,
        },
    })
}

fn within(table: &Table<'_>) -> Option<f64> {
    table.need("within", "0.1")?.number(WITHIN)
}

/// The figures of one `[[tier]]`.
fn promised(table: &Table<'_>) -> Option<Vec<Promised>> {
    let tier = table.need("name", "\"cxl0\"").and_then(|f| f.text());
    let source = table
        .need("source", "\"data sheet\"")
        .and_then(|f| f.text());
    let mut bounds = Vec::new();
    let mut whole = true;
    for what in What::ALL {
        let Some(field) = table.get(what.name()) else {
            continue;
        };
        let bound = match what {
            What::Latency => (field.quantity::<Nanos>("a time such as \"250 ns\"")).map(Nanos::get),
            What::Read | What::Write => field
                .quantity::<GbPerSec>("a bandwidth such as \"22 GB/s\"")
                .map(GbPerSec::get),
            What::Capacity => field
                .quantity::<Bytes>("a size such as \"128 GiB\"")
                .map(|bytes| bytes.get() as f64 / Bytes::gib(1).get() as f64),
        };
        let bound = bound.filter(|bound| {
            let right = *bound > 0.0;
            if !right {
                field.report("nothing is more than zero of this", None);
            }
            right
        });
        match bound {
            Some(bound) => bounds.push((what, bound)),
            None => whole = false,
        }
    }
    if bounds.is_empty() && whole {
        let keys = What::ALL.map(What::name).join(", ");
        table.missing(What::Latency.name(), format!("expect one of {keys}"));
        whole = false;
    }
    table.done("an expected tier");
    let (tier, source) = (tier?, source?);
    whole.then(|| {
        let of = |(what, bound)| Promised {
            tier: TierName::named(tier),
            what,
            bound,
            source: source.to_owned(),
        };
        bounds.into_iter().map(of).collect()
    })
}
