//! How often parts fail, each figure with its source.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::diagnostic::Mistakes;
use weir_model::toml::{self, Table};

use super::part::Part;

/// The rates that come with Weir.
pub const BUILTIN: &str = include_str!("failures.toml");
/// Rates that are read, in percent a year.
const RATES: std::ops::RangeInclusive<f64> = 0.000_1..=100.0;

/// How often parts fail, and how long what they take down is down.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// A rate for each of [`Part::ALL`], in their order.
    pub list: Vec<Rate>,
    /// Hours until a VM is back that is started on another machine.
    pub restart_hours: f64,
    /// Years over which a second copy is paid off.
    pub life_years: f64,
}

/// How often one part fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// The part.
    pub part: String,
    /// Failures of one part in 100 years.
    pub rate_pct: f64,
    /// The least that it may be.
    pub low_pct: f64,
    /// The most.
    pub high_pct: f64,
    /// Hours until the part is back.
    pub down_hours: f64,
    /// Where it is from.
    pub source: String,
    /// When it was so.
    pub date: String,
}

impl Rates {
    /// The rates that come with Weir.
    ///
    /// # Errors
    /// None; a test reads them.
    pub fn builtin() -> Result<Self, Mistakes> {
        Self::read("failures.toml", BUILTIN)
    }

    /// Reads a file of rates; `file` names it in messages.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn read(file: &str, text: &str) -> Result<Self, Mistakes> {
        toml::read(file, text, "a file of failure rates", read)
    }

    /// That of a part.
    pub fn of(&self, part: Part) -> Option<&Rate> {
        self.list.iter().find(|rate| rate.part == part.name())
    }
}

fn read(root: &Table<'_>) -> Option<Rates> {
    root.expect_kind("failures", "a file of failure rates")?;
    let number = |key, example, range| root.need(key, example)?.number(range);
    let restart = number("restart_minutes", "5", 0.1..=10_000.0);
    let life_years = number("life_years", "5", 0.1..=100.0);
    let list = Part::ALL.map(|part| rate(root, part));
    root.done("a file of failure rates");
    Some(Rates {
        list: list.into_iter().collect::<Option<_>>()?,
        restart_hours: restart? / 60.0,
        life_years: life_years?,
    })
}

fn rate(root: &Table<'_>, part: Part) -> Option<Rate> {
    let key = part.key();
    if !root.has(key) {
        root.missing(
            key,
            format!("add a table `[{key}]` with a_year, low, high, down_hours, source and date"),
        );
        return None;
    }
    let table = root.section(key);
    let number = |key, range| table.need(key, "1")?.number(range);
    let rate = number("a_year", RATES);
    let most = rate.unwrap_or(*RATES.end());
    let (low, high) = (
        number("low", *RATES.start()..=most),
        number("high", rate.unwrap_or(*RATES.start())..=*RATES.end()),
    );
    let down = number("down_hours", 0.001..=10_000.0);
    let text = |key| Some(table.need(key, "\"…\"")?.text_or_number()?.to_owned());
    let (source, date) = (text("source"), text("date"));
    table.done("a failure rate");
    Some(Rate {
        part: part.name().to_owned(),
        rate_pct: rate?,
        low_pct: low?,
        high_pct: high?,
        down_hours: down?,
        source: source?,
        date: date?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_that_come_with_weir_are_read() {
        let rates = Rates::builtin().unwrap_or_else(|mistakes| panic!("{mistakes}"));
        for part in Part::ALL {
            let rate = rates.of(part).unwrap();
            assert!(rate.low_pct <= rate.rate_pct && rate.rate_pct <= rate.high_pct);
            assert!(rate.source.contains("assumed"), "{}", rate.source);
        }
    }

    #[test]
    fn every_mistake_names_its_line_and_key() {
        let text = BUILTIN
            .replace("a_year = 1.3", "a_year = 0")
            .replace("a_year = 2\n", "a_year = 101\n")
            .replace("low = 1\n", "low = 5\n")
            .replace("[link]", "[lnik]");
        let shown = Rates::read("my.toml", &text).unwrap_err().to_string();
        for expected in [
            "`dimm.a_year` must be a number between 0.0001 and 100",
            "`device.a_year` must be a number between 0.0001 and 100",
            "`switch.low` must be a number between 0.0001 and 3",
            "missing key `link`",
        ] {
            assert!(shown.contains(expected), "{expected:?} is not in:\n{shown}");
        }
    }
}
