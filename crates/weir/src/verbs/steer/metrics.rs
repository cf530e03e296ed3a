//! The status as OpenMetrics, which Prometheus and similar tools read.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;

use weir_steer::readings::Role;
use weir_steer::status::StatusDocument;

type Level = Gauge<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTier {
    tier: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTenant {
    tenant: String,
    role: &'static str,
}

/// The text of an answer to a scrape.
pub fn exposition(status: &StatusDocument) -> String {
    let mut registry = Registry::with_prefix("weir_steer");
    let count = |registry: &mut Registry, name: &str, help: &str, n: u64| {
        registry.register(name, help, ConstCounter::new(n));
    };
    count(&mut registry, "windows", "Windows seen", status.windows);
    count(
        &mut registry,
        "decisions",
        "Windows with a new decision",
        status.decisions,
    );
    count(
        &mut registry,
        "refusals",
        "Limits that were refused, in part or whole",
        status.refusals,
    );
    let troubles = status.troubles.len() as f64;
    level(
        &mut registry,
        "troubles",
        "Problems outside of steering",
        troubles,
    );
    let dry = if status.dry { 1.0 } else { 0.0 };
    level(&mut registry, "dry", "Whether no tenant is limited", dry);
    if let Some(window) = status.last() {
        level(
            &mut registry,
            "level",
            "The controller's level, 0 for free",
            f64::from(window.level),
        );
        level(
            &mut registry,
            "left_ratio",
            "The running that is left to tenants that may be limited",
            window.quota_pct / 100.0,
        );
        of_tiers(&mut registry, window);
        of_tenants(&mut registry, window);
    }
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

fn level(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Level::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

fn of_tiers(registry: &mut Registry, window: &weir_steer::record::WindowRecord) {
    let bandwidth = Family::<OfTier, Level>::default();
    for (tier, gbps) in &window.gbps {
        let label = OfTier { tier: tier.clone() };
        bandwidth.get_or_create(&label).set(gbps.get() * 1e9);
    }
    registry.register_with_unit(
        "tier_bandwidth",
        "Bytes a second of a tier",
        Unit::Other("bytes_per_second".into()),
        bandwidth,
    );
    if let Some(probe) = window.probe_ns {
        let gauge = Level::default();
        gauge.set(probe.get() * 1e-9);
        registry.register_with_unit(
            "fast_load",
            "How long a load from the fast tier takes",
            Unit::Seconds,
            gauge,
        );
    }
    let residency = Family::<OfTier, Level>::default();
    for (tier, ns) in &window.tor_ns {
        let label = OfTier { tier: tier.clone() };
        residency.get_or_create(&label).set(ns.get() * 1e-9);
    }
    registry.register_with_unit(
        "tor_residency",
        "How long a request stays in the Table of Requests",
        Unit::Seconds,
        residency,
    );
}

fn of_tenants(registry: &mut Registry, window: &weir_steer::record::WindowRecord) {
    let bandwidth = Family::<OfTenant, Level>::default();
    let left = Family::<OfTenant, Level>::default();
    for tenant in &window.tenants {
        let label = OfTenant {
            tenant: tenant.name.clone(),
            role: match tenant.role {
                Role::Protected => "protected",
                Role::Restrained => "restrained",
                Role::Bystander => "bystander",
            },
        };
        if let Some(gbps) = tenant.gbps {
            bandwidth.get_or_create(&label).set(gbps.get() * 1e9);
        }
        let cores = f64::from(tenant.cores.max(1));
        let share = tenant.held.units(tenant.cores) / cores;
        left.get_or_create(&label).set(share);
    }
    registry.register_with_unit(
        "tenant_bandwidth",
        "Bytes a second that a tenant draws",
        Unit::Other("bytes_per_second".into()),
        bandwidth,
    );
    registry.register(
        "tenant_left_ratio",
        "The running that is left to a tenant",
        left,
    );
}

#[cfg(test)]
mod tests {
    use weir_steer::Limit;

    use super::super::view::tests::{status, tenant, window};
    use super::*;

    fn text() -> String {
        let odd = "cgroup:/a \"b\"\n\\";
        let tenants = vec![
            tenant("unit:web.service", Limit::FREE),
            tenant(odd, Limit::FREE),
        ];
        exposition(&status(vec![window(tenants, 0.25)]))
    }

    #[test]
    fn figures_are_in_base_units_and_names_are_escaped() {
        let text = text();
        for line in [
            "weir_steer_windows_total 2",
            "weir_steer_tier_bandwidth_bytes_per_second{tier=\"dram\"} 84200000000.0",
            "weir_steer_left_ratio 0.125",
            "weir_steer_tenant_left_ratio{tenant=\"unit:web.service\",role=\"restrained\"} 1.0",
            "weir_steer_tenant_left_ratio{tenant=\"cgroup:/a \\\"b\\\"\\n\\\\\",role=\"restrained\"} 1.0",
            "# UNIT weir_steer_tor_residency_seconds seconds",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn the_dashboard_asks_for_what_there_is() {
        let dashboard = include_str!("../../../../../docs/steer/grafana.json");
        let _: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        let there = text();
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let asked = dashboard.split("weir_steer_").skip(1);
        let mut names = 0;
        for rest in asked {
            let name: String = rest.chars().take_while(|&c| letter(c)).collect();
            assert!(
                there.contains(&format!("weir_steer_{name}")),
                "{name}\n{there}"
            );
            names += 1;
        }
        assert!(names > 8, "{names}");
    }
}
