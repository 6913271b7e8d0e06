//! One case of a matrix.

use libtest_mimic::Trial;

/// Whether the whole matrices are asked for, and not a sample.
pub(crate) fn is_full() -> bool {
    std::env::var("VIAMESH_FULL").is_ok_and(|value| value == "1")
}

/// A case: it fails by panicking.
pub(crate) struct Case {
    name: String,
    run: Box<dyn FnOnce() + Send>,
}

impl Case {
    /// `peer` is what `cargo xtask interop PEER` selects it by; `name` says what is tried.
    pub(crate) fn new(peer: &str, name: impl AsRef<str>, run: impl FnOnce() + Send + 'static) -> Self {
        Self { name: format!("{peer}/{}", name.as_ref()), run: Box::new(run) }
    }

    /// Peer and what is tried.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn into_trial(self) -> Trial {
        let run = self.run;
        Trial::test(self.name, move || {
            run();
            Ok(())
        })
    }
}
