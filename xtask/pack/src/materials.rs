//! The bill of materials of the program (CycloneDX 1.5): each crate that is linked into it, with
//! its licence, its checksum and what it depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::contents::Release;
use crate::sums::hexadecimal;

/// What cargo says of the packages.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

/// `None` for a normal dependency, else `dev` or `build`.
#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// The bill of the workspace's program.
pub(crate) fn bill(root: &Path, release: &Release) -> Result<Vec<u8>> {
    let words =
        ["metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-musl"];
    let output =
        Command::new("cargo").args(words).current_dir(root).output().context("run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let metadata = serde_json::from_slice(&output.stdout).context("parse cargo metadata")?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("read Cargo.lock")?;
    let lock = toml::from_str(&lock).context("parse Cargo.lock")?;
    let text = serde_json::to_string_pretty(&document(&metadata, &lock, release)?)?;
    Ok((text + "\n").into_bytes())
}

fn document(metadata: &Metadata, lock: &Lock, release: &Release) -> Result<Value> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|one| (one.id.as_str(), one)).collect();
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|one| (one.id.as_str(), one)).collect();
    let sums: BTreeMap<(&str, &str), &str> = lock
        .package
        .iter()
        .filter_map(|one| Some(((one.name.as_str(), one.version.as_str()), one.checksum.as_deref()?)))
        .collect();
    let program =
        metadata.packages.iter().find(|one| one.name == "stillcore").context("no package stillcore")?;
    let linked = |id: &str| -> Vec<&str> {
        let edges = nodes.get(id).map_or(&[][..], |node| &node.deps);
        let normal = edges.iter().filter(|edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none()));
        normal.map(|edge| edge.pkg.as_str()).collect()
    };
    let mut found = BTreeSet::from([program.id.as_str()]);
    let mut open = vec![program.id.as_str()];
    while let Some(id) = open.pop() {
        open.extend(linked(id).into_iter().filter(|id| found.insert(*id)));
    }
    let name = |id: &str| packages.get(id).map(|one| (one.name.as_str(), one.version.as_str(), *one));
    let mut all: Vec<_> = found.iter().filter_map(|id| Some((name(id)?, *id))).collect();
    all.sort_by_key(|((name, version, _), _)| (*name, *version));
    let component = |package: &Package| {
        let mut value = json!({
            "type": "library", "bom-ref": address(package), "name": package.name, "version": package.version,
            "purl": address(package),
        });
        if let Some(licence) = &package.license {
            value["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        if let Some(about) = &package.description {
            value["description"] = about.trim().into();
        }
        if let Some(sum) = sums.get(&(package.name.as_str(), package.version.as_str())) {
            value["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        value
    };
    let others = all.iter().filter(|(_, id)| *id != program.id);
    let components: Vec<Value> = others.map(|((_, _, package), _)| component(package)).collect();
    let edges: Vec<Value> = all
        .iter()
        .map(|((_, _, package), id)| {
            let mut on: Vec<String> =
                linked(id).into_iter().filter_map(|id| Some(address(packages.get(id)?))).collect();
            on.sort();
            on.dedup();
            json!({ "ref": address(package), "dependsOn": on })
        })
        .collect();
    let mut whole = component(program);
    whole["type"] = "application".into();
    whole["version"] = release.version.clone().into();
    let mut value = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": jiff::Timestamp::from_second(release.epoch.into())?.to_string(),
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist" }] },
            "component": whole,
        },
        "components": components,
        "dependencies": edges,
    });
    value["serialNumber"] = serial(&value).into();
    Ok(value)
}

/// The address of a crate (purl-spec, type cargo).
fn address(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

/// A number that is the document's own and the same each time: a UUID of version 8 (RFC 9562) from
/// its SHA-256.
fn serial(document: &Value) -> String {
    let sum = hexadecimal(document.to_string().as_bytes());
    format!("urn:uuid:{}-{}-8{}-8{}-{}", &sum[..8], &sum[8..12], &sum[13..16], &sum[17..20], &sum[20..32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::tests::release;

    #[test]
    fn what_is_linked_is_listed_and_what_only_tests_or_builds_is_not() {
        let metadata = serde_json::from_str(
            r#"{"packages":[
                {"id":"s","name":"stillcore","version":"0.1.0","license":"MIT","description":null},
                {"id":"a","name":"a","version":"1.0.0+x","license":"MIT/Apache-2.0","description":"A."},
                {"id":"b","name":"b","version":"2.0.0","license":null,"description":null},
                {"id":"t","name":"t","version":"3.0.0","license":null,"description":null}],
               "resolve":{"nodes":[
                {"id":"s","deps":[{"pkg":"a","dep_kinds":[{"kind":null}]},{"pkg":"t","dep_kinds":[{"kind":"dev"}]}]},
                {"id":"a","deps":[{"pkg":"b","dep_kinds":[{"kind":null}]},{"pkg":"t","dep_kinds":[{"kind":"build"}]}]},
                {"id":"b","deps":[]},{"id":"t","deps":[]}]}}"#,
        )
        .unwrap();
        let lock =
            toml::from_str("[[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"12ab\"\n").unwrap();
        let made = document(&metadata, &lock, &release()).unwrap();
        let names: Vec<_> =
            made["components"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(made["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(made["components"][0]["purl"], "pkg:cargo/a@1.0.0%2Bx");
        assert_eq!(made["components"][1]["hashes"][0]["content"], "12ab");
        assert_eq!(made["dependencies"][2]["ref"], "pkg:cargo/stillcore@0.1.0");
        assert_eq!(made["serialNumber"].as_str().unwrap().len(), "urn:uuid:".len() + 36);
    }
}
