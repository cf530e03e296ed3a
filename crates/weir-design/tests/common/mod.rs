//! Models and spaces of the tests.

use weir_design::space::{Models, Space};
use weir_model::diagnostic::Mistakes;
use weir_model::machine::Testbed;
use weir_model::platform::{Library, Platform};
use weir_model::workload::{Workload, Workloads};
use weir_sim::{Sampling, SimTestbed};

fn compose(on: &str) -> Result<Platform, String> {
    let mut library = Library::builtin();
    let plain = library.change(on).map_err(|error| error.to_string())?;
    library.compose(&plain).map_err(|error| error.to_string())
}

fn open(on: &str) -> Result<Box<dyn Testbed>, String> {
    let testbed = SimTestbed::new(&compose(on)?).map_err(|error| error.to_string())?;
    Ok(Box::new(testbed))
}

fn sampled(on: &str) -> Result<Box<dyn Testbed>, String> {
    let platform = compose(on)?;
    let testbed = SimTestbed::new(&platform).map_err(|error| error.to_string())?;
    Ok(Box::new(testbed.sampled(Sampling::of(&platform))))
}

fn workload(name: &str) -> Result<Workload, String> {
    let known = Workloads::builtin().get(name).cloned();
    known.ok_or_else(|| format!("there is no workload `{name}`"))
}

/// Models of the simulator.
pub const MODELS: Models = Models {
    compose,
    open,
    sampled,
    workload,
    largest_region: |_| None,
};

/// A small space of cards and policies.
pub const SMALL: &str = r#"
kind = "design"
base = "emr2s+cxl-a"

[[axis]]
name = "cards"
key = "cards"
values = [0, 1, 2]

[[axis]]
name = "pages"
key = "policy"
values = ["dram", "dram=3,cxl=1"]

[[workload]]
name = "scan-column"

[[objective]]
name = "speed"
[[objective]]
name = "dollars"
"#;

/// A scan of a column on DRAM with stores to a card that fill its queue, without and with controllers.
pub const WITH_TENANT: &str = r#"
kind = "design"
base = "emr2s+cxl-a"

[[axis]]
key = "controller"
values = ["none", "miku"]

[[axis]]
key = "threads"
values = [8]

[[workload]]
name = "scan-column"

[[tenant]]
name = "cxl0:nt_st"
threads = 8

[[objective]]
name = "speed"
[[objective]]
name = "neighbour"
"#;

/// Reads a space.
pub fn read(text: &str) -> Result<Space, Mistakes> {
    Space::read("my.toml", text, &MODELS)
}
