//! `viamesh init`: a key, a commented node file, and the block for the registry.

mod answers;
mod texts;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;
use serde_json::json;

use super::arguments::Init;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::load::{Host, System};
use crate::config::{Request, key};

pub(super) fn run(init: &Init, output: &mut Output) -> Result<Exit, Failure> {
    let paths = Paths::in_directory(&init.dir);
    paths.refuse_existing()?;
    let answers = answers::collect(init, output)?;
    let key = key::generate()?;
    let block = texts::registry_block(&answers, &key::public_pem(&key.verifying_key())?);
    let node = texts::node_file(&answers);
    let writes_registry = !paths.registry.exists();
    let registry = writes_registry.then_some(block.as_str());
    verify(&paths, &node, &block, &key)?;
    write_all(&paths, &node, registry, &key)?;
    if output.json() {
        output.document(&json!({
            "format": 1,
            "private_key": paths.key.display().to_string(),
            "node_file": paths.node.display().to_string(),
            "registry": paths.registry.display().to_string(),
            "registry_written": writes_registry,
            "fingerprint": key::fingerprint(&key.verifying_key()),
            "registry_block": block,
        }))?;
    } else {
        output.narrate(&texts::farewell(&answers, &paths, writes_registry));
        output.text(&block)?;
    }
    Ok(Exit::Done)
}

/// The files of a node.
struct Paths {
    directory: PathBuf,
    key: PathBuf,
    node: PathBuf,
    registry: PathBuf,
}

impl Paths {
    fn in_directory(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            key: directory.join("node.pem"),
            node: directory.join("node.yaml"),
            registry: directory.join("registry.yaml"),
        }
    }

    /// Nothing is overwritten, and nothing half done: this is asked before anything is written.
    fn refuse_existing(&self) -> Result<(), Failure> {
        let Some(path) = [&self.key, &self.node].into_iter().find(|path| path.symlink_metadata().is_ok())
        else {
            return Ok(());
        };
        let failure = Failure::new(Exit::Failed, format!("{} exists already", path.display()));
        Err(failure.help(
            "an existing file is never overwritten; move it away, or choose another directory with `--dir`",
        ))
    }
}

/// The files as they are going to be.
struct Draft<'a> {
    paths: &'a Paths,
    node: &'a str,
    registry: &'a str,
    key: &'a SigningKey,
}

impl Host for Draft<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let text = if path == self.paths.node {
            self.node.to_owned()
        } else if path == self.paths.registry {
            self.registry.to_owned()
        } else if path == self.paths.key {
            key::private_pem(self.key).map_err(io::Error::other)?.to_string()
        } else {
            return Err(io::ErrorKind::NotFound.into());
        };
        Ok(text.into_bytes())
    }

    fn mode(&self, _: &Path) -> Option<u32> {
        Some(0o600)
    }

    fn has_ipv6(&self) -> bool {
        System.has_ipv6()
    }
}

/// Refuses answers that `check` would refuse, before anything is written.
fn verify(paths: &Paths, node: &str, registry: &str, key: &SigningKey) -> Result<(), Failure> {
    let draft = Draft { paths, node, registry, key };
    let request = Request { node: paths.node.clone(), ..Request::default() };
    let loaded = crate::config::load(&request, &draft);
    match loaded.settings {
        Some(_) => Ok(()),
        None => {
            let found = loaded.diagnostics.render(false);
            Err(Failure::new(
                Exit::Failed,
                format!("these answers make no configuration:\n\n{}", found.trim_end()),
            ))
        }
    }
}

fn write_all(paths: &Paths, node: &str, registry: Option<&str>, key: &SigningKey) -> Result<(), Failure> {
    std::fs::create_dir_all(&paths.directory).map_err(|error| cannot_write(&paths.directory, &error))?;
    key::write_new(&paths.key, key)?;
    let written = write_new(&paths.node, node)
        .and_then(|()| registry.map_or(Ok(()), |text| write_new(&paths.registry, text)));
    if written.is_err() {
        // Leave nothing behind that would be in the way of the next try; the key has been nowhere yet.
        let _ = std::fs::remove_file(&paths.key);
        let _ = std::fs::remove_file(&paths.node);
    }
    written
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let denied = error.kind() == io::ErrorKind::PermissionDenied;
    let exit = if denied { Exit::NotPermitted } else { Exit::Failed };
    let failure = Failure::new(exit, format!("cannot write {}: {}", path.display(), key::reason(error)));
    if denied { failure.help("run it as root, or choose a directory of yours with `--dir`") } else { failure }
}
