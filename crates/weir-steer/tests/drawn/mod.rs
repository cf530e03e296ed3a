//! What both tiers keep on a drawn machine.

mod bound;
mod draw;

use std::fmt;

use weir_steer::Role;
use weir_steer::control_loop::Step;
use weir_steer::guard::Bounds;
use weir_steer::steered::SteeredTenant;

use crate::library::{Bench, Free, Given};
pub use bound::Bound;
use draw::Drawn;

/// Windows of a phase.
const WINDOWS: u32 = 10;
/// The windows of a phase that count, once limits have settled.
const SETTLED: usize = 5;
/// Windows alone and without control; the first one is not counted. The bandwidth of posted stores alone varies by up to
/// a fifth from window to window, so that fewer would be no reference.
const ALONE: u32 = 6;

/// What the tenants of a machine kept, of what they have alone.
pub struct Kept {
    pub seed: u64,
    /// What was drawn.
    pub words: String,
    pub is_measured: bool,
    /// Of each phase: the protected tenants together, of their bandwidth without the restrained ones.
    pub fast: Vec<f64>,
    /// The same for restrained tenants.
    pub slow: Vec<f64>,
    /// Both without control.
    pub free: (Vec<f64>, Vec<f64>),
    /// The least that a restrained tenant kept in all its windows, of its bandwidth without the protected
    /// tenants, or of an equal part if that is less.
    pub least: f64,
    /// The same in a window.
    pub least_window: f64,
}

/// Bandwidth of each tenant of a phase, in its order.
fn drew(step: &Step, phase: &[SteeredTenant], names: &[&str]) -> Vec<f64> {
    let of = |participant: &SteeredTenant| {
        names
            .iter()
            .position(|name| *name == participant.tenant.name)
    };
    (phase.iter())
        .map(|participant| of(participant).map_or(0.0, |i| step.drew(i).get()))
        .collect()
}

/// Bandwidth of each tenant of one side, without the other.
fn alone(bench: &Bench, phase: &[SteeredTenant], role: Role) -> Vec<f64> {
    let side: Vec<SteeredTenant> = phase.iter().filter(|p| p.role == role).cloned().collect();
    let steps = bench.play(&mut Free, &[(ALONE, side.clone())]);
    let mean = |i| steps[1..].iter().map(|s| s.drew(i).get()).sum::<f64>() / f64::from(ALONE - 1);
    (0..side.len()).map(mean).collect()
}

impl Kept {
    /// The parts of alone that are wanted of both tiers.
    const WANTED: (f64, f64) = (0.95, 0.85);

    /// Draws a machine and measures it.
    pub fn measure(seed: u64) -> Self {
        let drawn = Drawn::new(seed);
        let given = match drawn.is_measured {
            true => Given::Allocation,
            false => Given::AllocationAlone,
        };
        let bench = Bench::on(&drawn.platform, given, seed);
        let mut names: Vec<&str> = Vec::new();
        for participant in drawn.phases.iter().flatten() {
            if !names.contains(&participant.tenant.name.as_str()) {
                names.push(&participant.tenant.name);
            }
        }
        let phases: Vec<_> = drawn.phases.iter().map(|p| (WINDOWS, p.clone())).collect();
        let steps = bench.play(&mut bench.weir(), &phases);
        let mut kept = Self {
            seed,
            words: drawn.words.clone(),
            is_measured: drawn.is_measured,
            fast: Vec::new(),
            slow: Vec::new(),
            free: (Vec::new(), Vec::new()),
            least: f64::INFINITY,
            least_window: f64::INFINITY,
        };
        // Of each restrained tenant: what it had and what it could have had.
        let mut totals = vec![(0.0, 0.0); names.len()];
        for (phase, steps) in drawn.phases.iter().zip(steps.chunks(WINDOWS as usize)) {
            let racing = bench.play(&mut Free, &[(ALONE, phase.clone())]);
            for role in [Role::Protected, Role::Restrained] {
                let alone = alone(&bench, phase, role);
                let together: f64 = alone.iter().sum();
                let even = together / alone.len() as f64;
                let own = |step: &Step| -> Vec<f64> {
                    let drew = drew(step, phase, &names);
                    let side = drew.into_iter().zip(phase).filter(|(_, p)| p.role == role);
                    side.map(|(drew, _)| drew).collect()
                };
                let settled = &steps[steps.len() - SETTLED..];
                let mean: f64 = settled.iter().flat_map(own).sum::<f64>() / SETTLED as f64;
                let own_names: Vec<&str> = phase.iter().map(|p| p.tenant.name.as_str()).collect();
                let racing = racing[1..].iter().map(|step| {
                    let drew = drew(step, phase, &own_names).into_iter().zip(phase);
                    drew.filter(|(_, p)| p.role == role)
                        .map(|(drew, _)| drew)
                        .sum::<f64>()
                });
                let free = racing.sum::<f64>() / f64::from(ALONE - 1);
                let (controlled, uncontrolled) = match role {
                    Role::Protected => (&mut kept.fast, &mut kept.free.0),
                    _ => (&mut kept.slow, &mut kept.free.1),
                };
                controlled.push(mean / together);
                uncontrolled.push(free / together);
                if role != Role::Restrained {
                    continue;
                }
                let side = phase.iter().filter(|p| p.role == role);
                for (k, participant) in side.enumerate() {
                    let fair = alone[k].min(even);
                    let name = names.iter().position(|n| *n == participant.tenant.name);
                    for step in steps {
                        let drew = own(step)[k];
                        kept.least_window = kept.least_window.min(drew / fair);
                        let total = &mut totals[name.unwrap_or(0)];
                        *total = (total.0 + drew, total.1 + fair);
                    }
                }
            }
        }
        let parts = totals.iter().filter(|(_, fair)| *fair > 0.0);
        kept.least = parts.map(|(had, fair)| had / fair).fold(1.0, f64::min);
        kept
    }

    /// The mean of the phases; a value above that of a side alone counts as equal to it.
    pub fn mean(phases: &[f64]) -> f64 {
        phases.iter().map(|part| part.min(1.0)).sum::<f64>() / phases.len() as f64
    }

    /// Whether both tiers keep what is wanted.
    pub fn is_good(&self) -> bool {
        Self::mean(&self.fast) >= Self::WANTED.0 && Self::mean(&self.slow) >= Self::WANTED.1
    }

    /// Whether a restrained tenant gets less than the floor of the bounds.
    pub fn is_starved(&self) -> bool {
        self.least_window < Bounds::default().floor.get()
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |phases: &[f64]| -> String {
            phases
                .iter()
                .map(|part| format!("{:6.1}", part * 100.0))
                .collect()
        };
        write!(
            f,
            "{:4} DRAM {} ({}) CXL {} ({}) least {:5.1} window {:5.1} {} {} {}",
            self.seed,
            percent(&self.fast),
            percent(&self.free.0),
            percent(&self.slow),
            percent(&self.free.1),
            self.least * 100.0,
            self.least_window * 100.0,
            if self.is_good() { "    " } else { "MISS" },
            if self.is_measured {
                "measured"
            } else {
                "learned "
            },
            self.words
        )
    }
}
