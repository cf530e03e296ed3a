//! Which addresses pages have by rank: evenly spread, or in the parts of the region where their bands are.

/// Numbers below a count in another order, by the golden ratio: any part of it has its share of any other.
#[derive(Debug, Clone)]
struct Scatter {
    count: u64,
    /// Neighbours are this far apart, and the inverse of it.
    stride: u64,
    inverse: u64,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn inverse(a: u64, n: u64) -> u64 {
    let (mut r, mut t) = ((n as i128, a as i128), (0i128, 1i128));
    while r.1 != 0 {
        let q = r.0 / r.1;
        r = (r.1, r.0 - q * r.1);
        t = (t.1, t.0 - q * t.1);
    }
    t.0.rem_euclid(n as i128) as u64
}

impl Scatter {
    fn new(count: u64) -> Self {
        let count = count.max(1);
        let mut stride = ((count as f64 * 0.618_033_988_749_895) as u64).max(1);
        while gcd(stride, count) != 1 {
            stride += 1;
        }
        Self {
            count,
            stride,
            inverse: inverse(stride % count.max(2), count),
        }
    }

    fn to(&self, n: u64) -> u64 {
        ((u128::from(n) * u128::from(self.stride)) % u128::from(self.count)) as u64
    }

    fn back(&self, n: u64) -> u64 {
        // Both factors stay below 2^32: a region has fewer pages.
        (n * self.inverse) % self.count
    }
}

/// Pages that follow each other, in ranks or in addresses.
#[derive(Debug, Clone)]
struct Run {
    start: u64,
    scatter: Scatter,
    /// Where the pages of each part or band begin in the run's own order.
    begins: Vec<u64>,
}

impl Run {
    fn new(start: &mut u64, counts: impl Iterator<Item = u64>) -> Self {
        let mut all = 0;
        let begins = counts.map(|count| {
            all += count;
            all - count
        });
        let begins = begins.collect();
        *start += all;
        Self {
            start: *start - all,
            scatter: Scatter::new(all),
            begins,
        }
    }
}

/// The last of numbers in order that is not above `n`; of equal ones the last, as those before it have no pages.
fn last(numbers: &[u64], n: u64) -> usize {
    numbers.partition_point(|of| *of <= n).saturating_sub(1)
}

fn run_of(runs: &[Run], n: u64) -> usize {
    runs.partition_point(|run| run.start <= n).saturating_sub(1)
}

/// Where the page of each rank is in its region.
#[derive(Debug, Clone)]
pub(crate) struct Order(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// Any part of the region has its share of each band.
    Even(Scatter),
    /// Bands are in parts of the region's addresses; within a part they are spread.
    Placed { bands: Vec<Run>, parts: Vec<Run> },
}

/// Pages of each band, in the order of ranks, in each part: as many as its shares say, as far as earlier bands leave room.
fn counts(sizes: &[u64], places: &[Vec<f64>], mut free: Vec<u64>) -> Vec<Vec<u64>> {
    let of_band = |(size, shares): (&u64, &Vec<f64>)| {
        let wanted: Vec<f64> = shares.iter().map(|share| share * *size as f64).collect();
        let mut left = *size;
        let mut count = vec![0; free.len()];
        let mut give = |part: usize, pages: u64, left: &mut u64| {
            let pages = pages.min(free[part]).min(*left);
            free[part] -= pages;
            *left -= pages;
            count[part] += pages;
            // What is wanted more, where there is room.
            (free[part] > 0).then(|| wanted[part] - count[part] as f64)
        };
        let mut more: Vec<Option<f64>> = (wanted.iter().enumerate())
            .map(|(part, wanted)| give(part, *wanted as u64, &mut left))
            .collect();
        // Parts of pages, and then what found no room.
        for step in 0.. {
            let most = (more.iter().enumerate()).filter_map(|(part, more)| Some((part, (*more)?)));
            let Some((part, _)) = most
                .reduce(|a, b| if b.1 > a.1 { b } else { a })
                .filter(|_| left > 0)
            else {
                break;
            };
            let pages = if step < more.len() { 1 } else { left };
            more[part] = give(part, pages, &mut left);
        }
        count
    };
    sizes.iter().zip(places).map(of_band).collect()
}

impl Order {
    /// Of a region's pages; `ends` are the ranks at which bands but the last end, and `places` the shares of each band's
    /// pages in equally long parts of the region, or nothing.
    pub(crate) fn new(pages: u64, ends: &[u64], places: &[Vec<f64>]) -> Self {
        let Some(parts) = places.first().map(|of| of.len() as u64) else {
            return Self(Kind::Even(Scatter::new(pages)));
        };
        let mut before = 0;
        let sizes: Vec<u64> = (ends.iter().chain([&pages]))
            .map(|end| {
                let end = (*end).clamp(before, pages);
                let size = end - before;
                before = end;
                size
            })
            .collect();
        let begin = |part: u64| (part * pages).div_ceil(parts);
        let free = (0..parts).map(|part| begin(part + 1) - begin(part));
        let counts = counts(&sizes, places, free.collect());
        let (mut rank, mut address) = (0, 0);
        Self(Kind::Placed {
            bands: (counts.iter())
                .map(|of| Run::new(&mut rank, of.iter().copied()))
                .collect(),
            parts: (0..parts as usize)
                .map(|part| Run::new(&mut address, counts.iter().map(|of| of[part])))
                .collect(),
        })
    }

    /// The page of a rank, in the order of addresses.
    pub(crate) fn index(&self, rank: u64) -> u64 {
        match &self.0 {
            Kind::Even(scatter) => scatter.to(rank),
            Kind::Placed { bands, parts } => across(bands, parts, rank, Scatter::to),
        }
    }

    /// The rank of a page.
    pub(crate) fn rank(&self, index: u64) -> u64 {
        match &self.0 {
            Kind::Even(scatter) => scatter.back(index),
            Kind::Placed { bands, parts } => across(parts, bands, index, Scatter::back),
        }
    }
}

/// From a place in runs of one kind to its place in those of the other.
fn across(from: &[Run], to: &[Run], n: u64, scatter: fn(&Scatter, u64) -> u64) -> u64 {
    let a = run_of(from, n);
    let place = scatter(&from[a].scatter, n - from[a].start);
    let b = last(&from[a].begins, place);
    let place = to[b].begins[a] + place - from[a].begins[b];
    to[b].start + scatter(&to[b].scatter, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_addresses_are_one_to_one_and_bands_are_where_they_are_said_to_be() {
        for (pages, ends) in [
            (15, vec![1, 1, 3]),
            (1000, vec![10, 200, 1000]),
            (7, vec![0, 0, 7]),
        ] {
            let mut last = vec![0.0; 8];
            last[7] = 1.0;
            let places = vec![last.clone(), last, vec![0.125; 8], vec![0.125; 8]];
            let order = Order::new(pages, &ends, &places);
            let mut seen: Vec<u64> = (0..pages).map(|rank| order.index(rank)).collect();
            assert!((0..pages).all(|rank| order.rank(seen[rank as usize]) == rank));
            assert!((0..ends[0]).all(|rank| seen[rank as usize] >= pages * 7 / 8));
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..pages));
        }
    }
}
