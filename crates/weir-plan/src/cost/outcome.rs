//! The document of `weir plan cost`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::number::count;
use weir_model::units::Usd;

use super::break_even::{Reading, Step};
use super::dimms::Cut;
use super::flips::Flip;
use crate::prices::Price;

/// When pools pay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostPlan {
    /// Smallest pools that pay.
    pub pools: Vec<PoolSize>,
    /// The model in which memory costs the same everywhere.
    pub equal_prices: Vec<Step>,
    /// What would change the answer.
    pub flips: Vec<Flip>,
    /// Cuts of a server's memory that can be bought.
    pub cuts: Vec<Cut>,
    /// The prices.
    pub prices: Vec<Price>,
    /// Servers of the pool that is asked about.
    pub servers: u32,
    /// The reading of the answer.
    pub reading: Reading,
    /// What is left over by the first shape of servers at the first price.
    pub net: Usd,
}

/// The smallest pool that pays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolSize {
    /// The reading of the model.
    pub reading: Reading,
    /// Memory of a server for each virtual processor, in GB.
    pub gb_per_vcpu: f64,
    /// Price of the pool's memory, of a server's.
    pub pool_price_pct: f64,
    /// What a server costs less.
    pub saved_a_server: Usd,
    /// Servers at which nothing is left over; absent where no number of servers pays.
    pub servers_exact: Option<f64>,
    /// The same as a whole number.
    pub servers: Option<u64>,
    /// What is left over by the pool that is asked about.
    pub net: Usd,
    /// How the figures are computed: p is the price of server memory, M a server's memory, r the price of the pool's
    /// memory as a share of p, s the share of all memory that is saved.
    pub formula: String,
}

impl Outcome for CostPlan {
    const SCHEMA: &'static str = "weir/plan-cost/1";
    const TITLE: &'static str = "Cost of pools";
    const WORDS: &'static str =
        "A pool pays from the number of servers on at which its saving covers its price.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let is_asked = |pool: &&PoolSize| pool.reading == self.reading;
        let mut notes = Vec::new();
        if let Some(pool) = self.pools.iter().find(is_asked) {
            let verb = if self.net.get() > 0.0 {
                "pays"
            } else {
                "does not pay"
            };
            let from = match pool.servers {
                Some(servers) => format!("it pays from {servers} servers on"),
                None => "no number of servers pays".into(),
            };
            notes.push(note(
                &format!("a pool of {} {verb}", count(u64::from(self.servers), "server")),
                format!(
                    "{} USD are left over with {} GB a vCPU and pool memory at {:.0} % of the price; {from} (reading {})",
                    self.net.get().round(),
                    pool.gb_per_vcpu,
                    pool.pool_price_pct,
                    pool.reading.name()
                ),
            ));
            notes.push(note("formula", pool.formula.clone()));
        }
        let flips: Vec<String> = (self.flips.iter())
            .filter_map(|flip| {
                let at = number(flip.at?);
                Some(
                    format!("{} {} {at} {}", flip.what, flip.pays, flip.unit)
                        .trim_end()
                        .to_owned(),
                )
            })
            .collect();
        notes.push(note("it pays with one of", flips.join("; ")));
        if let Some(cut) = self.cuts.iter().find(|cut| cut.net_pct > 0.0) {
            let text = format!(
                "the smallest cut that can be bought is {:.0} % ({} DIMMs); the pool then needs {:.0} % of the memory, and \
                 {:.1} % is saved",
                cut.cut_pct, cut.dimm, cut.need_pool_pct, cut.net_pct
            );
            notes.push(note("DIMMs", text));
        }
        notes
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let pools = vec![
            col("reading"),
            col("gb_per_vcpu").head("GB/vCPU"),
            col("pool_price_pct").head("pool price"),
            col("saved_a_server").head("saved a server"),
            col("servers_exact").head("servers").empty("none"),
            col("net").signed().head("left over"),
        ];
        let steps = vec![col("what"), col("value"), col("unit"), col("formula")];
        let flips = vec![
            col("what"),
            col("now"),
            col("pays").head("pays"),
            col("at").head("this").empty("never"),
            col("unit"),
        ];
        let cuts = vec![
            col("dimm"),
            col("server"),
            col("cut_pct").head("cut"),
            col("need_pool_pct").head("pool needs"),
            col("have_pool").head("pool has"),
            col("net_pct").signed().head("not bought"),
            col("net").signed().head("left over"),
        ];
        let prices = vec![
            col("part"),
            col("price"),
            col("unit"),
            col("date"),
            col("source"),
        ];
        vec![
            View::table("pools", "The smallest pool that pays", pools),
            View::table("equal_prices", "Memory at equal prices", steps),
            View::table("flips", "What would change the answer, each alone", flips),
            View::table("cuts", "Cuts that can be bought", cuts),
            View::table("prices", "Prices", prices),
            View::lines(
                "pools",
                "The smallest pool that pays, by reading and GB a vCPU",
                (
                    "pool_price_pct",
                    "price of the pool's memory (% of a server's)",
                ),
                ("servers_exact", "servers"),
                &["reading", "gb_per_vcpu"],
            ),
        ]
    }
}

/// Three significant digits, in full.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
