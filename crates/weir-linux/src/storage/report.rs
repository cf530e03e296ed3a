//! What `fio` says at its end: JSON after whatever else it had to say.

use serde::Deserialize;

/// The part of its report that matters here (fio's documentation, `--output-format=json`).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Report {
    jobs: Vec<Job>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Job {
    #[serde(default)]
    error: i64,
    read: Side,
    write: Side,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Side {
    io_bytes: u64,
}

impl Report {
    /// Reads a report from all that was said.
    ///
    /// # Errors
    /// There is none, or it is of another shape: what is wrong with it.
    pub fn read(said: &str) -> Result<Self, String> {
        let start = if said.starts_with('{') {
            Some(0)
        } else {
            said.find("\n{").map(|at| at + 1)
        };
        let text = start
            .and_then(|at| said.get(at..))
            .ok_or("there is no JSON in it")?;
        // More may follow; the first document is the report.
        let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Self>();
        match documents.next() {
            Some(Ok(report)) if report.jobs.is_empty() => Err("it has no jobs".to_owned()),
            Some(Ok(report)) => Ok(report),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("it is empty".to_owned()),
        }
    }

    /// Bytes of requests that completed, of all threads.
    pub fn bytes(&self) -> u64 {
        let sides = self.jobs.iter().flat_map(|job| [&job.read, &job.write]);
        sides.fold(0, |sum, side| sum.saturating_add(side.io_bytes))
    }

    /// The first error number, if a thread failed.
    pub fn error(&self) -> Option<i64> {
        self.jobs.iter().map(|job| job.error).find(|&e| e != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAID: &str = "\nfio: terminating on signal 15\n{\"fio version\": \"fio-3.33\", \"jobs\": \
        [{\"jobname\": \"x\", \"error\": 0, \"read\": {\"io_bytes\": 4096, \"bw\": 1.5}, \
        \"write\": {\"io_bytes\": 8192}}]}\n";

    #[test]
    fn a_report_is_found_behind_other_words() {
        let report = Report::read(SAID).unwrap();
        assert_eq!((report.bytes(), report.error()), (12_288, None));
        for cut in 0..SAID.len() - 2 {
            assert!(Report::read(&SAID[..cut]).is_err(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_in_words(text in "(?s).{0,200}", place in 0_usize..SAID.len(), with: char) {
            let _ = Report::read(&text);
            let mut hurt = SAID.to_owned();
            hurt.replace_range(place..=place, &with.to_string());
            if let Err(why) = Report::read(&hurt) {
                prop_assert!(!why.is_empty());
            }
        }
    }
}
