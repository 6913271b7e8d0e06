//! `viamesh key`

use std::path::Path;

use ed25519_dalek::VerifyingKey;
use serde_json::json;

use super::arguments::{Key, KeyCommand};
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::key::{self, KeyError};

pub(super) fn run(key: &Key, output: &mut Output) -> Result<Exit, Failure> {
    match &key.command {
        KeyCommand::Generate { out } => generate(out.as_deref(), output)?,
        KeyCommand::Public { file } => public(file, output)?,
        KeyCommand::Fingerprint { file } => fingerprint(file, output)?,
    }
    Ok(Exit::Done)
}

fn generate(out: Option<&Path>, output: &mut Output) -> Result<(), Failure> {
    let key = key::generate()?;
    let public = key.verifying_key();
    let Some(path) = out else {
        if output.json() {
            let message = "a private key in a JSON document would be in too many places";
            return Err(Failure::new(Exit::Usage, message).help("give a file with `--out`"));
        }
        return output.text(&key::private_pem(&key)?);
    };
    key::write_new(path, &key)?;
    let path = path.display();
    if output.json() {
        return output.document(&document(&path.to_string(), &public)?);
    }
    output.narrate(&format!(
        "wrote the private key {} to {path}, readable by its owner only",
        key::fingerprint(&public)
    ));
    output.narrate(&format!("`viamesh key public {path}` prints the block for the registry"));
    Ok(())
}

fn public(file: &Path, output: &mut Output) -> Result<(), Failure> {
    let public = key::load(file)?.verifying_key();
    if output.json() {
        return output.document(&document(&file.display().to_string(), &public)?);
    }
    output.text(&key::public_pem(&public)?)
}

fn fingerprint(file: &Path, output: &mut Output) -> Result<(), Failure> {
    for public in any_public(file)? {
        if output.json() {
            output.document(&document(&file.display().to_string(), &public)?)?;
        } else {
            output.line(&key::fingerprint(&public))?;
        }
    }
    Ok(())
}

/// The public halves of what `file` holds: one private key, or public ones.
fn any_public(file: &Path) -> Result<Vec<VerifyingKey>, Failure> {
    match key::load(file) {
        Ok(private) => Ok(vec![private.verifying_key()]),
        Err(error @ KeyError::Read { .. }) => Err(error.into()),
        Err(private) => {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            key::parse_public(&text).map_err(|_| private.into())
        }
    }
}

fn document(file: &str, public: &VerifyingKey) -> Result<serde_json::Value, Failure> {
    Ok(json!({
        "format": 1,
        "file": file,
        "fingerprint": key::fingerprint(public),
        "public_key": key::public_pem(public)?,
    }))
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        let (exit, help) = match &error {
            KeyError::Read { source, .. } | KeyError::Write { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                (Exit::NotPermitted, None)
            }
            KeyError::Write { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => (
                Exit::Failed,
                Some("an existing file is never overwritten; choose another name, or move it away"),
            ),
            KeyError::Private(_) => {
                (Exit::Failed, Some("`viamesh key generate --out FILE` makes a private key"))
            }
            _ => (Exit::Failed, None),
        };
        let failure = Self::new(exit, error.to_string());
        match help {
            Some(help) => failure.help(help),
            None => failure,
        }
    }
}
