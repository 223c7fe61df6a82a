//! Programs that keep a machine busy beside what is measured.

use super::Failed;
use std::process::{Child, Command, Stdio};

/// Processes that die with this value.
pub(crate) struct Load(Vec<Child>);

impl Load {
    /// Starts them: each a name and its arguments. They read and print nothing.
    pub(crate) fn start(programs: &[&[&str]]) -> Result<Self, Failed> {
        let mut load = Self(Vec::new());
        for program in programs {
            let mut command = Command::new(program[0]);
            command.args(&program[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let failed = |error| Failed(format!("cannot run {}: {error}", program[0]));
            load.0.push(command.spawn().map_err(failed)?);
        }
        Ok(load)
    }

    /// Waits until all have ended by themselves.
    pub(crate) fn wait(mut self) -> Result<(), Failed> {
        let ended: Vec<_> = self.0.iter_mut().map(Child::wait).collect();
        for status in ended {
            let status = status.map_err(Failed::because)?;
            if !status.success() {
                return Err(Failed(format!("the load: {status}")));
            }
        }
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
