//! The way out for the results: a named virtio-serial port, or a second serial line where there is
//! no such port.
//!
//! Port names: /sys/class/virtio-ports/*/name (drivers/char/virtio_console.c); the device node has
//! the directory's name. A serial line is set raw, or the terminal layer would turn every 0x0a into
//! two bytes.

use super::problem;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Ports appear a moment after the driver is loaded, when the host has answered.
const PORT_WAIT: Duration = Duration::from_secs(5);

/// Opens the port called `port`, else `serial`.
pub fn open_result_channel(port: &str, serial: Option<&str>) -> Result<File, String> {
    let no_port = match find_port(port) {
        Some(path) => match File::options().write(true).open(&path) {
            Ok(file) => return Ok(file),
            Err(error) => problem(path.display(), error),
        },
        None => format!("no virtio-serial port {port:?}"),
    };
    let serial = serial.ok_or_else(|| no_port.clone())?;
    open_raw(serial).map_err(|error| format!("{no_port}; {}", problem(serial, error)))
}

fn find_port(name: &str) -> Option<PathBuf> {
    let begin = Instant::now();
    loop {
        let found = port_in(Path::new("/sys/class/virtio-ports"), name);
        if found.is_some() || begin.elapsed() > PORT_WAIT || !Path::new("/sys/class/virtio-ports").exists() {
            return found.map(|device| Path::new("/dev").join(device));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Device name of the port with this name.
fn port_in(class: &Path, name: &str) -> Option<std::ffi::OsString> {
    let matches = |dir: &Path| fs::read_to_string(dir.join("name")).is_ok_and(|text| text.trim() == name);
    fs::read_dir(class).ok()?.flatten().find(|entry| matches(&entry.path())).map(|entry| entry.file_name())
}

fn open_raw(path: &str) -> std::io::Result<File> {
    let file = File::options().read(true).write(true).open(path)?;
    let mut settings = tcgetattr(&file)?;
    settings.make_raw();
    tcsetattr(&file, OptionalActions::Now, &settings)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_by_name() {
        let class = tempfile::tempdir().unwrap();
        for (device, name) in [("vport0p1", "org.other\n"), ("vport1p1", "stillcore.lab\n")] {
            fs::create_dir(class.path().join(device)).unwrap();
            fs::write(class.path().join(device).join("name"), name).unwrap();
        }
        assert_eq!(port_in(class.path(), "stillcore.lab").unwrap(), "vport1p1");
        assert_eq!(port_in(class.path(), "stillcore"), None);
        assert_eq!(port_in(Path::new("/nonexistent"), "x"), None);
    }
}
