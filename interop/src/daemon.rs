//! The program that tests with real daemons start.

use std::path::{Path, PathBuf};

/// The daemon under test: `VIAMESH_BIN`, or the one that was built beside this program.
///
/// # Panics
/// If it has not been built.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("VIAMESH_BIN") {
        return path.into();
    }
    let this =
        std::env::current_exe().unwrap_or_else(|error| panic!("which program runs this test: {error}"));
    let folder =
        this.parent().and_then(Path::parent).unwrap_or_else(|| panic!("{} has no folder", this.display()));
    let path = folder.join("viamesh");
    assert!(path.exists(), "{} is missing: `cargo build --bin viamesh` builds it", path.display());
    path
}
