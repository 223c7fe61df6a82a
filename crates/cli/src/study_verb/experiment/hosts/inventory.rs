//! The machines of an inventory, as Ansible reads it: any form and any plugin that it knows.

use super::ansible;
use anyhow::Context;
use model::Error;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Names of all machines, sorted.
pub(super) fn hosts(inventory: &Path) -> anyhow::Result<Vec<String>> {
    // For Ansible, a missing file is an empty inventory.
    if !inventory.exists() {
        return Err(Error::invalid(
            "--hosts",
            format!("{} does not exist", inventory.display()),
            "an inventory of Ansible",
        )
        .into());
    }
    let mut command = ansible("ansible-inventory")?;
    command.arg("--inventory").arg(inventory).arg("--list").env("ANSIBLE_INVENTORY_UNPARSED_FAILED", "true");
    let output = command.output().context("cannot start ansible-inventory")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let words: Vec<&str> = said.split_whitespace().collect();
        return Err(Error::invalid(inventory.display(), words.join(" "), "an inventory of Ansible").into());
    }
    let listed = serde_json::from_slice(&output.stdout).context("what ansible-inventory printed")?;
    let hosts = of_groups(&listed);
    let odd = |host: &&String| host.contains('/') || host.starts_with('.') || host.is_empty();
    if let Some(host) = hosts.iter().find(odd) {
        let expected = "names of machines that can be names of files";
        return Err(
            Error::invalid(inventory.display(), format!("a machine called {host:?}"), expected).into()
        );
    }
    if hosts.is_empty() {
        return Err(Error::invalid(inventory.display(), "no machines", "one at least").into());
    }
    Ok(hosts)
}

/// Every group lists its own machines; nested ones are groups of their own.
fn of_groups(listed: &Value) -> Vec<String> {
    let groups = listed.as_object().into_iter().flatten().filter(|(name, _)| *name != "_meta");
    let names = groups.filter_map(|(_, group)| group["hosts"].as_array()).flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_nested_groups_are_found_once() {
        let listed = serde_json::json!({
            "_meta": { "hostvars": { "c": { "x": 1 } } },
            "all": { "children": ["ungrouped", "lab"] },
            "lab": { "children": ["left"], "hosts": ["b"] },
            "left": { "hosts": ["b", "a"] },
            "ungrouped": { "hosts": ["c"] },
        });
        assert_eq!(of_groups(&listed), ["a", "b", "c"]);
    }
}
