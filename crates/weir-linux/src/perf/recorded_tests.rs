//! Units and encodings of other machines. Each tree has the files of `format/` as the kernel's drivers define
//! them (arch/x86/events/intel/core.c, uncore_snbep.c, uncore_discovery.c, amd/core.c, amd/uncore.c); the
//! number of units is reduced.

use weir_model::counters::Counter;
use weir_model::events::{CpuId, EventLibrary};

use super::{attributes::Encoded, cpu_id, event::Target, session::Session, table, units};
use crate::recording;
use crate::root::Root;

const INTEL_CORE: &str = "
/sys/bus/event_source/devices/cpu/type: 4
/sys/bus/event_source/devices/cpu/format/event: config:0-7
/sys/bus/event_source/devices/cpu/format/umask: config:8-15
/sys/bus/event_source/devices/cpu/format/edge: config:18
/sys/bus/event_source/devices/cpu/format/inv: config:23
/sys/bus/event_source/devices/cpu/format/cmask: config:24-31
/sys/bus/event_source/devices/cpu/format/offcore_rsp: config1:0-63";

const AMD_CORE: &str = "
/sys/bus/event_source/devices/cpu/type: 4
/sys/bus/event_source/devices/cpu/format/event: config:0-7,32-35
/sys/bus/event_source/devices/cpu/format/umask: config:8-15
/sys/bus/event_source/devices/cpu/format/edge: config:18
/sys/bus/event_source/devices/cpu/format/inv: config:23
/sys/bus/event_source/devices/cpu/format/cmask: config:24-31";

/// Units 0 to 1 of an uncore, on two sockets.
fn uncore(name: &str, kind: u32, umask: &str) -> String {
    (0..2)
        .map(|n| {
            let folder = format!("/sys/bus/event_source/devices/{name}_{n}");
            let kind = kind + n;
            format!(
                "{folder}/type: {kind}\n{folder}/cpumask: 0,56\n\
                 {folder}/format/event: config:0-7\n{folder}/format/{umask}\n\
                 {folder}/format/inv: config:23\n{folder}/format/thresh: config:24-31\n"
            )
        })
        .collect()
}

fn machine(vendor: &str, family: u32, model: u32, stepping: u32, devices: &[&str]) -> Root {
    let text = format!(
        "weir/machine/1\n/proc/cpuinfo <<\nprocessor\t: 0\nvendor_id\t: {vendor}\n\
         cpu family\t: {family}\nmodel\t\t: {model}\nstepping\t: {stepping}\n>>\n{}\nend\n",
        devices.join("\n")
    );
    let tree = recording::parse("test.machine", &text).unwrap_or_else(|e| panic!("{e}"));
    Root::recorded(tree)
}

fn encoded(root: &Root, event: &str) -> Vec<(String, Vec<u32>, Encoded)> {
    let library = EventLibrary::builtin();
    let event = &table(root, &library).unwrap().events[event];
    units::find(root, &event.pmu)
        .unwrap()
        .into_iter()
        .map(|unit| {
            let encoded = unit.format.encode(unit.kind, &event.fields).unwrap();
            (unit.name, unit.cpus, encoded)
        })
        .collect()
}

/// The words of the only unit.
fn core(root: &Root, event: &str) -> [u64; 3] {
    let all = encoded(root, event);
    let [(_, cpus, encoded)] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!((encoded.kind, cpus.as_slice()), (4, [].as_slice()));
    encoded.config
}

/// The words on each of two units, each read on two processors.
fn config(root: &Root, event: &str, kind: u32) -> u64 {
    let all = encoded(root, event);
    assert_eq!(all.len(), 2, "{all:?}");
    for (n, (name, cpus, encoded)) in (0..).zip(&all) {
        assert!(name.ends_with(&format!("_{n}")), "{name}");
        assert_eq!(
            (cpus.as_slice(), encoded.kind),
            ([0, 56].as_slice(), kind + n)
        );
        assert_eq!(encoded.config, [all[0].2.config[0], 0, 0]);
    }
    all[0].2.config[0]
}

