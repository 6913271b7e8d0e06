//! Where the registry comes from: what `registry` in the node file may say.

use ed25519_dalek::VerifyingKey;
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A place that has the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrySource {
    /// A file, or a directory with several.
    Path(PathBuf),
    /// A web address. What it serves must be signed.
    Web(String),
    /// Keys in etcd, each with a part of the registry.
    Etcd {
        /// `http://host:port` or `https://host:port`, of the JSON gateway of its version 3 interface.
        endpoint: String,
        /// What the keys begin with.
        prefix: String,
    },
}

/// Where the registry comes from, and how changes of it are noticed.
#[derive(Clone, Debug, PartialEq)]
pub struct RegistryPlace {
    /// File, directory, web address or etcd.
    pub source: RegistrySource,
    /// Who must have signed it, on the web.
    pub key: Option<VerifyingKey>,
    /// Certificates of the authorities that may vouch for an `https` or `etcds` server; those of the system if empty.
    pub authorities: Vec<CertificateDer<'static>>,
    /// How often the web is asked.
    pub interval: Duration,
    /// Whether changes act by themselves.
    pub watch: bool,
}

impl Default for RegistryPlace {
    fn default() -> Self {
        Self {
            source: RegistrySource::Path("/etc/viamesh/registry.yaml".into()),
            key: None,
            authorities: Vec::new(),
            interval: Duration::from_secs(60),
            watch: true,
        }
    }
}

impl RegistrySource {
    /// Understands what the node file says. Relative paths start at `directory`.
    ///
    /// # Errors
    /// In words.
    pub fn parse(text: &str, directory: &Path) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Path(directory.join(text)));
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err("the host is missing".to_owned());
        }
        let etcd = |web: &str| {
            if path.is_empty() {
                return Err("the key is missing: write `etcd://HOST:2379/KEY`".to_owned());
            }
            let host = if has_port(host) { host.to_owned() } else { format!("{host}:2379") };
            Ok(Self::Etcd { endpoint: format!("{web}://{host}"), prefix: path.to_owned() })
        };
        match scheme {
            "http" | "https" => Ok(Self::Web(text.to_owned())),
            "etcd" => etcd("http"),
            "etcds" => etcd("https"),
            _ => Err(format!("`{scheme}` is no source: write a path, `https://` or `etcds://`")),
        }
    }

    /// Whether it is on another host, so that a copy is kept here.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        !matches!(self, Self::Path(_))
    }
}

fn has_port(host: &str) -> bool {
    host.rsplit(']').next().is_some_and(|rest| rest.contains(':'))
}

impl fmt::Display for RegistrySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(formatter),
            Self::Web(address) => formatter.write_str(address),
            Self::Etcd { endpoint, prefix } => {
                let endpoint = endpoint.replacen("http", "etcd", 1);
                write!(formatter, "{endpoint}/{prefix}")
            }
        }
    }
}

/// The registry of a source that is on another host.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RemoteRegistry {
    /// Grows with every change at the source: an older one is never taken for a newer one.
    pub version: u64,
    /// Its parts: what messages call each, and its text.
    pub parts: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RegistrySource, String> {
        RegistrySource::parse(text, Path::new("/etc/viamesh"))
    }

    #[test]
    fn sources_are_told_apart() {
        assert_eq!(parse("registry.yaml"), Ok(RegistrySource::Path("/etc/viamesh/registry.yaml".into())));
        assert_eq!(parse("/srv/registry.d"), Ok(RegistrySource::Path("/srv/registry.d".into())));
        let web = parse("http://example.org/registry.yaml").unwrap();
        assert_eq!(web.to_string(), "http://example.org/registry.yaml");
        let etcd = parse("etcd://[2001:db8::1]/viamesh/").unwrap();
        let endpoint = "http://[2001:db8::1]:2379".to_owned();
        assert_eq!(etcd, RegistrySource::Etcd { endpoint, prefix: "viamesh/".to_owned() });
        let etcd = parse("etcd://etcd.example:4000/mesh").unwrap();
        assert_eq!(etcd.to_string(), "etcd://etcd.example:4000/mesh");
        let etcd = parse("etcds://etcd.example/mesh").unwrap();
        assert_eq!(etcd.to_string(), "etcds://etcd.example:2379/mesh");
        for wrong in ["consul://host/x", "http:///x", "etcd://host", "etcds://host"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
