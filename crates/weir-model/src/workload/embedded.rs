//! The files of `workloads/`, compiled in, so that Weir knows them wherever it runs.

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../../../workloads/", $name, ".toml")),
        ),)+]
    };
}

/// Every workload.
pub(super) const WORKLOADS: &[(&str, &str)] = files!("chase", "scan", "churn");
