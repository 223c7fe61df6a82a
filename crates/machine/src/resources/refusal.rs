//! Why a file of the machine cannot be read, in words.

use model::Error;
use rustix::io::Errno;

/// Why a file cannot be read. Files of debugfs belong to root, and under lockdown not even root may read them.
pub(crate) fn refusal(file: &str, error: &Error) -> String {
    let file = file.trim_start_matches('/');
    let code = match error {
        Error::Io { source, .. } => source.raw_os_error(),
        Error::Invalid { .. } | Error::Absent { .. } => None,
    };
    if code == Some(Errno::ACCESS.raw_os_error()) {
        format!("only root may read /{file}")
    } else if code == Some(Errno::PERM.raw_os_error()) {
        format!("the kernel lets nobody read /{file}, as under lockdown")
    } else {
        error.to_string()
    }
}
