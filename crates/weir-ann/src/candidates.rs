//! The candidate array of a search, and the set of nodes it has met.

use crate::vectors::Near;

#[derive(Debug, Clone, Copy)]
struct Candidate {
    near: Near,
    visited: bool,
}

/// What an insertion did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inserted {
    /// Whether the node is in the array now.
    pub kept: bool,
    /// Candidates that moved by one place.
    pub moved: usize,
}

/// The nearest nodes that a search knows, sorted, at most this many.
#[derive(Debug, Clone)]
pub struct Candidates {
    most: usize,
    all: Vec<Candidate>,
    /// All before it were visited.
    next: usize,
}

impl Candidates {
    /// None yet, of at most this many.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            all: Vec::with_capacity(most + 1),
            next: 0,
        }
    }

    /// Whether a node would be in the array if it were inserted now.
    pub fn admits(&self, near: Near) -> bool {
        let last = self.all.last();
        self.all.len() < self.most || last.is_some_and(|last| near.order(&last.near).is_lt())
    }

    /// Whether a node is in the array.
    pub fn has(&self, near: Near) -> bool {
        let at = (self.all).partition_point(|other| other.near.order(&near).is_lt());
        self.all.get(at).is_some_and(|other| other.near == near)
    }

    /// Inserts a node, which pushes the farthest one out where the array is full.
    pub fn insert(&mut self, near: Near, visited: bool) -> Inserted {
        if !self.admits(near) {
            return Inserted::default();
        }
        let at = self
            .all
            .partition_point(|other| other.near.order(&near).is_lt());
        if self.all.len() == self.most {
            self.all.pop();
        }
        let moved = self.all.len() - at;
        self.all.insert(at, Candidate { near, visited });
        if at < self.next || (at == self.next && !visited) {
            self.next = match visited {
                true => self.next + 1,
                false => at,
            };
        }
        Inserted { kept: true, moved }
    }

    /// The nearest node that was not visited.
    pub fn nearest_unvisited(&mut self) -> Option<Near> {
        while self.all.get(self.next).is_some_and(|one| one.visited) {
            self.next += 1;
        }
        self.all.get(self.next).map(|one| one.near)
    }

    /// Marks that node as visited.
    pub fn visit_nearest(&mut self) {
        let next = self.nearest_unvisited().and(self.all.get_mut(self.next));
        if let Some(one) = next {
            one.visited = true;
        }
    }

    /// The nearest first.
    pub fn iter(&self) -> impl Iterator<Item = Near> {
        self.all.iter().map(|one| one.near)
    }
}

/// Which nodes were met, cleared in no time for the next search.
#[derive(Debug, Clone)]
pub struct Met {
    now: u32,
    when: Vec<u32>,
}

impl Met {
    /// None of this many nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            now: 0,
            when: vec![0; nodes],
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            self.when.fill(0);
            self.now = 1;
        }
    }

    /// Meets a node; whether it was new.
    pub fn meet(&mut self, node: u32) -> bool {
        match self.when.get_mut(node as usize) {
            Some(when) if *when != self.now => {
                *when = self.now;
                true
            }
            _ => false,
        }
    }
}
