//! The JSON report of `fio` on its requests, at its end or on request.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::latency::LatencyHistogram;
use weir_model::units::Nanos;

/// The relevant part of its report (fio's documentation, `--output-format=json+`).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Report {
    jobs: Vec<Job>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Job {
    #[serde(default)]
    error: i64,
    read: Side,
    write: Side,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Side {
    io_bytes: u64,
    /// From submission to completion.
    #[serde(default)]
    clat_ns: Completion,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
struct Completion {
    /// Number of requests by latency in ns; the key is the middle of a bin 1/64 wide.
    #[serde(default)]
    bins: BTreeMap<u64, u64>,
}

impl Report {
    /// Reads a report.
    ///
    /// # Errors
    /// It has another form: what is wrong with it.
    pub fn read(document: &str) -> Result<Self, String> {
        match serde_json::from_str::<Self>(document) {
            Ok(report) if report.jobs.is_empty() => Err("it has no jobs".to_owned()),
            Ok(report) => Ok(report),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Bytes of requests that completed, of all threads.
    pub fn bytes(&self) -> u64 {
        self.sides()
            .fold(0, |sum, side| sum.saturating_add(side.io_bytes))
    }

    /// Latencies of the completed requests of all threads.
    pub fn times(&self) -> Times {
        let mut all = BTreeMap::<u64, u64>::new();
        for (&ns, &count) in self.sides().flat_map(|side| &side.clat_ns.bins) {
            let sum = all.entry(ns).or_default();
            *sum = sum.saturating_add(count);
        }
        Times(all)
    }

    /// The first error number, if a thread failed.
    pub fn error(&self) -> Option<i64> {
        self.jobs.iter().map(|job| job.error).find(|&e| e != 0)
    }

    fn sides(&self) -> impl Iterator<Item = &Side> {
        self.jobs.iter().flat_map(|job| [&job.read, &job.write])
    }
}

/// Latencies of requests since the start: the number of requests for each latency in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Times(BTreeMap<u64, u64>);

impl Times {
    /// Latencies of the requests that completed after `earlier`; `None` if there were none.
    pub fn since(&self, earlier: &Self) -> Option<LatencyHistogram> {
        let mut later = LatencyHistogram::new();
        for (&ns, &count) in &self.0 {
            let before = earlier.0.get(&ns).copied().unwrap_or(0);
            later.record_many(Nanos(ns as f64), count.saturating_sub(before));
        }
        (!later.is_empty()).then_some(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAID: &str = "{\"fio version\": \"fio-3.33\", \"jobs\": [{\"jobname\": \"x\", \"error\": 0, \
        \"read\": {\"io_bytes\": 4096, \"bw\": 1.5, \"clat_ns\": {\"min\": 0, \"bins\": {\"80384\": 2, \
        \"22151168\": 1}}}, \"write\": {\"io_bytes\": 8192}}]}\n";

    #[test]
    fn a_report_tells_bytes_and_times() {
        let report = Report::read(SAID).unwrap();
        assert_eq!((report.bytes(), report.error()), (12_288, None));
        let all = report.times().since(&Times::default()).unwrap();
        assert_eq!(all.len(), 3);
        // To the three digits that are kept: (2 x 80384 + 22151168) / 3.
        assert!((all.mean().get() / 7_437_312.0 - 1.0).abs() < 1e-3);
        assert!((all.quantile(1.0).get() / 22_151_168.0 - 1.0).abs() < 1e-3);
        assert!(report.times().since(&report.times()).is_none());
        for cut in 0..SAID.len() - 2 {
            assert!(Report::read(&SAID[..cut]).is_err(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn what_came_since_is_what_was_added(
            before in prop::collection::btree_map(1_u64..1_000_000_000, 1_u64..1000, 0..20),
            more in prop::collection::btree_map(1_u64..1_000_000_000, 1_u64..1000, 1..20),
        ) {
            let mut all = before.clone();
            for (ns, count) in &more {
                *all.entry(*ns).or_default() += count;
            }
            let since = Times(all).since(&Times(before)).unwrap();
            let mut expected = LatencyHistogram::new();
            for (ns, count) in more {
                expected.record_many(Nanos(ns as f64), count);
            }
            prop_assert_eq!(since.buckets(), expected.buckets());
        }

        #[test]
        fn garbage_is_refused_in_words(text in "(?s).{0,200}", place in 0_usize..SAID.len(), with: char) {
            let _ = Report::read(&text);
            let mut hurt = SAID.to_owned();
            hurt.replace_range(place..=place, &with.to_string());
            if let Err(why) = Report::read(&hurt) {
                prop_assert!(!why.is_empty());
            }
        }
    }
}
