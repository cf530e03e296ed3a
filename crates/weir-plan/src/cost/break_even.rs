//! When a pool has saved as much memory as it costs (A Case Against CXL Memory Pooling, section 3.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::Usd;

use crate::prices::Prices;

/// GB in a TB, where both are powers of ten.
const DECIMAL: f64 = 1000.0;

weir_model::named! {
    /// How much memory goes into the pool after a cut of a server's own. The paper prints two figures and no formula.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Reading {
        /// The pool has as much as was cut, and servers lose what is saved besides. This gives the figures that the
        /// paper prints.
        A = "a",
        /// The pool has what was cut less what is saved, as the text of section 3.1 says.
        B = "b",
    }
}

impl Reading {
    /// The formula, as it is printed.
    pub fn formula(self) -> &'static str {
        match self {
            Reading::A => "saved = p M (cut (1 - r) + s) - server parts; servers = pool / saved",
            Reading::B => "saved = p M (cut - (cut - s) r) - server parts; servers = pool / saved",
        }
    }
}

/// A pool whose cost is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// The reading of the model.
    pub reading: Reading,
    /// Memory of a server before, in GB a virtual processor.
    pub gb_per_core: f64,
    /// Virtual processors of a server.
    pub vcpus: f64,
    /// Price of the pool's memory as a share of that of a server's.
    pub price_ratio: f64,
    /// Share of a server's memory that is cut.
    pub cut: f64,
    /// Share of all memory that is saved.
    pub saved: f64,
}

impl Case {
    /// Memory of a server before, in GB.
    pub fn server_gb(&self) -> f64 {
        self.gb_per_core * self.vcpus
    }

    /// The share of a server's memory whose price is saved.
    pub fn share(&self) -> f64 {
        match self.reading {
            Reading::A => self.cut * (1.0 - self.price_ratio) + self.saved,
            Reading::B => self.cut - (self.cut - self.saved) * self.price_ratio,
        }
    }

    /// The price of memory relative to a server's at which this share is saved; the inverse of [`Case::share`].
    pub fn ratio_for(&self, share: f64) -> f64 {
        match self.reading {
            Reading::A => 1.0 - (share - self.saved) / self.cut,
            Reading::B => (self.cut - share) / (self.cut - self.saved),
        }
    }

    /// The saving at which this share is saved; the inverse of [`Case::share`].
    pub fn saved_for(&self, share: f64) -> f64 {
        match self.reading {
            Reading::A => share - self.cut * (1.0 - self.price_ratio),
            Reading::B => self.cut - (self.cut - share) / self.price_ratio,
        }
    }

    /// What a server costs less, its cables and card deducted.
    pub fn saved_a_server(&self, prices: &Prices) -> Usd {
        prices.server_dram * (self.server_gb() * self.share()) - prices.of_server()
    }

    /// Servers from which on the pool pays; `None` where no number does.
    pub fn servers(&self, prices: &Prices) -> Option<f64> {
        let saved = self.saved_a_server(prices);
        (saved.get() > 0.0).then(|| prices.of_pool() / saved)
    }

    /// What a pool of this many servers leaves over.
    pub fn net(&self, prices: &Prices, servers: f64) -> Usd {
        self.saved_a_server(prices) * servers - prices.of_pool()
    }
}

/// A figure of the model, with the arithmetic behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What it is.
    pub what: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// How it comes from the figures before it.
    pub formula: String,
}

/// The model at equal prices, in which a pool saves memory and no memory is cheaper there.
///
/// The first figure is given in TB of 1000 GB and of 1024 GB: 38,500 USD at 3 USD/GB are 12.8 and 12.5 TB, where the
/// paper prints 12.6 TB. All that follows is in TB of 1000 GB.
pub fn equal_prices(prices: &Prices, saved: f64, servers: f64, vcpus: f64) -> Vec<Step> {
    let to_save = prices.of_pool().get() / prices.server_dram.get();
    let all = to_save / saved;
    let after = all - to_save;
    let step = |what: &str, value: f64, unit: &str, formula: &str| Step {
        what: what.into(),
        value,
        unit: unit.into(),
        formula: formula.into(),
    };
    vec![
        step(
            "memory to save",
            to_save / DECIMAL,
            "TB",
            "pool / p, 1 TB = 1000 GB",
        ),
        step(
            "the same",
            to_save / 1024.0,
            "TiB",
            "pool / p, 1 TiB = 1024 GB",
        ),
        step(
            "memory of all servers",
            all / DECIMAL,
            "TB",
            "memory to save / s",
        ),
        step(
            "the same after the saving",
            after / DECIMAL,
            "TB",
            "less the memory to save",
        ),
        step(
            "memory of a server",
            after / DECIMAL / servers,
            "TB",
            "after the saving / servers",
        ),
        step(
            "memory of a vCPU",
            after / servers / vcpus,
            "GB",
            "memory of a server / vCPUs",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn case(reading: Reading, gb_per_core: f64, price_ratio: f64) -> Case {
        Case {
            reading,
            gb_per_core,
            vcpus: 384.0,
            price_ratio,
            cut: 0.25,
            saved: 0.09,
        }
    }

    #[test]
    fn both_readings_at_the_published_points() {
        let prices = Prices::builtin().unwrap();
        let servers = |reading, gb, ratio| case(reading, gb, ratio).servers(&prices).unwrap();
        let near = |found: f64, wanted: f64| {
            assert!((found - wanted).abs() < 0.05, "{found} is not {wanted}")
        };
        near(servers(Reading::A, 4.0, 0.0), 24.6);
        near(servers(Reading::A, 8.0, 0.5), 19.4);
        near(servers(Reading::B, 4.0, 0.0), 33.4);
        near(servers(Reading::B, 8.0, 0.5), 24.6);
        for reading in Reading::ALL {
            near(servers(reading, 4.0, 1.0), 92.8);
            near(servers(reading, 8.0, 1.0), 46.4);
        }
    }

    #[test]
    fn equal_prices_give_the_published_terabytes() {
        let prices = Prices::builtin().unwrap();
        let steps = equal_prices(&prices, 0.09, 32.0, 384.0);
        let values: Vec<f64> = steps.iter().map(|step| step.value).collect();
        let expected = [12.83, 12.53, 142.6, 129.8, 4.055, 10.56];
        for (found, wanted) in values.iter().zip(expected) {
            assert!((found / wanted - 1.0).abs() < 0.001, "{values:?}");
        }
        assert_eq!(values.len(), expected.len());
    }

    proptest! {
        #[test]
        fn at_the_break_even_nothing_is_left_and_inverses_are_inverses(
            is_a: bool, gb in 0.5..64.0f64, ratio in 0.01..1.0f64, cut in 0.1..0.6f64, part in 0.05..0.95f64,
        ) {
            let reading = if is_a { Reading::A } else { Reading::B };
            let prices = Prices::builtin().unwrap();
            let case = Case { reading, gb_per_core: gb, vcpus: 384.0, price_ratio: ratio, cut, saved: cut * part };
            let servers = case.servers(&prices).unwrap();
            prop_assert!(case.net(&prices, servers).get().abs() < 1e-6 * prices.of_pool().get());
            prop_assert!((case.ratio_for(case.share()) - ratio).abs() < 1e-9);
            prop_assert!((case.saved_for(case.share()) - case.saved).abs() < 1e-9);
            // More expensive memory in the pool never helps.
            let dearer = Case { price_ratio: ratio + 0.1, ..case };
            prop_assert!(dearer.saved_a_server(&prices) <= case.saved_a_server(&prices));
        }
    }
}
