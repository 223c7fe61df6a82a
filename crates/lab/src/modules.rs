//! Which modules a guest needs, in loading order.
//!
//! Debian's packages carry no `modules.dep` (depmod writes it at installation), so the order is
//! found from the modules themselves: depth first through `depends`, soft dependencies included
//! where they exist. Names are compared with `-` and `_` the same, as the kernel does.

use crate::error::{Error, IoContext, Result};
use crate::kernels::Kernel;
use crate::modinfo::{self, Modinfo};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module ready to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Name with underscores.
    pub name: String,
    /// Decompressed ELF file.
    pub elf: Vec<u8>,
}

/// Resolves module (or alias) names to modules in loading order. Names that are built into the
/// kernel need nothing.
pub fn resolve(kernel: &Kernel, names: &[&str]) -> Result<Vec<Module>> {
    let Some(dir) = &kernel.modules else {
        return match names.first() {
            None => Ok(Vec::new()),
            Some(name) => Err(missing(kernel, name, None)),
        };
    };
    let mut resolver = Resolver {
        kernel,
        files: module_files(dir)?,
        built_in: built_in(kernel, dir)?,
        started: BTreeSet::new(),
        order: Vec::new(),
        aliases: None,
    };
    for name in names {
        resolver.visit(name, None)?;
    }
    Ok(resolver.order)
}

/// Whether the kernel has a module of this name, as a file or built in. Ignores aliases.
pub fn has(kernel: &Kernel, name: &str) -> Result<bool> {
    let Some(dir) = &kernel.modules else { return Ok(false) };
    let name = normalise(name);
    Ok(built_in(kernel, dir)?.contains(&name) || module_files(dir)?.contains_key(&name))
}

/// The name as the kernel writes it.
pub fn normalise(name: &str) -> String {
    name.replace('-', "_")
}

struct Resolver<'a> {
    kernel: &'a Kernel,
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
    started: BTreeSet<String>,
    order: Vec<Module>,
    /// Alias → module, read only when a name is not a module's: it takes reading every module.
    aliases: Option<Vec<(String, String)>>,
}

impl Resolver<'_> {
    fn visit(&mut self, name: &str, wanted_by: Option<&str>) -> Result<()> {
        let name = normalise(name);
        if self.built_in.contains(&name) {
            return Ok(());
        }
        let name = if self.files.contains_key(&name) { name } else { self.by_alias(&name, wanted_by)? };
        // A name already begun is either done or a cycle of soft dependencies, which modprobe
        // breaks the same way.
        if !self.started.insert(name.clone()) {
            return Ok(());
        }
        let (elf, info) = self.read(&self.files[&name])?;
        for soft in &info.soft_pre {
            self.visit_soft(soft)?;
        }
        for dependency in &info.depends {
            self.visit(dependency, Some(&name))?;
        }
        self.order.push(Module { name, elf });
        for soft in &info.soft_post {
            self.visit_soft(soft)?;
        }
        Ok(())
    }

    fn visit_soft(&mut self, name: &str) -> Result<()> {
        // Only module names: looking soft aliases up would read every module for something
        // optional.
        if self.files.contains_key(&normalise(name)) { self.visit(name, None) } else { Ok(()) }
    }

    fn read(&self, path: &Path) -> Result<(Vec<u8>, Modinfo)> {
        let elf = modinfo::decompress(path, self.kernel.read(path)?)?;
        let info = modinfo::of_module(path, &elf)?;
        Ok((elf, info))
    }

    fn by_alias(&mut self, name: &str, wanted_by: Option<&str>) -> Result<String> {
        if self.aliases.is_none() {
            let mut aliases = Vec::new();
            for (module, path) in &self.files {
                let (_, info) = self.read(path)?;
                aliases.extend(info.aliases.into_iter().map(|alias| (normalise(&alias), module.clone())));
            }
            self.aliases = Some(aliases);
        }
        let aliases = self.aliases.as_deref().unwrap_or_default();
        aliases
            .iter()
            .find(|(alias, _)| glob::Pattern::new(alias).is_ok_and(|alias| alias.matches(name)))
            .map(|(_, module)| module.clone())
            .ok_or_else(|| missing(self.kernel, name, wanted_by))
    }
}

fn missing(kernel: &Kernel, name: &str, wanted_by: Option<&str>) -> Error {
    Error::NoModule {
        name: name.into(),
        release: kernel.release.clone(),
        wanted_by: wanted_by.map(str::to_owned),
    }
}

