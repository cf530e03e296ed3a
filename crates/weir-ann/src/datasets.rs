//! The published datasets, and generated data of their shape.

use serde::{Deserialize, Serialize};

use crate::vectors::{Metric, Vectors};
use weir_model::random::Random;

weir_model::named! {
    /// A dataset of the BigANN benchmark, of a billion vectors (CXL-ANNS, Table 2).
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Dataset {
        /// Features of images (BigANN, SIFT).
        #[serde(rename = "bigann")]
        BigAnn = "bigann",
        /// Yandex Text-to-Image.
        YandexT = "yandex-t",
        /// Yandex DEEP.
        YandexD = "yandex-d",
        /// Meta SimSearchNet++.
        MetaS = "meta-s",
        /// Microsoft Turing-ANNS.
        MsT = "ms-t",
        /// Microsoft SpaceV.
        MsS = "ms-s",
    }
}

impl std::str::FromStr for Dataset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Dataset::ALL.map(Dataset::name).join(", ");
        Dataset::named(&text.to_lowercase().replace('_', "-"))
            .ok_or_else(|| format!("no dataset is called `{text}`; known are {known}"))
    }
}

/// What is published of a dataset (Table 2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// How distances are computed.
    pub metric: Metric,
    /// Vectors.
    pub vectors: f64,
    /// Elements of each.
    pub dims: usize,
    /// Neighbours of a node in the mean.
    pub degree: f64,
    /// Candidates with which recall@10 is 0.9.
    pub candidates: u32,
    /// Devices of the pool.
    pub devices: u32,
}

impl Dataset {
    /// What is published of it.
    pub fn published(self) -> Published {
        let (metric, dims, degree, candidates, devices) = match self {
            Dataset::BigAnn => (Metric::L2, 128, 31.6, 150, 4),
            Dataset::YandexT => (Metric::Angular, 200, 29.0, 2500, 4),
            Dataset::YandexD => (Metric::L2, 96, 66.9, 1700, 4),
            Dataset::MetaS => (Metric::L2, 256, 190.0, 5600, 8),
            Dataset::MsT => (Metric::L2, 100, 43.1, 250, 4),
            Dataset::MsS => (Metric::L2, 100, 87.4, 200, 4),
        };
        Published {
            metric,
            vectors: 1e9,
            dims,
            degree,
            candidates,
            devices,
        }
    }
}

impl Published {
    /// Bytes of a vector.
    pub fn vector_bytes(&self) -> f64 {
        4.0 * self.dims as f64
    }

    /// Bytes of a node's list with its header.
    pub fn list_bytes(&self) -> f64 {
        crate::graph::HEADER_BYTES as f64 + crate::graph::ID_BYTES as f64 * self.degree
    }

    /// Shards of a vector, each on a device of its own.
    pub fn shards(&self) -> u32 {
        self.dims.div_ceil(crate::vectors::SHARD) as u32
    }
}

/// Dimensions in which generated data really vary: NSG's authors give 12.9 for SIFT and 29.1 for GIST (VLDB 2019).
const INTRINSIC: usize = 16;
/// Vectors of one cluster in the mean.
const CLUSTER: usize = 500;
/// Spread of the centres of clusters, against 1 within them.
const APART: f32 = 1.0;
/// Spread of the noise in all dimensions.
const NOISE: f32 = 0.05;

/// `n` vectors of a mixture of normal distributions in a few dimensions, turned into `dims` and with a little noise.
/// Those of angular distances have length 1.
///
/// # Errors
/// No vector is asked for, or none of its elements.
pub fn generate(
    n: usize,
    dims: usize,
    metric: Metric,
    seed: u64,
) -> Result<Vectors, crate::AnnError> {
    let mut chance = Random::new(seed);
    let basis: Vec<[f32; INTRINSIC]> = (0..dims)
        .map(|_| std::array::from_fn(|_| chance.normal()))
        .collect();
    let centres: Vec<[f32; INTRINSIC]> = (0..n.div_ceil(CLUSTER))
        .map(|_| std::array::from_fn(|_| chance.normal() * APART))
        .collect();
    let mut data = Vec::with_capacity(n * dims);
    for _ in 0..n {
        let centre = centres
            .get(chance.below(centres.len()))
            .copied()
            .unwrap_or_default();
        let inner: [f32; INTRINSIC] = centre.map(|x| x + chance.normal());
        for row in &basis {
            let turned: f32 = row.iter().zip(&inner).map(|(a, b)| a * b).sum();
            data.push(turned + NOISE * chance.normal());
        }
    }
    let vectors = Vectors::new(dims, data)?;
    Ok(match metric {
        Metric::L2 => vectors,
        Metric::Angular => vectors.directions(),
    })
}
