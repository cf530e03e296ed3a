//! Stranded memory, by cluster, by day, and by the cores that are rented (Pond, section 3.1 and Figure 2a).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traced;
use super::replay::{Day, Replayed};

/// Width of a bucket, in percent of the cores.
const WIDTH: f64 = 5.0;

/// Days on which about as many cores were rented.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StrandedBucket {
    /// Cores that were rented, the middle of the bucket; it is 5 % wide.
    pub cores_pct: f64,
    /// Days of clusters in it.
    pub days: u64,
    /// Mean of the memory that was stranded.
    pub mean_pct: f64,
    /// Its 5th percentile over days.
    pub p5_pct: f64,
    /// Its 95th percentile over days.
    pub p95_pct: f64,
    /// VMs, of those that were placed on these days, which span two sockets.
    #[serde(default)]
    pub spanning_pct: f64,
}

/// One day of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StrandedDay {
    /// The cluster.
    pub cluster: String,
    /// The day, from 0.
    pub day: u32,
    /// Mean of the cores that were rented.
    pub cores_pct: f64,
    /// Mean of the memory that was stranded.
    pub stranded_pct: f64,
    /// VMs that were placed.
    #[serde(default)]
    pub placed: u64,
    /// Those of them that span two sockets.
    #[serde(default)]
    pub spanning: u64,
}

/// Days in buckets of 5 % of the cores, the emptiest first.
pub fn buckets(days: &[Day]) -> Vec<StrandedBucket> {
    // A day on which all cores were rented is in the last bucket.
    let bucket = |day: &Day| (100.0 * day.cores / WIDTH).min(100.0 / WIDTH - 1.0).floor() as i64;
    let mut all: Vec<i64> = days.iter().map(bucket).collect();
    all.sort_unstable();
    all.dedup();
    let row = |of: i64| {
        let within: Vec<&Day> = days.iter().filter(|day| bucket(day) == of).collect();
        let sum = |of: fn(&Day) -> u64| within.iter().map(|day| of(day)).sum::<u64>();
        let (placed, spanning) = (sum(|day| day.placed), sum(|day| day.spanning));
        let mut stranded: Vec<f64> = within.iter().map(|day| 100.0 * day.stranded).collect();
        stranded.sort_by(f64::total_cmp);
        StrandedBucket {
            cores_pct: (of as f64 + 0.5) * WIDTH,
            days: stranded.len() as u64,
            mean_pct: stranded.iter().sum::<f64>() / stranded.len().max(1) as f64,
            p5_pct: percentile(&stranded, 0.05),
            p95_pct: percentile(&stranded, 0.95),
            spanning_pct: 100.0 * spanning as f64 / placed.max(1) as f64,
        }
    };
    all.into_iter().map(row).collect()
}

/// The value below which this share of sorted values is, the nearest rank.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

/// Every day of every cluster.
pub fn rows(clusters: &[Traced], replayed: &[Replayed]) -> Vec<StrandedDay> {
    let pairs = clusters.iter().zip(replayed);
    let rows = pairs.flat_map(|(traced, replayed)| {
        replayed.days.iter().map(|day| StrandedDay {
            cluster: traced.name.clone(),
            day: day.day,
            cores_pct: 100.0 * day.cores,
            stranded_pct: 100.0 * day.stranded,
            placed: day.placed,
            spanning: day.spanning,
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_bucketed_by_cores_with_their_percentiles() {
        let day = |cores: f64, stranded: f64| Day {
            day: 0,
            cores,
            stranded,
            placed: 8,
            spanning: 2,
        };
        let mut days: Vec<Day> = (1..=100)
            .map(|n| day(0.82, f64::from(n) / 1000.0))
            .collect();
        days.push(day(0.61, 0.5));
        days.push(day(1.0, 0.5));
        let buckets = buckets(&days);
        let found: Vec<_> = buckets
            .iter()
            .map(|bucket| (bucket.cores_pct, bucket.days))
            .collect();
        assert_eq!(found, [(62.5, 1), (82.5, 100), (97.5, 1)]);
        let high = &buckets[1];
        for (found, wanted) in [
            (high.spanning_pct, 25.0),
            (high.mean_pct, 5.05),
            (high.p5_pct, 0.5),
            (high.p95_pct, 9.5),
        ] {
            assert!((found - wanted).abs() < 1e-9, "{high:?}");
        }
    }
}
