//! Studies on many machines: Ansible in a virtual environment, the role of `deploy/ansible` as
//! Ansible and YAML see it, the tests that run cells through it, and the examples for batch
//! systems.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use crate::output::Output;
use crate::python;

const REQUIREMENTS: &str = "deploy/ansible/requirements.txt";
const PLAYBOOKS: [&str; 2] = ["deploy/ansible/run.yml", "deploy/ansible/collect.yml"];
const SCRIPTS: [&str; 2] = ["deploy/slurm/study.sbatch", "crates/cli/tests/hosts_ssh.sh"];
/// Every document of every file parses, and there is one at least.
const PARSE: &str =
    "import sys, yaml\nfor path in sys.argv[1:]:\n    assert any(yaml.safe_load_all(open(path))), path\n";

/// Installs Ansible, and checks what can be checked without running a cell.
pub(crate) fn prepare(root: &Path, output: &mut Output) -> Result<()> {
    // Where the tests look for it.
    let venv = crate::repo::target_dir(root)?.join("hosts/venv");
    python::environment(root, &venv, REQUIREMENTS, output)?;
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
    let mut parse: Vec<OsString> = vec!["-c".into(), PARSE.into(), "deploy/kubernetes/study.yaml".into()];
    parse.extend(PLAYBOOKS.map(OsString::from));
    for folder in ["tasks", "defaults", "meta"] {
        let folder = root.join("deploy/ansible/roles/stillcore_study").join(folder);
        for entry in std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            parse.push(entry?.path().into());
        }
    }
    output.run(root, &venv.join("bin/python3").to_string_lossy(), &parse)?;
    output.run(root, "shellcheck", &SCRIPTS)
}
