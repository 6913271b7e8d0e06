//! What survives a restart: Babel's sequence number.

use std::io;
use std::path::{Path, PathBuf};

/// The file with the sequence number.
pub(super) struct SeqnoFile(PathBuf);

impl SeqnoFile {
    /// In the daemon's state directory, which is made if it is not there.
    pub(super) fn new(state_dir: &Path) -> Self {
        // Without the directory writing will fail, and that is reported.
        let _ = std::fs::create_dir_all(state_dir);
        Self(state_dir.join("babel-seqno"))
    }

    /// The number of the last run; `None` if there is none, or none that can be read.
    pub(super) fn read(&self) -> Option<u16> {
        std::fs::read_to_string(&self.0).ok()?.trim().parse().ok()
    }

    /// Keep a number: complete or not at all, whenever the power goes.
    pub(super) fn write(&self, seqno: u16) -> io::Result<()> {
        let new = self.0.with_extension("new");
        std::fs::write(&new, format!("{seqno}\n"))?;
        std::fs::rename(&new, &self.0)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}
