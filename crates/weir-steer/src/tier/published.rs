//! Rules for published rows of page placement: TPP's throughput and its share of local accesses; those of Alto are in
//! `alto`.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_lab::reproduce::rule::{Figure, Rule};
use weir_lab::{Ask, Lab, LabError};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::study::INTERVAL_S;
use super::trial::preset;
use super::{Ratio, Trial, TrialResult, curves};

/// The policies of the paper's Table 1 and of its ablations.
const POLICIES: [&str; 6] = [
    "first-touch",
    "tpp",
    "numa-balancing",
    "autotiering",
    "tpp-coupled",
    "tpp-cache-to-slow",
];
/// What a machine with room for everything in its fast tier is called among them.
const LOCAL: &str = "all-local";
/// A server of two sockets, whose latencies are close to the paper's of about 100 and 180 ns (Fig 5a).
const ON: &str = "emr2s";
/// Simulated time, after which shares do not change any more, of a workload of this size.
const SECONDS: f64 = 900.0;
const SIZE: Bytes = Bytes::gib(16);

/// A workload of the paper under each policy.
#[derive(Debug, Clone, Copy, Serialize)]
struct Compared {
    workload: &'static str,
    ratio: Ratio,
    seconds: f64,
    size: Bytes,
    /// As in [`Trial`].
    version: u32,
}

impl Ask for Compared {
    type Got = BTreeMap<String, TrialResult>;
    const KIND: &'static str = "pages under each policy";

    fn ask(&self, lab: &Lab<'_>) -> Result<Self::Got, LabError> {
        let tiers = [TierName::dram(), TierName::remote()];
        let curves = curves(&lab.inside(), &tiers)?;
        let one = |policy: Option<&str>| {
            let trial = Trial {
                workload: preset(self.workload, self.size)?,
                requests: None,
                policy: policy.map(str::to_owned),
                ratio: self.ratio,
                seconds: self.seconds,
                interval_s: INTERVAL_S,
                curves: curves.clone(),
                version: weir_pages::VERSION,
            };
            let result = trial.run(lab)?;
            Ok((policy.unwrap_or(LOCAL).to_owned(), result))
        };
        let policies = std::iter::once(None).chain(POLICIES.into_iter().map(Some));
        policies.map(one).collect()
    }
}

/// A workload at a ratio of capacities.
#[derive(Clone, Copy)]
struct Case(&'static str, u32, u32);

impl Case {
    fn read(
        self,
        policy: &'static str,
        of: impl Fn(&TrialResult, &TrialResult) -> f64 + Send + Sync + 'static,
    ) -> Figure {
        let compared = Compared {
            workload: self.0,
            ratio: Ratio {
                fast: self.1,
                slow: self.2,
            },
            seconds: SECONDS,
            size: SIZE,
            version: weir_pages::VERSION,
        };
        Figure::read("%", ON, compared, move |got| {
            let result = |name: &str| got.get(name).ok_or("the policy did not run");
            Ok(of(result(policy)?, result(LOCAL)?))
        })
    }

    /// Throughput once settled, of that with all memory local.
    fn throughput(self, policy: &'static str) -> Figure {
        self.read(policy, |own, local| {
            own.settled.maccesses_per_s / local.settled.maccesses_per_s * 100.0
        })
    }

    fn loss(self, policy: &'static str) -> Figure {
        self.read(policy, |own, local| {
            100.0 - own.settled.maccesses_per_s / local.settled.maccesses_per_s * 100.0
        })
    }

    fn local(self, policy: &'static str) -> Figure {
        self.read(policy, |own, _| own.settled.local_pct)
    }

    fn remote(self, policy: &'static str) -> Figure {
        self.read(policy, |own, _| 100.0 - own.settled.local_pct)
    }

    fn anon(self, policy: &'static str) -> Figure {
        self.read(policy, |own, _| own.settled.anon_local_pct)
    }

    fn anon_remote(self, policy: &'static str) -> Figure {
        self.read(policy, |own, _| 100.0 - own.settled.anon_local_pct)
    }
}

const SHAPE: &str = "a preset shaped by the paper's description; its skew, its share of time in memory and its growth are \
                     assumed; in the last quarter of 15 min";
const SPEED: &str = "needs the time of single passes of reclaim and promotion";
const PRODUCTION: &str = "needs the production service's own changes of load";
const TMO: &str = "needs TMO";

/// Every rule for rows of page placement.
pub fn rules() -> Vec<Rule> {
    let web = Case("web1", 2, 1);
    let cache = Case("cache1", 2, 1);
    let small = Case("cache1", 1, 4);
    let cache2 = Case("cache2", 2, 1);
    let warehouse = Case("data-warehouse", 2, 1);
    let [linux, tpp, numa, auto, coupled, to_slow] = POLICIES;
    let table = [
        ("053", web, 4),
        ("054", cache, 4),
        ("055", small, 3),
        ("056", cache2, 4),
        ("058", warehouse, 2),
    ];
    let table = table.into_iter().flat_map(|(row, case, columns)| {
        let columns = ["a", "b", "c", "d"].into_iter().zip(POLICIES).take(columns);
        columns.map(move |(column, policy)| (format!("{row}{column}"), case.throughput(policy)))
    });
    let rows = [
        ("060", web.local(linux)),
        ("062", web.anon(tpp)),
        ("063", web.local(tpp)),
        ("069a", cache2.local(linux)),
        ("069b", cache2.local(tpp)),
        ("073a", warehouse.anon(tpp)),
        ("073b", warehouse.anon(linux)),
        ("075", small.anon_remote(linux)),
        ("078", small.local(tpp)),
        ("094", small.remote(coupled)),
        ("095", small.loss(coupled)),
        ("107a", web.local(to_slow)),
        ("107b", web.throughput(to_slow)),
        ("108a", small.local(to_slow)),
        ("108b", small.throughput(to_slow)),
        ("113", web.local(numa)),
        ("116", web.remote(auto)),
    ];
    let rows = rows.map(|(row, figure)| (row.to_owned(), figure));
    let predicted = table.chain(rows).map(|(row, figure)| Rule {
        is_slow: true,
        note: SHAPE,
        ..Rule::predicted(format!("TPP-{row}"), figure)
    });
    let tmo = Rule::not_modelled("TPP", [128], TMO);
    let tmo = tmo.flat_map(|rule| {
        ["a", "b"].map(|part| Rule {
            id: format!("{}{part}", rule.id),
            ..rule.clone()
        })
    });
    predicted
        .chain(Rule::not_modelled("TPP", [59, 106, 112, 115], SPEED))
        .chain(Rule::not_modelled("TPP", [93, 96, 97], PRODUCTION))
        .chain(tmo)
        .chain(super::alto::rules())
        .collect()
}
