//! Small files in both formats, and generated traces that are exported and read again.

use super::*;
use crate::trace::generate::Generate;
use proptest::prelude::*;
use weir_model::units::Bytes;

const FIELDS: &str = "time,type,collection_id,instance_index,priority,machine_id,alloc_collection_id,resource_request.cpus,resource_request.memory,constraint";

fn machine() -> Machine {
    Machine::of(96, Bytes::gib(512)).unwrap()
}

fn csv(lines: &str) -> Result<(Trace, Problems), ReadError> {
    let text = format!("{FIELDS}\n{lines}");
    read("b.csv", machine(), false, text.as_bytes())
}

/// Arrival, departure, thousandths of cores, GiB.
fn shown(trace: &Trace) -> Vec<(u32, u32, u32, u32)> {
    let of = |vm: Vm| {
        (
            vm.arrival,
            vm.departure,
            vm.millicores,
            vm.memory_mib / 1024,
        )
    };
    trace.vms().map(of).collect()
}

fn lines_of(problems: &Problems, problem: Problem) -> Vec<u64> {
    let row = problems
        .counts()
        .into_iter()
        .find(|row| row.problem == problem);
    row.map(|row| row.first).unwrap_or_default()
}

#[test]
fn instances_live_from_schedule_to_their_end_and_are_another_vm_when_scheduled_again() {
    let text = "0,SUBMIT,7,0,200,,0,0.25,0.5,\n\
        0,SCHEDULE,7,0,200,11,0,,,\n\
        600000000,0,8,3,119,,0,0.5,0.5,\n\
        600500000,3,8,3,119,12,0,0.5,0.5,\n\
        700500000,EVICT,7,0,200,11,0,0.25,0.5,\"[{\"\"name\"\": \"\"a\"\", 1}]\"\n\
        700500000,SUBMIT,7,0,200,,0,0.5,0.125,\n\
        800999999,SCHEDULE,7,0,200,13,0,0.5,0.125,\n\
        900000001,7,7,0,200,13,0,0.5,0.125,\n\
        950000000,SUBMIT,9,0,360,,0,1,1,\n\
        960000000,KILL,9,0,360,,0,1,1,\n\
        970000000,SCHEDULE,9,1,360,14,0,0.125,0.125,\n\
        9223372036854775807,FINISH,9,1,360,14,0,0.125,0.125,\n";
    let (trace, problems) = csv(text).unwrap();
    assert_eq!(problems, Problems::default());
    assert_eq!(
        shown(&trace),
        [
            (0, 701, 24_000, 256),
            (800, 901, 48_000, 64),
            (970, STAYS, 12_000, 64)
        ]
    );
    let first = trace.get(0).unwrap();
    assert_eq!((first.customer, first.kind), (7, 200));
    let all = format!("{FIELDS}\n{text}");
    let (trace, _) = read("b.csv", machine(), true, all.as_bytes()).unwrap();
    assert_eq!(shown(&trace)[1], (600, STAYS, 48_000, 256));
}

