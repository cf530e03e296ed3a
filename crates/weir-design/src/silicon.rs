//! Pins, die area and power of a server, each figure with its source.
//!
//! The formulas are those of *COAXIAL: A CXL-Centric Memory System for Scalable Servers* (arXiv 2305.05033 v1, sections
//! 2.1, 4.2 and 6.6): a part counts by its number, and nothing else of a package changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::diagnostic::Mistakes;
use weir_model::toml::{self, Table};

/// The figures that come with Weir.
pub const BUILTIN: &str = include_str!("silicon.toml");
/// The largest figure that is read.
const MOST: f64 = 1e9;
/// Lanes of the PCIe block whose area is known.
const X8: f64 = 8.0;

weir_model::named! {
    /// A figure of the file.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Item {
        /// Area of 1 MB of last-level cache, which is the unit.
        AreaLlcMb = "area_llc_mb",
        /// Area of a core with its second-level cache.
        AreaCore = "area_core",
        /// Area of eight lanes.
        AreaX8 = "area_x8",
        /// Area of a DDR channel.
        AreaDdr = "area_ddr",
        /// Pins of a DDR channel.
        PinsDdr = "pins_ddr",
        /// Pins of a lane.
        PinsLane = "pins_lane",
        /// Power of the package for each core.
        CoreW = "core_w",
        /// Power of a DDR controller.
        ControllerW = "controller_w",
        /// Power of a DDR PHY.
        PhyW = "phy_w",
        /// Power of a lane.
        LaneW = "lane_w",
        /// Share of a DIMM's power that it draws without traffic.
        DimmIdleShare = "dimm_idle_share",
    }
}

impl Item {
    /// Its unit as the file has it.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::AreaLlcMb | Self::AreaCore | Self::AreaX8 | Self::AreaDdr => "MB of LLC",
            Self::PinsDdr | Self::PinsLane => "pins",
            Self::CoreW | Self::ControllerW | Self::PhyW | Self::LaneW => "W",
            Self::DimmIdleShare => "share",
        }
    }
}

/// The DIMMs of a channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dimm {
    /// Memory of the channel, in GiB.
    pub gib: f64,
    /// Power at `utilisation`, in watts.
    pub watts: f64,
    /// Share of the channel's peak bandwidth that is used.
    pub utilisation: f64,
}

/// What parts take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Silicon {
    values: [f64; Item::ALL.len()],
    dimms: Vec<Dimm>,
}

/// The parts of a server that count.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// Cores of all sockets.
    pub cores: f64,
    /// Last-level cache of all sockets, in MB (2^20 bytes).
    pub llc_mb: f64,
    /// DDR channels of the packages.
    pub ddr: f64,
    /// PCIe lanes of the packages that lead to memory.
    pub lanes: f64,
    /// Every DDR channel, also those behind CXL links, in groups that are alike.
    pub channels: Vec<Channels>,
}

/// DDR channels that are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Channels {
    /// How many.
    pub count: f64,
    /// Memory of one, in GiB.
    pub gib: f64,
    /// Share of their peak bandwidth that is used, of 1.
    pub utilisation: f64,
}

/// The power of a server, by part, in watts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// Processor packages without their memory interfaces.
    pub package: f64,
    /// DDR controllers and PHYs, on packages and devices.
    pub interfaces: f64,
    /// DIMMs.
    pub dimms: f64,
    /// Lanes.
    pub lanes: f64,
}

impl Power {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.package + self.interfaces + self.dimms + self.lanes
    }
}

/// The energy-delay product for each instruction: power times the square of cycles per instruction (COAXIAL 6.6).
pub fn edp(watts: f64, cpi: f64) -> f64 {
    watts * cpi * cpi
}

impl Silicon {
    /// The figures that come with Weir.
    ///
    /// # Errors
    /// None; a test reads them.
    pub fn builtin() -> Result<Self, Mistakes> {
        Self::read("silicon.toml", BUILTIN)
    }

