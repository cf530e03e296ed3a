//! `docs/json.md` says what the types say. After a change to a document, one command writes it anew:
//! `WEIR_UPDATE=1 cargo test -p weir --test all json_docs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use schemars::schema_for;
use serde_json::Value;
use weir::kinds::{KINDS, Kind};
use weir_model::document::Record;

const HEAD: &str = "\
# The JSON that Weir prints and keeps

`--format json` prints one document. Its `schema` names kind and version, `weir/KIND/VERSION`; the version
changes when a field changes its meaning or goes away, not when one is added. Readers should ignore fields
that they do not know. A field that does not apply is absent, never zero.

Bandwidths are in GB/s (10^9 bytes a second), latencies in ns, sizes in bytes. Instructions and tiers go by
name: `ld`, `st`, `st_clwb`, `nt_st`, `movdir64b`, `cas`; `dram`, `cxl0`, `cxl1`, `remote`.

`weir runs export RUN --as record` adds the raw samples and counters behind each figure, in the order of the
figures.

This page is made from the types; do not edit it.
";

/// The page as the types have it.
fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut parts: BTreeMap<String, Value> = BTreeMap::new();
    for kind in KINDS {
        document(kind, &mut text, &mut parts);
    }
    // Records are kept as they were written; their type is part of the contract all the same.
    let record = schema_for!(Record).to_value();
    if let Some(definitions) = record["$defs"].as_object() {
        parts.extend(definitions.clone());
    }
    parts.insert("Record".into(), record);

    text.push_str("\n# Parts\n");
    for (name, schema) in &parts {
        let _ = write!(text, "\n## {name}\n\n{}\n", sentence(schema));
        body(schema, &mut text);
    }
    text
}

fn document(kind: &Kind, text: &mut String, parts: &mut BTreeMap<String, Value>) {
    let schema = (kind.json_schema)();
    if let Some(definitions) = schema["$defs"].as_object() {
        parts.extend(definitions.clone());
    }
    let _ = write!(text, "\n## `{}`: `{}`\n", kind.schema, kind.written_by);
    body(&schema, text);
}

/// The fields of an object, or the values of an enumeration.
fn body(schema: &Value, text: &mut String) {
    if let Some(variants) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        text.push('\n');
        for variant in variants {
            let _ = writeln!(text, "- {}", values(variant));
        }
    } else if let Some(properties) = schema["properties"].as_object() {
        text.push_str("\n| field | type | meaning |\n|---|---|---|\n");
        for (name, property) in properties {
            let required = schema["required"]
                .as_array()
                .is_some_and(|r| r.iter().any(|n| n == name));
            let mark = if required { "" } else { "?" };
            let _ = writeln!(
                text,
                "| `{name}`{mark} | {} | {} |",
                type_of(property).replace('|', "or"),
                sentence(property).replace('|', "\\|")
            );
        }
        text.push_str("\nA field with `?` may be absent.\n");
    } else {
        let _ = writeln!(text, "\nWritten as {}.", type_of(schema));
    }
}

fn values(variant: &Value) -> String {
    let words = sentence(variant);
    let value = match (&variant["const"], variant["enum"].as_array()) {
        (Value::String(name), _) => format!("`{name}`"),
        (_, Some(names)) => names
            .iter()
            .map(|n| format!("`{n}`"))
            .collect::<Vec<_>>()
            .join(", ")
            .replace('"', ""),
        _ => fields(variant),
    };
    if words.is_empty() {
        value
    } else {
        format!("{value}: {words}")
    }
}

/// An object in one line.
fn fields(schema: &Value) -> String {
    let Some(properties) = schema["properties"].as_object() else {
        return type_of(schema);
    };
    let field = |(name, property): (&String, &Value)| match property["const"].as_str() {
        Some(only) => format!("`{name}`: `{only}`"),
        None => format!("`{name}`: {}", type_of(property)),
    };
    properties.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(all) = schema["allOf"].as_array().and_then(|a| a.first()) {
        return type_of(all);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let kinds = any.iter().filter(|s| s["type"] != "null").map(type_of);
        return kinds.collect::<Vec<_>>().join(" | ");
    }
    if let Some(tuple) = schema["prefixItems"].as_array() {
        return format!(
            "[{}]",
            tuple.iter().map(type_of).collect::<Vec<_>>().join(", ")
        );
    }
    let one = |kind: &str| match kind {
        "array" => format!("list of {}", type_of(&schema["items"])),
        "object" => match schema.get("additionalProperties") {
            Some(inner @ Value::Object(_)) => format!("map to {}", type_of(inner)),
            _ if schema["properties"].is_object() => fields(schema),
            _ => "object".into(),
        },
        "integer" => "whole number".into(),
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(kind) => one(kind),
        Value::Array(kinds) => {
            let kinds = kinds
                .iter()
                .filter_map(Value::as_str)
                .filter(|k| *k != "null")
                .map(one);
            kinds.collect::<Vec<_>>().join(" | ")
        }
        _ => "any value".into(),
    }
}

/// A description in one line.
fn sentence(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_about_json_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let wanted = page();
    if std::env::var_os("WEIR_UPDATE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/json.md is not what the types say; run: WEIR_UPDATE=1 cargo test -p weir --test all json_docs"
    );
}

#[test]
fn every_field_of_every_document_has_a_meaning() {
    for line in page().lines().filter(|line| line.starts_with("| `")) {
        assert!(!line.ends_with("|  |"), "no meaning: {line}");
    }
}

/// A JSON Schema file for each kind of document, made from the types.
#[test]
fn the_schema_files_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for kind in KINDS {
        let name = kind.schema.replace("weir/", "").replace('/', "-");
        let path = folder.join(format!("{name}.json"));
        let mut wanted = serde_json::to_string_pretty(&(kind.json_schema)()).unwrap();
        wanted.push('\n');
        if std::env::var_os("WEIR_UPDATE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &wanted).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == wanted,
            "schemas/{name}.json is not what the types say; run: WEIR_UPDATE=1 cargo test -p weir --test all json_docs"
        );
    }
}
