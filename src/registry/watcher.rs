//! A thread that follows the registry's source and tells when there is something new.

use super::http::Client;
use super::{SourceError, etcd, files, web};
use crate::config::registry_source::{RegistryPlace, RegistrySource, RemoteRegistry};
use ed25519_dalek::VerifyingKey;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Changes that follow each other faster count as one: an editor writes more than once.
const SETTLING: Duration = Duration::from_millis(300);

/// How often a thread looks whether it shall end.
const NAP: Duration = Duration::from_millis(500);

/// The pause before a source is asked again, doubled with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause before an unreachable source is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What a source says.
#[derive(Debug, Clone)]
pub enum News {
    /// Files have changed.
    Files,
    /// Another registry.
    Registry(RemoteRegistry),
    /// It answers, and has nothing new.
    Same,
    /// It cannot be used now.
    Trouble(SourceError),
}

/// Follows a source until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    stop: Arc<AtomicBool>,
}

impl Watcher {
    /// Starts to follow. `tell` is called from a thread; it must not block for long.
    ///
    /// # Errors
    /// When there is no thread or no inotify to be had.
    pub fn start(place: RegistryPlace, tell: impl Fn(News) + Send + 'static) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let follower = Follower { stopped, tell: Box::new(tell), client: Client::new(&place) };
        let RegistryPlace { source, key, interval, .. } = place;
        let inotify = match &source {
            RegistrySource::Path(path) => Some(watch_directory(path)?),
            _ => None,
        };
        std::thread::Builder::new().name("registry".to_owned()).spawn(move || match (source, inotify) {
            (RegistrySource::Path(path), Some(inotify)) => follower.follow_files(&path, &inotify),
            (RegistrySource::Web(address), _) => follower.follow_web(&address, key.as_ref(), interval),
            (RegistrySource::Etcd { endpoint, prefix }, _) => follower.follow_etcd(&endpoint, &prefix),
            (RegistrySource::Path(_), None) => {}
        })?;
        Ok(Self { stop })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // A thread that waits for an answer ends when it comes, and says nothing any more.
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The directory is watched, not the file: editors and tools put a new file into the place of the old one.
fn watch_directory(path: &Path) -> std::io::Result<Inotify> {
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("/")) };
    let what = AddWatchFlags::IN_CLOSE_WRITE
        | AddWatchFlags::IN_MOVED_TO
        | AddWatchFlags::IN_MOVED_FROM
        | AddWatchFlags::IN_DELETE;
    inotify.add_watch(directory, what)?;
    Ok(inotify)
}

struct Follower {
    stopped: Arc<AtomicBool>,
    tell: Box<dyn Fn(News) + Send>,
    client: Client,
}

impl Follower {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn say(&self, news: News) {
        if !self.is_stopped() {
            (self.tell)(news);
        }
    }

    /// Sleeps; `false` if it shall end.
    fn pause(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.is_stopped() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(NAP));
        }
        false
    }

    fn follow_files(&self, path: &Path, inotify: &Inotify) {
        let directory = path.is_dir();
        let mut changed_at: Option<Instant> = None;
        while !self.is_stopped() {
            let wait = changed_at.map_or(NAP, |at| SETTLING.saturating_sub(at.elapsed()));
            let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
            let mut descriptors = [PollFd::new(inotify.as_fd(), PollFlags::POLLIN)];
            // Interrupted or not, what there is to read is read next.
            let _ = nix::poll::poll(&mut descriptors, timeout);
            let ours = |name: &Path| {
                if directory { files::is_part(name) } else { Some(name.as_os_str()) == path.file_name() }
            };
            let events = inotify.read_events().unwrap_or_default();
            if events.iter().filter_map(|event| event.name.as_ref()).any(|name| ours(Path::new(name))) {
                changed_at = Some(Instant::now());
            }
            if changed_at.is_some_and(|at| at.elapsed() >= SETTLING) {
                changed_at = None;
                self.say(News::Files);
            }
        }
    }

    fn follow_web(&self, address: &str, key: Option<&VerifyingKey>, interval: Duration) {
        let mut etag: Option<String> = None;
        loop {
            match web::fetch(&self.client, address, key, etag.as_deref()) {
                Ok(Some((registry, new))) => {
                    etag = new;
                    self.say(News::Registry(registry));
                }
                Ok(None) => self.say(News::Same),
                Err(error) => {
                    // Registry and signature may just be changing, one after the other: look at both again.
                    etag = None;
                    self.say(News::Trouble(error));
                }
            }
            if !self.pause(interval) {
                return;
            }
        }
    }

    fn follow_etcd(&self, endpoint: &str, prefix: &str) {
        let mut failures = 0u32;
        loop {
            match etcd::read(&self.client, endpoint, prefix) {
                Ok(registry) => {
                    failures = 0;
                    let since = registry.version;
                    self.say(News::Registry(registry));
                    let changed = || {
                        match etcd::read(&self.client, endpoint, prefix) {
                            Ok(registry) => self.say(News::Registry(registry)),
                            Err(error) => self.say(News::Trouble(error)),
                        }
                        !self.is_stopped()
                    };
                    // A watch ends for many reasons, none of which is trouble as long as reading works.
                    let _ = etcd::watch(&self.client, endpoint, prefix, since, changed);
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.say(News::Trouble(error));
                }
            }
            if !self.pause((FIRST_PAUSE * (1 << failures.min(6))).min(LONGEST_PAUSE)) {
                return;
            }
        }
    }
}
