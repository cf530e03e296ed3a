//! Counters that are named and meant as the hardware's.
//!
//! The simulated machine fills them from its queues, the real one from `perf`; either may leave one
//! out, and then says why. Encodings per microarchitecture belong to the machines, not here.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capability::Unavailable;

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// One countable thing. Occupancies are sums over cycles of the counting unit's clock, as
        /// on silicon, so that occupancy divided by inserts is the mean residency in cycles.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        pub enum Counter {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl Counter {
            /// Every counter.
            pub const ALL: &[Counter] = &[$(Counter::$variant,)+];

            /// The portable name: the vendor's, in lower case, where there is one.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name,)+ }
            }

            /// The counter of a portable name.
            pub fn named(name: &str) -> Option<Counter> {
                Counter::ALL.iter().copied().find(|counter| counter.name() == name)
            }
        }
    };
}

counters! {
    /// Core clock cycles, summed over the cores that run tenants (CPU_CLK_UNHALTED.THREAD).
    Cycles = "cycles",
    /// Instructions retired (INST_RETIRED.ANY).
    Instructions = "inst_retired.any",
    /// Cycles in which nothing was executed while a demand load was under way
    /// (EXE_ACTIVITY.BOUND_ON_LOADS; CYCLE_ACTIVITY.STALLS_MEM_ANY before Golden Cove).
    StallsMemAny = "cycle_activity.stalls_mem_any",
    /// Of those, with a demand load that missed L1 (CYCLE_ACTIVITY.STALLS_L1D_MISS,
    /// MEMORY_ACTIVITY.STALLS_L1D_MISS).
    StallsL1dMiss = "cycle_activity.stalls_l1d_miss",
    /// Of those, with one that missed L2 (CYCLE_ACTIVITY.STALLS_L2_MISS).
    StallsL2Miss = "cycle_activity.stalls_l2_miss",
    /// Of those, with one that missed the last-level cache (CYCLE_ACTIVITY.STALLS_L3_MISS).
    StallsL3Miss = "cycle_activity.stalls_l3_miss",
    /// Cycles with a demand load under way that missed L1, whether anything was executed or not
    /// (CYCLE_ACTIVITY.CYCLES_L1D_MISS).
    CyclesL1dMiss = "cycle_activity.cycles_l1d_miss",
    /// Of those, with one that missed L2 (CYCLE_ACTIVITY.CYCLES_L2_MISS).
    CyclesL2Miss = "cycle_activity.cycles_l2_miss",
    /// Of those, with one that missed the last-level cache (CYCLE_ACTIVITY.CYCLES_L3_MISS).
    CyclesL3Miss = "cycle_activity.cycles_l3_miss",
    /// Cycles in which nothing was executed because the store buffer was full, and no load was under
    /// way (EXE_ACTIVITY.BOUND_ON_STORES).
    BoundOnStores = "exe_activity.bound_on_stores",
    /// Demand loads that hit L1 (MEM_LOAD_RETIRED.L1_HIT).
    L1Hit = "mem_load_retired.l1_hit",
    /// Demand loads that missed L1 and found no fill buffer for the line (MEM_LOAD_RETIRED.L1_MISS).
    L1Miss = "mem_load_retired.l1_miss",
    /// Demand loads that found the line in flight in a fill buffer (MEM_LOAD_RETIRED.FB_HIT).
    FbHit = "mem_load_retired.fb_hit",
    /// Demand loads that hit L2 (MEM_LOAD_RETIRED.L2_HIT).
    L2Hit = "mem_load_retired.l2_hit",
    /// Demand loads that hit the last-level cache (MEM_LOAD_RETIRED.L3_HIT).
    L3Hit = "mem_load_retired.l3_hit",
    /// Demand loads that missed the last-level cache (MEM_LOAD_RETIRED.L3_MISS).
    L3Miss = "mem_load_retired.l3_miss",
    /// Data reads that left the core on demand (OFFCORE_REQUESTS.DEMAND_DATA_RD).
    OffcoreDemandDataRd = "offcore_requests.demand_data_rd",
    /// Those outstanding, summed over core cycles
    /// (OFFCORE_REQUESTS_OUTSTANDING.DEMAND_DATA_RD).
    OffcoreOutstandingDemandDataRd = "offcore_requests_outstanding.demand_data_rd",
    /// Cycles with at least one of them outstanding
    /// (OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DEMAND_DATA_RD).
    OffcoreCyclesDemandDataRd = "offcore_requests_outstanding.cycles_with_demand_data_rd",
    /// Of the data reads on demand, those that missed the last-level cache
    /// (OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD).
    OffcoreL3MissDemandDataRd = "offcore_requests.l3_miss_demand_data_rd",
    /// Those outstanding, summed over core cycles; they do not count while they wait for their slice
    /// to take them in (OFFCORE_REQUESTS_OUTSTANDING.L3_MISS_DEMAND_DATA_RD).
    OffcoreOutstandingL3MissDemandDataRd = "offcore_requests_outstanding.l3_miss_demand_data_rd",
    /// Data reads that left the core, on demand or prefetched (OFFCORE_REQUESTS.DATA_RD).
    OffcoreDataRd = "offcore_requests.data_rd",
    /// Those outstanding, summed over core cycles (OFFCORE_REQUESTS_OUTSTANDING.DATA_RD).
    OffcoreOutstandingDataRd = "offcore_requests_outstanding.data_rd",
    /// Reads for ownership that left the core (OFFCORE_REQUESTS.DEMAND_RFO).
    OffcoreDemandRfo = "offcore_requests.demand_rfo",
    /// Those outstanding, summed over core cycles (OFFCORE_REQUESTS_OUTSTANDING.DEMAND_RFO).
    OffcoreOutstandingDemandRfo = "offcore_requests_outstanding.demand_rfo",
    /// Fill buffers that hold loads which missed L1, and prefetches that a load came to wait for,
    /// summed over core cycles (L1D_PEND_MISS.PENDING).
    L1dPendMiss = "l1d_pend_miss.pending",
    /// Buffers of the core that hold requests of any kind, summed over core cycles: fill buffers,
    /// write-combining buffers, entries of the super-queue. No event of the hardware has them all.
    LfbOccupancy = "lfb_occupancy",
    /// Every request that left the core (OFFCORE_REQUESTS.ALL_REQUESTS).
    OffcoreAllRequests = "offcore_requests.all_requests",
    /// Lines fetched by the L1 prefetchers beyond L1 (OCR.HWPF_L1D.ANY_RESPONSE).
    HwpfL1d = "ocr.hwpf_l1d.any_response",
    /// Of those, lines found in the last-level cache (OFFCORE_RESPONSE.PF_L1D_AND_SW.L3_HIT; not
    /// countable for one process since Sapphire Rapids).
    HwpfL1dL3Hit = "ocr.hwpf_l1d.l3_hit",
    /// Lines fetched by the L2 prefetchers beyond L2 (OCR.HWPF_L2.ANY_RESPONSE).
    HwpfL2 = "ocr.hwpf_l2.any_response",
    /// Of those, lines found in the last-level cache (OFFCORE_RESPONSE.PF_L2_DATA_RD and PF_L2_RFO, L3_HIT; not
    /// countable for one process since Sapphire Rapids).
    HwpfL2L3Hit = "ocr.hwpf_l2.l3_hit",
    /// Full lines written past the caches (OCR.STREAMING_WR.ANY_RESPONSE).
    StreamingWr = "ocr.streaming_wr.any_response",
    /// Requests that entered an ingress queue (UNC_CHA_RxC_INSERTS.IRQ).
    IrqInserts = "unc_cha_rxc_inserts.irq",
    /// Entries in the ingress queues, summed over uncore cycles (UNC_CHA_RxC_OCCUPANCY.IRQ).
    IrqOccupancy = "unc_cha_rxc_occupancy.irq",
    /// Requests that found their ingress queue full and had to wait outside it; hardware counts
    /// the retries (UNC_CHA_RxC_INSERTS.IRQ_REJ).
    IrqRejected = "unc_cha_rxc_inserts.irq_rej",
    /// Requests of cores that entered a ToR (UNC_CHA_TOR_INSERTS.IA).
    TorInsertsIa = "unc_cha_tor_inserts.ia",
    /// ToR entries of cores, summed over uncore cycles (UNC_CHA_TOR_OCCUPANCY.IA).
    TorOccupancyIa = "unc_cha_tor_occupancy.ia",
    /// Of those, requests that hit the last-level cache (UNC_CHA_TOR_INSERTS.IA_HIT).
    TorInsertsIaHit = "unc_cha_tor_inserts.ia_hit",
    /// Requests that missed it (UNC_CHA_TOR_INSERTS.IA_MISS).
    TorInsertsIaMiss = "unc_cha_tor_inserts.ia_miss",
    /// Entries of misses, summed over uncore cycles (UNC_CHA_TOR_OCCUPANCY.IA_MISS).
    TorOccupancyIaMiss = "unc_cha_tor_occupancy.ia_miss",
    /// Misses that go to DRAM of this socket (UNC_CHA_TOR_INSERTS.IA_MISS_LOCAL_DDR and kin).
    TorInsertsIaMissDdr = "unc_cha_tor_inserts.ia_miss_ddr",
    /// Their entries, summed over uncore cycles.
    TorOccupancyIaMissDdr = "unc_cha_tor_occupancy.ia_miss_ddr",
    /// Misses that go to CXL memory (UNC_CHA_TOR_INSERTS.IA_MISS_CXL_EXP_LOCAL and kin).
    TorInsertsIaMissCxl = "unc_cha_tor_inserts.ia_miss_cxl",
    /// Their entries, summed over uncore cycles.
    TorOccupancyIaMissCxl = "unc_cha_tor_occupancy.ia_miss_cxl",
    /// Misses that go to another socket (UNC_CHA_TOR_INSERTS.IA_MISS_REMOTE and kin).
    TorInsertsIaMissRemote = "unc_cha_tor_inserts.ia_miss_remote",
    /// Their entries, summed over uncore cycles.
    TorOccupancyIaMissRemote = "unc_cha_tor_occupancy.ia_miss_remote",
    /// Data reads of the prefetchers of cores (UNC_CHA_TOR_INSERTS.IA_DRD_PREF).
    TorInsertsIaDrdPref = "unc_cha_tor_inserts.ia_drd_pref",
    /// Of those, data reads of prefetchers that missed the last-level cache
    /// (UNC_CHA_TOR_INSERTS.IA_MISS_DRD_PREF).
    TorInsertsIaMissDrdPref = "unc_cha_tor_inserts.ia_miss_drd_pref",
    /// Full-line streaming writes (UNC_CHA_TOR_INSERTS.IA_WCILF).
    TorInsertsIaWcilf = "unc_cha_tor_inserts.ia_wcilf",
    /// Write-backs of modified lines (UNC_CHA_TOR_INSERTS.IA_WBMTOI).
    TorInsertsIaWbmtoi = "unc_cha_tor_inserts.ia_wbmtoi",
    /// Modified lines that the last-level cache gave up (UNC_CHA_TOR_INSERTS.EVICT).
    TorInsertsEvict = "unc_cha_tor_inserts.evict",
    /// Uncore clock ticks, of one slice (UNC_CHA_CLOCKTICKS).
    ChaClockticks = "unc_cha_clockticks",
    /// Lines read from the DRAM of this socket (UNC_M_CAS_COUNT.RD).
    CasRd = "unc_m_cas_count.rd",
    /// Lines written to the DRAM of this socket (UNC_M_CAS_COUNT.WR).
    CasWr = "unc_m_cas_count.wr",
    /// Row activations of this socket's DRAM (UNC_M_ACT_COUNT.ALL).
    ActCount = "unc_m_act_count.all",
    /// Entries of the read pending queues, summed over DRAM clock cycles: reads whose column was not
    /// asked for yet (UNC_M_RPQ_OCCUPANCY).
    RpqOccupancy = "unc_m_rpq_occupancy",
    /// Entries of the write pending queues, summed over DRAM clock cycles
    /// (UNC_M_WPQ_OCCUPANCY).
    WpqOccupancy = "unc_m_wpq_occupancy",
    /// DRAM clock ticks, of one channel (UNC_M_CLOCKTICKS).
    MClockticks = "unc_m_clockticks",
    /// Requests inside CXL devices, from the link's near end and back, and lines in their write
    /// buffers, summed over uncore cycles. The hardware counts nothing of the kind.
    CxlDeviceOccupancy = "cxl_device_occupancy",
    /// Lines read and written whose page was in the DRAM of a CXL device that caches a slower medium. The
    /// hardware counts nothing of the kind.
    MediumHits = "cxl_medium_hits",
    /// Lines that waited for their page.
    MediumMisses = "cxl_medium_misses",
    /// Pages that such a device read from its medium, with those that garbage collection copied.
    MediumReads = "cxl_medium_reads",
    /// Pages that it programmed, with those that garbage collection copied.
    MediumPrograms = "cxl_medium_programs",
    /// Pages that garbage collection copied.
    MediumCopies = "cxl_medium_copies",
    /// Blocks that it erased.
    MediumErases = "cxl_medium_erases",
    /// Lines that came with poison, since the medium could not read their page or the device is gone. A processor raises a machine check
    /// when a program uses one, and Linux sends it SIGBUS.
    MediumPoison = "cxl_medium_poison",
    /// Lines that were written to a CXL device that is gone, and are lost.
    CxlLostWrites = "cxl_lost_writes",
    /// Pages that a worn-out medium could not program: their newest lines are lost.
    MediumLost = "cxl_medium_lost",
    /// Lines that CXL devices read from their DRAM or cache for all hosts that share them, where there are several.
    CxlDeviceReads = "cxl_device_reads",
    /// The same of lines that hosts wrote.
    CxlDeviceWrites = "cxl_device_writes",
    /// Read data lines that arrived over CXL (UNC_CXLCM_RxC_PACK_BUF_INSERTS.MEM_DATA).
    CxlRxMemData = "unc_cxlcm_rxc_pack_buf_inserts.mem_data",
    /// Written data lines that left over CXL (UNC_CXLCM_TxC_PACK_BUF_INSERTS.MEM_DATA).
    CxlTxMemData = "unc_cxlcm_txc_pack_buf_inserts.mem_data",
    /// Requests without data that left over CXL (UNC_CXLCM_TxC_PACK_BUF_INSERTS.MEM_REQ).
    CxlTxMemReq = "unc_cxlcm_txc_pack_buf_inserts.mem_req",
    /// Data lines that crossed the socket link towards this socket (UNC_UPI_RxL_FLITS.ALL_DATA / 9).
    UpiRxData = "unc_upi_rxl.data",
    /// Data lines that crossed the socket link away from this socket (UNC_UPI_TxL_FLITS.ALL_DATA / 9).
    UpiTxData = "unc_upi_txl.data",
    /// Bytes of the last-level cache that are filled with lines of a tenant when the window ends (Intel CMT,
    /// AMD QoS monitoring). A level and no count: see [`Counter::is_level`].
    LlcOccupancy = "llc_occupancy",
    /// Nanoseconds that tasks were on a processor, which the kernel keeps
    /// (PERF_COUNT_SW_TASK_CLOCK).
    TaskClock = "task-clock",
    /// Page faults (PERF_COUNT_SW_PAGE_FAULTS).
    PageFaults = "page-faults",
    /// Context switches (PERF_COUNT_SW_CONTEXT_SWITCHES).
    ContextSwitches = "context-switches",
    /// Moves from one processor to another (PERF_COUNT_SW_CPU_MIGRATIONS).
    CpuMigrations = "cpu-migrations",
}

