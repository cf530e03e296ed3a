//! The constants of the measurement of a knee.

use crate::tuning::constants;

constants! {
    /// How a knee is recognised. Factors without a unit.
    Criteria {
        /// A device is busy at this share of its most bandwidth without a queue.
        busy: f64 = 0.97, margin;
        /// Requests that stay this multiple of the unloaded residency wait in a queue.
        queued: f64 = 3.0, plain;
        /// Requests that wait before the table for this share of the unloaded residency have filled the table.
        waits: f64 = 0.1, plain;
        /// Few cores must give this factor more than many to be preferred.
        worth: f64 = 1.03, margin;
        /// The same for posted stores: together with other tenants, whose requests wait before the table as
        /// well, few cores cannot post as fast as alone.
        worth_posted: f64 = 1.08, margin;
        /// Requests that stay shorter by this factor have a far shorter queue.
        shorter: f64 = 1.5, margin;
        /// Windows per limit: a device's bandwidth varies from one window to the next.
        windows: u32 = 4, plain;
    }
}
