//! Studies on many machines: Ansible in a virtual environment, the role of `deploy/ansible` as
//! Ansible and YAML see it, the tests that run cells through it, and the examples for batch
//! systems.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::output::Output;

const REQUIREMENTS: &str = "deploy/ansible/requirements.txt";
const PLAYBOOKS: [&str; 2] = ["deploy/ansible/run.yml", "deploy/ansible/collect.yml"];
const SCRIPTS: [&str; 2] = ["deploy/slurm/study.sbatch", "crates/cli/tests/hosts_ssh.sh"];
/// Every document of every file parses, and there is one at least.
const PARSE: &str =
    "import sys, yaml\nfor path in sys.argv[1:]:\n    assert any(yaml.safe_load_all(open(path))), path\n";

/// Installs Ansible, and checks what can be checked without running a cell.
pub(crate) fn prepare(root: &Path, output: &mut Output) -> Result<()> {
    let venv = install(root, &crate::repo::target_dir(root)?, output)?;
    check(root, &venv, output)
}

/// Installs Ansible where the tests look for it: `hosts/venv` of the target directory.
fn install(root: &Path, target: &Path, output: &mut Output) -> Result<PathBuf> {
    let folder = target.join("hosts/venv");
    let python = folder.join("bin/python3");
    if !python.exists() {
        let make: [OsString; 4] = ["-m".into(), "venv".into(), "--clear".into(), folder.clone().into()];
        output
            .run(root, "python3", &make)
            .context("no virtual environment can be made (Debian: python3-venv)")?;
    }
    let install = [
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
        "--no-compile",
        "-r",
        REQUIREMENTS,
    ];
    output.run(root, &python.to_string_lossy(), &install).with_context(|| {
        format!("the packages of {REQUIREMENTS} cannot be had: pip needs its index, or a folder with them")
    })?;
    Ok(folder)
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
