use weir_model::capability::Unavailable;

use super::*;

fn share(node: u32, weight: u32) -> Share {
    Share {
        tier: TierName::named(format!("node{node}")),
        node: Some(node),
        weight,
    }
}

#[test]
fn pages_are_on_the_node_that_was_asked_for() {
    let policy = Policy::probe();
    for pages in [Pages::Base, Pages::Transparent] {
        let region = Region::allocate(Bytes::mib(5), pages, &[share(0, 1)], &policy).unwrap();
        assert_eq!(region.is_verified(), policy.availability().is_ok());
        assert!(region.bytes() >= Bytes::mib(5));
        assert!(region.describe_pages(&Root::live()).contains("iB"));
    }
}

#[test]
fn a_page_that_is_elsewhere_is_found() {
    let policy = Policy::probe();
    if policy.availability().is_err() {
        return;
    }
    let mut region = Region::allocate(Bytes::mib(1), Pages::Base, &[share(0, 1)], &policy).unwrap();
    // The pages stay on node 0, and the region expects half of them on node 1.
    region.shares = vec![share(0, 1), share(1, 1)];
    let error = region.verify(&policy).unwrap_err();
    let pages = (1 << 20) / base_page() as u64;
    assert!(
        matches!(&error, MachineError::Misplaced { misplaced, pages: all, detail, .. }
            if *misplaced == pages / 2 && *all == pages && detail.contains("on node 0")),
        "{error}"
    );
    assert!(!region.is_verified());
}

#[test]
fn interleaving_takes_turns_by_weight() {
    let policy = Policy::denied(Unavailable::because("a test"));
    let shares = [share(0, 3), share(1, 1)];
    let region = Region::allocate(Bytes::kib(64), Pages::Base, &shares, &policy).unwrap();
    let nodes: Vec<_> = (0..9).map(|unit| region.share_of(unit).node).collect();
    assert_eq!(nodes, [0, 0, 0, 1, 0, 0, 0, 1, 0].map(Some));
    assert!(!region.is_verified());
}

#[test]
fn pages_of_several_shares_are_placed_one_by_one() {
    // One node twice uses the same calls as two nodes.
    let policy = Policy::probe();
    let shares = [share(0, 2), share(0, 1)];
    let region = Region::allocate(Bytes::mib(1), Pages::Base, &shares, &policy).unwrap();
    assert_eq!(region.is_verified(), policy.availability().is_ok());
}

#[test]
fn a_node_that_is_not_there_is_an_error_with_its_number() {
    let policy = Policy::probe();
    if policy.availability().is_err() {
        return;
    }
    for node in [900, 5000] {
        let error =
            Region::allocate(Bytes::mib(1), Pages::Base, &[share(node, 1)], &policy).unwrap_err();
        assert!(error.to_string().contains(&node.to_string()), "{error}");
    }
}

#[test]
fn a_region_is_filled_with_words_that_differ() {
    let region =
        Region::allocate(Bytes::mib(3), Pages::Base, &[share(0, 1)], &Policy::probe()).unwrap();
    let words = region.bytes().get() as usize / 8;
    // SAFETY: the region is mapped and was filled; nothing writes to it now.
    let words = unsafe { std::slice::from_raw_parts(region.base().cast::<u64>(), words) };
    assert!(words.iter().all(|&word| word != 0));
    let mut sample: Vec<u64> = words.iter().step_by(97).copied().collect();
    let count = sample.len();
    sample.sort_unstable();
    sample.dedup();
    assert_eq!(sample.len(), count);
}

#[test]
fn too_small_and_too_large_a_working_set_are_refused() {
    let policy = Policy::probe();
    let allocate = |bytes| Region::allocate(Bytes(bytes), Pages::Base, &[share(0, 1)], &policy);
    assert!(allocate(63).is_err());
    assert!(allocate(u64::MAX).is_err());
    assert!(allocate(1 << 62).is_err());
}
