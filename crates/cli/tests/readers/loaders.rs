//! Kernel command lines, and the files in which boot loaders keep them: read, changed and restored.

use super::common::mutate::Rng;
use super::{Outcome, Reader, bundle, in_scratch, text};
use boot::{Kernel, Wanted};
use machine::Root;
use model::Cpus;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const TREES: [&[(&str, &str)]; 8] = [
    &[
        (
            "etc/default/grub",
            "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=5\"\nGRUB_CMDLINE_LINUX=\"a=\\\"b c\\\" console=ttyS0\"\n",
        ),
        ("etc/default/grub.d/init-select.cfg", "# nothing\n"),
        ("usr/sbin/update-grub", "#!/bin/sh\n"),
        ("boot/grub/grub.cfg", "linux /vmlinuz root=/dev/a quiet\n"),
    ],
    &[
        ("etc/default/grub", "GRUB_CMDLINE_LINUX=\"\"\nGRUB_CMDLINE_LINUX_DEFAULT='loglevel=3 quiet'\n#end"),
        ("usr/bin/grub-mkconfig", "#!/bin/sh\n. /etc/default/grub\n"),
    ],
    &[
        (
            "boot/loader/entries/0a-6.12.0.conf",
            "title F\nversion 6.12.0\nlinux /vmlinuz-6.12.0\noptions root=UUID=1 ro rhgb quiet\n",
        ),
        (
            "boot/loader/entries/0a-0-rescue.conf",
            "title R\nlinux /vmlinuz-0-rescue\noptions root=UUID=1 ro\n",
        ),
        ("boot/grub2/grubenv", "# GRUB Environment Block\n"),
        ("etc/kernel/cmdline", "root=UUID=1 ro rhgb quiet\n"),
        ("etc/default/grub", "GRUB_CMDLINE_LINUX=\"rhgb quiet\"\n"),
    ],
    &[
        ("efi/loader/loader.conf", "default a\n"),
        ("efi/loader/entries/a.conf", "title A\nlinux /a/linux\noptions root=/dev/a\noptions rw"),
    ],
    &[(
        "boot/extlinux/extlinux.conf",
        "default l0\nlabel l0\n\tkernel /boot/vmlinuz\n\tappend root=/dev/a ro quiet\n\nlabel l0r\n\tAPPEND root=/dev/a ro single\n",
    )],
    &[
        ("boot/firmware/config.txt", "arm_64bit=1\n"),
        ("boot/firmware/cmdline.txt", "console=tty0 root=/dev/mmcblk0p2 rw rootwait \n"),
        (
            "etc/kernel/postinst.d/z50-raspi-firmware",
            "#!/bin/sh\ncmdline_custom=\"/etc/default/raspi-extra-cmdline\"\n",
        ),
    ],
    &[
        (
            "boot/armbianEnv.txt",
            "verbosity=1\nrootdev=UUID=1\nextraargs=cma=256M\nusbstoragequirks=0x2537:0x1066:u\n",
        ),
        ("boot/boot.cmd", "setenv bootargs \"root=${rootdev} rootwait ${extraargs}\"\n"),
    ],
    &[
        ("boot/extlinux/extlinux.conf", "label l0\n\tlinux /boot/vmlinuz\n\tappend root=/dev/a ro quiet\n"),
        ("usr/sbin/u-boot-update", "#!/bin/sh\nfor file in /etc/u-boot-menu/conf.d/*.conf\n"),
        ("etc/default/u-boot", "U_BOOT_PARAMETERS=\"ro quiet\"\n"),
    ],
];

/// The record of an earlier call; its words, paths and checksums are damaged too.
const RECORD: &str = r#"{"schema":"stillcore.boot-record/1","loader":"GRUB","lasting":true,"edits":[{"name":"isolcpus","old":[],"new":["isolcpus=2"]}],"files":[{"path":"etc/kernel/cmdline","backup":"etc/stillcore/before/0-etc-kernel-cmdline","bytes":11,"crc32":1}],"folders":["etc/stillcore"]}"#;

pub(crate) fn reader() -> Reader {
    let whole = TREES.iter().map(|files| {
        let before = [("proc/cmdline", "quiet isolcpus=domain,3 nohz_full=3")];
        bundle::of(before.iter().chain(*files).map(|(name, text)| (*name, text.as_bytes())))
    });
    let mut seeds: Vec<_> = whole.collect();
    let record =
        [("etc/stillcore/boot.json", RECORD), ("etc/stillcore/before/0-etc-kernel-cmdline", "root=/dev/a\n")];
    let files = TREES[2].iter().chain(&record).map(|(name, text)| (*name, text.as_bytes()));
    seeds.push(bundle::of(files));
    Reader { name: "boot-loader", seeds, damage, read, short: 300 }
}

