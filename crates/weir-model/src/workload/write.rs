//! Writing a workload as the file that describes it.

use std::fmt::Write as _;

use super::{Phase, Region, Requests, Workload, usual_slice};
use crate::units::Bytes;

/// A text in quotes.
fn quoted(text: &str) -> String {
    let mut all = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => all.extend(['\\', c]),
            c if c.is_control() => all.push(' '),
            c => all.push(c),
        }
    }
    all.push('"');
    all
}

/// A size in the largest unit that has it as a whole number.
fn size(bytes: Bytes) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = (units.into_iter())
        .find(|(bits, _)| bytes.get() > 0 && bytes.get().trailing_zeros() >= *bits);
    match unit {
        Some((bits, unit)) => format!("\"{} {unit}\"", bytes.get() >> bits),
        None => format!("\"{} B\"", bytes.get()),
    }
}

impl Workload {
    /// Its file: reading it gives this workload again, with the file's name for its own. `remarks` are written behind the
    /// regions of the first phase, in their order.
    pub fn to_toml(&self, remarks: &[String]) -> String {
        let mut text = String::from("kind = \"workload\"\n");
        let _ = writeln!(text, "summary = {}", quoted(&self.summary));
        let _ = writeln!(text, "source = {}", quoted(&self.source));
        if let Some(assumed) = &self.assumed {
            let _ = writeln!(text, "assumed = {}", quoted(assumed));
        }
        if let Some(application) = self.application {
            let _ = writeln!(text, "application = \"{application}\"");
        }
        if let Some(variant) = &self.variant {
            let _ = writeln!(text, "variant = {}", quoted(variant));
        }
        if self.threads != 1 {
            let _ = writeln!(text, "threads = {}", self.threads);
        }
        if let Some(ipc) = self.core_ipc {
            let _ = writeln!(text, "core_ipc = {ipc}");
        }
        if let Some(requests) = &self.requests {
            write_requests(&mut text, requests);
        }
        for (n, phase) in self.phases.iter().enumerate() {
            write_phase(&mut text, phase, if n == 0 { remarks } else { &[] });
        }
        text
    }
}

fn write_requests(text: &mut String, requests: &Requests) {
    let _ = writeln!(text, "\n[requests]\nunit = {}", quoted(&requests.unit));
    let _ = writeln!(text, "instructions = {}", requests.instructions);
    let _ = writeln!(text, "spread = \"{}\"", requests.spread);
    if let Some(rate) = requests.per_second {
        let _ = writeln!(text, "per_second = {rate}");
    }
    if let Some(clients) = requests.clients {
        let _ = writeln!(text, "clients = {clients}");
    }
    if requests.think.get() > 0.0 {
        let _ = writeln!(text, "think = \"{}\"", requests.think);
    }
    if let Some(updates) = requests.updates {
        let _ = writeln!(text, "updates = {updates}");
    }
    if requests.locked > 0.0 {
        let _ = writeln!(text, "locked = {}", requests.locked);
    }
}

fn write_phase(text: &mut String, phase: &Phase, remarks: &[String]) {
    let _ = writeln!(text, "\n[[phase]]\nname = {}", quoted(&phase.name));
    let _ = writeln!(text, "instructions = {}", phase.instructions);
    let _ = writeln!(text, "cpi = {}\napki = {}", phase.cpi, phase.apki);
    let others = [
        ("slice", phase.slice, usual_slice()),
        ("vector", phase.vector, 0.0),
        ("mispredicts", phase.mispredicts, 0.0),
    ];
    for (key, value, _) in others.iter().filter(|(_, value, usual)| value != usual) {
        let _ = writeln!(text, "{key} = {value}");
    }
    text.push_str("regions = [\n");
    for (n, region) in phase.regions.iter().enumerate() {
        let remark = remarks
            .get(n)
            .map_or(String::new(), |text| format!(" # {text}"));
        let _ = writeln!(text, "  {{ {} }},{remark}", keys(region));
    }
    text.push_str("]\n");
}

fn keys(region: &Region) -> String {
    let mut keys = vec![
        format!("name = {}", quoted(&region.name)),
        format!("bytes = {}", size(region.bytes)),
        format!("order = \"{}\"", region.order),
        format!("share = {}", region.share),
        format!("element = {}", size(region.element)),
    ];
    if let Some(object) = &region.object {
        keys.insert(1, format!("object = {}", quoted(object)));
    }
    if !region.within.is_sequential() {
        keys.push(format!("within = \"{}\"", region.within));
    }
    if region.stride != region.element {
        keys.push(format!("stride = {}", size(region.stride)));
    }
    let usual = super::read::usual_skew(region.order);
    let usual_skew = if region.order.is_skewed() {
        f64::NAN
    } else {
        usual
    };
    let is_chase = region.order == super::Order::Chase;
    let others = [
        ("stores", region.stores, 0.0),
        ("modifies", region.modifies, 0.0),
        ("non_temporal", region.non_temporal, 0.0),
        ("streams", f64::from(region.streams), 1.0),
        ("batch", f64::from(region.batch), 1.0),
        ("skew", region.skew, usual_skew),
        (
            "dependent",
            region.dependent,
            if is_chase { 1.0 } else { 0.0 },
        ),
        ("mispredicted", region.mispredicted, 0.0),
    ];
    let own = others.iter().filter(|(_, value, usual)| value != usual);
    keys.extend(own.map(|(key, value, _)| format!("{key} = {value}")));
    keys.extend(
        region
            .indexed_by
            .iter()
            .map(|by| format!("indexed_by = {}", quoted(by))),
    );
    keys.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::Workloads;

    #[test]
    fn what_is_written_is_read_again() {
        for workload in Workloads::builtin().list() {
            let text = workload.to_toml(&["a remark".into()]);
            let file = format!("{}.toml", workload.name);
            let again =
                Workloads::check(&file, &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(&again, workload, "{text}");
        }
    }
}
