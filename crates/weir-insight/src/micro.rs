//! The three micro-workloads of calibration (SupMario §5.6), each at several intensities.
//!
//! The paper names a random chase, a program that allocates much and stores, and a linked list that the
//! prefetchers feed. The authors' later artefact (CAMP) runs several of each kind: with one chase alone
//! there is one amortised latency, and nothing tells `p` from `q`.

use weir_model::insight::Micro;
use weir_model::units::Bytes;
use weir_model::workload::{Order, Phase, Region, Workload, Workloads};

/// Chains that are chased at once.
const CHAINS: [u32; 5] = [1, 2, 4, 8, 16];

/// How often chases and lists hop: as the preset does, at once when the address is there, and with enough
/// work between hops that a reorder buffer holds few of them. Part of a latency is worked through, and what
/// never works does not tell how much.
const HOPS: [f64; 2] = [1.0, 0.1];

/// Bytes from one node of the list to the next, next to a line. The L2 streamer follows none of these.
const STRIDES: [u64; 2] = [256, 512];

/// What the intensity of stores and of the list is multiplied by.
const INTENSITIES: [f64; 3] = [0.5, 1.0, 2.0];

/// Every micro-workload, by kind.
pub fn micros() -> Vec<(Micro, Workload)> {
    let library = Workloads::builtin();
    let preset = |name: &str| library.get(name).cloned();
    let chases = preset("chase")
        .into_iter()
        .flat_map(|chase| HOPS.map(|hops| hopped(&chase, hops)))
        .flat_map(|chase| CHAINS.map(|chains| (Micro::Chase, chased(&chase, chains))));
    let at_intensities = |micro, name| {
        let of = move |workload: Workload| INTENSITIES.map(|i| (micro, at(&workload, i)));
        preset(name).into_iter().flat_map(of)
    };
    let strided = preset("scan")
        .into_iter()
        .flat_map(|scan| STRIDES.map(|stride| apart(&scan, Bytes(stride))))
        .flat_map(|list| HOPS.map(|hops| (Micro::List, hopped(&list, hops))));
    let worked = preset("scan").map(|scan| (Micro::List, at(&scan, HOPS[1])));
    chases
        .chain(at_intensities(Micro::Store, "churn"))
        .chain(at_intensities(Micro::List, "scan"))
        .chain(worked)
        .chain(strided)
        .collect()
}

/// This often, by a name of its own if that is not as the preset does.
fn hopped(workload: &Workload, hops: f64) -> Workload {
    if hops < 1.0 {
        at(workload, hops)
    } else {
        workload.clone()
    }
}

/// Nodes further apart than a line.
fn apart(scan: &Workload, stride: Bytes) -> Workload {
    let phase = |phase: &Phase| Phase {
        regions: (phase.regions.iter())
            .map(|region| Region {
                stride,
                ..region.clone()
            })
            .collect(),
        ..phase.clone()
    };
    Workload {
        name: format!("{}-s{}", scan.name, stride.get()),
        phases: scan.phases.iter().map(phase).collect(),
        ..scan.clone()
    }
}

/// Shares of the cores that streaming kernels run on.
const CROWDS: [(u32, u32); 3] = [(1, 4), (1, 2), (1, 1)];

/// Shares of a streaming kernel's accesses that are stores. With stores alone there would be no reads to
/// tell by that it waits for bandwidth.
const STORES: [f64; 3] = [0.0, 0.33, 0.66];

/// What the intensity of a streaming kernel is multiplied by: some press hardly more than they have to,
/// to wait for bandwidth at all.
const PRESSES: [f64; 2] = [1.0, 0.25];

/// Streaming kernels that press on memory more and less, reading alone, or writing a third or two of the
/// lines, for a socket of this many cores.
pub fn streams(cores: u32) -> Vec<Workload> {
    let crowds = CROWDS.map(|(of, all)| (cores * of / all).max(1));
    let kinds = STORES
        .into_iter()
        .flat_map(|stores| PRESSES.map(|press| (stores, press)));
    kinds
        .flat_map(|(stores, press)| crowds.map(|threads| stream(threads, stores, press)))
        .flatten()
        .collect()
}

/// A streaming kernel with such a share of stores, whose intensity is multiplied by `press`.
pub fn stream(threads: u32, stores: f64, press: f64) -> Option<Workload> {
    let library = Workloads::builtin();
    let scan = library.get("scan")?;
    let region = |region: &Region| Region {
        dependent: 0.0,
        streams: 2,
        stores,
        ..region.clone()
    };
    let phase = |phase: &Phase| Phase {
        apki: phase.apki * press,
        regions: phase.regions.iter().map(region).collect(),
        ..phase.clone()
    };
    Some(Workload {
        name: format!("stream-{threads}-{stores}-x{press}"),
        threads,
        application: None,
        requests: None,
        phases: scan.phases.iter().map(phase).collect(),
        ..scan.clone()
    })
}

/// Strides of kernels that the L2 prefetchers do not follow: which of them leaves channels, banks or devices
/// out is up to the memory.
const LONG_STRIDES: [u64; 3] = [256, 512, 1024];

/// Room for them, so that the lines that they touch are more than any cache holds.
const LONG: Bytes = Bytes(16 << 30);

/// Kernels that the L2 prefetchers do not follow, on all of this many cores: in long strides, and in no order.
pub fn unfollowed(cores: u32) -> Vec<Workload> {
    let library = Workloads::builtin();
    let Some(scan) = library.get("scan") else {
        return Vec::new();
    };
    let kernel = |name: String, of: &dyn Fn(&Region) -> Region| Workload {
        name,
        threads: cores,
        application: None,
        requests: None,
        phases: (scan.phases.iter())
            .map(|phase| Phase {
                regions: phase.regions.iter().map(of).collect(),
                ..phase.clone()
            })
            .collect(),
        ..scan.clone()
    };
    let of = |stores: f64| {
        let plain = move |region: &Region| Region {
            dependent: 0.0,
            stores,
            ..region.clone()
        };
        let strided = LONG_STRIDES.map(|stride| {
            kernel(format!("stride-{stride}-{stores}"), &|region| Region {
                stride: Bytes(stride),
                streams: 2,
                bytes: LONG,
                ..plain(region)
            })
        });
        let random = kernel(format!("random-{stores}"), &|region| Region {
            order: Order::Random,
            ..plain(region)
        });
        strided.into_iter().chain([random])
    };
    STORES.into_iter().flat_map(of).collect()
}

/// This many chains at once, which the program touches as often each as one alone.
fn chased(chase: &Workload, chains: u32) -> Workload {
    let phase = |phase: &Phase| Phase {
        regions: (phase.regions.iter())
            .map(|region| Region {
                streams: chains,
                ..region.clone()
            })
            .collect(),
        ..phase.clone()
    };
    Workload {
        name: format!("{}-{chains}", chase.name),
        phases: chase.phases.iter().map(phase).collect(),
        ..chase.clone()
    }
}

/// With more or fewer accesses among as many instructions.
fn at(workload: &Workload, intensity: f64) -> Workload {
    let phase = |phase: &Phase| Phase {
        apki: (phase.apki * intensity).min(1000.0),
        ..phase.clone()
    };
    Workload {
        name: format!("{}-x{intensity}", workload.name),
        phases: workload.phases.iter().map(phase).collect(),
        ..workload.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_several_of_each_kind_with_names_of_their_own() {
        let all = micros();
        for micro in [Micro::Chase, Micro::Store, Micro::List] {
            assert!(all.iter().filter(|(kind, _)| *kind == micro).count() >= 3);
        }
        let mut names: Vec<&str> = all.iter().map(|(_, w)| w.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