impl Counter {
    /// Whether the kernel counts it, and no counter of the hardware.
    pub const fn is_software(self) -> bool {
        matches!(
            self,
            Self::TaskClock | Self::PageFaults | Self::ContextSwitches | Self::CpuMigrations
        )
    }

    /// Whether it is what there is when a window ends, and not what came together during it: of two windows
    /// one after the other the later one's holds, and a longer window has no more of it.
    pub const fn is_level(self) -> bool {
        matches!(self, Self::LlcOccupancy)
    }

    /// Whether a processor counts it by events, for which each table of events has a formula or a reason.
    pub const fn is_event(self) -> bool {
        !self.is_software() && !self.is_level()
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was counted in a window. A counter the machine cannot read carries the reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterSet {
    /// What was counted, by counter.
    values: BTreeMap<Counter, u64>,
    /// Counters that could not be read, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unavailable: BTreeMap<Counter, Unavailable>,
    /// Share of the window in which a counter ran, of those that shared the hardware with others:
    /// their values are scaled to the whole window. One that is not named here ran all the time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    running: BTreeMap<Counter, RunningShare>,
}

/// Share of a window in which an event was on a hardware counter: 1 where nothing was multiplexed,
/// and the divisor by which `perf` scales what it counted (time running / time enabled).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RunningShare(pub f64);

impl RunningShare {
    /// On a counter all the time.
    pub const WHOLE: Self = Self(1.0);

    /// A counter that ran in less than a tenth of its window is refused: what is scaled by more than
    /// ten says more about when it ran than about the program.
    pub const LEAST: Self = Self(0.1);

    /// The share as a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for RunningShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} %", self.0 * 100.0))
    }
}

impl CounterSet {
    /// Sets a counter's value, counted in the whole window.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.unavailable.remove(&counter);
        self.running.remove(&counter);
        self.values.insert(counter, value);
    }