#[test]
fn skylake() {
    let cha = uncore("uncore_cha", 20, "umask: config:8-15");
    let imc = uncore("uncore_imc", 60, "umask: config:8-15");
    let upi = uncore("uncore_upi", 70, "umask: config:8-15,32-43,45-55");
    let skx = machine("GenuineIntel", 6, 85, 4, &[INTEL_CORE, &cha, &imc, &upi]);
    assert_eq!(
        core(&skx, "CYCLE_ACTIVITY.STALLS_MEM_ANY"),
        [0x1400_14a3, 0, 0]
    );
    assert_eq!(
        core(
            &skx,
            "OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DEMAND_DATA_RD"
        ),
        [0x0100_0160, 0, 0]
    );
    assert_eq!(
        core(&skx, "OFFCORE_RESPONSE.PF_L1D_AND_SW.L3_HIT.ANY_SNOOP"),
        [0x01b7, 0x3f_803c_0400, 0]
    );
    assert_eq!(config(&skx, "UNC_CHA_TOR_INSERTS.IA_MISS", 20), 0x2135);
    assert_eq!(config(&skx, "UNC_M_CAS_COUNT.WR", 60), 0x0c04);
    assert_eq!(config(&skx, "UNC_UPI_TxL_FLITS.ALL_DATA", 70), 0x0f02);
}

#[test]
fn ice_lake() {
    let cha = uncore("uncore_cha", 20, "umask: config:8-15,32-57");
    let imc = uncore("uncore_imc", 60, "umask: config:8-15");
    let icx = machine("GenuineIntel", 6, 106, 6, &[INTEL_CORE, &cha, &imc]);
    assert_eq!(
        core(&icx, "EXE_ACTIVITY.BOUND_ON_STORES"),
        [0x0200_40a6, 0, 0]
    );
    assert_eq!(
        config(&icx, "UNC_CHA_TOR_INSERTS.IA_MISS", 20),
        0x00c0_01fe_0000_0135
    );
    assert_eq!(config(&icx, "UNC_M_CAS_COUNT.RD", 60), 0x0f04);
}

#[test]
fn sapphire_and_emerald_rapids() {
    let cha = uncore("uncore_cha", 20, "umask: config:8-15,32-63");
    let imc = uncore("uncore_imc", 60, "umask: config:8-15");
    let free = uncore("uncore_imc_free_running", 90, "umask: config:8-15");
    let cxl = uncore("uncore_cxlcm", 70, "umask: config:8-15");
    let devices = [INTEL_CORE, &cha, &imc, &free, &cxl];
    let spr = machine("GenuineIntel", 6, 143, 8, &devices);
    assert_eq!(
        core(&spr, "EXE_ACTIVITY.BOUND_ON_LOADS"),
        [0x0500_21a6, 0, 0]
    );
    assert_eq!(
        core(&spr, "MEMORY_ACTIVITY.STALLS_L3_MISS"),
        [0x0900_0947, 0, 0]
    );
    assert_eq!(
        core(&spr, "OCR.HWPF_L1D.ANY_RESPONSE"),
        [0x012a, 0x10400, 0]
    );
    assert_eq!(
        config(&spr, "UNC_CHA_TOR_OCCUPANCY.IA_MISS_CXL_ACC_LOCAL", 20),
        0x10c0_0082_0000_0136
    );
    assert_eq!(config(&spr, "UNC_M_CAS_COUNT.RD", 60), 0xcf05);
    assert_eq!(
        config(&spr, "UNC_CXLCM_TxC_PACK_BUF_INSERTS.MEM_DATA", 70),
        0x1002
    );

    let emr = machine("GenuineIntel", 6, 207, 2, &devices);
    let expander = "UNC_CHA_TOR_INSERTS.IA_MISS_DRD_CXL_EXP_LOCAL";
    assert_eq!(config(&emr, expander, 20), 0x20c8_1682_0000_0135);

    // Before 6.10 the kernel passed eight bits less of the mask.
    let narrow = uncore("uncore_cha", 20, "umask: config:8-15,32-55");
    let old = machine("GenuineIntel", 6, 207, 2, &[INTEL_CORE, &narrow]);
    let library = EventLibrary::builtin();
    let event = &library.get("emr").unwrap().events[expander];
    let unit = &units::find(&old, "uncore_cha").unwrap()[0];
    let why = unit.format.encode(unit.kind, &event.fields).unwrap_err();
    assert!(why.reason.contains("too narrow for 0x20c8168201"), "{why}");
}

