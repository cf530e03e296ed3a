//! `weir plan cost`: when a pool pays, and what would change the answer.

pub mod break_even;
pub mod dimms;
pub mod flips;
mod outcome;

use std::path::PathBuf;

use break_even::{Case, Reading, equal_prices};
use dimms::{Fleet, SIZES};
pub use outcome::{CostPlan, PoolSize};
use weir_lab::plan::distinct;

use crate::PlanError;
use crate::error::within;
use crate::prices::Prices;

/// When a pool has saved what it costs, with the formula, and what would change the answer.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(after_help = "\
Readings of the published model, whose formula is not printed:
  a  the pool has all that was cut; this gives the paper's 24 and 20 servers
  b  the pool has what was cut less what is saved, as the paper's text says

Examples:
  weir plan cost
  weir plan cost --servers 16 --gb-per-vcpu 8 --pool-price 50% --saved 7%
  weir plan cost --prices my-prices.toml --dimm 96 --format json")]
pub struct Cost {
    /// A file of prices in place of those that come with Weir.
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Servers that share the pool.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub servers: u32,
    /// Virtual processors of a server.
    #[arg(long, value_name = "N", default_value_t = 384)]
    pub vcpus: u32,
    /// Memory of a server for each virtual processor, in GB; the first is that of the answer.
    #[arg(long, value_name = "GB", value_delimiter = ',', default_value = "4,8")]
    pub gb_per_vcpu: Vec<f64>,
    /// Prices of the pool's memory, of a server's; the first is that of the answer.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "100%,50%,0%", value_parser = percent)]
    pub pool_price: Vec<f64>,
    /// Part of a server's memory that is cut.
    #[arg(long, value_name = "PERCENT", default_value = "25%", value_parser = percent)]
    pub cut: f64,
    /// Part of all memory that the pool saves.
    #[arg(long, value_name = "PERCENT", default_value = "9%", value_parser = percent)]
    pub saved: f64,
    /// The reading of the answer.
    #[arg(long, value_name = "READING", default_value = "a", value_parser = reading)]
    pub reading: Reading,
    /// Sockets of a server.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub sockets: u32,
    /// Memory channels of a socket.
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub channels: u32,
    /// DIMMs that servers have now, in GB.
    #[arg(long, value_name = "GB", default_value_t = 128)]
    pub dimm: u32,
    /// Memory channels of the pool.
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub pool_channels: u32,
}

/// A share of 1 from percent.
///
/// # Errors
/// It is no percentage of at most 1000.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|text| text.trim().parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("it is a percentage, such as 9%".into()),
    }
}

fn reading(text: &str) -> Result<Reading, String> {
    Reading::named(text).ok_or_else(|| "it is a or b".into())
}

impl Cost {
    /// Every figure of the model.
    ///
    /// # Errors
    /// An argument is outside its bounds.
    pub fn run(&self, prices: Prices) -> Result<CostPlan, PlanError> {
        self.check()?;
        within(
            "the price of server memory",
            prices.server_dram.get(),
            (1e-9, 1e12),
            "above 0 USD/GB",
        )?;
        let (servers, vcpus) = (f64::from(self.servers), f64::from(self.vcpus));
        let case = |reading, gb_per_core, price_ratio| Case {
            reading,
            gb_per_core,
            vcpus,
            price_ratio,
            cut: self.cut,
            saved: self.saved,
        };
        let mut pools = Vec::new();
        for reading in Reading::ALL {
            for gb in distinct(self.gb_per_vcpu.iter().copied()) {
                for ratio in distinct(self.pool_price.iter().copied()) {
                    let case = case(reading, gb, ratio);
                    let exact = case.servers(&prices);
                    pools.push(PoolSize {
                        reading,
                        gb_per_vcpu: gb,
                        pool_price_pct: 100.0 * ratio,
                        saved_a_server: case.saved_a_server(&prices),
                        servers_exact: exact,
                        servers: exact.map(|exact| exact.ceil() as u64),
                        net: case.net(&prices, servers),
                        formula: reading.formula().into(),
                    });
                }
            }
        }
        // Both lists have a first value, as was checked.
        let first = |list: &[f64]| list.first().copied().unwrap_or(1.0);
        let answer = case(
            self.reading,
            first(&self.gb_per_vcpu),
            first(&self.pool_price),
        );
        let fleet = Fleet {
            servers: self.servers,
            sockets: self.sockets,
            channels: self.channels,
            dimm: self.dimm,
            pool_channels: self.pool_channels,
            saved: self.saved,
            price_ratio: answer.price_ratio,
        };
        Ok(CostPlan {
            pools,
            equal_prices: equal_prices(&prices, self.saved, servers, vcpus),
            flips: flips::flips(&answer, &prices, servers),
            cuts: fleet.cuts(&prices),
            servers: self.servers,
            reading: self.reading,
            net: answer.net(&prices, servers),
            prices: prices.list,
        })
    }

    fn check(&self) -> Result<(), PlanError> {
        let count = "1 to 1000000";
        for (what, found) in [
            ("--servers", self.servers),
            ("--vcpus", self.vcpus),
            ("--sockets", self.sockets),
            ("--channels", self.channels),
            ("--pool-channels", self.pool_channels),
        ] {
            within(what, f64::from(found), (1.0, 1e6), count)?;
        }
        if !SIZES.contains(&self.dimm) {
            return Err(PlanError::OutOfBounds {
                what: "--dimm",
                found: self.dimm.to_string(),
                wanted: "32, 48, 64, 96 or 128 GB".into(),
            });
        }
        let none = self.gb_per_vcpu.is_empty().then_some(0.0);
        for gb in self.gb_per_vcpu.iter().copied().chain(none) {
            within(
                "--gb-per-vcpu",
                gb,
                (1e-6, 1e6),
                "above 0 and at most 1000000 GB",
            )?;
        }
        within(
            "--cut",
            self.cut,
            (1e-6, 1.0),
            "above 0 % and at most 100 %",
        )?;
        within(
            "--saved",
            self.saved,
            (1e-6, self.cut),
            "above 0 % and at most --cut",
        )
    }
}
