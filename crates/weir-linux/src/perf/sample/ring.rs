//! Records that the kernel writes into a ring (`perf_event_open(2)`, "MMAP layout").

/// PERF_RECORD_LOST and PERF_RECORD_SAMPLE.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Bytes of a record's header: its type, misc and size.
const HEADER: usize = 8;

/// PERF_SAMPLE_TID, _ADDR, _CPU, _PERIOD and _PHYS_ADDR: the content of a sample, in this order.
pub(super) const WANTED: u64 = 1 << 1 | 1 << 3 | 1 << 7 | 1 << 8 | 1 << 19;

/// One access that was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The process.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// The processor that it ran on.
    pub cpu: u32,
    /// The address in the program; zero if the hardware did not record it.
    pub address: u64,
    /// The events since the sample before, for which it stands.
    pub events: u64,
    /// The physical address; zero if the kernel did not record it.
    pub physical: u64,
}

/// Passes each sample among some records to `each`, and returns how many were lost. An invalid record ends
/// the reading: records after it cannot be found.
pub(super) fn read(records: &[u8], mut each: impl FnMut(Sample)) -> u64 {
    let (mut lost, mut rest) = (0_u64, records);
    while let Some(size) = number::<2>(rest, 6).map(u16::from_ne_bytes) {
        let Some((record, behind)) = rest.split_at_checked(size.into()) else {
            break;
        };
        let Some((header, body)) = record.split_at_checked(HEADER) else {
            break;
        };
        match number(header, 0).map(u32::from_ne_bytes) {
            Some(SAMPLE) => sample(body).into_iter().for_each(&mut each),
            // An identifier, and how many.
            Some(LOST) => {
                let missing = number(body, 8).map_or(0, u64::from_ne_bytes);
                lost = lost.saturating_add(missing);
            }
            _ => {}
        }
        rest = behind;
    }
    lost
}

fn sample(body: &[u8]) -> Option<Sample> {
    Some(Sample {
        process: u32::from_ne_bytes(number(body, 0)?),
        thread: u32::from_ne_bytes(number(body, 4)?),
        address: u64::from_ne_bytes(number(body, 8)?),
        cpu: u32::from_ne_bytes(number(body, 16)?),
        events: u64::from_ne_bytes(number(body, 24)?),
        physical: u64::from_ne_bytes(number(body, 32)?),
    })
}

/// This many bytes at a place, if there are this many.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(0u16.to_ne_bytes());
        record.extend(((HEADER + body.len()) as u16).to_ne_bytes());
        record.extend(body);
        record
    }

    fn of(sample: Sample) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(sample.process.to_ne_bytes());
        body.extend(sample.thread.to_ne_bytes());
        body.extend(sample.address.to_ne_bytes());
        body.extend(sample.cpu.to_ne_bytes());
        body.extend(0u32.to_ne_bytes());
        body.extend(sample.events.to_ne_bytes());
        body.extend(sample.physical.to_ne_bytes());
        record(SAMPLE, &body)
    }

    fn any_sample() -> impl Strategy<Value = Sample> {
        (any::<[u32; 3]>(), any::<[u64; 3]>()).prop_map(
            |([process, thread, cpu], [address, events, physical])| Sample {
                process,
                thread,
                cpu,
                address,
                events,
                physical,
            },
        )
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            samples in prop::collection::vec((any_sample(), prop::option::of(0u64..9)), 0..40),
        ) {
            let (mut written, mut lost) = (Vec::new(), 0);
            for (sample, missing) in &samples {
                written.extend(of(*sample));
                if let Some(missing) = missing {
                    lost += missing;
                    let body = [0u64.to_ne_bytes(), missing.to_ne_bytes()].concat();
                    written.extend(record(LOST, &body));
                }
                // Another record of the kernel.
                written.extend(record(5, &[0; 16]));
            }
            let mut seen = Vec::new();
            prop_assert_eq!(read(&written, |sample| seen.push(sample)), lost);
            let wanted: Vec<Sample> = samples.iter().map(|(sample, _)| *sample).collect();
            prop_assert_eq!(seen, wanted);
        }

        #[test]
        fn garbage_ends(records in prop::collection::vec(any::<u8>(), 0..400), size in 0u16..64) {
            let mut records = records;
            for (at, byte) in size.to_ne_bytes().into_iter().enumerate() {
                records.get_mut(6 + at).into_iter().for_each(|place| *place = byte);
            }
            let mut seen = 0_usize;
            read(&records, |_| seen += 1);
            prop_assert!(seen <= records.len() / (HEADER + 40));
        }
    }
}