    /// Sets a value that was counted in a share of the window only and scaled to all of it. One that
    /// ran for less than [`RunningShare::LEAST`] becomes unavailable.
    pub fn set_scaled(&mut self, counter: Counter, value: u64, running: RunningShare) {
        if !(RunningShare::LEAST..).contains(&running) {
            let why = format!("it was on a hardware counter for {running} of the time only");
            self.set_unavailable(counter, Unavailable::because(why));
            return;
        }
        self.set(counter, value);
        if running < RunningShare::WHOLE {
            self.running.insert(counter, running);
        }
    }

    /// Share of the window in which a counter that has a value ran.
    pub fn running_share(&self, counter: Counter) -> RunningShare {
        let share = self.running.get(&counter).copied();
        share.unwrap_or(RunningShare::WHOLE)
    }

    /// Marks a counter as not to be had.
    pub fn set_unavailable(&mut self, counter: Counter, why: Unavailable) {
        self.values.remove(&counter);
        self.running.remove(&counter);
        self.unavailable.insert(counter, why);
    }

    /// A counter's value, or why there is none.
    ///
    /// # Errors
    /// The reason that the machine gave, or that it never mentioned this counter.
    pub fn get(&self, counter: Counter) -> Result<u64, Unavailable> {
        match (self.values.get(&counter), self.unavailable.get(&counter)) {
            (Some(&value), _) => Ok(value),
            (None, Some(why)) => Err(why.clone()),
            (None, None) => Err(Unavailable::because("this machine does not count it")),
        }
    }

