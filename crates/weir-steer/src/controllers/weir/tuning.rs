//! The constants of the controller, each with its reason.
//!
//! None may be fitted to a result with two tenants. `tests/constants.rs` halves and doubles each.

use super::super::division::SMALL;
use crate::tuning::constants;

constants! {
    /// The constants of [`Weir`](super::Weir). Factors without a unit; windows are those of the control loop.
    Tuning {
        // When the table is full, and why.

        /// The table is short of entries if requests wait before it for this part of the fast tier's
        /// residency: a longer wait costs the fast tier about the same part of its bandwidth (Little's law).
        wait: f64 = 0.02, plain;
        /// The table is full at this share of the most entries that were ever in use.
        full_table: f64 = 0.9, margin;
        /// The slow tier is the cause only if it has this share of the table's entries.
        blame: f64 = 0.2, plain;
        /// Requests that stay this multiple of the unloaded residency wait in a queue that slows other tenants:
        /// between the residency at the knee, which is less than twice that without load, and that of a full
        /// queue, eight to ten times (MIKU section 3).
        queued: f64 = 4.0, plain;
        /// The residency in a full queue, of that without load (MIKU section 3: eight to ten times): the first
        /// guess for an unknown device.
        loaded: f64 = 8.0, plain;

        // The search for a limit.

        /// A device is busy at this share of its bandwidth at the knee: together with other tenants, whose
        /// requests wait before the table as well, cores draw a little less than alone.
        busy: f64 = 0.88, margin;
        /// A change of a tier's bandwidth by this factor is not by chance.
        noticed: f64 = 1.02, margin;
        /// A fast tier with this factor less bandwidth was harmed.
        harmed: f64 = 1.03, margin;
        /// A queue drains if it would be short enough after this many windows, each like the last one.
        drains: f64 = 4.0, plain;
        /// Factor for a limit that was a little too wide.
        trim: f64 = 0.92, margin;
        /// The least factor of a narrower step while the table is full.
        least_part: f64 = 0.5, plain;
        /// Two limits that differ by less than this factor are not refined further: the difference between
        /// two limits that can be set is about as large.
        near: f64 = 1.15, margin;
        /// The largest factor of a wider step.
        widest: f64 = 4.0, plain;
        /// Cores that draw less by this factor differ from those with which the device was measured.
        slower: f64 = 1.1, margin;
        /// The least running, in cores.
        least: f64 = 1.0 / 16.0, plain;
        /// The next limit that can be set is searched in steps of this part of the present one.
        part: f64 = 0.02, plain;

        // Time and memory, in windows.

        /// A limit under which the device was busy stays until the device was not busy for this many windows.
        patience: u32 = 4, plain;
        /// Weight of the past windows in the mean of a device's bandwidth.
        remembered: f64 = 0.75, margin;
        /// Windows without limits after a limit that did not help: ten seconds of quarter seconds.
        in_vain: u32 = 40, plain;
        /// Windows under limits before other tenants lead to one without: so the fast tier is without limits for
        /// a ninth of the time at most if tenants begin and end all the time.
        look: u32 = 8, plain;
        /// Windows after which a limit that was too wide is tried again, since tenants change: a minute.
        forget: u32 = 240, plain;

        // The mix of reads and writes.

        /// Beyond this difference of the share of writes the mix is another one, for which the learned values
        /// are not true.
        other_mix: f64 = 0.15, plain;
        /// Only posted stores alone write more than this share of lines: other stores read each line that they
        /// write, which is half.
        posted: f64 = 0.6, plain;

        // Learning a device that was not measured.

        /// The first limit, as a share of all cores: most devices are not busy under it, and none gives too
        /// little to measure.
        probe: f64 = 1.0 / 32.0, plain;
        /// A device is busy at this share of its most bandwidth.
        learn_busy: f64 = 0.95, margin;
        /// The target share.
        aim: f64 = 0.99, margin;
        /// From this share on a limit is near enough, if the next step would exceed the most bandwidth by the
        /// factor `beyond`.
        near_enough: f64 = 0.9, margin;
        /// See `near_enough`.
        beyond: f64 = 1.05, margin;
        /// The largest factor by which a limit widens in one window.
        learn_widest: f64 = 8.0, plain;
        /// Requests that stay this multiple of the unloaded residency wait in a queue.
        learn_queued: f64 = 3.0, plain;
        /// Before the unloaded residency is known: requests that stay at least this part of their residency
        /// without limits.
        as_before: f64 = 0.4, plain;
        /// A fast tier with this factor less bandwidth was harmed. The first limits of an unknown device differ
        /// more than those of a search.
        learn_harmed: f64 = 1.06, margin;
        /// Windows after which the best limit so far is accepted: two seconds.
        learn_patience: u32 = 8, plain;

        // The division among tenants.

        /// A tenant that draws less than this share of an equal part is not limited.
        small: f64 = SMALL, plain;
    }
}
