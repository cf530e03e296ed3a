//! The memory directory of the other socket: which accesses cost more, and how much.

use crate::common::*;
use proptest::prelude::*;
use weir_model::access::Op;
use weir_model::platform::{Platform, Sourced};

/// Two sockets, the other one with a single channel.
fn machine(share: f64) -> Platform {
    let mut platform = platform("micro23+micro23-a");
    platform.host.uncore.directory_write = Sourced::from_source(share, "what if");
    platform
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn only_owners_of_lines_of_the_other_socket_pay(
        op in prop::sample::select(&[Op::Ld, Op::St, Op::NtSt][..]),
        tier in prop::sample::select(&["dram", "cxl0", "remote"][..]),
        threads in 1u32..=16,
    ) {
        let with = |share| gbps(&bed_of(&machine(share)), stream(op, tier, 0..threads));
        let (kept, none) = (with(1.0), with(0.0));
        if (op, tier) == (Op::St, "remote") {
            prop_assert!(kept <= none * 1.02, "{kept:.2} for {none:.2} GB/s");
        } else {
            prop_assert_eq!(kept, none);
        }
    }
}

#[test]
fn where_the_channel_is_the_limit_a_store_costs_a_read_and_two_writes() {
    let of = |op, share| gbps(&bed_of(&machine(share)), stream(op, "remote", 0..16));
    let (none, half, all) = (of(Op::St, 0.0), of(Op::St, 0.5), of(Op::St, 1.0));
    assert!(none > half && half > all, "{none:.2} {half:.2} {all:.2}");
    // The channel time of a line, read and written; bus turnarounds come on top of both.
    let (read, write) = (1.0 / of(Op::Ld, 1.0), 1.0 / of(Op::NtSt, 1.0));
    let expected = (read + write) / (read + 2.0 * write);
    assert_near("all against none", all / none, expected, 0.12);
}

#[test]
fn it_does_not_delay_the_read_itself() {
    let with = |share| latency(&bed_of(&machine(share)), flushed(Op::St, "remote"));
    assert_near("with it", with(1.0), with(0.0), 0.01);
}
