//! The status as OpenMetrics, which Prometheus and similar tools read.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;

use weir_steer::readings::Role;
use weir_steer::status::{StatusDocument, TieringStatus};

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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPages {
    what: &'static str,
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
    if let Some(tiering) = &status.tiering {
        of_tiering(&mut registry, tiering);
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

fn of_tiering(registry: &mut Registry, of: &TieringStatus) {
    let TieringStatus { total, last } = of;
    let pages = Family::<OfPages, Counter>::default();
    for (what, count) in [
        ("promoted", total.promoted),
        ("candidate", total.candidates),
        ("demoted", total.demoted),
        ("hint_fault", total.hint_faults),
        ("failed", total.failed),
        ("swapped", total.swapped),
    ] {
        if let Some(count) = count {
            pages.get_or_create(&OfPages { what }).inc_by(count);
        }
    }
    registry.register(
        "kernel_tiering_pages",
        "Pages that the kernel's tiering looked at or moved, by its own counts",
        pages,
    );
    let rates = [
        (
            "kernel_promote_limit_requested",
            "The limit of promotion that is requested",
            last.requested.promote_limit,
        ),
        (
            "kernel_promote_limit",
            "The limit of promotion in force",
            last.in_force.promote_limit,
        ),
        (
            "kernel_promoted",
            "What the kernel promotes in a second",
            last.promoted_gbps,
        ),
    ];
    for (name, help, rate) in rates {
        if let Some(rate) = rate {
            let gauge = Level::default();
            gauge.set((rate.get() * 1e9).round());
            let unit = Unit::Other("bytes_per_second".into());
            registry.register_with_unit(name, help, unit, gauge);
        }
    }
    level(
        registry,
        "kernel_promote_limit_ratio",
        "The part of the configured limit that promotion gets",
        last.part_pct / 100.0,
    );
    if let Some(cycles) = last.amortised_cycles {
        level(
            registry,
            "amortised_latency_cycles",
            "Cycles with a demand read outstanding, for each demand read",
            cycles,
        );
    }
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
    use weir_model::tiering::{KernelTiering, TieringCounts, TieringRecord};
    use weir_model::units::{Bytes, GbPerSec};
    use weir_steer::Limit;

    use super::super::view::tests::{status, tenant, window};
    use super::super::view::view;
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
    fn the_kernels_tiering_is_exposed_as_requested_and_as_achieved() {
        let settings = |rate: f64| KernelTiering {
            promote_limit: Some(GbPerSec(rate)),
            ..KernelTiering::default()
        };
        let mut status = status(Vec::new());
        for promoted in [7, 5] {
            let mut window = window(Vec::new(), 1.0);
            window.tiering = Some(TieringRecord {
                lasted_s: 1.0,
                counts: TieringCounts {
                    promoted: Some(promoted),
                    ..TieringCounts::default()
                },
                promoted_gbps: Some(GbPerSec(0.02)),
                asked: Bytes(0),
                part_pct: 40.0,
                why: "because".into(),
                amortised_cycles: None,
                requested: settings(0.04),
                in_force: settings(0.05),
            });
            status.saw(window, false);
        }
        let text = exposition(&status);
        for line in [
            "weir_steer_kernel_tiering_pages_total{what=\"promoted\"} 12",
            "weir_steer_kernel_promote_limit_requested_bytes_per_second 40000000.0",
            "weir_steer_kernel_promote_limit_bytes_per_second 50000000.0",
            "weir_steer_kernel_promoted_bytes_per_second 20000000.0",
            "weir_steer_kernel_promote_limit_ratio 0.4",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(!text.contains("what=\"demoted\""), "{text}");
        let seen = view(&status, 24).join("\n");
        let said = "promoted  0.020 of 0.050 GB/s (40 %: because), - pages demoted";
        assert!(seen.contains(said), "{seen}");
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
