//! Changes of the registry that nobody asked for: they pass every check, or change nothing.

use super::configuration::Purpose;
use super::control_loop::ControlLoop;
use crate::config::registry_source::RegistryPlace;
use crate::config::registry_source::{RegistrySource, RemoteRegistry};
use crate::control::Reply;
use crate::registry::{Kept, News, SourceError, Watcher};
use crate::telemetry::{Health, HealthCode};
use tokio::sync::mpsc;

/// What the control loop knows of the registry's source.
pub(super) struct RegistryFollower {
    /// What is being followed.
    place: Option<RegistryPlace>,
    watcher: Option<Watcher>,
    sender: mpsc::Sender<(RegistrySource, News)>,
    pub(super) trouble: Option<Health>,
}

impl RegistryFollower {
    /// Nothing is followed yet. Returns where news arrive, too.
    pub(super) fn new() -> (Self, mpsc::Receiver<(RegistrySource, News)>) {
        let (sender, news) = mpsc::channel(4);
        (Self { place: None, watcher: None, sender, trouble: None }, news)
    }
}

impl ControlLoop {
    /// Follow the source that the settings name, if it is another than before.
    pub(super) fn follow_registry(&mut self) {
        let place = self.node.settings().registry.clone();
        if self.registry.place.as_ref() == Some(&place) {
            return;
        }
        self.registry.watcher = None;
        self.registry.trouble = None;
        if place.watch {
            let (sender, source) = (self.registry.sender.clone(), place.source.clone());
            // Without room the thread waits: it has nothing else to do.
            let tell = move |news| drop(sender.blocking_send((source.clone(), news)));
            match Watcher::start(place.clone(), tell) {
                Ok(watcher) => self.registry.watcher = Some(watcher),
                Err(error) => {
                    let text = format!("cannot follow it: {error}");
                    self.registry_trouble(HealthCode::RegistryUnreachable, &text);
                }
            }
        }
        self.registry.place = Some(place);
    }

    /// The source says something.
    pub(super) fn take_registry_news(&mut self, source: &RegistrySource, news: News) {
        if self.registry.place.as_ref().is_none_or(|place| place.source != *source) {
            return;
        }
        match news {
            News::Files => self.load(Purpose::Registry(None), None),
            News::Same => self.registry_is_fine(),
            News::Trouble(SourceError::Unreachable(text)) => {
                self.registry_trouble(HealthCode::RegistryUnreachable, &text);
            }
            News::Trouble(SourceError::Refused(text)) => {
                self.registry_trouble(HealthCode::RegistryRefused, &text);
            }
            News::Registry(registry) => self.take_registry(registry),
        }
    }

    fn take_registry(&mut self, registry: RemoteRegistry) {
        let kept = self.kept();
        match kept.may_follow(&registry) {
            Err(reason) => self.registry_trouble(HealthCode::RegistryRefused, &reason),
            Ok(()) if kept.read().as_ref() == Some(&registry) => self.registry_is_fine(),
            Ok(()) => self.load(Purpose::Registry(Some(registry)), None),
        }
    }

    /// A registry passed every check and is in force.
    pub(super) fn registry_in_force(&mut self, registry: Option<&RemoteRegistry>) {
        self.registry_is_fine();
        if let Some(registry) = registry
            && let Err(error) = self.kept().write(registry)
        {
            tracing::warn!(target: "viamesh::config", "cannot keep the registry for a restart: {error}");
        }
    }

    fn registry_is_fine(&mut self) {
        if self.registry.trouble.take().is_some() {
            tracing::info!(target: "viamesh::config", "the registry's source is fine again");
            self.update_health();
        }
    }

    /// The source cannot be used; everything stays as it is.
    pub(super) fn registry_trouble(&mut self, code: HealthCode, reason: &str) {
        let source = self.node.settings().registry.source.to_string();
        let text = format!("the registry at {source} is not used: {reason}");
        let next_step = "the last good one stays in force; `viamesh registry` shows it";
        let trouble = Health::new(code, source, text, next_step);
        if self.registry.trouble.as_ref() != Some(&trouble) {
            tracing::warn!(target: "viamesh::config", code = trouble.code, "{}", trouble.text);
            self.registry.trouble = Some(trouble);
            self.update_health();
        }
    }

    fn kept(&self) -> Kept {
        let settings = self.node.settings();
        Kept::of(&settings.registry.source, &settings.state_dir)
    }

    /// A report on the registry tells which version is in force and how old it is, too.
    pub(super) fn with_version(&self, mut reply: Reply) -> Reply {
        if let Reply::Registry(report) = &mut reply {
            let age = match &self.node.settings().registry.source {
                RegistrySource::Path(path) => {
                    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
                    modified.ok().and_then(|at| at.elapsed().ok())
                }
                _ => {
                    report.version = self.kept().read().map(|kept| kept.version);
                    self.kept().age()
                }
            };
            report.age_seconds = age.map(|age| age.as_secs());
        }
        reply
    }
}
