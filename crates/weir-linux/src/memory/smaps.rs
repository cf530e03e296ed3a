//! The real page size of a mapping, from `/proc/self/smaps`.

use weir_model::capability::Unavailable;

use crate::root::{Reading, Root};

/// How much of the mapping around an address is in huge pages, from 0 to 1.
pub(super) fn huge_share(root: &Root, address: u64) -> Reading<f64> {
    let path = "/proc/self/smaps";
    root.head(path, 16 << 20).and_then(|text| {
        let (mut inside, mut size, mut huge) = (false, 0.0, 0.0);
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(head) = words.next() else { continue };
            if let Some((from, to)) = range(head) {
                if inside {
                    break;
                }
                inside = (from..to).contains(&address);
            } else if inside {
                let kib = words
                    .next()
                    .and_then(|n| n.parse::<f64>().ok())
                    .unwrap_or(0.0);
                match head {
                    "Size:" => size = kib,
                    "AnonHugePages:" => huge = kib,
                    _ => {}
                }
            }
        }
        if size > 0.0 {
            Ok(huge / size)
        } else {
            Err(Unavailable::because(format!(
                "{path} does not list the mapping"
            )))
        }
    })
}

fn range(word: &str) -> Option<(u64, u64)> {
    let (from, to) = word.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(from)?, number(to)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_ends_where_the_next_one_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proc/self");
        std::fs::create_dir_all(&path).unwrap();
        let text = "1000-3000 rw-p 0 00:00 0\nSize: 8 kB\nAnonHugePages: 0 kB\n\
                    3000-5000 rw-p 0 00:00 0\nSize: 8 kB\nAnonHugePages: 6 kB\n";
        std::fs::write(path.join("smaps"), text).unwrap();
        let root = Root::at(folder.path());
        let shares = [0x1000, 0x2fff, 0x3000, 0x4fff].map(|at| huge_share(&root, at));
        assert_eq!(shares, [0.0, 0.0, 0.75, 0.75].map(Reading::Known));
        assert!(huge_share(&root, 0x5000).get().is_err());
    }
}
