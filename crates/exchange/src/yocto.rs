//! For an image built by Yocto: a fragment of the kernel's configuration, the words of its command
//! line, and a file of sysctl.d.
//!
//! Source: Yocto Project Linux Kernel Development Manual, "Creating Configuration Fragments".

use crate::words::{Takes, left, sysctls, sysfs};
use crate::{Export, File};
use audit::Desired;

pub(crate) fn write(desired: &Desired, name: &str) -> Export {
    let option = |(option, value): (&String, &String)| match value.as_str() {
        "n" => format!("# {option} is not set\n"),
        _ => format!("{option}={value}\n"),
    };
    let mut files =
        vec![File { path: format!("{name}.cfg"), text: desired.options.iter().map(option).collect() }];
    if !desired.parameters.is_empty() {
        let words = desired.parameters.join(" ").replace('\\', r"\\").replace('"', "\\\"");
        files.push(File { path: format!("{name}.inc"), text: format!("APPEND:append = \" {words}\"\n") });
    }
    let lines = sysctls(desired).into_iter().map(|(name, value)| format!("{name} = {value}\n"));
    let text: String = lines.collect();
    if !text.is_empty() {
        files.push(File { path: format!("90-{name}.conf"), text });
    }
    let mut left = left(desired, Takes::default());
    left.extend(sysfs(desired).into_iter().map(|(path, value)| format!("{path} = {value}")));
    Export { files, left }
}
