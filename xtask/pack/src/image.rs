//! An OCI image as a tar of its layout, made without a daemon (OCI image specification 1.1:
//! image-layout, manifest, config). `podman load -i FILE` and `skopeo copy oci-archive:FILE ...`
//! take it.

use anyhow::Result;
use serde_json::{Value, json};

use crate::archive::{Entry, gzip, tar};
use crate::contents::{Arch, Release, SUMMARY, Sources};
use crate::sums::hexadecimal;

pub(crate) fn name(release: &Release, arch: Arch) -> String {
    format!("stillcore-{}-{}.oci.tar", release.version, arch.other_name())
}

/// The image: the program, its licences, nothing else.
pub(crate) fn layout(sources: &Sources, release: &Release, arch: Arch, program: &[u8]) -> Result<Vec<u8>> {
    let licence =
        |name: &str, text: &[u8]| Entry::plain(format!("usr/share/licenses/stillcore/{name}"), text);
    let files = [
        Entry::program("usr/bin/stillcore", program),
        licence("LICENSE-APACHE", &sources.apache),
        licence("LICENSE-MIT", &sources.mit),
    ];
    let layer = tar(&files, "", release.epoch)?;
    let packed = gzip(&layer)?;
    let created = jiff::Timestamp::from_second(release.epoch.into())?.to_string();
    let config = bytes(&json!({
        "created": created,
        "architecture": arch.other_name(),
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/stillcore"],
            "Env": ["PATH=/usr/bin"],
            "Labels": labels(release),
        },
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        "history": [{ "created": created, "created_by": "cargo xtask dist" }],
    }));
    let manifest = bytes(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
        "annotations": labels(release),
    }));
    let mut listed = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    listed["platform"] = json!({ "architecture": arch.other_name(), "os": "linux" });
    listed["annotations"] =
        json!({ "org.opencontainers.image.ref.name": format!("stillcore:{}", release.version) });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [listed],
    });
    let blob = |bytes: Vec<u8>| Entry::plain(format!("blobs/sha256/{}", hexadecimal(&bytes)), bytes);
    let entries = [
        Entry::plain("oci-layout", bytes(&json!({ "imageLayoutVersion": "1.0.0" }))),
        Entry::plain("index.json", bytes(&index)),
        blob(config),
        blob(manifest),
        blob(packed),
    ];
    tar(&entries, "", release.epoch)
}

fn labels(release: &Release) -> Value {
    json!({
        "org.opencontainers.image.title": "stillcore",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
    })
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": digest(bytes), "size": bytes.len() })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(bytes))
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::tests::{release, sources};
    use std::collections::BTreeMap;
    use std::io::Read;

    #[test]
    fn every_blob_is_called_by_its_digest_and_every_descriptor_leads_to_one() {
        let made = layout(&sources(), &release(), Arch::X86_64, b"program").unwrap();
        assert!(made == layout(&sources(), &release(), Arch::X86_64, b"program").unwrap());
        let mut files = BTreeMap::new();
        for entry in ::tar::Archive::new(&made[..]).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(String::from_utf8(entry.path_bytes().to_vec()).unwrap(), bytes);
        }
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap().trim_start_matches("sha256:");
            let bytes = &files[&format!("blobs/sha256/{digest}")];
            assert_eq!(
                (hexadecimal(bytes).as_str(), Some(bytes.len() as u64)),
                (digest, descriptor["size"].as_u64())
            );
            bytes.clone()
        };
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let manifest = json(&blob(&json(&files["index.json"])["manifests"][0]));
        let config = json(&blob(&manifest["config"]));
        let mut layer = Vec::new();
        flate2::read::GzDecoder::new(&blob(&manifest["layers"][0])[..]).read_to_end(&mut layer).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0].as_str(), Some(digest(&layer).as_str()));
    }
}
