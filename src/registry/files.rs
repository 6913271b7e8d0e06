//! A registry in several files of one directory.

use std::io;
use std::path::{Path, PathBuf};

/// The files of a directory that belong to the registry, by name: `*.yaml`, `*.yml` and `*.json`.
///
/// # Errors
/// Whatever the system says.
pub fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if is_part(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file of this name is read. Editors' own files begin with a dot.
pub(super) fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = path.extension().and_then(|extension| extension.to_str());
    !name.starts_with('.') && matches!(extension, Some("yaml" | "yml" | "json"))
}
