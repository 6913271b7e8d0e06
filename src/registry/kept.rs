//! The last good registry of a remote source, kept in the state directory.

use crate::config::registry_source::{RegistrySource, RemoteRegistry};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where it is kept.
#[derive(Debug, Clone)]
pub struct Kept {
    file: PathBuf,
    source: String,
}

#[derive(Serialize, Deserialize)]
struct Content {
    /// A copy of another source is no copy of this one.
    source: String,
    registry: RemoteRegistry,
}

impl Kept {
    /// The copy for a source.
    #[must_use]
    pub fn of(source: &RegistrySource, state_dir: &Path) -> Self {
        Self { file: state_dir.join("registry.json"), source: source.to_string() }
    }

    /// The copy, if there is one of this source.
    #[must_use]
    pub fn read(&self) -> Option<RemoteRegistry> {
        let content: Content = serde_json::from_slice(&std::fs::read(&self.file).ok()?).ok()?;
        (content.source == self.source).then_some(content.registry)
    }

    /// How long ago it was written.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        let written = std::fs::metadata(&self.file).ok()?.modified().ok()?;
        Some(SystemTime::now().duration_since(written).unwrap_or_default())
    }

    /// Keeps another one: complete or not at all.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn write(&self, registry: &RemoteRegistry) -> io::Result<()> {
        let content = Content { source: self.source.clone(), registry: registry.clone() };
        let new = self.file.with_extension("new");
        std::fs::write(&new, serde_json::to_vec(&content)?)?;
        std::fs::rename(&new, &self.file)
    }

    /// Whether `next` may follow what is kept: a source that was rolled back changes nothing.
    ///
    /// # Errors
    /// In words, if it may not.
    pub fn may_follow(&self, next: &RemoteRegistry) -> Result<(), String> {
        let Some(present) = self.read() else { return Ok(()) };
        if next.version < present.version {
            return Err(format!(
                "version {} is older than {}, which this node has: was the source rolled back?",
                next.version, present.version
            ));
        }
        let same = next.parts.iter().map(|(_, text)| text).eq(present.parts.iter().map(|(_, text)| text));
        if next.version == present.version && !same {
            return Err(format!("version {} has another content than before", next.version));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_newer_versions_follow() {
        let directory = std::env::temp_dir().join(format!("viamesh-kept-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let kept = Kept::of(&RegistrySource::Web("https://a.example/r".to_owned()), &directory);
        let registry =
            |version, text: &str| RemoteRegistry { version, parts: vec![("r".into(), text.into())] };
        assert_eq!(kept.read(), None);
        assert!(kept.may_follow(&registry(5, "a")).is_ok());
        kept.write(&registry(5, "a")).unwrap();
        assert_eq!(kept.read(), Some(registry(5, "a")));
        assert!(kept.may_follow(&registry(5, "a")).is_ok() && kept.may_follow(&registry(6, "b")).is_ok());
        assert!(kept.may_follow(&registry(5, "b")).is_err() && kept.may_follow(&registry(4, "a")).is_err());
        let other = Kept::of(&RegistrySource::Web("https://b.example/r".to_owned()), &directory);
        assert_eq!(other.read(), None);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
