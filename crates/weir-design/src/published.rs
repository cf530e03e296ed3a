//! Published rows that the calculators of [`silicon`](crate::silicon) answer.

use weir_lab::reproduce::rule::{Figure, Rule};
use weir_model::platform::Media;

use crate::silicon::{Channels, Item, Parts, Silicon, edp};

/// The designs of COAXIAL (arXiv 2305.05033 v1, Table 2): 144 cores each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coaxial {
    /// 12 DDR5 channels.
    Ddr,
    /// 24 links of eight lanes.
    X2,
    /// 48 links, and half the cache.
    X4,
    /// 60 links, which have as many pins as 12 DDR channels.
    X5,
    /// 48 links with two DDR5 channels behind each.
    Asym,
}

/// Cores of every design.
const CORES: f64 = 144.0;
/// Lanes of a link.
const LANES: f64 = 8.0;
/// What PCIe 5.0 carries on a lane in one direction, before headers, in GB/s.
const LANE_GBPS: f64 = 4.0;
/// Mean cycles per instruction of the paper's 35 programs (COX-092), with DDR and with the 4x design.
const CPI: [f64; 2] = [2.02, 1.33];
/// Use of the channels in the paper's power model (COX-094), with DDR and with the 4x design.
const USE: [f64; 2] = [0.52, 0.21];

impl Coaxial {
    /// Its parts, and the use of its channels for which the paper gives the power.
    pub fn parts(self) -> Parts {
        let (ddr, links, mb_per_core, per_link, gib, utilisation) = match self {
            Self::Ddr => (12.0, 0.0, 2.0, 0.0, 128.0, USE[0]),
            Self::X2 => (0.0, 24.0, 2.0, 1.0, 64.0, USE[1]),
            Self::X4 => (0.0, 48.0, 1.0, 1.0, 32.0, USE[1]),
            Self::X5 => (0.0, 60.0, 2.0, 1.0, 32.0, USE[1]),
            Self::Asym => (0.0, 48.0, 1.0, 2.0, 16.0, USE[1]),
        };
        Parts {
            cores: CORES,
            llc_mb: CORES * mb_per_core,
            ddr,
            lanes: links * LANES,
            channels: vec![Channels {
                count: ddr + links * per_link,
                gib,
                utilisation,
            }],
        }
    }
}

const DIFFERENT_CUTS: &str =
    "the paper prints whole watts: it cuts 13.2 and 52.8 and rounds 76.8, and its sums are cut";
const WHOLE_WATTS: &str = "of whole watts, as the paper's table";
const TWO_FIGURES: &str = "rounded to two digits behind the point in the paper";
const ROADMAP: &str = "a lane of PCIe 6.0 carries twice as much; the same DDR5-4800 channel";

fn silicon() -> Result<Silicon, String> {
    Silicon::builtin().map_err(|mistakes| mistakes.to_string())
}

fn figure(unit: &'static str, of: impl Fn(&Silicon) -> f64 + Send + Sync + 'static) -> Figure {
    Figure::new(unit, move |_| Ok(of(&silicon()?)))
}

/// What a figure of the file is.
fn is(item: Item) -> Figure {
    let unit = match item.unit() {
        "MB of LLC" => "L3 MB",
        unit => unit,
    };
    figure(unit, move |silicon| silicon.get(item))
}

/// Area of a design, of that of the baseline.
fn area(design: Coaxial) -> impl Fn(&Silicon) -> f64 + Send + Sync {
    move |silicon| silicon.area(&design.parts()) / silicon.area(&Coaxial::Ddr.parts())
}

fn watts(silicon: &Silicon, design: Coaxial) -> f64 {
    silicon.power(&design.parts()).total()
}

/// Peak bandwidth of a DDR5-4800 channel for each pin, in GB/s.
fn ddr_per_pin(silicon: &Silicon) -> f64 {
    peak() / silicon.get(Item::PinsDdr)
}

fn peak() -> f64 {
    Media::named("ddr5-4800").map_or(f64::NAN, |media| media.timing().channel_peak().get())
}

