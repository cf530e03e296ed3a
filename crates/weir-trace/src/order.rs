//! Places that count up; each is taken or free, and those taken above a place are counted.

/// The places.
#[derive(Debug)]
pub struct Order {
    bits: Vec<u64>,
    /// Taken places in each word, and in each block of [`BLOCK`] words.
    in_word: Vec<u8>,
    in_block: Vec<u32>,
    next: u32,
}

/// Words of a block.
const BLOCK: usize = 32;

impl Order {
    pub fn new(places: usize) -> Self {
        let blocks = places.div_ceil(64 * BLOCK);
        Self {
            bits: vec![0; blocks * BLOCK],
            in_word: vec![0; blocks * BLOCK],
            in_block: vec![0; blocks],
            next: 0,
        }
    }

    pub fn is_full(&self) -> bool {
        self.next as usize == self.bits.len() * 64
    }

    pub fn clear(&mut self) {
        self.bits.fill(0);
        self.in_word.fill(0);
        self.in_block.fill(0);
        self.next = 0;
    }

    /// Takes the next place.
    pub fn add(&mut self) -> u32 {
        let place = self.next;
        let word = place as usize / 64;
        self.bits[word] |= 1 << (place % 64);
        self.in_word[word] += 1;
        self.in_block[word / BLOCK] += 1;
        self.next += 1;
        place
    }

    /// Frees a place that is taken; how many above it are taken.
    pub fn remove(&mut self, place: u32) -> u64 {
        let word = place as usize / 64;
        let block = word / BLOCK;
        self.bits[word] &= !(1 << (place % 64));
        self.in_word[word] -= 1;
        self.in_block[block] -= 1;
        let above = u64::from((self.bits[word] >> (place % 64)).count_ones());
        let words: u64 = (self.in_word[word + 1..(block + 1) * BLOCK].iter())
            .map(|&n| u64::from(n))
            .sum();
        let last = self.next as usize / (64 * BLOCK);
        let blocks = &self.in_block[block + 1..=last.max(block).min(self.in_block.len() - 1)];
        above + words + blocks.iter().map(|&n| u64::from(n)).sum::<u64>()
    }
}
