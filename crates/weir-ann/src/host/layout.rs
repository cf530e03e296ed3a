//! Lists and vectors as arrays of words that can be placed on a tier.

use crate::AnnError;
use crate::arena::{Arena, LEAST, MOST};
use crate::graph::{Graph, HEADER_BYTES};
use crate::hops::Hops;
use crate::vectors::{SHARD, Vectors};

/// Words before the numbers of a list; the first one is their count.
const HEADER: usize = HEADER_BYTES as usize / 4;

/// Where a list is. This table is always in local memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Whether it is among the lists of inner hops that local memory has.
    pub is_inner: bool,
    /// Its first word.
    pub at: u32,
    /// Its words, with the header.
    pub words: u32,
}

/// Lists of a graph, in the order of hops from the entry: inner ones for local memory, and the rest for the pool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lists {
    /// Where each node's list is.
    pub places: Vec<Place>,
    /// Lists of inner hops.
    pub inner: Vec<u32>,
    /// All others.
    pub pool: Vec<u32>,
}

impl Lists {
    /// Lays lists out in arenas: those of inner hops in local memory until `budget` bytes of it are used.
    ///
    /// # Errors
    /// The entry reaches no other node, or the lists are more than 16 GiB.
    pub fn of(graph: &Graph, budget: u64) -> Result<Self, AnnError> {
        let hops = Hops::of(graph)?;
        let held = hops.cache(graph, &[], budget).nodes as usize;
        let nothing = Place {
            is_inner: false,
            at: 0,
            words: 0,
        };
        let mut lists = Self {
            places: vec![nothing; graph.len()],
            ..Self::default()
        };
        let (inner, rest) = hops.order.split_at(held.min(hops.order.len()));
        for (nodes, is_inner) in [(inner, true), (rest, false)] {
            // Chunks are powers of two; those that are left of split ones are less than the largest.
            let chunks = nodes.iter().map(|&node| chunk(graph.list_bytes(node)));
            let mut arena = Arena::new(0, chunks.sum::<u64>() + 2 * MOST);
            let mut all = Vec::new();
            for &node in nodes {
                let ids = graph.neighbours(node);
                let at = arena.list(graph.list_bytes(node))?.at as usize / 4;
                let end = at + HEADER + ids.len();
                if u32::try_from(end).is_err() {
                    return Err(AnnError::Bounds("lists take more than 16 GiB".into()));
                }
                all.resize(all.len().max(end), 0);
                if let Some([count, _, own @ ..]) = all.get_mut(at..end) {
                    *count = ids.len() as u32;
                    own.copy_from_slice(ids);
                }
                if let Some(place) = lists.places.get_mut(node as usize) {
                    *place = Place {
                        is_inner,
                        at: at as u32,
                        words: (HEADER + ids.len()) as u32,
                    };
                }
            }
            match is_inner {
                true => lists.inner = all,
                false => lists.pool = all,
            }
        }
        Ok(lists)
    }
}

fn chunk(bytes: u64) -> u64 {
    bytes.next_power_of_two().max(LEAST)
}

/// The neighbours of a list, as its own header has their number.
pub fn neighbours(lists: &[u32], place: Place) -> &[u32] {
    let list = lists.get(place.at as usize..).unwrap_or_default();
    let count = list.first().copied().unwrap_or(0) as usize;
    list.get(HEADER..HEADER + count).unwrap_or_default()
}

/// Elements of the vectors that the device of a shard holds, one vector's after the other.
pub fn shard(vectors: &Vectors, shard: usize) -> impl Iterator<Item = f32> {
    let part = move |row| <[f32]>::chunks(row, SHARD).nth(shard).unwrap_or_default();
    vectors.rows().flat_map(part).copied()
}
