//! What would have to change, alone, for a pool to pay or not to pay.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::break_even::Case;
use crate::prices::Prices;

/// A parameter, and where the answer changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flip {
    /// The parameter.
    pub what: String,
    /// Its value now.
    pub now: f64,
    /// Its value at which the pool neither saves nor loses, all else as it is; absent where no value does.
    pub at: Option<f64>,
    /// The unit of both.
    pub unit: String,
    /// What makes the pool pay: `above` this value or `below` it.
    pub pays: String,
}

/// Where the answer for a pool of this many servers changes, by each parameter alone.
pub fn flips(case: &Case, prices: &Prices, servers: f64) -> Vec<Flip> {
    let pool = prices.of_pool().get();
    let parts = prices.of_server().get();
    let per_gb = prices.server_dram.get();
    // What a server must save so that nothing is left over.
    let needed = pool / servers + parts;
    let share = needed / (per_gb * case.server_gb());
    let row = |what: &str, now: f64, at: f64, unit: &str, pays: &str, most: f64| Flip {
        what: what.into(),
        now,
        at: (at.is_finite() && (0.0..=most).contains(&at)).then_some(at),
        unit: unit.into(),
        pays: pays.into(),
    };
    let saved = case.saved_a_server(prices).get();
    let gross = saved + parts;
    let any = f64::MAX;
    vec![
        row(
            "pool, with operation",
            pool,
            servers * saved,
            "USD",
            "below",
            any,
        ),
        row(
            "server memory",
            per_gb,
            needed / (case.server_gb() * case.share()),
            "USD/GB",
            "above",
            any,
        ),
        row(
            "pool memory price",
            100.0 * case.price_ratio,
            100.0 * case.ratio_for(share),
            "%",
            "below",
            any,
        ),
        row(
            "memory saved",
            100.0 * case.saved,
            100.0 * case.saved_for(share),
            "%",
            "above",
            // No pool saves more than was cut.
            100.0 * case.cut,
        ),
        row(
            "memory of a vCPU",
            case.gb_per_core,
            needed / (per_gb * case.share() * case.vcpus),
            "GB",
            "above",
            any,
        ),
        row(
            "cables and card of a server",
            parts,
            gross - pool / servers,
            "USD",
            "below",
            any,
        ),
        row("servers", servers, pool / saved, "", "above", any),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::break_even::Reading;
    use weir_model::units::Usd;

    fn with(case: &Case, prices: &Prices, what: &str, at: f64) -> (Case, Prices, Option<f64>) {
        let (mut case, mut prices, mut servers) = (*case, prices.clone(), None);
        match what {
            "pool, with operation" => prices.pool_device = Usd(at) - prices.operation,
            "server memory" => prices.server_dram = Usd(at),
            "pool memory price" => case.price_ratio = at / 100.0,
            "memory saved" => case.saved = at / 100.0,
            "memory of a vCPU" => case.gb_per_core = at,
            "cables and card of a server" => prices.card = Usd(at) - prices.cables,
            "servers" => servers = Some(at),
            other => panic!("{other}"),
        }
        (case, prices, servers)
    }

    #[test]
    fn at_each_value_nothing_is_left_over_and_beyond_it_the_pool_pays() {
        let mut prices = Prices::builtin().unwrap();
        (prices.cables, prices.card) = (Usd(20.0), Usd(30.0));
        for reading in Reading::ALL {
            let case = Case {
                reading,
                gb_per_core: 4.0,
                vcpus: 384.0,
                price_ratio: 0.8,
                cut: 0.25,
                saved: 0.09,
            };
            let mut found = 0;
            for flip in flips(&case, &prices, 64.0) {
                let Some(at) = flip.at else { continue };
                found += 1;
                let net = |at: f64| {
                    let (case, prices, servers) = with(&case, &prices, &flip.what, at);
                    case.net(&prices, servers.unwrap_or(64.0)).get()
                };
                assert!(net(at).abs() < 1e-6, "{}: {}", flip.what, net(at));
                let better = if flip.pays == "above" {
                    at * 1.01
                } else {
                    at * 0.99
                };
                assert!(net(better) > 0.0, "{}", flip.what);
            }
            // By the second reading the pool would not even pay if servers needed no parts.
            assert_eq!(found, if reading == Reading::A { 7 } else { 6 });
            // A server alone would have to save more than was cut, and no price of memory helps.
            let alone = flips(&case, &prices, 1.0);
            let saved = alone.iter().find(|flip| flip.what == "memory saved");
            assert_eq!(saved.map(|flip| flip.at), Some(None));
        }
    }
}
