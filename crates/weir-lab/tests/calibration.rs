//! Rules of `reproduce` against the platform files: a row is called calibrated exactly where a
//! parameter says that it comes from it.

use std::collections::BTreeSet;

use weir_lab::reproduce::rules::{self, Rule};
use weir_model::platform::{Library, Platform, Provenance};

fn platforms(rule: &Rule) -> Vec<Platform> {
    let names: BTreeSet<&str> = rule
        .statistic
        .wanted()
        .iter()
        .map(|wanted| wanted.platform)
        .collect();
    let library = Library::builtin();
    names
        .into_iter()
        .map(|name| library.compose(name).unwrap())
        .collect()
}

/// Where a row is named: in the source of a parameter, in the reason for an assumed one.
fn named(rule: &Rule) -> (bool, bool) {
    let (mut in_source, mut in_reason) = (false, false);
    for parameter in platforms(rule).iter().flat_map(Platform::describe) {
        match parameter.provenance {
            Provenance::Source(text) => in_source |= text.contains(rule.id),
            Provenance::Assumed { why, .. } => in_reason |= why.contains(rule.id),
        }
    }
    (in_source, in_reason)
}

#[test]
fn a_calibrated_row_is_named_by_a_parameter_of_its_platforms() {
    for rule in rules::all().filter(|rule| rule.sets_parameter) {
        let (in_source, in_reason) = named(rule);
        assert!(in_source || in_reason, "{} sets nothing", rule.id);
    }
}

#[test]
fn a_predicted_row_is_the_source_of_no_parameter() {
    for rule in rules::all().filter(|rule| !rule.sets_parameter) {
        assert!(!named(rule).0, "{} sets a parameter", rule.id);
    }
}

#[test]
fn every_platform_of_a_rule_has_the_tiers_that_the_rule_wants() {
    let library = Library::builtin();
    for wanted in rules::all().flat_map(|rule| rule.statistic.wanted()) {
        let topology = library.compose(wanted.platform).unwrap().topology();
        let point = wanted.on(&topology);
        let enough = wanted.threads as usize <= topology.cores.len();
        assert_eq!(point.is_ok(), enough, "{point:?}");
    }
}