/// The rules. Rows with two figures in one cell of the paper's tables are two rows: `a` is the baseline or the first.
pub fn rules() -> Vec<Rule> {
    let per_pin = |factor: f64| {
        figure("x", move |silicon| {
            factor * LANE_GBPS / silicon.get(Item::PinsLane) / ddr_per_pin(silicon)
        })
    };
    let known = |unit, value: f64| Figure::new(unit, move |_| Ok(value));
    let share = |design: Coaxial| {
        let area = area(design);
        figure("%", move |silicon| 100.0 * (area(silicon) - 1.0))
    };
    let relative = |design| Rule::identity("", figure("x", area(design))).noting(TWO_FIGURES);
    let named = |id: &str, rule: Rule| Rule {
        id: id.into(),
        ..rule
    };
    let interfaces = |design: Coaxial| {
        figure("W", move |silicon| {
            silicon.power(&design.parts()).interfaces
        })
    };
    let dimms = |design: Coaxial| figure("W", move |s| s.power(&design.parts()).dimms);
    let total = |design: Coaxial| figure("W", move |s| watts(s, design).floor());
    let product = |design, cpi| figure("W CPI^2", move |s| edp(watts(s, design).floor(), cpi));
    vec![
        Rule::identity("COX-001", per_pin(1.0)).noting("the paper rounds 4.2"),
        Rule::identity("COX-002", per_pin(2.0)).noting(ROADMAP),
        Rule::calibrated("COX-009", is(Item::PinsDdr)).noting("stated as a bound"),
        Rule::identity("COX-013", Figure::new("GB/s", |_| Ok(peak()))),
        Rule::identity("COX-014", known("GB/s", 12.0 * LANE_GBPS)),
        Rule::calibrated("COX-037a", is(Item::AreaLlcMb)),
        Rule::calibrated("COX-037b", is(Item::AreaCore)),
        Rule::calibrated("COX-037c", is(Item::AreaX8)),
        Rule::calibrated("COX-037d", is(Item::AreaDdr)),
        Rule::identity(
            "COX-038",
            figure("%", |s| 100.0 * s.get(Item::AreaX8) / s.get(Item::AreaDdr)),
        ),
        Rule::identity(
            "COX-039",
            figure("x", |s| 4.0 * s.get(Item::AreaX8) / s.get(Item::AreaDdr)),
        ),
        Rule::identity("COX-040", share(Coaxial::X5)),
        named("COX-041a", relative(Coaxial::X2)),
        named("COX-041b", relative(Coaxial::X4)),
        named("COX-041c", relative(Coaxial::Asym)),
        Rule::identity("COX-042a", known("MB", Coaxial::Ddr.parts().llc_mb)),
        Rule::identity("COX-042b", known("MB", Coaxial::X4.parts().llc_mb)),
        Rule::identity("COX-044a", known("GB/s", LANES * LANE_GBPS)),
        Rule::identity("COX-044b", known("GB/s", 2.0 * LANES * LANE_GBPS)),
        Rule::identity("COX-045a", Figure::new("GB/s", |_| Ok(peak() * 2.0 / 3.0))),
        Rule::identity("COX-045b", Figure::new("GB/s", |_| Ok(peak() / 3.0))),
        Rule::identity("COX-083a", known("cores", 128.0 / 12.0)),
        Rule::identity("COX-083b", known("cores", CORES / 12.0)),
        Rule::calibrated("COX-084a", is(Item::ControllerW)),
        Rule::calibrated("COX-084b", is(Item::PhyW)),
        Rule::calibrated("COX-085", is(Item::LaneW)),
        Rule::identity("COX-086", known("lanes", Coaxial::X4.parts().lanes)),
        Rule::calibrated(
            "COX-087",
            figure("W", |s| s.power(&Coaxial::Ddr.parts()).package),
        ),
        Rule::identity("COX-088a", interfaces(Coaxial::Ddr)).noting(DIFFERENT_CUTS),
        Rule::identity("COX-088b", interfaces(Coaxial::X4)).noting(DIFFERENT_CUTS),
        Rule::calibrated("COX-089a", dimms(Coaxial::Ddr)),
        Rule::calibrated("COX-089b", dimms(Coaxial::X4)),
        Rule::identity(
            "COX-090",
            figure("W", |s| s.power(&Coaxial::X4.parts()).lanes),
        )
        .noting(DIFFERENT_CUTS),
        Rule::identity("COX-091a", total(Coaxial::Ddr)).noting(WHOLE_WATTS),
        Rule::identity("COX-091b", total(Coaxial::X4)).noting(WHOLE_WATTS),
        Rule::identity("COX-093a", product(Coaxial::Ddr, CPI[0])).noting(WHOLE_WATTS),
        Rule::identity("COX-093b", product(Coaxial::X4, CPI[1])).noting(WHOLE_WATTS),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_lab::reproduce::rule::Results;

    use super::*;

    #[test]
    fn every_row_of_the_paper_is_answered_to_its_digits() {
        let open = |_| Err("no rule asks a machine".to_owned());
        let results = Results::new(&open, 1);
        let of = |id: &str| {
            let rules = rules();
            let rule = rules.iter().find(|rule| rule.id == id).expect("a rule");
            let figure = rule.figure.as_ref().expect("a figure");
            results.figure(figure).expect("an answer").expect("a value")
        };
        // Rows with the digits that the paper prints.
        for (id, published, digits) in [
            ("COX-001", 4.0, 0),
            ("COX-002", 8.0, 0),
            ("COX-009", 160.0, 0),
            ("COX-013", 38.4, 1),
            ("COX-014", 48.0, 0),
            ("COX-037a", 1.0, 0),
            ("COX-037b", 6.5, 1),
            ("COX-037c", 5.9, 1),
            ("COX-037d", 10.8, 1),
            ("COX-039", 2.19, 2),
            ("COX-040", 17.0, 0),
            ("COX-041a", 1.01, 2),
            ("COX-041b", 1.01, 2),
            ("COX-041c", 1.01, 2),
            ("COX-042a", 288.0, 0),
            ("COX-042b", 144.0, 0),
            ("COX-044a", 32.0, 0),
            ("COX-044b", 64.0, 0),
            ("COX-045a", 25.6, 1),
            ("COX-045b", 13.0, 0),
            ("COX-083a", 10.7, 1),
            ("COX-083b", 12.0, 0),
            ("COX-086", 384.0, 0),
            ("COX-087", 500.0, 0),
            ("COX-088a", 13.0, 0),
            ("COX-089a", 200.0, 0),
            ("COX-089b", 551.0, 0),
            ("COX-090", 77.0, 0),
            ("COX-091a", 713.0, 0),
            ("COX-091b", 1180.0, 0),
            ("COX-093a", 2909.0, 0),
            ("COX-093b", 2087.0, 0),
        ] {
            let scale = 10_f64.powi(digits);
            assert_eq!((of(id) * scale).round() / scale, published, "{id}");
        }
        // Cut, not rounded, in the paper.
        assert!((of("COX-088b") - 52.8).abs() < 1e-9);
        assert!((of("COX-038") - 54.6).abs() < 0.1);
    }

    #[test]
    fn a_row_has_one_rule() {
        let rules = rules();
        let ids: BTreeSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!(ids.len(), rules.len());
    }
}
