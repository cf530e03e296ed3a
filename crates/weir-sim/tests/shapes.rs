//! Shapes of published curves. No parameter was fitted to them, except for one: the reorder window of the FPGA
//! card's controller was chosen in view of the decline of its loads past 12 threads.

use crate::common::*;
use weir_model::access::{Op, Pattern};
use weir_model::units::Bytes;

/// Bandwidth against threads, and where it peaks.
struct Curve(Vec<(u32, f64)>);

impl Curve {
    fn of(expression: &str, op: Op, tier: &str, prefetch: bool, threads: &[u32]) -> Self {
        let bed = bed(expression);
        let point = |&n: &u32| {
            let mut tenant = stream(op, tier, 0..n);
            tenant.prefetch = prefetch;
            // Streams start in step and take long to fall out of step on a slow device; which rows collide
            // depends on chance.
            let rate = |seed| {
                let tenants = std::slice::from_ref(&tenant);
                run(&bed, tenants, 150.0, 100.0, seed).gbps(0)
            };
            (n, (1..=8).map(rate).sum::<f64>() / 8.0)
        };
        Self(threads.iter().map(point).collect())
    }

    fn peak(&self) -> (u32, f64) {
        let higher = |best: (u32, f64), &p: &(u32, f64)| if p.1 > best.1 { p } else { best };
        self.0.iter().fold((0, 0.0), higher)
    }

    fn at(&self, threads: u32) -> f64 {
        self.0.iter().find(|p| p.0 == threads).unwrap().1
    }
}

#[test]
fn loads_of_an_fpga_card_peak_near_eight_threads_and_never_come_back_to_it() {
    // MEMO §4.3.1: the peak is at about 8 threads, and past 12 the bandwidth drops.
    let past = [14, 16, 20, 24, 28, 32];
    let threads: Vec<u32> = (1..=12).chain(past).collect();
    let curve = Curve::of("memo", Op::Ld, "cxl0", false, &threads);
    let (at, peak) = curve.peak();
    assert!((6..=12).contains(&at), "peak at {at}: {:?}", curve.0);
    let mean = past.iter().map(|&n| curve.at(n)).sum::<f64>() / past.len() as f64;
    assert!(mean < 0.98 * peak, "{mean:.1} of {peak:.1} GB/s past 12");
}

#[test]
fn non_temporal_stores_to_an_fpga_card_peak_at_once_and_fall_at_once() {
    // MEMO §4.3.1: 22 GB/s with two threads, then an immediate drop.
    let curve = Curve::of("memo", Op::NtSt, "cxl0", true, &[1, 2, 3, 4, 8, 12, 16]);
    let (at, peak) = curve.peak();
    assert!(at <= 3, "peak at {at}: {:?}", curve.0);
    assert!(curve.at(4) < peak, "{:?}", curve.0);
    assert!(curve.at(8) < curve.at(4), "{:?}", curve.0);
    assert!(curve.at(16) < 0.8 * peak, "{:?}", curve.0);
}

#[test]
fn temporal_stores_to_an_fpga_card_stay_far_below_non_temporal_ones() {
    // MEMO §4.3.1: reading for ownership and writing back cost temporal stores most of the bandwidth.
    let threads = [1, 2, 4, 8, 16, 32];
    let posted = Curve::of("memo", Op::NtSt, "cxl0", true, &threads).peak().1;
    let temporal = Curve::of("memo", Op::St, "cxl0", true, &threads).peak().1;
    assert!(
        temporal < 0.5 * posted,
        "{temporal:.1} against {posted:.1} GB/s"
    );
}

#[test]
fn a_store_written_back_takes_well_over_twice_as_long_as_a_posted_one() {
    // MEMO §4.2: st+clwb takes 2.6 times as long as nt-st on CXL: two round trips and the coherence of a
    // flushed line, against one.
    let bed = bed("memo");
    let written_back = latency(&bed, flushed(Op::StClwb, "cxl0"));
    let posted = latency(&bed, flushed(Op::NtSt, "cxl0"));
    let ratio = written_back / posted;
    assert!(
        (2.1..=3.1).contains(&ratio),
        "{written_back:.0} / {posted:.0} ns = {ratio:.2}"
    );
}

