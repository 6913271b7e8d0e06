//! A packet capture, taken at the emulator.

use std::path::{Path, PathBuf};

use crate::error::Result;

/// A capture in progress; dropping it ends it. Every frame is in the file as soon as the emulator has seen it.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
}

impl Capture {
    /// The pcap file (Ethernet link type, nanosecond stamps).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the capture and says how many frames are in the file.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn finish(self) -> Result<u64> {
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}
