//! The page of explanations, predictions and advice: whatever a document holds, it is drawn.

use proptest::prelude::*;
use serde_json::{Value, json};
use weir::report::{Insight, page};
use weir::shown::shown;
use weir::store::RunId;
use weir_insight::documents::{Explained, Predictions, Tuned};
use weir_lab::Outcome;

fn of<O: Outcome>(rest: Value) -> Insight {
    let document = serde_json::from_value(origin(O::SCHEMA, rest)).unwrap();
    Insight {
        run: RunId(4),
        began: "2026-03-01 14:05:09".into(),
        verb: "predict".into(),
        command: "weir predict a --seed 7".into(),
        shown: shown::<O>(&document),
    }
}

fn origin(schema: &str, rest: Value) -> Value {
    let mut all = json!({
        "schema": schema, "weir": "0.1.0", "processor": "a processor", "seed": 7, "elapsed_s": 1.0,
        "warnings": [], "partial": false, "from": "dram", "to": "cxl0",
    });
    let (into, rest) = (all.as_object_mut().unwrap(), rest.as_object().unwrap());
    into.extend(rest.clone());
    all
}

/// What happens to one workload.
#[derive(Debug, Clone)]
struct Any {
    name: String,
    figures: [f64; 4],
    known: bool,
}

fn any_workload() -> impl Strategy<Value = Any> {
    let figure = prop_oneof![8 => -50.0f64..900.0, 1 => Just(0.0), 1 => -1e12f64..1e12];
    (".{0,12}", proptest::array::uniform4(figure), any::<bool>()).prop_map(
        |(name, figures, known)| Any {
            name,
            figures,
            known,
        },
    )
}

fn components(any: &Any) -> Value {
    match any.known {
        true => json!({"store": any.figures[0], "cache": any.figures[1], "l3": any.figures[1],
                       "dram": any.figures[2], "other": any.figures[3]}),
        false => json!({"dram": any.figures[2]}),
    }
}

/// The same workloads, explained, predicted and interleaved.
fn documents(all: &[Any]) -> [Insight; 3] {
    let phases = |with: &str| -> Vec<Value> {
        let phase = |any: &Any| {
            json!({"phase": any.name, "share_pct": any.figures[0].abs(), with: components(any),
                   "slowdown_pct": any.figures[3]})
        };
        all.iter().map(phase).collect()
    };
    let run = |tier: &str| {
        json!({"workload": "w", "tier": tier, "lost": {"dram": 60.0}, "evidence": "e", "prefetch": {},
               "phases": phases("lost")})
    };
    let explained = json!({
        "runs": [run("dram"), run("cxl0")],
        "difference": {"slowdown_pct": 40.0, "components": {"dram": 45.0, "l2": -2.5},
                       "phases": phases("components")},
    });
    let predicted = |any: &Any| {
        let [a, b, c, d] = any.figures;
        json!({"workload": any.name, "components": components(any), "slowdown_pct": a,
               "interval_pct": [b.min(a), c.max(a)], "bound": any.known.then_some("latency"), "evidence": "e",
               "rejected": [{"of": "llc_mpki", "slowdown_pct": d}],
               "measured": {"slowdown_pct": b, "components": components(any)}})
    };
    let predictions: Vec<Value> = all.iter().map(predicted).collect();
    let advice = |any: &Any| {
        json!({"method": any.name, "runs": 1, "share_pct": any.figures[0].abs() % 100.0, "weights": [1, 1],
               "change_pct": any.known.then_some(any.figures[3])})
    };
    let tried = |any: &Any| {
        json!({"share_pct": any.figures[0].abs() % 100.0, "change_pct": any.figures[1],
               "predicted_pct": any.known.then_some(any.figures[2])})
    };
    let tuned = json!({
        "workload": "w", "evidence": "e",
        "advice": all.iter().map(advice).collect::<Vec<_>>(),
        "curve": all.iter().map(tried).collect::<Vec<_>>(),
    });
    let predicted = json!({ "predictions": predictions });
    [
        of::<Explained>(explained),
        of::<Predictions>(predicted),
        of::<Tuned>(tuned),
    ]
}

#[test]
fn a_doubt_is_no_note() {
    let run = json!({"workload": "w", "tier": "dram", "time_ns": 2e6, "lost": {}, "evidence": "e", "prefetch": {},
                     "untold": [{"counter": "cycles", "why": "there is no PMU", "cost": "all"}]});
    let page = page(&[], &[of::<Explained>(json!({"runs": [run]}))]);
    assert!(page.contains("<li class=\"note\">dram: took 2.00 ms.</li>"));
    assert!(page.contains("<li class=\"doubt\">causes: cycles were not counted"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_document_is_drawn(all in proptest::collection::vec(any_workload(), 0..40)) {
        let page = page(&[], &documents(&all));
        let mut charts = 0;
        for (at, _) in page.match_indices("<svg") {
            let end = page[at..].find("</svg>").unwrap() + "</svg>".len();
            let chart = &page[at..at + end];
            let tree = roxmltree::Document::parse(chart);
            prop_assert!(tree.is_ok(), "{tree:?}\n{chart}");
            for shape in tree.unwrap().descendants() {
                for place in shape.attributes().filter(|a| a.name() != "aria-label") {
                    let lost = ["NaN", "inf"].iter().any(|w| place.value().contains(w));
                    prop_assert!(!lost, "{place:?}");
                    // Bars have no length below zero, which browsers do not draw.
                    let drawn = !matches!(place.name(), "width" | "height") || !place.value().starts_with('-');
                    prop_assert!(drawn, "{place:?}");
                }
            }
            charts += 1;
        }
        prop_assert_eq!(page.matches("<figure>").count() * 2, charts);
        prop_assert!(charts >= 4);
    }
}