#[test]
fn a_pointer_chase_climbs_a_staircase_of_the_caches() {
    let platform = platform("emr2s+cxl-a");
    let (host, bed) = (&platform.host, bed_of(&platform));
    let clock = *host.core.clock;
    let climb = |tier, memory: f64| {
        let steps = [
            (*host.l1.size, clock.time(*host.l1.latency).get()),
            (*host.l2.size, clock.time(*host.l2.latency).get()),
            (*host.llc.size, host.llc.latency.get()),
            (Bytes::gib(1), memory),
        ];
        let at = |bytes: u64| latency(&bed, chase(tier, 0..1, Bytes(bytes)));
        for pair in steps.windows(2) {
            let ((size, here), (_, next)) = (pair[0], pair[1]);
            let what = format!("{tier} within {size}");
            assert_near(&what, at(size.get() / 2), here, 0.1);
            // Twice the size ends half of the step.
            let middle = (here * next).sqrt();
            let beyond = at(2 * size.get());
            assert!(
                beyond > middle,
                "{tier} at twice {size}: {beyond:.1}, still below {middle:.1} ns"
            );
        }
        assert_near(tier, at(Bytes::gib(1).get()), memory, 0.1);
    };
    climb("dram", host.dram.measured.idle.get());
    climb("cxl0", platform.devices[0].device.measured.idle.get());
}

#[test]
fn loads_of_an_asic_card_do_not_decline_with_threads() {
    // SupMario figure 3: products hold their peak.
    for prefetch in [true, false] {
        let threads = [1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32];
        let curve = Curve::of("emr2s+cxl-a", Op::Ld, "cxl0", prefetch, &threads);
        let (at, peak) = curve.peak();
        for &(n, gbps) in curve.0.iter().filter(|p| p.0 >= at) {
            assert!(gbps > 0.97 * peak, "{n} threads: {gbps:.2} of {peak:.2}");
        }
    }
}

/// Bandwidth of random blocks, in GB/s.
fn blocks(expression: &str, op: Op, tier: &str, threads: u32, kib: u64) -> f64 {
    let tenant = stream(op, tier, 0..threads).with_stream(|s| {
        s.pattern = Pattern::RandomBlock {
            block: Bytes::kib(kib),
        }
    });
    let rate = |seed| {
        run(
            &bed(expression),
            std::slice::from_ref(&tenant),
            60.0,
            300.0,
            seed,
        )
    };
    (1..=4).map(|seed| rate(seed).gbps(0)).sum::<f64>() / 4.0
}

#[test]
fn one_thread_of_random_posted_blocks_gains_with_their_size_and_many_lose() {
    // MEMO §4.3.2: one thread keeps growing; several threads have a best size, which is smaller for more
    // threads.
    let sizes = [1, 4, 16, 64, 256];
    let of = |threads| sizes.map(|kib| blocks("memo", Op::NtSt, "cxl0", threads, kib));
    let one = of(1);
    assert!(one.windows(2).all(|pair| pair[1] > pair[0]), "{one:?}");
    let mut first_loss = usize::MAX;
    for threads in [4, 8, 16] {
        let gbps = of(threads);
        let peak = gbps.iter().copied().fold(0.0, f64::max);
        let best = gbps.iter().position(|&g| g > 0.97 * peak).unwrap();
        let loss = (best..sizes.len()).find(|&i| gbps[i] < 0.97 * peak);
        let loss = loss.unwrap_or_else(|| panic!("{threads} threads never lose: {gbps:?}"));
        assert!(loss <= first_loss, "{threads} threads lose later: {gbps:?}");
        first_loss = loss;
    }
}

#[test]
fn small_random_blocks_treat_all_tiers_alike() {
    // MEMO §4.3.2: with blocks of 1 KiB every tier is far below its streams; with 16 KiB local
    // DRAM goes ahead.
    for tier in ["dram", "cxl0"] {
        let share = |kib| {
            let whole = blocks("memo", Op::Ld, tier, 2, 128);
            blocks("memo", Op::Ld, tier, 2, kib) / whole
        };
        assert!(share(1) < 0.65, "{tier}: {:.2} of a stream", share(1));
        assert!(share(16) > 0.85, "{tier}: {:.2} of a stream", share(16));
    }
}
