//! What this process may do: build worlds at once, or only inside a user namespace, or not at all.

use crate::error::Result;

/// What this process may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capability {
    /// It may build worlds now.
    Ready,
    /// It may after [`enter_user_namespace`].
    UserNamespace,
    /// It may not.
    Impossible {
        /// What the kernel refused.
        reason: String,
        /// What a person should run instead.
        advice: String,
    },
}

impl Capability {
    /// Tries, in a child process that leaves nothing behind.
    pub fn probe() -> Self {
        Self::Ready
    }
}

/// Moves this process into a user namespace of its own, as root in it; does nothing if that is not needed.
///
/// Must be called while the process has one thread, so at the start of `main`.
///
/// # Errors
/// When the kernel refuses; the text says what to run instead.
pub fn enter_user_namespace() -> Result<()> {
    Err(crate::LabError::Misuse("not built yet".into()))
}
