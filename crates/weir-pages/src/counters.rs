//! What the kernel counts in `/proc/vmstat`, by the names of mainline Linux and of the TPP patches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of pages of 4 KiB; a page of 2 MiB counts 512, except in faults.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct Vmstat {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Vmstat {
            /// What was counted since an earlier reading.
            #[must_use]
            pub fn since(&self, before: &Self) -> Self {
                Self { $($name: self.$name - before.$name,)* }
            }
        }
    };
}

counters! {
    /// Anonymous pages that were demoted.
    pgdemote_anon,
    /// File pages that were demoted.
    pgdemote_file,
    /// Demoted by background reclaim.
    pgdemote_kswapd,
    /// Demoted by a thread that allocates.
    pgdemote_direct,
    /// Pages whose hint fault made them candidates for promotion.
    pgpromote_candidate,
    /// Candidates that had been demoted before: pages that go back and forth.
    pgpromote_candidate_demoted,
    /// Candidates that hold anonymous memory.
    pgpromote_candidate_anon,
    /// Candidates that hold files.
    pgpromote_candidate_file,
    /// Promotions that were tried.
    pgpromote_tried,
    /// Anonymous pages that were promoted.
    pgpromote_anon,
    /// File pages that were promoted.
    pgpromote_file,
    /// Promotions that failed because the fast node was full.
    pgmigrate_fail_dst_node_full,
    /// Promotions that were given up because the page was written while it was copied.
    promote_aborted,
    /// Promotions that were not tried because of a rate limit.
    promote_rate_limited,
    /// Pages that were taken out of the page table for hint faults.
    numa_pte_updates,
    /// Hint faults.
    numa_hint_faults,
    /// Hint faults on pages of the fast tier.
    numa_hint_faults_toptier,
    /// Pages that were allocated in the fast tier.
    pgalloc_fast,
    /// Pages that were allocated in the slow tier.
    pgalloc_slow,
    /// Threads that had to reclaim before they could allocate.
    allocstall,
    /// Pages written to swap, or file pages dropped.
    pswpout,
    /// Pages read back.
    pswpin,
    /// Pages that could not be allocated anywhere.
    alloc_failed,
    /// Pages that a request of user space moved to the fast tier (`move_pages`).
    moved_to_fast,
    /// Pages that a request of user space moved to the slow tier.
    moved_to_slow,
}

impl Vmstat {
    /// Pages that were promoted.
    pub fn promoted(&self) -> u64 {
        self.pgpromote_anon + self.pgpromote_file + self.moved_to_fast
    }

    /// Pages that were demoted.
    pub fn demoted(&self) -> u64 {
        self.pgdemote_anon + self.pgdemote_file + self.moved_to_slow
    }

    /// The share of candidates that had been demoted before; none without candidates.
    pub fn ping_pong(&self) -> Option<f64> {
        let all = self.pgpromote_candidate;
        (all > 0).then(|| self.pgpromote_candidate_demoted as f64 / all as f64)
    }
}
