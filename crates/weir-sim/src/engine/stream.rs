//! Streams: which accesses of a thread start now.

use weir_model::access::Op;

use crate::clock::Ps;
use crate::core::{Private, Thread, crossings, is_held_back, paced};
use crate::line::{Kind, Level, Place};
use crate::params::Params;
use crate::uncore::{Sender, Uncore};

/// Accesses that hit private caches are handled in batches of this size, so that other cores are served in
/// between.
pub(super) const BATCH: u32 = 64;
/// Lets a plain stream issue as many accesses as it may, from `time` on.
#[inline(always)]
pub(super) fn pump_stream(
    thread: &mut Thread,
    t: usize,
    uncore: &mut Uncore,
    params: &Params,
    time: Ps,
) {
    if thread.asleep {
        return;
    }
    let from = Sender {
        thread: t as u16,
        core: thread.core,
    };
    if thread.is_plain && thread.unending {
        return pump_plain(thread, from, uncore, time);
    }
    let gap = match uncore.keeps_lines() {
        true => thread.limits.gap.min(params.core.llc_gap),
        false => thread.limits.gap,
    };
    let mut budget = BATCH;
    while thread.may_issue() {
        let ahead = thread.is_ahead();
        let tier = thread.cursor.tier();
        if ahead && is_throttled(uncore, tier, thread.is_beyond_busy()) {
            // Its demand accesses go on, and one of them wakes it.
            break;
        }
        if is_held_back(thread.next_issue, time, thread.allocated) {
            thread.asleep = true;
            return uncore.wake_at(from.thread, thread.next_issue);
        }
        let index = thread.window.next();
        let place = thread.walk.follow(&mut thread.cursor, index);
        let at = thread.next_issue.max(time);
        thread.window.start();
        if let Some(level) = find(&mut thread.private, thread.op, place) {
            thread.next_issue = at + hit_gap(params, thread.op, level);
            thread.window.complete(index);
            thread.progress.accesses += 1;
            uncore.pmu.cores[t].hit(thread.op, level);
            budget -= 1;
            if budget == 0 {
                thread.asleep = true;
                return uncore.wake_at(from.thread, thread.next_issue);
            }
            continue;
        }
        let allocated = thread.allocated * crossings(thread.op);
        thread.next_issue = paced(thread.next_issue, time, gap, allocated);
        let kind = match ahead {
            false => thread.kinds[0],
            true => thread.kinds[1 + usize::from(thread.is_far_ahead())],
        };
        thread.outstanding += 1;
        thread.unobserved += u32::from(kind == Kind::Wcilf);
        uncore.send(from, index, place, kind, at);
    }
}

/// The same for a stream that never ends and finds no line in a cache: how many it may issue is known at once.
#[inline(always)]
fn pump_plain(thread: &mut Thread, from: Sender, uncore: &mut Uncore, time: Ps) {
    let limits = &thread.limits;
    let busy = u64::from(thread.outstanding + thread.write_backs);
    let most = u64::from(limits.outstanding).min(limits.demand + limits.ahead);
    let room = most
        .saturating_sub(busy)
        .min(limits.window.saturating_sub(thread.window.span()));
    for busy in busy..busy + room {
        let ahead = busy >= thread.limits.demand;
        let tier = thread.cursor.tier();
        let is_beyond_busy = busy >= thread.limits.demand + thread.limits.ahead_busy;
        if ahead && is_throttled(uncore, tier, is_beyond_busy) {
            return;
        }
        if is_held_back(thread.next_issue, time, thread.allocated) {
            thread.asleep = true;
            return uncore.wake_at(from.thread, thread.next_issue);
        }
        let index = thread.window.next();
        let place = thread.walk.follow(&mut thread.cursor, index);
        let at = thread.next_issue.max(time);
        thread.window.start();
        let allocated = thread.allocated * crossings(Op::Ld);
        thread.next_issue = paced(thread.next_issue, time, thread.limits.gap, allocated);
        let far = busy >= thread.limits.demand + thread.limits.l1_ahead;
        let kind = thread.kinds[usize::from(ahead) + usize::from(far)];
        thread.outstanding += 1;
        uncore.send(from, index, place, kind, at);
    }
}

/// Whether nothing is prefetched from a tier now, or not so far ahead.
#[inline(always)]
fn is_throttled(uncore: &Uncore, tier: u8, is_beyond_busy: bool) -> bool {
    uncore.is_distressed(tier) || is_beyond_busy && uncore.is_busy(tier)
}

#[inline(always)]
pub(super) fn find(private: &mut Private, op: Op, place: Place) -> Option<Level> {
    match private {
        Private::Tagged(caches) if !op.is_posted() => {
            caches.find(place.key(), op.reads_for_ownership() && op != Op::StClwb)
        }
        _ => None,
    }
}

/// Time between accesses that hit. Atomic instructions follow one another.
pub(super) fn hit_gap(params: &Params, op: Op, level: Level) -> Ps {
    let core = &params.core;
    match (op, level) {
        (Op::Cas, _) => core.atomic,
        (Op::Ld, Level::L1) => core.l1_load_gap,
        (_, Level::L1) => core.l1_store_gap,
        (_, Level::L2) => core.l2_gap,
    }
}