    /// Reads a file; `file` names it in messages.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn read(file: &str, text: &str) -> Result<Self, Mistakes> {
        toml::read(file, text, "a file of silicon", read)
    }

    /// A figure, in its unit.
    pub fn get(&self, item: Item) -> f64 {
        self.values.get(item as usize).copied().unwrap_or_default()
    }

    /// The same with another figure.
    #[must_use]
    pub fn with(mut self, item: Item, value: f64) -> Self {
        if let Some(place) = self.values.get_mut(item as usize) {
            *place = value;
        }
        self
    }

    /// The die area of the processor packages, in units of 1 MB of last-level cache.
    pub fn area(&self, parts: &Parts) -> f64 {
        parts.cores * self.get(Item::AreaCore)
            + parts.llc_mb * self.get(Item::AreaLlcMb)
            + parts.ddr * self.get(Item::AreaDdr)
            + parts.lanes / X8 * self.get(Item::AreaX8)
    }

    /// Pins of the packages for memory.
    pub fn pins(&self, parts: &Parts) -> f64 {
        parts.ddr * self.get(Item::PinsDdr) + parts.lanes * self.get(Item::PinsLane)
    }

    /// The power of the server.
    pub fn power(&self, parts: &Parts) -> Power {
        let channels: f64 = parts.channels.iter().map(|own| own.count).sum();
        let of_dimms = |own: &Channels| own.count * self.dimm(own);
        Power {
            package: parts.cores * self.get(Item::CoreW),
            interfaces: channels * (self.get(Item::ControllerW) + self.get(Item::PhyW)),
            dimms: parts.channels.iter().map(of_dimms).sum(),
            lanes: parts.lanes * self.get(Item::LaneW),
        }
    }

    /// The power of a channel's DIMMs: that of the known size which is nearest in its logarithm, at this use.
    fn dimm(&self, channel: &Channels) -> f64 {
        let far = |dimm: &&Dimm| (dimm.gib / channel.gib).ln().abs();
        let near = self.dimms.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
        let idle = self.get(Item::DimmIdleShare);
        near.map_or(0.0, |dimm| {
            dimm.watts * (idle + (1.0 - idle) * channel.utilisation / dimm.utilisation)
        })
    }
}

