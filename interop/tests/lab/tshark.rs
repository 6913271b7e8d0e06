//! A judge who shares no code with us: tshark, with the keys that the daemons logged.

use lab::Host;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scene::PATIENCE;

/// tshark with the keys of a capture.
pub(crate) struct Judge<'a> {
    host: &'a Host,
    config: PathBuf,
    capture: PathBuf,
    port: u16,
}

impl<'a> Judge<'a> {
    /// Gives it the key logs of all nodes, in a configuration folder of its own.
    pub(crate) fn new(
        host: &'a Host,
        directory: &Path,
        keylogs: &[PathBuf],
        capture: &Path,
        port: u16,
    ) -> Self {
        let config = directory.join("wireshark");
        std::fs::create_dir_all(&config).unwrap();
        // Both ends of a tunnel log the same keys.
        let table = |extension: &str| {
            let lines: BTreeSet<String> =
                keylogs.iter().flat_map(|path| lines(&format!("{}{extension}", path.display()))).collect();
            assert!(!lines.is_empty(), "no keys in {keylogs:?}");
            lines.into_iter().fold(String::new(), |text, line| text + &line + "\n")
        };
        std::fs::write(config.join("ikev2_decryption_table"), table("")).unwrap();
        std::fs::write(config.join("esp_sa"), table(".esp")).unwrap();
        Self { host, config, capture: capture.to_owned(), port }
    }

    /// The keys of ESP that it has, for messages about a failure.
    pub(crate) fn esp_keys(&self) -> String {
        std::fs::read_to_string(self.config.join("esp_sa")).unwrap()
    }

    /// The fields of all frames that match a display filter; several values of a field are joined by commas.
    pub(crate) fn fields(&self, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
        let mut command = Command::new("tshark");
        command.env("WIRESHARK_CONFIG_DIR", &self.config).arg("-r").arg(&self.capture);
        command.arg("-d").arg(format!("udp.port=={},udpencap", self.port));
        command.args(["-o", "esp.enable_encryption_decode:TRUE", "-Y", filter, "-T", "fields"]);
        for field in fields {
            command.args(["-e", field]);
        }
        let output = self.host.run(command, PATIENCE).unwrap().successful().unwrap();
        output.stdout.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }
}

fn lines(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().map(str::to_owned).collect()
}
