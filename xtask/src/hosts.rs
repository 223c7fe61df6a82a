//! Studies on many machines: Ansible in a virtual environment, the role of `deploy/ansible` as
//! Ansible and YAML see it, the tests that run cells through it, the examples for batch systems
//! (Kubernetes' against the schema of its API, Slurm's by ShellCheck), and the action and workflow
//! of GitHub against their schemas.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use crate::output::Output;
use crate::python;

const REQUIREMENTS: [&str; 3] = [
    "deploy/ansible/requirements.txt",
    "deploy/kubernetes/requirements.txt",
    "deploy/github/requirements.txt",
];
const PLAYBOOKS: [&str; 3] =
    ["deploy/ansible/run.yml", "deploy/ansible/collect.yml", "deploy/monitor/ansible.yml"];
const SCRIPTS: [&str; 4] = [
    "deploy/slurm/study.sbatch",
    "deploy/slurm/epilog.sh",
    "crates/cli/tests/hosts_ssh.sh",
    "deploy/github/compare/compare.sh",
];
/// Schema, and the file that it is for.
const GITHUB: [(&str, &str); 2] = [
    ("vendor.github-actions", "deploy/github/compare/action.yml"),
    ("vendor.github-workflows", ".github/workflows/release.yml"),
];
const PODS: [&str; 3] = [
    "deploy/kubernetes/study.yaml",
    "deploy/kubernetes/study-isolate.yaml",
    "deploy/kubernetes/monitor.yaml",
];
/// Every document of every file parses, and there is one at least.
const PARSE: &str =
    "import sys, yaml\nfor path in sys.argv[1:]:\n    assert any(yaml.safe_load_all(open(path))), path\n";

/// Installs Ansible, and checks what can be checked without running a cell.
pub(crate) fn prepare(root: &Path, output: &mut Output) -> Result<()> {
    // Where the tests look for it.
    let venv = crate::repo::target_dir(root)?.join("hosts/venv");
    for requirements in REQUIREMENTS {
        python::environment(root, &venv, requirements, output)?;
    }
    check(root, &venv, output)
}

fn check(root: &Path, venv: &Path, output: &mut Output) -> Result<()> {
    let playbook = venv.join("bin/ansible-playbook");
    for file in PLAYBOOKS {
        output.run(
            root,
            &playbook.to_string_lossy(),
            &["--inventory", "localhost,", "--syntax-check", file],
        )?;
    }
    let mut parse: Vec<OsString> = vec!["-c".into(), PARSE.into()];
    parse.extend(PLAYBOOKS.map(OsString::from));
    for folder in ["tasks", "defaults", "meta"] {
        let folder = root.join("deploy/ansible/roles/stillcore_study").join(folder);
        for entry in std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            parse.push(entry?.path().into());
        }
    }
    output.run(root, &venv.join("bin/python3").to_string_lossy(), &parse)?;
    // Strict: a key that the schema does not have is an error, where a cluster would drop it.
    let validator = venv.join("bin/kubernetes-validate");
    output.run(root, &validator.to_string_lossy(), &["--strict", PODS[0], PODS[1], PODS[2]])?;
    let checker = venv.join("bin/check-jsonschema");
    for (schema, file) in GITHUB {
        output.run(root, &checker.to_string_lossy(), &["--builtin-schema", schema, file])?;
    }
    output.run(root, "shellcheck", &SCRIPTS)
}