fn read(root: &Table<'_>) -> Option<Silicon> {
    root.expect_kind("silicon", "a file of silicon")?;
    let values = Item::ALL.map(|item| {
        let table = root.section(item.name());
        let value = table.need("value", "1")?.number(0.0..=MOST);
        let found = table.need("unit", &format!("\"{}\"", item.unit()))?;
        let is = match found.text()? == item.unit() {
            true => Some(()),
            false => found.must_be(format!("\"{}\"", item.unit())),
        };
        let source = table.need("source", "\"…\"")?.text();
        table.done("a figure of silicon");
        is.and(source).and(value)
    });
    let dimms = root.need("dimm", "[{ gib = 64, watts = 10, utilisation = 0.5 }]");
    root.done("a file of silicon");
    let dimms = dimms?.tables(64)?;
    let dimms = dimms.iter().map(|table| {
        let number = |key, example, low: f64, high: f64| {
            let field = table.need(key, example);
            field.and_then(|field| field.number(low..=high))
        };
        let (gib, watts) = (
            number("gib", "64", 1e-3, MOST),
            number("watts", "10", 0.0, MOST),
        );
        let utilisation = number("utilisation", "0.5", 0.01, 1.0);
        let source = table.need("source", "\"…\"").and_then(|field| field.text());
        table.done("a DIMM");
        source?;
        Some(Dimm {
            gib: gib?,
            watts: watts?,
            utilisation: utilisation?,
        })
    });
    let dimms: Option<Vec<Dimm>> = dimms.collect();
    let found: Option<Vec<f64>> = values.into_iter().collect();
    Some(Silicon {
        values: found?.try_into().ok()?,
        dimms: dimms?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Coaxial;

    fn silicon() -> Silicon {
        Silicon::builtin().unwrap_or_else(|mistakes| panic!("{mistakes}"))
    }

    #[test]
    fn table_2_of_coaxial_follows_from_its_table_1() {
        let silicon = silicon();
        let base = silicon.area(&Coaxial::Ddr.parts());
        assert!((base - 1353.6).abs() < 1e-9);
        let relative = |design: Coaxial| {
            let share = silicon.area(&design.parts()) / base;
            (share * 1000.0).round() / 1000.0
        };
        assert_eq!(
            [Coaxial::X5, Coaxial::X2, Coaxial::X4, Coaxial::Asym].map(relative),
            [1.166, 1.009, 1.007, 1.007]
        );
        let pins = |design: Coaxial| silicon.pins(&design.parts());
        assert_eq!(pins(Coaxial::Ddr), 1920.0);
        assert_eq!(pins(Coaxial::X5), pins(Coaxial::Ddr));
    }

    #[test]
    fn table_5_of_coaxial_follows_from_its_section_6() {
        let silicon = silicon();
        let of = |design: Coaxial, cpi: f64| {
            // The table has whole watts.
            let watts = silicon.power(&design.parts()).total().floor();
            (watts, edp(watts, cpi).round())
        };
        assert_eq!(of(Coaxial::Ddr, 2.02), (713.0, 2909.0));
        assert_eq!(of(Coaxial::X4, 1.33), (1180.0, 2087.0));
    }

    #[test]
    fn more_of_a_part_takes_more_of_everything() {
        let silicon = silicon();
        let base = Coaxial::X4.parts();
        let mut more = base.clone();
        more.lanes += 8.0;
        assert!(silicon.area(&more) > silicon.area(&base));
        assert!(silicon.pins(&more) > silicon.pins(&base));
        assert!(silicon.power(&more).total() > silicon.power(&base).total());
        let busy = |utilisation| {
            let mut parts = base.clone();
            parts.channels[0].utilisation = utilisation;
            silicon.power(&parts).dimms
        };
        assert!(busy(0.0) < busy(0.21) && busy(0.21) < busy(0.9));
    }

    #[test]
    fn a_dimm_takes_what_the_nearest_known_size_does_and_half_of_it_without_traffic() {
        let silicon = silicon();
        let watts = |gib: f64, utilisation: f64| {
            let channels = vec![Channels {
                count: 2.0,
                gib,
                utilisation,
            }];
            let parts = Parts {
                channels,
                ..Coaxial::X4.parts()
            };
            silicon.power(&parts).dimms
        };
        // Between 32 and 128 GiB the middle of factors is 64.
        let (small, large) = (2.0 * 551.0 / 48.0, 2.0 * 200.0 / 12.0);
        for (gib, utilisation, expected) in [
            (16.0, 0.21, small),
            (60.0, 0.21, small),
            (70.0, 0.52, large),
            (512.0, 0.52, large),
            (32.0, 0.0, small / 2.0),
            (128.0, 0.26, large * 0.75),
        ] {
            let found = watts(gib, utilisation);
            assert!((found - expected).abs() < 1e-9, "{gib}: {found} {expected}");
        }
    }

    #[test]
    fn every_mistake_names_its_line_and_key() {
        let text = BUILTIN
            .replace("value = 6.5", "value = -1")
            .replacen("unit = \"pins\"", "unit = \"feet\"", 1)
            .replace("[lane_w]", "[lane]")
            .replace("gib = 32", "gib = \"x\"");
        let shown = Silicon::read("my.toml", &text).unwrap_err().to_string();
        for expected in [
            "`area_core.value` must be a number between 0",
            "--> my.toml:11:9",
            "`pins_ddr.unit` must be \"pins\"",
            "`lane` is not a key of a file of silicon",
            "missing key `lane_w.value`",
            "`dimm.gib` must be a number",
        ] {
            assert!(shown.contains(expected), "{expected:?} is not in:\n{shown}");
        }
    }
}
