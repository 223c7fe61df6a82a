//! Which container a control group is, by its path, and its name, by the files that runtimes keep.
//!
//! - Docker: `docker-ID.scope`, `docker/ID`; `/var/lib/docker/containers/ID/config.v2.json`.
//! - containerd and Kubernetes: `cri-containerd-ID.scope`, `podUID/ID`;
//!   `NAMESPACE/ID/config.json` below [`TASKS`].
//! - CRI-O and Podman: `crio-ID.scope`, `libpod-ID.scope`; `ID/userdata/config.json` and
//!   `containers.json` below [`STORED`].
//! - LXC: `lxc.payload.NAME`, `lxc/NAME`. systemd-nspawn: `systemd-nspawn@NAME.service`.
//!
//! Names are annotations of the OCI runtime specification (`config.md`, "Annotations"), set by the
//! runtimes for Kubernetes. The files belong to root; what a container can put into them is
//! its name, and that is kept short and harmless.
//!
//! Whoever is given a part of the hierarchy may name groups in it after other people's containers.
//! So the outermost container counts, which root's runtime has made; below `user.slice`, where
//! users' own runtimes are, it has a number and no name.

use model::foreign::in_a_line;
use model::groups::Container;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where containerd's tasks are, below the root.
const TASKS: &str = "run/containerd/io.containerd.runtime.v2.task";
/// Where CRI-O and Podman keep theirs.
const STORED: &str = "var/lib/containers/storage/overlay-containers";
/// The most of a file that is read, bytes.
const MOST_BYTES: u64 = 4 << 20;
/// The most of a name that is kept, characters.
const MOST_CHARACTERS: usize = 128;

/// How the names of groups begin that are containers, and how they end.
const NAMED: [(&str, &str); 7] = [
    ("docker-", ".scope"),
    ("cri-containerd-", ".scope"),
    ("crio-", ".scope"),
    ("libpod-", ".scope"),
    ("nerdctl-", ".scope"),
    ("lxc.payload.", ""),
    ("systemd-nspawn@", ".service"),
];
/// Groups below which each group is a container.
const PARENTS: [&str; 3] = ["docker", "lxc", "libpod_parent"];
/// Length of the numbers that runtimes give.
const ID_LENGTH: usize = 64;

/// Where annotations have the name of the container, of its pod, and of the pod's namespace.
const ANNOTATIONS: [[&str; 3]; 3] = [
    [
        "io.kubernetes.cri.container-name",
        "io.kubernetes.cri.sandbox-name",
        "io.kubernetes.cri.sandbox-namespace",
    ],
    ["io.kubernetes.container.name", "io.kubernetes.pod.name", "io.kubernetes.pod.namespace"],
    ["nerdctl/name", "", ""],
];

/// The files of container runtimes below a root directory.
pub(super) struct Runtimes {
    root: PathBuf,
}

impl Runtimes {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The outermost container that a group is, or lies in.
    pub(super) fn container(&self, path: &str) -> Option<Container> {
        let users = path.split('/').any(|part| part == "user.slice");
        let id = id_in(path).filter(|id| !users || is_number(id))?;
        let mut container = Container { id: in_a_line(id), ..Container::default() };
        if is_number(id) && !users {
            self.name(&mut container);
        }
        Some(container)
    }

    fn name(&self, container: &mut Container) {
        let id = &container.id;
        let docker = self.json(&format!("var/lib/docker/containers/{id}/config.v2.json"));
        let specs = self.specs(id);
        let annotations = docker.iter().map(|docker| &docker["Config"]["Labels"]);
        for all in annotations.chain(specs.iter().map(|spec| &spec["annotations"])) {
            for [name, pod, namespace] in ANNOTATIONS {
                let text = |key: &str| all[key].as_str().map(short);
                container.name = container.name.take().or_else(|| text(name));
                container.pod = container.pod.take().or_else(|| text(pod));
                container.namespace = container.namespace.take().or_else(|| text(namespace));
            }
        }
        if container.name.is_none() {
            let name = docker.as_ref().and_then(|docker| docker["Name"].as_str());
            let name = name.map(|name| short(name.trim_start_matches('/')));
            container.name = name.or_else(|| self.stored(&container.id));
        }
    }

    /// The specifications by which OCI runtimes run this number.
    fn specs(&self, id: &str) -> Vec<Value> {
        let namespaces = std::fs::read_dir(self.root.join(TASKS)).into_iter().flatten().flatten();
        let mut files: Vec<String> = namespaces
            .filter_map(|entry| Some(format!("{TASKS}/{}/{id}/config.json", entry.file_name().to_str()?)))
            .collect();
        files.push(format!("{STORED}/{id}/userdata/config.json"));
        files.iter().filter_map(|file| self.json(file)).collect()
    }

