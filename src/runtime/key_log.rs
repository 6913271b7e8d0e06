//! Key material for packet analysers, if a person asked for it.

use ikev2::KeyLogTable;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The two files of a key log, in the formats of Wireshark's tables `ikev2_decryption_table` and `esp_sa`.
pub(super) struct KeyLog {
    ike: File,
    esp: File,
}

impl KeyLog {
    /// Opens `path` for the keys of IKE SAs and `path` with `.esp` behind it for those of CHILD SAs.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { ike: append(path)?, esp: append(&esp_path(path))? })
    }

    /// Adds a line.
    pub(super) fn write(&mut self, table: KeyLogTable, line: &str) -> io::Result<()> {
        let file = match table {
            KeyLogTable::Ike => &mut self.ike,
            KeyLogTable::Esp => &mut self.esp,
        };
        writeln!(file, "{line}")
    }
}

/// Where the keys of CHILD SAs go.
pub(super) fn esp_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".esp");
    PathBuf::from(name)
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}