#[test]
fn granite_rapids() {
    let cha = uncore("uncore_cha", 20, "umask: config:8-15,32-63");
    let imc = uncore("uncore_imc", 60, "umask: config:8-15");
    let gnr = machine("GenuineIntel", 6, 173, 1, &[INTEL_CORE, &cha, &imc]);
    assert_eq!(core(&gnr, "L2_RQSTS.HWPF_MISS"), [0x3024, 0, 0]);
    assert_eq!(config(&gnr, "UNC_M_CAS_COUNT_SCH1.RD", 60), 0xcf06);
    assert_eq!(
        config(&gnr, "UNC_CHA_TOR_INSERTS.LLC_OR_SF_EVICTIONS", 20),
        0x00c0_01ff_0000_0235
    );
}

#[test]
fn genoa_and_turin() {
    let umc = uncore("amd_umc", 20, "rdwrmask: config:8-9");
    for (family, model) in [(25, 17), (26, 2)] {
        let amd = machine("AuthenticAMD", family, model, 1, &[AMD_CORE, &umc]);
        assert_eq!(core(&amd, "ex_no_retire.load_not_complete"), [0xa2d6, 0, 0]);
        assert_eq!(core(&amd, "l2_pf_miss_l2_hit_l3.l1"), [0xe071, 0, 0]);
        assert_eq!(config(&amd, "umc_cas_cmd.rd", 20), 0x010a);
        assert_eq!(config(&amd, "umc_cas_cmd.wr", 20), 0x020a);
        assert_eq!(config(&amd, "umc_act_cmd.all", 20), 0x0005);
    }
}

#[test]
fn what_a_machine_lacks_is_named() {
    let bare = machine("AuthenticAMD", 25, 17, 1, &[]);
    let why = units::find(&bare, "amd_umc").unwrap_err();
    assert!(
        why.reason.contains("/sys/bus/event_source/devices"),
        "{why}"
    );
    let other = machine("AuthenticAMD", 25, 17, 1, &[AMD_CORE]);
    let why = units::find(&other, "amd_umc").unwrap_err();
    assert!(why.reason.contains("no unit `amd_umc`"), "{why}");
    let broken = "/sys/bus/event_source/devices/amd_umc_0/type: many";
    let why = units::find(&machine("AuthenticAMD", 25, 17, 1, &[broken]), "amd_umc").unwrap_err();
    assert!(why.reason.contains("many"), "{why}");

    let id = CpuId {
        vendor: "GenuineIntel".into(),
        family: 6,
        model: 94,
        stepping: 3,
    };
    let client = machine("GenuineIntel", 6, 94, 3, &[]);
    assert_eq!(cpu_id(&client), Ok(id));
    let library = EventLibrary::builtin();
    assert!(
        table(&client, &library)
            .unwrap_err()
            .reason
            .contains("family 6, model 0x5e")
    );

    // A session on a machine without the units has a reason for each event, and no count.
    let zen = library.get("zen4").unwrap();
    let mut session = Session::open(&bare, Some(zen), &[Counter::CasRd], &[Target::ThisThread]);
    assert!(session.total().values().all(|amount| amount.value.is_err()));
    let counters = Session::counters(Some(zen), &session.total(), false);
    let why = counters.get(Counter::CasRd).unwrap_err();
    assert!(why.reason.contains("umc_cas_cmd.rd"), "{why}");
}
