//! Where that is kept which takes minutes to make.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::{Result, Trying};

/// A folder outside the checkout: `$XDG_CACHE_HOME/viamesh`, by default `~/.cache/viamesh`.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The cache of this user.
    pub fn of_user() -> Self {
        let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
        Self { folder: base.unwrap_or_else(|| "/var/cache".into()).join("viamesh") }
    }

    /// A cache somewhere else.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Where an artefact is once it is complete: its name never belongs to anything half made.
    pub fn artefact(&self, kind: &str, name: &str, hash: &str) -> PathBuf {
        self.folder.join(kind).join(format!("{name}-{hash}"))
    }

    /// Makes an artefact unless it is there. `make` gets a path to build at that does not exist yet; the result is
    /// renamed into place. Whoever comes meanwhile, from another process too, waits and finds it made.
    ///
    /// # Errors
    /// What `make` says, or the kernel.
    pub fn ensure<E: From<crate::LabError>>(
        &self,
        artefact: &Path,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        if artefact.exists() {
            return Ok(());
        }
        let beside = |suffix: &str| {
            let mut name = artefact.file_name().unwrap_or_default().to_owned();
            name.push(suffix);
            artefact.with_file_name(name)
        };
        let folder = artefact.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(folder).trying(|| format!("creating {}", folder.display()))?;
        let lock = beside(".lock");
        let lock = File::create(&lock).trying(|| format!("creating {}", lock.display()))?;
        lock.lock().trying(|| "waiting for another process that makes the same".into())?;
        if artefact.exists() {
            return Ok(());
        }
        let partial = beside(".partial");
        discard(&partial)?;
        make(&partial)?;
        std::fs::rename(&partial, artefact).trying(|| format!("renaming {}", partial.display()))?;
        Ok(())
    }
}

/// Removes what an interrupted attempt left.
fn discard(path: &Path) -> Result<()> {
    let outcome = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(_) => return Ok(()),
    };
    outcome.trying(|| format!("removing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Cache;
    use crate::LabError;

    fn cache(name: &str) -> Cache {
        Cache::at(std::env::temp_dir().join(format!("viamesh-cache-{}-{name}", std::process::id())))
    }

    #[test]
    fn an_artefact_is_made_once_and_never_half() {
        let cache = cache("once");
        let artefact = cache.artefact("things", "thing", "0123");
        let failed: Result<(), LabError> = cache.ensure(&artefact, |path| {
            std::fs::create_dir_all(path.join("half")).unwrap();
            Err(LabError::Misuse("interrupted".into()))
        });
        assert!(failed.is_err() && !artefact.exists());
        let calls = Cell::new(0);
        for _ in 0..3 {
            let made: Result<(), LabError> = cache.ensure(&artefact, |path| {
                calls.set(calls.get() + 1);
                assert!(!path.exists(), "the rest of the first attempt is gone");
                std::fs::write(path, "whole").unwrap();
                Ok(())
            });
            made.unwrap();
        }
        assert_eq!((calls.get(), std::fs::read_to_string(&artefact).unwrap().as_str()), (1, "whole"));
        std::fs::remove_dir_all(cache.folder).unwrap();
    }

    #[test]
    fn two_at_once_make_it_once() {
        let cache = cache("twice");
        let artefact = cache.artefact("things", "thing", "4567");
        let calls = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let made: Result<(), LabError> = cache.ensure(&artefact, |path| {
                        calls.fetch_add(1, Ordering::SeqCst);
                        std::fs::create_dir(path).unwrap();
                        Ok(())
                    });
                    made.unwrap();
                });
            }
        });
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        std::fs::remove_dir_all(cache.folder).unwrap();
    }
}
