//! The study on the model of the paper's machine, and requests that do not fit.

use std::io::Write as _;
use std::path::Path;

use weir_ann::datasets::Dataset;
use weir_ann::ladder::Variant;
use weir_ann::outcome::Neighbours;
use weir_ann::study::NeighbourSearch;
use weir_lab::{Bench, Lab, LabError, Study as _};
use weir_model::machine::Testbed as _;
use weir_model::platform::Library;
use weir_model::topology::TierName;
use weir_model::units::Bytes;
use weir_sim::SimTestbed;

fn usual(dataset: Dataset) -> NeighbourSearch {
    NeighbourSearch {
        datasets: vec![dataset],
        tier: TierName::named("cxl0"),
        from: TierName::dram(),
        budget: None,
        devices: None,
        nodes: 1_500,
        queries: 20,
        once: false,
        vectors: None,
    }
}

fn run(study: &NeighbourSearch) -> Result<Neighbours, LabError> {
    let machine = "cxl-anns+4xcxl-anns-device@interleaved@switch";
    let platform = Library::builtin().compose(machine).unwrap();
    let testbed = SimTestbed::new(&platform).unwrap();
    let machine = testbed.open(1).unwrap();
    let (identity, topology) = (machine.identity(), machine.topology().clone());
    let bench = Bench {
        testbed: &testbed,
        machine: &identity,
        topology: &topology,
        capabilities: &[],
        seed: 1,
        rounds: 1,
    };
    study.run(&Lab::new(bench, &()))
}

#[test]
fn the_ladder_has_the_published_order_on_the_model() {
    let found = run(&usual(Dataset::BigAnn)).unwrap();
    let of = |variant: Variant| {
        let mut rows = found.ladder.iter();
        rows.find(|row| row.variant == variant).unwrap().query_us
    };
    let ladder = [
        Variant::Base,
        Variant::Oracle,
        Variant::Epax,
        Variant::NoPrefetch,
        Variant::Cache,
        Variant::Cxla,
    ];
    assert!(
        ladder.windows(2).all(|two| of(two[0]) >= of(two[1])),
        "{:?}",
        ladder.map(of)
    );
    for row in &found.ladder {
        let parts = row.traverse_us
            + row.distance_memory_us
            + row.distance_compute_us
            + row.update_us
            + row.interface_us;
        assert!(
            (parts - row.query_us).abs() < 1e-6 * row.query_us,
            "{row:?}"
        );
    }
    assert_eq!(run(&usual(Dataset::BigAnn)).unwrap(), found);
    let small = NeighbourSearch {
        budget: Some(Bytes::gib(1)),
        ..usual(Dataset::BigAnn)
    };
    let small = run(&small).unwrap();
    assert!(small.caches[0].hit_pct < found.caches[0].hit_pct);
}

fn refused(study: NeighbourSearch) -> String {
    run(&study).unwrap_err().to_string()
}

fn from(file: &Path, datasets: Vec<Dataset>) -> NeighbourSearch {
    NeighbourSearch {
        vectors: Some(file.to_owned()),
        datasets,
        ..usual(Dataset::BigAnn)
    }
}

#[test]
fn tiers_and_files_that_do_not_fit_are_refused_with_their_names() {
    let same = NeighbourSearch {
        tier: TierName::dram(),
        ..usual(Dataset::BigAnn)
    };
    assert!(refused(same).contains("both the pool and local memory"));
    let unknown = NeighbourSearch {
        tier: TierName::named("cxl9"),
        ..usual(Dataset::BigAnn)
    };
    assert!(refused(unknown).contains("cxl9"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("some.bvecs");
    let of = |datasets| from(&file, datasets);
    assert!(refused(of(vec![Dataset::BigAnn])).contains("some.bvecs: No such file"));
    let mut bytes = Vec::new();
    for at in 0..1_519_u32 {
        bytes.extend(128_u32.to_le_bytes());
        bytes.extend(
            (0..128_u32).map(|x| (at.wrapping_mul(2_654_435_761).rotate_left(x) >> 24) as u8),
        );
    }
    std::fs::File::create(&file)
        .unwrap()
        .write_all(&bytes)
        .unwrap();
    assert!(
        refused(of(vec![Dataset::BigAnn]))
            .contains("it has 1519 vectors; 1500 nodes and 20 queries")
    );
    assert!(refused(of(vec![Dataset::MsT])).contains("has 128 dimensions, and the data have 100"));
    assert!(refused(of(vec![])).contains("name it with --dataset"));
    let fewer = NeighbourSearch {
        nodes: 1_499,
        ..of(vec![Dataset::BigAnn])
    };
    assert_eq!(run(&fewer).unwrap().nodes, 1_499);
}
