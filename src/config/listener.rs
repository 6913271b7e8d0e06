//! Where the daemon serves what browsers and collectors read: loopback, or a Unix socket. Never the network: what is
//! served has no password.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::json;

use super::scalar::{Scalar, Wrong};

/// A place to listen for HTTP.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Listener {
    /// A loopback address and a port.
    Loopback(SocketAddr),
    /// A Unix socket, by its absolute path.
    Unix(PathBuf),
}

impl fmt::Display for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback(address) => write!(formatter, "{address}"),
            Self::Unix(path) => write!(formatter, "{}", path.display()),
        }
    }
}

impl Scalar for Listener {
    const NOUN: &'static str =
        "a loopback address and port such as 127.0.0.1:9586, or the path of a Unix socket";

    fn parse(text: &str) -> Result<Self, Wrong> {
        if text.starts_with('/') {
            return Ok(Self::Unix(PathBuf::from(text)));
        }
        let address: SocketAddr = text.parse().map_err(|_| Wrong::because("cannot be read as one"))?;
        if address.ip().is_loopback() {
            return Ok(Self::Loopback(address));
        }
        let help = format!(
            "write `127.0.0.1:{}`, and let a proxy that asks for a password, or `ssh -L`, bring it further",
            address.port()
        );
        Err(Wrong::because("others could reach it, and it asks for no password").help(help))
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_host_can_reach_it() {
        for good in ["127.0.0.1:9586", "[::1]:80", "/run/viamesh/page.sock"] {
            assert_eq!(Listener::parse(good).ok().map(|read| read.to_string()), Some(good.to_owned()));
        }
        for wrong in ["0.0.0.0:9586", "10.0.0.1:9586", "[::]:1", "127.0.0.1", "localhost:1", "", "page.sock"]
        {
            assert!(Listener::parse(wrong).is_err(), "{wrong}");
        }
    }
}
