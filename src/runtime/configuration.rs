//! Which configuration the daemon runs on: loading another, keeping the one before, and changes on trial.

use crate::config::load::{Host as _, System};
use crate::config::overlay::Overlay;
use crate::config::registry_source::RemoteRegistry;
use crate::config::{Request, Settings, Severity};
use crate::control::Responder;
use crate::control::protocol::{NodeText, Refusal};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Exit code of commands whose configuration is invalid (`EX_CONFIG`).
const BAD_CONFIGURATION: u8 = 78;

/// Why a configuration is loaded.
pub(super) enum Purpose {
    /// The files changed. Without a responder a signal or a source said so.
    Reload(Option<Responder>),
    /// The registry changed: at a remote source, into this.
    Registry(Option<RemoteRegistry>),
    /// Somebody only asks what would change.
    Plan(Responder),
    /// Somebody sends another node file; with a time, on trial.
    Apply(Responder, Option<Duration>),
    /// Somebody wants the node file before.
    Undo(Responder),
    /// A trial ended without confirmation, or by `undo`.
    Revert(Option<Responder>),
}

impl Purpose {
    /// Who waits for the answer.
    pub(super) fn into_responder(self) -> Option<Responder> {
        match self {
            Self::Registry(_) => None,
            Self::Reload(responder) | Self::Revert(responder) => responder,
            Self::Plan(responder) | Self::Apply(responder, _) | Self::Undo(responder) => Some(responder),
        }
    }
}

/// A configuration that was loaded.
pub(super) struct Candidate {
    pub(super) settings: Settings,
    pub(super) warnings: u64,
}

/// The end of a load.
pub(super) struct Loaded {
    pub(super) purpose: Purpose,
    /// The node file.
    pub(super) text: String,
    pub(super) result: Result<Candidate, Refusal>,
}

/// A change that is undone unless it is confirmed.
pub(super) struct Trial {
    /// The node file on trial.
    pub(super) text: String,
    pub(super) deadline: Instant,
    /// To go back to if the files cannot be used any more.
    pub(super) previous: Settings,
}

/// What the daemon knows of its configuration.
pub(super) struct Configuration {
    request: Request,
    /// The node file that is in force.
    text: String,
    history: History,
    /// Whether a load is under way.
    busy: bool,
    pub(super) trial: Option<Trial>,
    results: mpsc::Sender<Loaded>,
}

impl Configuration {
    /// The configuration of a daemon that has just loaded `request`. Returns where loads end, too.
    pub(super) fn new(request: Request, state_dir: &Path) -> (Self, mpsc::Receiver<Loaded>) {
        let (results, loaded) = mpsc::channel(4);
        let history = History { directory: state_dir.to_owned() };
        let text = std::fs::read_to_string(&request.node).unwrap_or_default();
        if !text.is_empty() {
            history.note(&text);
        }
        (Self { request, text, history, busy: false, trial: None, results }, loaded)
    }

    /// Where the node file is.
    pub(super) fn file(&self) -> &Path {
        &self.request.node
    }

    /// Load the files, or `file` in the place of the node file, beside the control loop.
    ///
    /// # Errors
    /// The purpose, if a load is under way.
    pub(super) fn load(&mut self, purpose: Purpose, file: Option<NodeText>) -> Result<(), Purpose> {
        if self.busy {
            return Err(purpose);
        }
        self.busy = true;
        let (request, results) = (self.request.clone(), self.results.clone());
        let (file, registry) = match &purpose {
            // Of the node file counts what is in force, whatever somebody may be editing.
            Purpose::Registry(registry) => {
                let name = request.node.display().to_string();
                (Some(NodeText { name, text: self.text.clone() }), registry.clone())
            }
            _ => (file, None),
        };
        tokio::task::spawn_blocking(move || {
            let (text, result) = load(&request, file, registry.as_ref());
            // Nobody listens only when the daemon is stopping.
            let _ = results.blocking_send(Loaded { purpose, text, result });
        });
        Ok(())
    }

    /// A load has ended.
    pub(super) fn finished(&mut self) {
        self.busy = false;
    }

    /// The daemon runs on this node file now.
    pub(super) fn runs_on(&mut self, text: &str) {
        text.clone_into(&mut self.text);
    }

    /// What the daemon runs on is what the node file says.
    pub(super) fn note(&self, text: &str) {
        self.history.note(text);
    }

    /// Put `text` into the place of the node file: whole or not at all.
    pub(super) fn install(&self, text: &str) -> io::Result<()> {
        // A link stays a link.
        let path = std::fs::canonicalize(&self.request.node)?;
        replace(&path, text)?;
        self.history.note(text);
        Ok(())
    }

    /// The node file before the present one.
    pub(super) fn previous(&self) -> Option<NodeText> {
        let text = std::fs::read_to_string(self.history.previous()).ok()?;
        Some(NodeText { name: "the node file before".to_owned(), text })
    }
}

/// The node files that were in force last, in the state directory.
struct History {
    directory: PathBuf,
}

impl History {
    fn present(&self) -> PathBuf {
        self.directory.join("node.yaml.present")
    }

    fn previous(&self) -> PathBuf {
        self.directory.join("node.yaml.previous")
    }

    /// What was present becomes the one before, unless it is the same. Without a state directory there is no way
    /// back, and `undo` says so.
    fn note(&self, text: &str) {
        let before = std::fs::read_to_string(self.present()).ok();
        if before.as_deref() == Some(text) {
            return;
        }
        let kept = before.map_or(Ok(()), |before| replace(&self.previous(), &before));
        if let Err(error) = kept.and_then(|()| replace(&self.present(), text)) {
            tracing::debug!(target: "viamesh::config", "cannot keep the node file for `undo`: {error}");
        }
    }
}

/// Write a file anew, complete or not at all, with the permissions that it had.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    std::fs::write(&new, text)?;
    if let Ok(metadata) = std::fs::metadata(path) {
        std::fs::set_permissions(&new, metadata.permissions())?;
    }
    std::fs::File::open(&new)?.sync_all()?;
    std::fs::rename(&new, path)
}

fn load(
    request: &Request,
    file: Option<NodeText>,
    registry: Option<&RemoteRegistry>,
) -> (String, Result<Candidate, Refusal>) {
    let file = file.or_else(|| {
        // Read once, so that what is kept is what was checked. What cannot be read is reported by the load.
        let text = String::from_utf8(System.read(&request.node).ok()?).ok()?;
        Some(NodeText { name: request.node.display().to_string(), text })
    });
    let loaded = match &file {
        Some(NodeText { name, text }) => crate::config::load(
            request,
            &Overlay { file: &request.node, text, name, registry, host: &System },
        ),
        None => crate::config::load(request, &System),
    };
    let warnings = loaded.diagnostics.count(Severity::Warning) as u64;
    let result = match loaded.settings {
        Some(settings) => Ok(Candidate { settings, warnings }),
        None => {
            let mut refusal =
                Refusal::new(BAD_CONFIGURATION, "the configuration cannot be used: nothing has changed");
            refusal.details = Some(loaded.diagnostics.render(false));
            Err(refusal)
        }
    };
    (file.map(|file| file.text).unwrap_or_default(), result)
}
