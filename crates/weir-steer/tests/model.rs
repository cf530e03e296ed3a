//! Controllers on modelled servers.

use weir_model::access::{Op, Pattern};
use weir_model::machine::Testbed;
use weir_model::platform::Library;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_sim::{Sampling, SimTestbed};
use weir_steer::Controller;
use weir_steer::Role;
use weir_steer::controllers::{Weir, WeirConfig};
use weir_steer::drive::{Party, Phase, drive};
use weir_steer::guard::{Bounds, Guarded};

fn tenant(name: &str, op: Op, tiers: &[TierName], cores: std::ops::Range<u32>) -> Tenant {
    let mut tenant = Tenant::on_first_cores(op, Pattern::Sequential, &tiers[0], 1, Bytes::mib(64));
    tenant.name = name.into();
    tenant.cores = cores.collect();
    if tiers.len() > 1 {
        tenant.placement = Placement::Interleave(tiers.iter().map(|t| (t.clone(), 1)).collect());
    }
    tenant
}

struct Free;
impl Controller for Free {
    fn name(&self) -> &'static str {
        "none"
    }
    fn observe(&mut self, sight: &weir_steer::Sight) -> weir_steer::Decision {
        weir_steer::Decision::free(sight.tenants.len(), weir_steer::Why::rule("never"))
    }
}

#[test]
fn probe() {
    let window = Nanos(250e6);
    for name in std::env::var("PLATFORMS")
        .unwrap_or("miku-a".into())
        .split(',')
    {
        let platform = Library::builtin().compose(name).unwrap();
        let bed = SimTestbed::new(&platform)
            .unwrap()
            .sampled(Sampling::default());
        let topology = platform.topology();
        let half = (topology.cores.len() as u32 / 2).min(16);
        let cxl: Vec<TierName> = topology
            .tiers
            .iter()
            .filter(|t| t.kind == weir_model::topology::TierKind::Cxl)
            .map(|t| t.name.clone())
            .collect();
        for op in [Op::Ld, Op::St, Op::NtSt] {
            let fast = Party {
                tenant: tenant("fast", op, &[TierName::dram()], 0..half),
                role: Role::Protected,
            };
            let slow = Party {
                tenant: tenant("slow", op, &cxl, half..2 * half),
                role: Role::Restrained,
            };
            let run = |parties: &[&Party], controller: &mut dyn Controller, n: f64| {
                let phase = Phase {
                    lasts: window * n,
                    parties: parties.iter().map(|&p| p.clone()).collect(),
                };
                let mut machine = bed.open(1).unwrap();
                drive(&mut *machine, controller, &[phase], window, Nanos(100e6)).unwrap()
            };
            let a = run(&[&fast], &mut Free, 2.0)[1].drew[0].get();
            let b = run(&[&slow], &mut Free, 2.0)[1].drew[0].get();
            let co = run(&[&fast, &slow], &mut Free, 2.0);
            let rest = std::env::var("REST")
                .ok()
                .map(|r| Nanos(r.parse().unwrap()));
            let mut config = WeirConfig::new(Nanos(111.0), rest);
            config.step = std::env::var("MBA")
                .ok()
                .map(|_| weir_steer::Share::of(0.1));
            let mut weir = Guarded::new(Weir::new(config), Bounds::default());
            let steps = run(&[&fast, &slow], &mut weir, 12.0);
            let share = |s: &weir_steer::drive::Step| (s.drew[0].get() / a, s.drew[1].get() / b);
            let end: Vec<_> = steps[8..].iter().map(share).collect();
            let mean =
                |f: fn(&(f64, f64)) -> f64| end.iter().map(f).sum::<f64>() / end.len() as f64;
            let (f, c) = (mean(|x| x.0), mean(|x| x.1));
            let settled = (0..steps.len()).rev().find(|&k| {
                let (x, y) = share(&steps[k]);
                (x - f).abs() > 0.03 || (y - c).abs() > 0.03
            });
            println!(
                "{name:14} {op:6} alone {a:6.1} {b:5.1} together {:5.1} {:5.1}  weir {:6.1} % {:6.1} %  settled {:?}",
                co[1].drew[0].get() / a * 100.0,
                co[1].drew[1].get() / b * 100.0,
                f * 100.0,
                c * 100.0,
                settled.map(|k| k + 1)
            );
            if std::env::var("DETAIL").is_err() {
                continue;
            }
            for s in steps {
                println!(
                    "  {:5.1} %  {:5.1} %  held {:5.2}  slow {:6.0} ns n {:6.0} of {:6.0} irq {:6.1} ns  {}",
                    s.drew[0].get() / a * 100.0,
                    s.drew[1].get() / b * 100.0,
                    s.held[1].units(half),
                    s.sight.slow_table.as_ref().map_or(0.0, |t| t.mean.get()),
                    s.sight.slow_table.as_ref().map_or(0.0, |t| t.entries),
                    s.sight.table.as_ref().map_or(0.0, |t| t.entries),
                    s.sight.ingress.as_ref().map_or(0.0, |t| t.mean.get()),
                    s.decision.why.rule
                );
            }
        }
    }
}