/// Module name → file, for everything below `kernel/`.
fn module_files(dir: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    let mut todo = vec![dir.join("kernel")];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).context("read", &dir)? {
            let entry = entry.context("read", &dir)?;
            if entry.file_type().context("read", &dir)?.is_dir() {
                todo.push(entry.path());
            } else if let Some(name) = module_name(&entry.file_name().to_string_lossy()) {
                files.insert(name, entry.path());
            }
        }
    }
    Ok(files)
}

/// `virtio_ring` of `virtio-ring.ko.xz`.
fn module_name(file: &str) -> Option<String> {
    let (name, rest) = file.split_once(".ko")?;
    (rest.is_empty() || rest.starts_with('.')).then(|| normalise(name))
}

fn built_in(kernel: &Kernel, dir: &Path) -> Result<BTreeSet<String>> {
    let path = dir.join("modules.builtin");
    if !path.exists() {
        return Ok(BTreeSet::new());
    }
    let bytes = kernel.read(&path)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(|line| module_name(line.rsplit('/').next()?)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modinfo::tests::with_section;
    use proptest::prelude::*;

    fn kernel(dir: &Path, modules: &[(&str, &str)], built_in: &str) -> Kernel {
        let root = dir.join("modules");
        fs::create_dir_all(root.join("kernel/drivers")).unwrap();
        for (file, info) in modules {
            let section = info.replace(';', "\0");
            fs::write(root.join("kernel/drivers").join(file), with_section(".modinfo", section.as_bytes()))
                .unwrap();
        }
        fs::write(root.join("modules.builtin"), built_in).unwrap();
        Kernel { release: "6.1-test".into(), image: dir.join("vmlinuz"), modules: Some(root), stored: None }
    }

    fn names(modules: &[Module]) -> Vec<&str> {
        modules.iter().map(|module| module.name.as_str()).collect()
    }

    #[test]
    fn dependencies_come_first_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = kernel(
            dir.path(),
            &[
                ("top.ko", "depends=left,right;softdep=pre: early nowhere post: late;"),
                ("left.ko", "depends=base-mod;"),
                ("right.ko", "depends=base_mod,builtin_one;"),
                ("base-mod.ko", "depends=;"),
                ("early.ko", "depends=;"),
                ("late.ko", "depends=top;"),
                ("other.ko", "depends=;"),
            ],
            "kernel/lib/builtin-one.ko\n",
        );
        let order = resolve(&kernel, &["top", "builtin-one"]).unwrap();
        assert_eq!(names(&order), ["early", "base_mod", "left", "right", "top", "late"]);
    }

    #[test]
    fn aliases_are_found_and_unknown_names_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = kernel(
            dir.path(),
            &[
                ("aes_x86.ko", "alias=crypto-aes*;alias=[;alias=pci:v0000?d*;depends=;"),
                ("bad.ko", "depends=gone;"),
            ],
            "",
        );
        for alias in ["crypto-aes-generic", "pci:v00008d00001"] {
            assert_eq!(names(&resolve(&kernel, &[alias]).unwrap()), ["aes_x86"]);
        }
        let error = resolve(&kernel, &["bad"]).unwrap_err().to_string();
        assert_eq!(error, "no module \"gone\" for kernel 6.1-test (needed by bad)");
    }

    #[test]
    fn without_modules_only_an_empty_wish_is_granted() {
        let kernel = Kernel { release: "x".into(), image: "vmlinuz".into(), modules: None, stored: None };
        assert!(resolve(&kernel, &[]).unwrap().is_empty());
        assert!(resolve(&kernel, &["virtio"]).is_err());
    }

    proptest! {
        #[test]
        fn every_order_of_a_random_graph_is_loadable(edges in prop::collection::vec((0usize..8, 0usize..8), 0..20)) {
            let dir = tempfile::tempdir().unwrap();
            // Only edges to a smaller number: a graph of modules has no hard cycles.
            let needs = |i: usize| edges.iter().filter(|(a, b)| *a == i && *b < i).map(|(_, b)| format!("m{b}")).collect::<Vec<_>>();
            let files: Vec<(String, String)> = (0..8).map(|i| (format!("m{i}.ko"), format!("depends={};", needs(i).join(",")))).collect();
            let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            let kernel = kernel(dir.path(), &files, "");
            let order = resolve(&kernel, &["m7", "m3"]).unwrap();
            let order = names(&order);
            for (at, name) in order.iter().enumerate() {
                for need in needs(name[1..].parse().unwrap()) {
                    prop_assert!(order[..at].contains(&need.as_str()), "{name} before {need} in {order:?}");
                }
            }
            prop_assert!(order.contains(&"m7") && order.contains(&"m3"));
        }
    }
}
