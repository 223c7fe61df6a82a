//! One boot line: `audit`, `isolate plan` and `isolate persist` propose the same, and `persist`
//! writes it and takes it out again.

use crate::support::{assert_refused, stillcore, text};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

fn run(arguments: &[&str]) -> Output {
    stillcore(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

fn write(dir: &Path, file: &str, bytes: &str) {
    let path = dir.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A machine of eight CPUs whose kernel has these options, booted with this line.
fn machine(cmdline: &str, isolated: &str, options: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let cpu = "sys/devices/system/cpu";
    for file in ["online", "present", "possible"] {
        write(dir.path(), &format!("{cpu}/{file}"), "0-7\n");
    }
    write(dir.path(), &format!("{cpu}/isolated"), isolated);
    write(dir.path(), &format!("{cpu}/nohz_full"), "");
    write(dir.path(), "proc/cmdline", cmdline);
    write(dir.path(), "proc/sys/kernel/osrelease", "6.1.0-x");
    write(dir.path(), "proc/sys/kernel/arch", "x86_64");
    let config: Vec<_> = options.iter().map(|option| format!("{option}=y")).collect();
    write(dir.path(), "boot/config-6.1.0-x", &config.join("\n"));
    for number in 0..8 {
        let pid = 20 + number;
        let zeros = "0 ".repeat(28);
        let stat = format!("{pid} (rcuop/{number}) S 2 0 0 0 -1 2129984 {zeros}0 0");
        write(dir.path(), &format!("proc/{pid}/stat"), &stat);
        write(dir.path(), &format!("proc/{pid}/status"), "Cpus_allowed_list:\t0-1\n");
    }
    dir
}

const ALL: [&str; 3] = ["CONFIG_CPU_ISOLATION", "CONFIG_NO_HZ_FULL", "CONFIG_RCU_NOCB_CPU"];

fn remedy(audit: &Value, id: &str) -> String {
    let all = audit["findings"].as_array().unwrap();
    let finding = all.iter().find(|finding| finding["id"] == id).unwrap();
    finding["remedy"].as_str().unwrap_or_default().to_owned()
}

fn words(line: &Value) -> Vec<String> {
    let all = line["changes"].as_array().unwrap().iter().flat_map(|change| change["new"].as_array().unwrap());
    all.map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_core_beside_isolated_ones_is_added_to_what_stands_there() {
    let dir = machine("root=/dev/a isolcpus=2-5 rcu_nocbs=2-5 quiet", "2-5", &ALL);
    let root = dir.path().to_str().unwrap();
    let audit = json(&["audit", "--root", root, "--cpus", "6"]);
    let plan = json(&["isolate", "plan", "--root", root, "--cpus", "6"]);
    let expected = ["isolcpus=managed_irq,domain,2-6", "rcu_nocbs=2-6", "nohz_full=6"];
    assert_eq!(words(&plan["boot_line"]), expected);
    assert_eq!(plan["boot_line"], audit["boot_line"]);
    assert_eq!(
        plan["boot_line"]["line"],
        "root=/dev/a isolcpus=managed_irq,domain,2-6 rcu_nocbs=2-6 quiet nohz_full=6"
    );
    for (id, instruction) in [
        (
            "isolcpus",
            "replace isolcpus=2-5 with isolcpus=managed_irq,domain,2-6 on the kernel command line and reboot",
        ),
        ("rcu_nocbs", "replace rcu_nocbs=2-5 with rcu_nocbs=2-6 on the kernel command line and reboot"),
        ("nohz_full", "add nohz_full=6 to the kernel command line and reboot"),
    ] {
        assert_eq!(remedy(&audit, id), instruction);
        let steps = plan["boot"].as_array().unwrap();
        let step = steps.iter().find(|step| step["mechanism"] == id).unwrap();
        assert_eq!(step["what"], instruction);
    }
    let page = run(&["isolate", "plan", "--root", root, "--cpus", "6"]);
    assert!(
        text(&page.stdout).contains("isolcpus=2-5 -> isolcpus=managed_irq,domain,2-6"),
        "{}",
        text(&page.stdout)
    );
}

#[test]
fn nothing_is_proposed_that_this_kernel_s_build_ignores() {
    let dir = machine("quiet", "", &["CONFIG_CPU_ISOLATION"]);
    let root = dir.path().to_str().unwrap();
    let audit = json(&["audit", "--root", root, "--cpus", "6"]);
    let plan = json(&["isolate", "plan", "--root", root, "--cpus", "6"]);
    assert_eq!(words(&plan["boot_line"]), ["isolcpus=managed_irq,domain,6"]);
    assert_eq!(plan["boot_line"], audit["boot_line"]);
    let steps = plan["boot"].as_array().unwrap();
    let nohz = steps.iter().find(|step| step["mechanism"] == "nohz_full").unwrap();
    assert!(nohz["parameter"].is_null(), "{nohz}");
    assert!(remedy(&audit, "nohz_full").starts_with("use a kernel with CONFIG_NO_HZ_FULL=y, then"));
    let omitted = plan["boot_line"]["omitted"].to_string();
    assert!(omitted.contains("built without CONFIG_NO_HZ_FULL") && omitted.contains("CONFIG_RCU_NOCB_CPU"));
    let without =
        json(&["isolate", "plan", "--root", root, "--cpus", "6", "--without", "nohz_full,rcu_nocbs"]);
    assert_eq!(without["boot_line"]["omitted"], serde_json::json!([]));
}

#[test]
fn another_kernel_has_rules_of_its_own() {
    let dir = machine("isolcpus=2-5", "2-5", &ALL);
    let root = dir.path().to_str().unwrap();
    let plan = |release: &str| {
        let plan = json(&["isolate", "plan", "--root", root, "--cpus", "6", "--for-kernel", release]);
        plan["boot_line"].clone()
    };
    // One set for isolcpus= and nohz_full= before 5.18.
    let old = plan("5.10");
    assert_eq!(words(&old), ["isolcpus=managed_irq,domain,2-6", "nohz_full=2-6", "rcu_nocbs=6"]);
    assert!(old["notes"].to_string().contains("could not be read"), "{old}");
    let new = plan("6.12");
    assert_eq!(words(&new), ["isolcpus=managed_irq,domain,2-6", "nohz_full=6", "rcu_nocbs=6"]);
    // The options of a kernel that is installed are read; 6.1 is not the beginning of 6.12.
    write(dir.path(), "boot/config-6.12.5", "CONFIG_CPU_ISOLATION=y\n");
    assert_eq!(plan("6.12")["kernel"], "6.12.5 x86_64");
    assert_eq!(words(&plan("6.12")), ["isolcpus=managed_irq,domain,2-6"]);
    assert_eq!(plan("6.1")["kernel"], "6.1.0-x x86_64");
    for bad in ["new", "../6.1", "6"] {
        let output = run(&["isolate", "plan", "--root", root, "--cpus", "6", "--for-kernel", bad]);
        assert_refused(&output, &["--for-kernel", "expected a release"]);
    }
}

#[test]
fn plan_and_audit_agree_on_every_captured_machine() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let mut compared = 0;
    for entry in fs::read_dir(fixtures).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let root = path.to_str().unwrap();
        for cpus in ["1", "2,3", "3,7"] {
            let plan = run(&["isolate", "plan", "--root", root, "--cpus", cpus, "--json"]);
            if plan.status.code() != Some(0) {
                continue;
            }
            let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
            let audit = json(&["audit", "--root", root, "--cpus", cpus]);
            assert_eq!(plan["boot_line"], audit["boot_line"], "{root} {cpus}");
            compared += 1;
        }
    }
    assert!(compared >= 6, "{compared}");
}

/// The highest CPU of this machine; `None` if it has only one.
fn highest() -> Option<String> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let last = online.trim().rsplit([',', '-']).next().unwrap().to_owned();
    (last != "0").then_some(last)
}

/// An image whose GRUB reads `/etc/default/grub.d`, with or without the program.
fn image(program: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (file, bytes) in [
        ("etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet\"\n"),
        ("etc/default/grub.d/.keep", ""),
        ("etc/systemd/system/.keep", ""),
        ("etc/sysctl.d/.keep", ""),
        ("usr/sbin/update-grub", ""),
        ("boot/config-6.1.0-x", "CONFIG_CPU_ISOLATION=y\nCONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\n"),
    ] {
        write(dir.path(), file, bytes);
    }
    if program {
        write(dir.path(), "usr/local/sbin/stillcore", "x");
        for part in ["usr", "usr/local", "usr/local/sbin", "usr/local/sbin/stillcore"] {
            fs::set_permissions(dir.path().join(part), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    dir
}

fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                all.push((path.display().to_string(), fs::read(&path).unwrap_or_default()));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn an_image_gets_the_line_of_its_own_kernel_and_a_program_of_its_own() {
    let Some(cpu) = highest() else { return };
    let dir = image(true);
    let root = dir.path().to_str().unwrap();
    let before = files(dir.path());
    let persist = |more: &[&str]| {
        run(&[&["isolate", "persist", "--root", root, "--cpus", &cpu, "--allow-split"], more].concat())
    };
    let printed = persist(&["--print"]);
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    assert_eq!(files(dir.path()), before);
    let written = persist(&[]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let unit = fs::read_to_string(dir.path().join("etc/systemd/system/stillcore-isolate.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/local/sbin/stillcore isolate apply --cpus"), "{unit}");
    let own = std::env::current_exe().unwrap();
    let built = own.ancestors().nth(2).unwrap().display().to_string();
    assert!(!files(dir.path()).iter().any(|(_, bytes)| text(bytes).contains(&built)));
    let drop_in = || fs::read_to_string(dir.path().join("etc/default/grub.d/90-stillcore.cfg")).unwrap();
    assert!(
        drop_in().contains(&format!("isolcpus=managed_irq,domain,{cpu} nohz_full={cpu} rcu_nocbs={cpu}\"")),
        "{}",
        drop_in()
    );
    // Fewer parameters: those of the earlier call are removed.
    let narrower = persist(&["--without", "nohz_full,rcu_nocbs"]);
    assert!(
        text(&narrower.stdout).contains(&format!("remove nohz_full={cpu}")),
        "{}",
        text(&narrower.stdout)
    );
    assert!(!drop_in().contains("nohz_full=") && drop_in().contains("isolcpus="), "{}", drop_in());
    let removed = run(&["isolate", "persist", "--root", root, "--remove"]);
    assert_eq!(removed.status.code(), Some(0), "{}", text(&removed.stderr));
    assert_eq!(files(dir.path()), before);
    let again = run(&["isolate", "persist", "--root", root, "--remove"]);
    assert!(text(&again.stdout).contains("nothing of stillcore's to remove"));
}

#[test]
fn a_program_that_users_may_change_is_not_started_by_root() {
    let Some(cpu) = highest() else { return };
    let call = ["isolate", "persist", "--print", "--cpus", &cpu, "--allow-split"];
    for program in ["/tmp/stillcore", "/var/tmp/stillcore", "/dev/shm/stillcore", "stillcore"] {
        let output = run(&[&call[..], &["--program", program]].concat());
        assert_refused(&output, &["root must not start", "install -m 0755"]);
    }
    let dir = image(false);
    let root = dir.path().to_str().unwrap();
    let before = files(dir.path());
    let lacking = run(&["isolate", "persist", "--root", root, "--cpus", &cpu, "--allow-split"]);
    assert_refused(&lacking, &["no stillcore is installed in", "/usr/local/sbin/stillcore"]);
    // A program that others may write is not started, installed or not.
    write(dir.path(), "usr/local/sbin/stillcore", "x");
    fs::set_permissions(dir.path().join("usr/local/sbin/stillcore"), fs::Permissions::from_mode(0o777))
        .unwrap();
    let open = run(&[
        "isolate",
        "persist",
        "--root",
        root,
        "--cpus",
        &cpu,
        "--allow-split",
        "--program",
        "/usr/local/sbin/stillcore",
    ]);
    assert_refused(&open, &["others may write /usr/local/sbin/stillcore"]);
    fs::remove_file(dir.path().join("usr/local/sbin/stillcore")).unwrap();
    assert_eq!(files(dir.path()), before);
}

#[test]
fn a_line_that_would_lose_what_others_isolate_is_refused_and_nothing_written() {
    let Some(cpu) = highest() else { return };
    let dir = image(true);
    // Every CPU but ours already has an owner.
    let last: u32 = cpu.parse().unwrap();
    let others = format!("0-{}", last - 1);
    write(dir.path(), "etc/default/grub", &format!("GRUB_CMDLINE_LINUX=\"isolcpus={others}\"\n"));
    let before = files(dir.path());
    let root = dir.path().to_str().unwrap();
    let output = run(&["isolate", "persist", "--root", root, "--cpus", &cpu, "--allow-split"]);
    assert_refused(&output, &["kernel command line", "isolcpus"]);
    assert_eq!(files(dir.path()), before);
}