fn damage(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let bytes = text(seeds, rng);
    if rng.below(6) > 0 {
        return bytes;
    }
    let names = [
        "etc",
        "etc/default",
        "boot/loader",
        "etc/kernel/cmdline",
        "etc/stillcore",
        "etc/default/grub",
        "boot/extlinux",
    ];
    let targets = ["../outside", "/dev/shm/../dev/shm", "../../../../../../..", "../outside/victim", "/etc"];
    [bundle::link(names[rng.below(names.len())], targets[rng.below(targets.len())]), bytes].concat()
}

fn kernel() -> Kernel {
    let eight: Cpus = (0..8).collect();
    Kernel {
        release: "6.1.0".to_owned(),
        arch: "x86_64".to_owned(),
        possible: eight.clone(),
        present: eight,
        ..Kernel::default()
    }
}

fn wanted(cpus: &str) -> Vec<Wanted> {
    let one = |id: &str, parameter: String| Wanted { mechanism: id.to_owned(), parameter, option: None };
    vec![
        one("isolcpus", format!("isolcpus=managed_irq,domain,{cpus}")),
        one("nohz_full", format!("nohz_full={cpus}")),
        one("rcu_nocbs", format!("rcu_nocbs={cpus}")),
    ]
}

/// An image beside a directory that nothing of it may reach.
fn read(bytes: &[u8]) -> Outcome {
    in_scratch(|scratch| {
        bundle::clear(scratch.path());
        let (image, outside) = (scratch.at("image"), scratch.at("outside"));
        fs::create_dir(&image).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "precious").unwrap();
        bundle::lay(bytes, &image);
        let outcome = persist(&image);
        let left: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["victim"], "something was made outside of the image");
        assert_eq!(fs::read_to_string(outside.join("victim")).unwrap(), "precious");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
        outcome
    })
}

fn persist(image: &Path) -> Outcome {
    let Ok(root) = Root::open(image) else { return Outcome::Refused };
    let cmdline = root.maybe("proc/cmdline").unwrap_or_default();
    let cpus: Cpus = "2,3".parse().unwrap();
    let at_hand = boot::at_hand(&root, &cmdline);
    let line = boot::merge(&kernel(), at_hand.lines(), &cpus, &wanted("2,3"));
    let Ok(writing) = boot::writing(&root, &line) else { return Outcome::Refused };
    let recorded = root.has("etc/stillcore");
    let before = contents(image);
    if boot::write(&root, &writing).is_err() {
        return Outcome::Partial;
    }
    match boot::undo(&root) {
        // A damaged record already in our own directory defines the earlier state itself.
        Ok(Some(undone)) if undone.left.is_empty() && undone.cleaned.is_empty() && !recorded => {
            assert_eq!(contents(image), before, "undone is not as it was: {undone:?}");
            Outcome::Whole
        }
        Ok(_) => Outcome::Whole,
        Err(_) => Outcome::Partial,
    }
}

/// Every file with its bytes; of links where they lead.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_file() {
                all.insert(name, fs::read(&path).unwrap());
            } else {
                all.insert(name, fs::read_link(&path).unwrap().display().to_string().into_bytes());
            }
        }
    }
    all
}

/// Command lines, as a kernel reads them.
pub(crate) fn lines() -> Reader {
    let text_of = super::fixture("crates/boot/tests/data/boot-lines.txt");
    let text_of = String::from_utf8_lossy(&text_of).into_owned();
    let lines = text_of.lines().filter(|line| !line.starts_with('#') && line.contains('='));
    let seeds = lines.filter_map(|line| Some(line.split_once(" |")?.0.as_bytes().to_vec()));
    // Damage makes words that a kernel drops.
    let seeds = seeds.filter(|seed| read_line(seed) == Outcome::Whole).collect();
    Reader { name: "command-line", seeds, damage: text, read: read_line, short: 2_000 }
}

fn read_line(bytes: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(bytes);
    let kernel = kernel();
    let effects = boot::effects(&kernel, &text);
    let cpus: Cpus = "2,3".parse().unwrap();
    let root = in_scratch(|scratch| Root::open(scratch.path()).unwrap());
    let line = boot::merge(&kernel, boot::at_hand(&root, &text).lines(), &cpus, &wanted("2,3"));
    if line.refused.is_none() && !text.contains(['"', '\\']) && !text.contains(" -- ") {
        // The proposal contains the request, and keeps everything that others isolate.
        let after = boot::effects(&kernel, &line.line);
        assert!(after.cover(&effects), "{text:?} -> {:?}: {after:?} has less than {effects:?}", line.line);
    }
    if effects.dropped.is_empty() { Outcome::Whole } else { Outcome::Refused }
}
