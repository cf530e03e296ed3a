//! Triangles, counted by merging lists of neighbours, as in the GAP Benchmark Suite.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Graph, in_chunks};

impl Graph {
    /// How many triples of vertices are all neighbours of each other.
    pub fn triangles(&self, threads: usize) -> u64 {
        let ordered = self.by_degree();
        let count = AtomicU64::new(0);
        in_chunks(threads, ordered.vertices(), |a| {
            let of_a = ordered.of(a);
            let found: u64 = (of_a.iter().map(|&b| common(of_a, ordered.of(b as usize)))).sum();
            count.fetch_add(found, Relaxed);
        });
        count.into_inner()
    }

    /// The same by one thread, which marks the neighbours of each vertex and looks which neighbours of neighbours are marked.
    pub fn triangles_serial(&self) -> u64 {
        let mut marked = vec![u32::MAX; self.vertices()];
        let mut count = 0;
        let below = |vertex: u32| {
            let neighbours = self.of(vertex as usize).iter().copied();
            neighbours.take_while(move |&u| u < vertex)
        };
        for a in 0..self.vertices() as u32 {
            below(a).for_each(|b| marked[b as usize] = a);
            for b in below(a) {
                count += below(b).filter(|&c| marked[c as usize] == a).count() as u64;
            }
        }
        count
    }

    /// The graph with vertices numbered by descending degree, and of each only the neighbours with lesser numbers. So the
    /// lists of vertices with many neighbours are short.
    fn by_degree(&self) -> Graph {
        let vertices = self.vertices();
        let degree = |v: u32| self.of(v as usize).len() as u64;
        let mut order: Vec<u64> = (0..vertices as u32)
            .map(|v| !degree(v) << 32 | u64::from(v))
            .collect();
        order.sort_unstable();
        let order: Vec<u32> = order.into_iter().map(|one| one as u32).collect();
        let mut number = vec![0_u32; vertices];
        for (new, &old) in order.iter().enumerate() {
            number[old as usize] = new as u32;
        }
        let mut ordered = Graph {
            offsets: vec![0],
            neighbours: Vec::with_capacity(self.arcs() / 2),
        };
        for (new, &old) in order.iter().enumerate() {
            let start = ordered.neighbours.len();
            let all = self.of(old as usize).iter().map(|&u| number[u as usize]);
            ordered.neighbours.extend(all.filter(|&u| u < new as u32));
            ordered.neighbours[start..].sort_unstable();
            ordered.offsets.push(ordered.neighbours.len() as u64);
        }
        ordered
    }
}

/// How many numbers two ascending lists have in common.
fn common(a: &[u32], b: &[u32]) -> u64 {
    let (mut at, mut count) = (0, 0);
    for &wanted in b {
        while a.get(at).is_some_and(|&one| one < wanted) {
            at += 1;
        }
        match a.get(at) {
            Some(&one) => count += u64::from(one == wanted),
            None => break,
        }
    }
    count
}
