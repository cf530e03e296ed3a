//! Vectors and their distances.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use weir_loops::distance::{products, squares};

use crate::AnnError;

/// Elements of a shard: what a device reads at once, 256 B of 4-byte elements (CXL-ANNS, section 5.1).
pub const SHARD: usize = 64;

/// Vectors of one length, one behind the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vectors {
    dims: usize,
    data: Vec<f32>,
}

impl Vectors {
    /// Vectors of this many elements.
    ///
    /// # Errors
    /// The elements are none, do not divide into vectors, or one of them is no number.
    pub fn new(dims: usize, data: Vec<f32>) -> Result<Self, AnnError> {
        if dims == 0 || data.is_empty() || !data.len().is_multiple_of(dims) {
            return Err(AnnError::Bounds(format!(
                "{} elements are no vectors of {dims} dimensions",
                data.len()
            )));
        }
        match data.iter().position(|element| !element.is_finite()) {
            Some(at) => Err(AnnError::Bounds(format!(
                "record {}: element {} is no finite number",
                at / dims,
                at % dims
            ))),
            None => Ok(Self { dims, data }),
        }
    }

    /// Elements of each.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.data.len() / self.dims.max(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// One of them; empty where there is no such.
    pub fn row(&self, id: u32) -> &[f32] {
        let at = id as usize * self.dims;
        self.data.get(at..at + self.dims).unwrap_or_default()
    }

    /// All, in order.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.data.chunks_exact(self.dims.max(1))
    }

    /// Those of these ids, in this order.
    pub fn pick(&self, ids: impl IntoIterator<Item = u32>) -> Self {
        let data = ids.into_iter().flat_map(|id| self.row(id).iter().copied());
        Self {
            dims: self.dims,
            data: data.collect(),
        }
    }

    /// The first `n`, and the rest.
    pub fn split(mut self, n: usize) -> (Self, Self) {
        let rest = self.data.split_off((n * self.dims).min(self.data.len()));
        let dims = self.dims;
        (self, Self { dims, data: rest })
    }

    /// The same with length 1; zero stays zero.
    pub fn directions(&self) -> Self {
        let mut data = self.data.clone();
        for row in data.chunks_exact_mut(self.dims.max(1)) {
            let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
            if length > 0.0 {
                row.iter_mut().for_each(|x| *x /= length);
            }
        }
        Self {
            dims: self.dims,
            data,
        }
    }
}

weir_model::named! {
    /// How far two vectors are apart. Only the order of distances matters.
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Metric {
        /// The sum of squared differences.
        L2 = "l2",
        /// The inner product, negated: the larger it is, the closer they are.
        Angular = "angular",
    }
}

impl Metric {
    /// The distance, which is by definition the sum of those of shards, in order. A host that adds what devices found for
    /// their shards so has the same bits as one that computes it alone.
    pub fn distance(self, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Metric::L2 => total(a, b, squares),
            Metric::Angular => total(a, b, products),
        }
    }

    /// The part of the distance that one shard contributes.
    pub fn of_shard(self, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Metric::L2 => squares(a, b),
            Metric::Angular => products(a, b),
        }
    }
}

#[inline(always)]
fn total(a: &[f32], b: &[f32], shard: fn(&[f32], &[f32]) -> f32) -> f32 {
    let mut sum = 0.0;
    for (a, b) in a.chunks(SHARD).zip(b.chunks(SHARD)) {
        sum += shard(a, b);
    }
    sum
}

/// A node at a distance. Of two at one distance the lower id is closer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// How far it is.
    pub distance: f32,
    /// Which it is.
    pub id: u32,
}

impl Near {
    /// A node at a distance.
    pub fn new(distance: f32, id: u32) -> Self {
        Self { distance, id }
    }

    /// The closer one comes first.
    pub fn order(&self, other: &Self) -> Ordering {
        (self.distance.total_cmp(&other.distance)).then(self.id.cmp(&other.id))
    }
}

/// Vectors cut into columns of [`SHARD`] elements, as devices hold them.
#[derive(Debug, Clone)]
pub struct Shards {
    columns: Vec<Vectors>,
    metric: Metric,
}

impl Shards {
    /// Cuts vectors.
    pub fn of(vectors: &Vectors, metric: Metric) -> Self {
        let columns = (0..vectors.dims().div_ceil(SHARD)).map(|column| {
            let from = column * SHARD;
            let dims = SHARD.min(vectors.dims() - from);
            let parts = vectors
                .rows()
                .flat_map(|row| row[from..from + dims].iter().copied());
            Vectors {
                dims,
                data: parts.collect(),
            }
        });
        Self {
            columns: columns.collect(),
            metric,
        }
    }

    /// How many columns there are.
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// What each device returns for a node.
    pub fn parts(&self, query: &[f32], id: u32) -> impl Iterator<Item = f32> {
        let columns = self.columns.iter().zip(query.chunks(SHARD));
        columns.map(move |(column, query)| self.metric.of_shard(query, column.row(id)))
    }

    /// Their sum, in order: the distance.
    pub fn distance(&self, query: &[f32], id: u32) -> f32 {
        self.parts(query, id).fold(0.0, |sum, part| sum + part)
    }
}