#[test]
fn json_with_nested_requests_and_numbers_as_strings_is_read_like_csv() {
    let text = r#"
{"time":"0","type":"SCHEDULE","collection_id":"375874939291","instance_index":"4","priority":"200","machine_id":"5","resource_request":{"cpus":0.25,"memory":0.5},"constraint":[]}
{"time":60000000,"type":3,"collection_id":9,"instance_index":0,"priority":120,"alloc_collection_id":0,"resource_request_cpus":0.5,"resource_request_memory":"0.25"}
{"time":"90000000","type":"4","collection_id":"375874939291","instance_index":"4","priority":"200","resource_request":{"cpus":0.25,"memory":0.5}}
{"time":"90000000","type":"KILL",
"#;
    let (trace, problems) = read("b.json", machine(), false, text.as_bytes()).unwrap();
    assert_eq!(
        shown(&trace),
        [(0, 90, 24_000, 256), (60, STAYS, 48_000, 128)]
    );
    assert_eq!(lines_of(&problems, Problem::Unreadable), [5]);
    assert_eq!(problems.counts().len(), 1);
}

#[test]
fn what_is_strange_is_counted_by_line() {
    let (trace, problems) = csv("10000000,SCHEDULE,1,0,200,,0,0.5,0.5,\n\
         20000000,SCHEDULE,1,0,200,,0,0.25,0.25,\n\
         20000000,UPDATE_RUNNING,1,0,200,,0,0.5,0.25,\n\
         20000000,UPDATE_RUNNING,1,0,200,,0,0.25,0.25,\n\
         30000000,FINISH,2,0,200,,0,0.25,0.25,\n\
         30000000,SCHEDULE,3,0,200,,0,,,\n\
         31000000,FINISH,3,0,200,,0,,,\n\
         31000000,SCHEDULE,4,0,200,,0,0,0.25,\n\
         32000000,MOVE,4,0,200,,0,0.1,0.25,\n\
         32000000,11,4,0,200,,0,0.1,0.25,\n\
         32000000,SCHEDULE,5,0,200,,77,0.1,0.25,\n\
         33000000,FINISH,5,0,200,,77,0.1,0.25,\n\
         40000000,SCHEDULE,6,0,200,,0,0.1,0.25,\n\
         39000000,FINISH,6,0,200,,0,0.1,0.25,\n\
         41000000,SCHEDULE,6,-1,200,,0,0.1,0.25,\n\
         41000000,SCHEDULE,6,1,200,,0,much,0.25,\n\
         9223372036854775807,SCHEDULE,6,2,200,,0,0.1,0.25,\n\
         soon,SCHEDULE\n")
    .unwrap();
    assert_eq!(
        shown(&trace),
        [(10, 20, 48_000, 256), (20, STAYS, 24_000, 128)]
    );
    for (problem, lines) in [
        (Problem::NoEnd, vec![3]),
        (Problem::Resized, vec![4]),
        (Problem::NoBeginning, vec![6]),
        (Problem::NoRequest, vec![7]),
        (Problem::Empty, vec![9]),
        (Problem::UnknownType, vec![10, 11]),
        (Problem::InsideAnother, vec![12]),
        (Problem::OutOfOrder, vec![15]),
        (Problem::EndsBeforeBeginning, vec![15]),
        (Problem::Unreadable, vec![16, 17, 18]),
    ] {
        assert_eq!(lines_of(&problems, problem), lines, "{problem}");
    }
    assert_eq!(problems.count(Problem::Unreadable), 4);
    assert_eq!(problems.counts().len(), 10);
}

#[test]
fn files_without_production_instances_or_columns_are_refused() {
    let message = csv("1,SCHEDULE,1,0,103,,0,0.5,0.5,\n")
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("1 lines are of instances below production priority"),
        "{message}"
    );
    let message = read("b.csv", machine(), false, "time,type\n".as_bytes())
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("b.csv:1: there is no column `collection_id`")
            && message.contains("resource_request.cpus"),
        "{message}"
    );
    assert!(matches!(
        read("b.csv", machine(), false, "".as_bytes()),
        Err(ReadError::NoVm { first: None, .. })
    ));
}

/// A trace as Google would export it.
fn export(trace: &Trace, machine: Machine, json: bool) -> String {
    let mut events: Vec<(u64, usize, &str)> = Vec::new();
    for (at, vm) in trace.vms().enumerate() {
        events.push((u64::from(vm.arrival) * SECOND, at, "SCHEDULE"));
        if vm.departure != STAYS {
            events.push((u64::from(vm.departure) * SECOND, at, "FINISH"));
        }
    }
    events.sort();
    let mut text = match json {
        true => String::new(),
        false => format!("{FIELDS}\n"),
    };
    for (time, at, event) in events {
        let vm = trace.get(at).unwrap();
        let cpus = f64::from(vm.millicores) / f64::from(machine.millicores);
        let memory = f64::from(vm.memory_mib) / f64::from(machine.memory_mib);
        let (collection, priority) = (vm.customer, vm.kind);
        text += &match json {
            true => format!(
                "{{\"time\":\"{time}\",\"type\":\"{event}\",\"collection_id\":\"{collection}\",\"instance_index\":{at},\
                 \"priority\":{priority},\"resource_request\":{{\"cpus\":{cpus},\"memory\":{memory}}}}}\n"
            ),
            false => format!("{time},{event},{collection},{at},{priority},1,0,{cpus},{memory},\n"),
        };
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn an_export_of_a_generated_trace_reads_back(seed in any::<u64>(), machines in 1..6u32, json in any::<bool>()) {
        let generate = Generate { seed, machines, days: 2.0, shift_day: 1.0, insensitive: 0.4 };
        let generated = generate.run().unwrap();
        // One machine may have no VM in two days, and a trace without any is refused.
        prop_assume!(!generated.is_empty());
        let mut written = Trace::default();
        for vm in generated.vms() {
            written.push(Vm { touched_pct: UNKNOWN, insensitive: None, ..vm });
        }
        let machine = crate::trace::generate::MACHINE;
        let text = export(&written, machine, json);
        let (read, problems) = read("g", machine, true, text.as_bytes()).unwrap();
        prop_assert_eq!(problems, Problems::default());
        prop_assert_eq!(read, written);
    }
}

#[test]
fn instances_that_fit_on_no_machine_and_gaps_are_named_by_line() {
    let text = "0,SCHEDULE,7,0,200,1,0,0.5,0.5,\n\
        1000000,SCHEDULE,8,0,200,1,0,1.5,0.5,\n\
        2000000,KILL,8,0,200,1,0,1.5,0.5,\n\
        90000000000,SCHEDULE,9,0,200,1,0,0.5,0.5,\n";
    let (trace, problems) = csv(text).unwrap();
    assert_eq!(trace.len(), 2);
    assert_eq!(lines_of(&problems, Problem::LargerThanMachine), [3]);
    assert_eq!(lines_of(&problems, Problem::Gap), [5]);
    assert_eq!(problems.counts().len(), 2);
}