    /// The name under which containers/storage keeps it.
    fn stored(&self, id: &str) -> Option<String> {
        let all = self.json(&format!("{STORED}/containers.json"))?;
        let found = all.as_array()?.iter().find(|one| one["id"] == id)?;
        found["names"][0].as_str().map(short)
    }

    fn json(&self, file: &str) -> Option<Value> {
        let mut text = Vec::new();
        File::open(self.root.join(file)).ok()?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// The number or name of the outermost container in a path.
fn id_in(path: &str) -> Option<&str> {
    let parts: Vec<&str> = path.split('/').collect();
    (0..parts.len()).find_map(|at| {
        let part = parts[at];
        let between = |(start, end): &(&str, &str)| part.strip_prefix(start)?.strip_suffix(end);
        let named = NAMED.iter().find_map(between).filter(|id| !id.is_empty());
        let parent = at.checked_sub(1).map_or("", |above| parts[above]);
        let below = PARENTS.contains(&parent) || parent.starts_with("pod");
        named.or(Some(part).filter(|part| below && (is_number(part) || parent == "lxc") && !part.is_empty()))
    })
}

/// Whether it is a number as runtimes give it, which is also safe in a path.
fn is_number(id: &str) -> bool {
    id.len() == ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The same, and not too long.
fn short(name: &str) -> String {
    in_a_line(name).chars().take(MOST_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ID: &str = "4f1c6a0b9d2e77aa4f1c6a0b9d2e77aa4f1c6a0b9d2e77aa4f1c6a0b9d2e77aa";

    #[test]
    fn containers_are_known_by_the_paths_of_their_groups() {
        let slice = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice";
        for path in [
            format!("/system.slice/docker-{ID}.scope"),
            format!("/docker/{ID}"),
            format!("/docker/{ID}/init.scope"),
            format!("{slice}/cri-containerd-{ID}.scope"),
            format!("{slice}/crio-{ID}.scope/container"),
            format!("/kubepods/besteffort/pod1-2/{ID}"),
            format!("/machine.slice/libpod-{ID}.scope"),
        ] {
            assert_eq!(id_in(&path), Some(ID), "{path}");
        }
        assert_eq!(id_in("/lxc.payload.web/system.slice/cron.service"), Some("web"));
        assert_eq!(id_in("/machine.slice/systemd-nspawn@build.service/payload"), Some("build"));
        for path in ["/system.slice/docker.service", "/docker", "/docker/buildx", "/user.slice", "/", "/lxc/"]
        {
            assert_eq!(id_in(path), None, "{path}");
        }
        // A container in a container, or a group that one has made.
        let other = ID.replace('4', "5");
        assert_eq!(id_in(&format!("/docker/{ID}/docker-{other}.scope")), Some(ID));
    }

    #[test]
    fn names_are_those_that_runtimes_have_written() {
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let at = |prefix: &str, id: &str| format!("/x.slice/{prefix}-{id}.scope");
        let runtimes = Runtimes::new(root.path());
        let words = |path: &str| runtimes.container(path).unwrap().words();
        assert_eq!(words(&at("docker", ID)), "container 4f1c6a0b9d2e", "no file");
        put(
            &format!("var/lib/docker/containers/{ID}/config.v2.json"),
            r#"{"Name": "/we\u001bb", "Config": {}}"#,
        );
        assert_eq!(words(&at("docker", ID)), "container we?b");
        // A user has named a group of his own after it.
        let own = "/user.slice/user-1000.slice/user@1000.service";
        assert_eq!(words(&format!("{own}/docker-{ID}.scope")), "container 4f1c6a0b9d2e");
        assert_eq!(runtimes.container(&format!("{own}/lxc.payload.web")), None);
        let kube = ID.replace('4', "5");
        put(
            &format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{kube}/config.json"),
            r#"{"annotations": {"io.kubernetes.cri.container-name": "web", "io.kubernetes.cri.sandbox-name": "front-0",
               "io.kubernetes.cri.sandbox-namespace": "shop"}}"#,
        );
        assert_eq!(words(&at("cri-containerd", &kube)), "container web of pod shop/front-0");
        let podman = ID.replace('4', "6");
        let stored = format!(r#"[{{"id": "{podman}", "names": ["db"]}}]"#);
        put("var/lib/containers/storage/overlay-containers/containers.json", &stored);
        assert_eq!(words(&at("libpod", &podman)), "container db");
        put(&format!("var/lib/docker/containers/{podman}/config.v2.json"), "not JSON");
        assert_eq!(words(&at("libpod", &podman)), "container db");
    }
}