    /// One counter divided by another: a mean residency, a hit share.
    ///
    /// # Errors
    /// Either counter is unavailable, or the divisor is zero.
    pub fn ratio(&self, dividend: Counter, divisor: Counter) -> Result<f64, Unavailable> {
        match (self.get(dividend)?, self.get(divisor)?) {
            (_, 0) => Err(Unavailable::because(format!("{divisor} is zero"))),
            (a, b) => Ok(a as f64 / b as f64),
        }
    }

    /// Every counter that has a value.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        self.values
            .iter()
            .map(|(&counter, &value)| (counter, value))
    }

    /// Every counter that could not be read, and why.
    pub fn missing(&self) -> impl Iterator<Item = (Counter, &Unavailable)> + '_ {
        self.unavailable
            .iter()
            .map(|(&counter, why)| (counter, why))
    }

    /// The counts of a window this many times as long that went on like this one.
    pub fn scaled(&self, factor: f64) -> Self {
        let mut set = self.clone();
        for (_, value) in set.values.iter_mut().filter(|(c, _)| !c.is_level()) {
            *value = (*value as f64 * factor).round() as u64;
        }
        set
    }

    /// Adds the counts of the next window, whose levels hold from now on; a counter missing from either is
    /// missing from the sum. A sum is no better than its worse part: of two running shares the smaller stays.
    pub fn accumulate(&mut self, next: &Self) {
        self.add_up(next);
        for (counter, value) in next.iter().filter(|(c, _)| c.is_level()) {
            if self.values.contains_key(&counter) {
                self.set(counter, value);
            }
        }
    }

    /// Adds what others counted in the same window, their levels as well; otherwise as
    /// [`accumulate`](Self::accumulate).
    pub fn add_up(&mut self, other: &Self) {
        if self.values.is_empty() && self.unavailable.is_empty() {
            self.clone_from(other);
            return;
        }
        let keys: Vec<Counter> = self.values.keys().copied().collect();
        for counter in keys {
            match other.get(counter) {
                Ok(value) => {
                    *self.values.entry(counter).or_default() += value;
                    let share = other.running_share(counter);
                    if share < self.running_share(counter) {
                        self.running.insert(counter, share);
                    }
                }
                Err(why) => self.set_unavailable(counter, why),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_counter_is_a_reason_and_never_zero() {
        let mut set = CounterSet::default();
        set.set(Counter::CasRd, 7);
        set.set_unavailable(Counter::CasWr, Unavailable::because("no uncore PMU"));
        assert_eq!(set.get(Counter::CasRd), Ok(7));
        assert_eq!(set.get(Counter::CasWr).unwrap_err().reason, "no uncore PMU");
        assert!(set.get(Counter::Cycles).is_err());
        assert!(set.ratio(Counter::CasRd, Counter::CasWr).is_err());

        let mut sum = CounterSet::default();
        sum.accumulate(&set);
        sum.accumulate(&set);
        assert_eq!(sum.get(Counter::CasRd), Ok(14));
        assert!(sum.get(Counter::CasWr).is_err());
    }

    #[test]
    fn a_level_is_the_latest_and_no_sum_over_time() {
        let of = |value| {
            let mut set = CounterSet::default();
            set.set(Counter::LlcOccupancy, value);
            set.set(Counter::CasRd, value);
            set
        };
        let mut windows = of(700);
        windows.accumulate(&of(300));
        assert_eq!(windows.get(Counter::LlcOccupancy), Ok(300));
        assert_eq!(windows.get(Counter::CasRd), Ok(1000));
        let longer = windows.scaled(2.0);
        assert_eq!(longer.get(Counter::LlcOccupancy), Ok(300));
        assert_eq!(longer.get(Counter::CasRd), Ok(2000));
        let mut tenants = of(700);
        tenants.add_up(&of(300));
        assert_eq!(tenants.get(Counter::LlcOccupancy), Ok(1000));
        let mut blind = of(5);
        blind.set_unavailable(Counter::LlcOccupancy, Unavailable::because("no file"));
        windows.accumulate(&blind);
        assert!(windows.get(Counter::LlcOccupancy).is_err());
    }

    #[test]
    fn a_counter_that_hardly_ran_is_refused_and_a_sum_keeps_the_smaller_share() {
        let share = RunningShare;
        let mut set = CounterSet::default();
        set.set_scaled(Counter::Cycles, 100, share(0.25));
        set.set_scaled(Counter::L1Hit, 100, share(0.09));
        set.set_scaled(Counter::L1Miss, 100, share(f64::NAN));
        set.set_scaled(Counter::FbHit, 100, share(1.0));
        assert_eq!(set.running_share(Counter::Cycles), share(0.25));
        assert_eq!(set.running_share(Counter::FbHit), RunningShare::WHOLE);
        assert!(
            set.get(Counter::L1Hit)
                .unwrap_err()
                .reason
                .contains("9.0 %")
        );
        assert!(set.get(Counter::L1Miss).is_err());

        let mut sum = CounterSet::default();
        sum.set(Counter::Cycles, 1);
        sum.accumulate(&set);
        assert_eq!(sum.get(Counter::Cycles), Ok(101));
        assert_eq!(sum.running_share(Counter::Cycles), share(0.25));

        // A value read back is the value, and a set without shares says nothing of them.
        let text = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<CounterSet>(&text).unwrap(), set);
        set.set(Counter::Cycles, 1);
        assert!(!serde_json::to_string(&set).unwrap().contains("running"));
    }
}
