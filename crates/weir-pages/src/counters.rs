//! What the kernel counts in `/proc/vmstat`, by the names of mainline Linux and of the TPP patches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counters of pages of 4 KiB; a page of 2 MiB counts 512, except in faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Vmstat {
    /// Anonymous pages that were demoted.
    pub pgdemote_anon: u64,
    /// File pages that were demoted.
    pub pgdemote_file: u64,
    /// Demoted by background reclaim.
    pub pgdemote_kswapd: u64,
    /// Demoted by a thread that allocates.
    pub pgdemote_direct: u64,
    /// Pages whose hint fault made them candidates for promotion.
    pub pgpromote_candidate: u64,
    /// Candidates that had been demoted before: pages that go back and forth.
    pub pgpromote_candidate_demoted: u64,
    /// Candidates that hold anonymous memory.
    pub pgpromote_candidate_anon: u64,
    /// Candidates that hold files.
    pub pgpromote_candidate_file: u64,
    /// Promotions that were tried.
    pub pgpromote_tried: u64,
    /// Anonymous pages that were promoted.
    pub pgpromote_anon: u64,
    /// File pages that were promoted.
    pub pgpromote_file: u64,
    /// Promotions that failed because the fast node was full.
    pub pgmigrate_fail_dst_node_full: u64,
    /// Promotions that were not tried because of a rate limit.
    pub promote_rate_limited: u64,
    /// Pages that were taken out of the page table for hint faults.
    pub numa_pte_updates: u64,
    /// Hint faults.
    pub numa_hint_faults: u64,
    /// Hint faults on pages of the fast tier.
    pub numa_hint_faults_toptier: u64,
    /// Pages that were allocated in the fast tier.
    pub pgalloc_fast: u64,
    /// Pages that were allocated in the slow tier.
    pub pgalloc_slow: u64,
    /// Threads that had to reclaim before they could allocate.
    pub allocstall: u64,
    /// Pages written to swap, or file pages dropped.
    pub pswpout: u64,
    /// Pages read back.
    pub pswpin: u64,
    /// Pages that could not be allocated anywhere.
    pub alloc_failed: u64,
}

impl Vmstat {
    /// Pages that were promoted.
    pub fn promoted(&self) -> u64 {
        self.pgpromote_anon + self.pgpromote_file
    }

    /// Pages that were demoted.
    pub fn demoted(&self) -> u64 {
        self.pgdemote_anon + self.pgdemote_file
    }

    /// The share of candidates that had been demoted before; none without candidates.
    pub fn ping_pong(&self) -> Option<f64> {
        let all = self.pgpromote_candidate;
        (all > 0).then(|| self.pgpromote_candidate_demoted as f64 / all as f64)
    }

    /// What was counted since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            pgdemote_anon: self.pgdemote_anon - before.pgdemote_anon,
            pgdemote_file: self.pgdemote_file - before.pgdemote_file,
            pgdemote_kswapd: self.pgdemote_kswapd - before.pgdemote_kswapd,
            pgdemote_direct: self.pgdemote_direct - before.pgdemote_direct,
            pgpromote_candidate: self.pgpromote_candidate - before.pgpromote_candidate,
            pgpromote_candidate_demoted: self.pgpromote_candidate_demoted
                - before.pgpromote_candidate_demoted,
            pgpromote_candidate_anon: self.pgpromote_candidate_anon
                - before.pgpromote_candidate_anon,
            pgpromote_candidate_file: self.pgpromote_candidate_file
                - before.pgpromote_candidate_file,
            pgpromote_tried: self.pgpromote_tried - before.pgpromote_tried,
            pgpromote_anon: self.pgpromote_anon - before.pgpromote_anon,
            pgpromote_file: self.pgpromote_file - before.pgpromote_file,
            pgmigrate_fail_dst_node_full: self.pgmigrate_fail_dst_node_full
                - before.pgmigrate_fail_dst_node_full,
            promote_rate_limited: self.promote_rate_limited - before.promote_rate_limited,
            numa_pte_updates: self.numa_pte_updates - before.numa_pte_updates,
            numa_hint_faults: self.numa_hint_faults - before.numa_hint_faults,
            numa_hint_faults_toptier: self.numa_hint_faults_toptier
                - before.numa_hint_faults_toptier,
            pgalloc_fast: self.pgalloc_fast - before.pgalloc_fast,
            pgalloc_slow: self.pgalloc_slow - before.pgalloc_slow,
            allocstall: self.allocstall - before.allocstall,
            pswpout: self.pswpout - before.pswpout,
            pswpin: self.pswpin - before.pswpin,
            alloc_failed: self.alloc_failed - before.alloc_failed,
        }
    }
}
