//! Values that say which key and which version they are of, and whether they are whole.

use crate::kernels::Random;

/// Bytes that a server needs for each record besides its value: the key, the entry of the table, headers.
pub const PER_RECORD: u64 = 128;
/// Bytes of the key, the version and the checksum.
pub const LEAST: usize = 24;

/// The name of a key, as YCSB has it.
pub fn name(key: u64) -> String {
    format!("user{key:012}")
}

/// The key of a name.
pub(super) fn number(name: &[u8]) -> Option<u64> {
    let digits = name.strip_prefix(b"user")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Makes the value of a version of a key: both numbers, words drawn from them, and a checksum of all.
pub fn make(key: u64, version: u32, length: usize, value: &mut Vec<u8>) {
    let start = value.len();
    let body = length.max(LEAST) - 8;
    value.extend(key.to_le_bytes());
    value.extend(u64::from(version).to_le_bytes());
    let mut random = Random::new(key ^ (u64::from(version) << 40));
    while value.len() < start + body {
        let word = random.word().to_le_bytes();
        let wanted = (start + body - value.len()).min(8);
        value.extend_from_slice(&word[..wanted]);
    }
    let sum = checksum(&value[start..]);
    value.extend(sum.to_le_bytes());
}

/// The key and the version of a value.
///
/// # Errors
/// In words: it is no value, or it is damaged.
pub fn check(value: &[u8]) -> Result<(u64, u32), String> {
    let word = |part: &[u8]| part.try_into().map(u64::from_le_bytes).ok();
    let report = || format!("a value of {} bytes is damaged", value.len());
    if value.len() < LEAST {
        return Err(report());
    }
    let (body, sum) = value.split_at(value.len() - 8);
    let version = word(&body[8..16]).and_then(|version| u32::try_from(version).ok());
    match (word(&body[..8]), version) {
        (Some(key), Some(version)) if word(sum) == Some(checksum(body)) => Ok((key, version)),
        _ => Err(report()),
    }
}

/// A multiplication for each word, after FNV-1a. Every word changes it, since the factor is odd.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = (sum ^ u64::from_le_bytes(word))
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(29);
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_value_says_what_it_is_and_any_damage_is_seen(key: u64, version: u32, length in 1_usize..2000, at: usize, bit in 0_u32..8) {
            let mut value = Vec::new();
            make(key, version, length, &mut value);
            prop_assert_eq!(value.len(), length.max(LEAST));
            prop_assert_eq!(check(&value), Ok((key, version)));
            let at = at % value.len();
            value[at] ^= 1 << bit;
            prop_assert!(check(&value).is_err());
            prop_assert!(check(&value[..at]).is_err());
        }
    }
}
