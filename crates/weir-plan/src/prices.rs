//! What parts cost, each price with its source and its date.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::diagnostic::Mistakes;
use weir_model::toml::{self, Table};
use weir_model::units::Usd;

/// The prices that come with Weir.
pub const BUILTIN: &str = include_str!("prices.toml");
/// The highest price that is read, in USD.
const MOST: f64 = 1e12;

/// What the parts of a pool cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// The device or switch that makes the pool.
    pub pool_device: Usd,
    /// A GB (2^30 bytes) of a server's memory.
    pub server_dram: Usd,
    /// The cables of a server.
    pub cables: Usd,
    /// The card by which a server reaches the pool.
    pub card: Usd,
    /// Rack, power and work of a pool over its life.
    pub operation: Usd,
    /// Every price with its source, as it was read.
    pub list: Vec<Price>,
}

/// A price as it was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// The part.
    pub part: String,
    /// The price.
    pub price: f64,
    /// Its unit: `USD` or `USD/GB`.
    pub unit: String,
    /// Where it is from.
    pub source: String,
    /// When it was so.
    pub date: String,
}

impl Prices {
    /// The prices that come with Weir: list prices of 2023.
    ///
    /// # Errors
    /// None; a test reads them.
    pub fn builtin() -> Result<Self, Mistakes> {
        Self::read("prices.toml", BUILTIN)
    }

    /// Reads a file of prices; `file` names it in messages.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn read(file: &str, text: &str) -> Result<Self, Mistakes> {
        toml::read(file, text, "a file of prices", read)
    }

    /// What a server needs to take part in a pool.
    pub fn of_server(&self) -> Usd {
        self.cables + self.card
    }

    /// What a pool costs, whatever the number of its servers.
    pub fn of_pool(&self) -> Usd {
        self.pool_device + self.operation
    }
}

fn read(root: &Table<'_>) -> Option<Prices> {
    root.expect_kind("prices", "a file of prices")?;
    let parts = [
        ("pool_device", "USD"),
        ("server_dram", "USD/GB"),
        ("cables", "USD"),
        ("card", "USD"),
        ("operation", "USD"),
    ];
    let list = parts.map(|(part, unit)| price(root, part, unit));
    root.done("a file of prices");
    let list: Vec<Price> = list.into_iter().collect::<Option<_>>()?;
    let [pool_device, server_dram, cables, card, operation] = list.as_slice() else {
        return None;
    };
    Some(Prices {
        pool_device: Usd(pool_device.price),
        server_dram: Usd(server_dram.price),
        cables: Usd(cables.price),
        card: Usd(card.price),
        operation: Usd(operation.price),
        list,
    })
}

fn price(root: &Table<'_>, part: &str, unit: &str) -> Option<Price> {
    if !root.has(part) {
        root.missing(
            part,
            format!("add a table `[{part}]` with value, unit, source and date"),
        );
        return None;
    }
    let table = root.section(part);
    let value = table
        .need("value", "3")
        .and_then(|field| field.number(0.0..=MOST));
    let is = table
        .need("unit", &format!("\"{unit}\""))
        .and_then(|field| {
            let found = field.text()?;
            (found == unit)
                .then_some(())
                .or_else(|| field.must_be(format!("\"{unit}\"")))
        });
    let text = |key| Some(table.need(key, "\"…\"")?.text_or_number()?.to_owned());
    let (source, date) = (text("source"), text("date"));
    table.done("a price");
    is?;
    Some(Price {
        part: part.replace('_', " "),
        price: value?,
        unit: unit.to_owned(),
        source: source?,
        date: date?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prices_that_come_with_weir_are_read() {
        let prices = Prices::builtin().unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(
            (prices.of_pool(), prices.server_dram),
            (Usd(38_500.0), Usd(3.0))
        );
        assert!(
            prices
                .list
                .iter()
                .all(|price| !price.source.is_empty() && price.date == "2023")
        );
    }

    #[test]
    fn every_mistake_names_its_line_and_key() {
        let text = BUILTIN
            .replace("value = 38500", "value = -1")
            .replace("unit = \"USD/GB\"", "unit = \"EUR\"")
            .replace("[cables]", "[cabels]");
        let shown = Prices::read("my.toml", &text).unwrap_err().to_string();
        for expected in [
            "`pool_device.value` must be a number between 0",
            "--> my.toml:5:9",
            "`server_dram.unit` must be \"USD/GB\"",
            "`cabels` is not a key of a file of prices",
            "missing key `cables`",
        ] {
            assert!(shown.contains(expected), "{expected:?} is not in:\n{shown}");
        }
    }
}
