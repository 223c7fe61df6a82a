//! The right to do what only pid 1 of a throw-away machine may do: mount over /dev and /tmp, kill
//! every process, power off. On the machine of a user who runs us as root each of these would be a
//! disaster, so the functions ask for this token, and only pid 1 gets it.

/// Proof that this process is pid 1.
#[derive(Debug)]
pub struct FirstProgram(());

impl FirstProgram {
    /// The token, if this process is pid 1.
    pub fn claim() -> Option<Self> {
        rustix::process::getpid().is_init().then_some(Self(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_not_pid_1() {
        // In a container it may be; then there is nothing to distinguish.
        assert_eq!(FirstProgram::claim().is_some(), std::process::id() == 1);
    }
}
