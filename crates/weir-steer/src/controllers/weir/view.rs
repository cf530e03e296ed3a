//! The tiers in a window's readings.

use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

use crate::guard::Keep;
use crate::limit::Share;
use crate::readings::{Readings, Traffic};

/// The tiers in one window.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// How long a request for the slow tier stays in the table.
    pub residency: Nanos,
    /// Requests for the slow tier in the table and before it.
    pub outstanding: f64,
    /// Requests of all tenants that wait before the table, as a part of those for the slow tier in it: without
    /// this part the table would be just full.
    pub excess: f64,
    /// Bandwidth of the slow tier.
    pub gives: GbPerSec,
    /// Bandwidth of the protected tenants, or, if it is not known of each, of the fast tier.
    pub fast: GbPerSec,
    /// Bandwidth of the tenants that may be limited, or, if it is not known of each, of the slow tier. The tier's own
    /// differs from it where tenants with another mix get another part of the limit: ordinary stores read each
    /// line that they write.
    pub slow: GbPerSec,
    /// The share of the slow tier's lines that are written.
    pub writes: f64,
    /// Entries in use.
    pub entries: f64,
    /// The part of them that waits for the slow tier.
    pub share: f64,
    /// How long requests wait before the table, if it is counted.
    pub wait: Option<Nanos>,
}

impl View {
    /// The tiers in a window, if it shows anything of the slow tier; `fast` is the residency of a request for
    /// DRAM.
    pub fn of(readings: &Readings, fast: Nanos) -> Option<Self> {
        let residency = readings.slow_residency(fast).ok()?;
        let slow: &Traffic = readings.slow.as_ref().ok()?;
        let gives = slow.total();
        // Little's law, for tables that do not count by tier.
        let in_table = match &readings.slow_table {
            Ok(table) => table.entries,
            Err(_) => gives.get() / LINE_BYTES as f64 * residency.get(),
        };
        let entries = readings.table.as_ref().map_or(in_table, |t| t.entries);
        let share = in_table / entries.max(in_table).max(f64::MIN_POSITIVE);
        let waiting = readings.ingress.as_ref().map_or(0.0, |q| q.entries);
        Some(View {
            residency,
            excess: waiting / in_table.max(f64::MIN_POSITIVE),
            outstanding: (in_table + waiting * share).max(f64::MIN_POSITIVE),
            gives,
            fast: match readings.protected_bandwidth() {
                Some(drew) => drew,
                None => readings.fast.as_ref().ok()?.total(),
            },
            slow: readings.restrained_bandwidth().unwrap_or(gives),
            writes: slow.write_share(),
            entries,
            share,
            wait: readings.ingress.as_ref().ok().map(|q| q.mean),
        })
    }

    /// Whether the tiers together serve more than in another window, of the most that each gave: what is missing of
    /// what is wanted counts first, as a product of both, so that one may give less only if the other gains a larger
    /// part; then, where nothing is missing, all that they give.
    pub fn is_better_than(&self, other: &View, most: &Most, keep: &Keep) -> bool {
        let worth = |view: &View| {
            let part = |gives: GbPerSec, most: GbPerSec, wanted: Share| {
                (gives.get() / (most.get() * wanted.get()).max(f64::MIN_POSITIVE)).min(1.0)
            };
            let wanted =
                part(view.fast, most.fast, keep.fast) * part(view.slow, most.slow, keep.slow);
            [wanted, view.fast.get() * view.slow.get()]
        };
        worth(self) > worth(other)
    }
}

/// The most that each tier gave.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// The fast tier.
    pub fast: GbPerSec,
    /// The slow tier.
    pub slow: GbPerSec,
}
