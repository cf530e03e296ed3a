//! The kernel's notation for sets of numbers: `0-3,8,10-11`.

use weir_model::capability::Unavailable;

/// No machine has more processors or nodes; a longer range is invalid.
const MOST: u32 = 1 << 16;

/// Reads a list; an empty one is valid, as for a node without processors.
///
/// # Errors
/// Anything that is not a list of ascending ranges.
pub fn parse(text: &str) -> Result<Vec<u32>, Unavailable> {
    let wrong = || Unavailable::because(format!("`{text}` is not a list of numbers such as 0-3,8"));
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| wrong())?;
        let last: u32 = last.trim().parse().map_err(|_| wrong())?;
        if first > last || last >= MOST {
            return Err(wrong());
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// Writes a list in the kernel's form.
pub fn format(numbers: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let Some((&first, _)) = rest.split_first() {
        let run = rest
            .iter()
            .enumerate()
            .take_while(|&(i, &n)| u32::try_from(i).is_ok_and(|i| n == first + i))
            .count();
        if !text.is_empty() {
            text.push(',');
        }
        match rest[run - 1] {
            last if last == first => text.push_str(&first.to_string()),
            last => text.push_str(&format!("{first}-{last}")),
        }
        rest = &rest[run..];
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(set in proptest::collection::btree_set(0u32..500, 0..60)) {
            let numbers: Vec<u32> = set.into_iter().collect();
            prop_assert_eq!(parse(&format(&numbers)), Ok(numbers));
        }

        #[test]
        fn no_text_is_too_odd_to_refuse(text in ".{0,40}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn garbage_is_refused_and_an_empty_list_is_not() {
        assert_eq!(parse("\n"), Ok(vec![]));
        assert_eq!(parse("0-2,7"), Ok(vec![0, 1, 2, 7]));
        for garbage in ["3-1", "0-99999999", "-1", "a", "0--2"] {
            assert!(parse(garbage).is_err(), "{garbage}");
        }
    }
}
