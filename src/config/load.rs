//! From files to settings: reads the node file, the registry and the key, and collects what is wrong with them.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ed25519_dalek::VerifyingKey;
use zeroize::Zeroizing;

use super::code::Code;
use super::credentials;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::key;
use super::node_file::NodeFile;
use super::record::{Field, FromYaml};
use super::registry_file::RegistryFile;
use super::registry_source::{RegistryPlace, RegistrySource, RemoteRegistry};
use super::resolve;
use super::resolve::authority;
use super::settings::{NodeName, Settings};
use super::source::SourceId;
use super::yaml;

/// Which files to load; what is `None` stands in the node file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The node file.
    pub node: PathBuf,
    /// `--registry`.
    pub registry: Option<PathBuf>,
    /// `--key`.
    pub private_key: Option<PathBuf>,
    /// `--socket`.
    pub control_socket: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug)]
pub struct Loaded {
    /// The settings, unless there were errors.
    pub settings: Option<Settings>,
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
}

/// The host that files are read on; a test has its own.
pub trait Host {
    /// The content of a file.
    ///
    /// # Errors
    /// Whatever the system says; `FileTooLarge` beyond 16 MiB.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Permission bits of a file.
    fn mode(&self, path: &Path) -> Option<u32>;

    /// Whether the host speaks IPv6 at all.
    fn has_ipv6(&self) -> bool;

    /// The files of a directory that hold parts of a registry; `None` if it is no directory.
    ///
    /// # Errors
    /// Whatever the system says.
    fn parts(&self, _path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        Ok(None)
    }

    /// The registry of a source on another host.
    ///
    /// # Errors
    /// In words.
    fn remote(&self, place: &RegistryPlace, _state_dir: &Path) -> Result<RemoteRegistry, String> {
        Err(format!("{} is on another host", place.source))
    }

    /// What messages call a file.
    fn name(&self, path: &Path) -> String {
        path.display().to_string()
    }
}

/// The real host.
#[derive(Clone, Copy, Debug)]
pub struct System;

impl Host for System {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let limit = u64::try_from(yaml::MAX_BYTES).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() > yaml::MAX_BYTES { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }

    fn mode(&self, path: &Path) -> Option<u32> {
        std::fs::metadata(path).ok().map(|metadata| metadata.permissions().mode())
    }

    fn parts(&self, path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        if path.is_dir() { crate::registry::list(path).map(Some) } else { Ok(None) }
    }

    fn remote(&self, place: &RegistryPlace, state_dir: &Path) -> Result<RemoteRegistry, String> {
        crate::registry::kept_or_fetched(place, state_dir).map_err(|error| error.to_string())
    }

    fn has_ipv6(&self) -> bool {
        // The file is there if and only if the kernel has IPv6; it is empty if IPv6 is disabled everywhere.
        std::fs::read_to_string("/proc/net/if_inet6").map_or(true, |interfaces| !interfaces.trim().is_empty())
    }
}

/// Loads and checks a configuration. All mistakes are found in one run.
#[must_use]
pub fn load(request: &Request, host: &dyn Host) -> Loaded {
    let mut loader = Loader { host, diagnostics: Diagnostics::default() };
    let (node_source, node) = loader.parse_file::<NodeFile>(&request.node);
    let Some(node) = node else {
        if let Some(registry) = &request.registry {
            let _ = loader.parse_registry_path(registry);
        }
        return Loaded { settings: None, diagnostics: loader.diagnostics };
    };
    let paths = Paths::of(request, &node);
    let place = loader.registry_place(request, &node, node_source);
    let (registry_source, registry) = match &place {
        Some(place) => loader.registry(place, &paths.state_dir),
        None => (node_source, None),
    };
    let key = loader.key(node_source, node.private_key.as_ref(), &paths.private_key);
    let facts = resolve::Facts {
        registry_source,
        node_file: request.node.clone(),
        registry: place,
        key: key.map(|key| (paths.private_key.clone(), key)),
        private_key: paths.private_key,
        control_socket: request.control_socket.clone(),
        has_ipv6: host.has_ipv6(),
    };
    let mut diagnostics = loader.diagnostics;
    let settings = resolve::resolve(&node, registry.as_ref(), &facts, &mut diagnostics);
    if let (Some(settings), Some(section)) = (&settings, &node.ike) {
        credentials::check(&section.value, settings, host, &mut diagnostics);
    }
    Loaded { settings: settings.filter(|_| !diagnostics.has_errors()), diagnostics }
}

/// Where the other files are.
struct Paths {
    private_key: PathBuf,
    state_dir: PathBuf,
}

impl Paths {
    fn of(request: &Request, node: &NodeFile) -> Self {
        let directory = request.node.parent().unwrap_or(Path::new(""));
        let path = |flag: &Option<PathBuf>, field: &Option<Field<String>>, default: &str| match (flag, field)
        {
            (Some(flag), _) => flag.clone(),
            (None, Some(field)) => directory.join(&field.value),
            (None, None) => PathBuf::from(default),
        };
        Self {
            private_key: path(&request.private_key, &node.private_key, "/etc/viamesh/node.pem"),
            state_dir: PathBuf::from(
                node.state_dir.as_ref().map_or("/var/lib/viamesh", |field| &field.value),
            ),
        }
    }
}

struct Loader<'h> {
    host: &'h dyn Host,
    diagnostics: Diagnostics,
}

impl Loader<'_> {
    fn parse_file<T: FromYaml>(&mut self, path: &Path) -> (SourceId, Option<T>) {
        let name = self.host.name(path);
        let text = self
            .host
            .read(path)
            .map_err(|error| key::reason(&error))
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned()));
        match text {
            Ok(text) => {
                let source = self.diagnostics.sources.add(name, text.clone());
                (source, self.parse(source, &text))
            }
            Err(reason) => {
                let source = self.diagnostics.sources.add(name.clone(), "");
                let title = format!("cannot read {name}: {reason}");
                self.diagnostics.push(Diagnostic::about(source, Code::UnreadableFile, title));
                (source, None)
            }
        }
    }

    fn parse<T: FromYaml>(&mut self, source: SourceId, text: &str) -> Option<T> {
        match yaml::parse(source, text) {
            Ok(value) => T::from_yaml(&value, &mut self.diagnostics),
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                None
            }
        }
    }

    /// Where the registry is, as flags and node file say.
    fn registry_place(
        &mut self,
        request: &Request,
        node: &NodeFile,
        node_source: SourceId,
    ) -> Option<RegistryPlace> {
        let directory = request.node.parent().unwrap_or(Path::new(""));
        let source = match (&request.registry, &node.registry) {
            (Some(flag), _) => RegistrySource::parse(&flag.display().to_string(), Path::new("")),
            (None, Some(field)) => RegistrySource::parse(&field.value, directory),
            (None, None) => Ok(RegistrySource::Path("/etc/viamesh/registry.yaml".into())),
        };
        let at = |code, title: String| match &node.registry {
            Some(field) => Diagnostic::at(field.span, code, title),
            None => Diagnostic::about(node_source, code, title),
        };
        let source = match source {
            Ok(source) => source,
            Err(reason) => {
                let diagnostic = at(Code::InvalidValue, format!("no place for a registry: {reason}"));
                self.diagnostics.push(diagnostic.label("not understood"));
                return None;
            }
        };
        let key = node.registry_key.as_ref().and_then(|field| {
            let keys = key::parse_public(&field.value);
            let first = keys.ok().and_then(|keys| keys.first().copied());
            if first.is_none() {
                let title = "`registry_key` is no Ed25519 public key in PEM";
                let diagnostic = Diagnostic::at(field.span, Code::BadPublicKey, title);
                self.diagnostics.push(diagnostic.help("`viamesh key public FILE` prints one"));
            }
            first
        });
        if matches!(source, RegistrySource::Web(_)) && node.registry_key.is_none() {
            let diagnostic = at(Code::MissingField, "a registry on the web needs `registry_key`".to_owned());
            let help = "whoever can change what the server says could let anybody in: `viamesh registry sign` signs it";
            self.diagnostics.push(diagnostic.label("served by somebody").help(help));
            return None;
        }
        let authorities = node.registry_authority.as_ref();
        let authorities = authorities.map(|field| authority::certificates(field, &mut self.diagnostics));
        let interval = node.registry_interval.as_ref().map_or(Duration::from_secs(60), |field| field.value);
        let watch = node.registry_watch.as_ref().is_none_or(|field| field.value);
        Some(RegistryPlace {
            source,
            key,
            authorities: authorities.unwrap_or_default(),
            interval: interval.max(Duration::from_secs(1)),
            watch,
        })
    }

    /// The registry from its place, in one or several parts.
    fn registry(&mut self, place: &RegistryPlace, state_dir: &Path) -> (SourceId, Option<RegistryFile>) {
        if let RegistrySource::Path(path) = &place.source {
            return self.parse_registry_path(path);
        }
        match self.host.remote(place, state_dir) {
            Ok(remote) => {
                let parts = remote.parts.into_iter().map(|(name, text)| {
                    let source = self.diagnostics.sources.add(name, text.clone());
                    (source, self.parse::<RegistryFile>(source, &text))
                });
                let parts: Vec<_> = parts.collect();
                self.joined(parts, &place.source.to_string())
            }
            Err(reason) => {
                let name = place.source.to_string();
                let source = self.diagnostics.sources.add(name.clone(), "");
                let title = format!("cannot get the registry from {name}: {reason}");
                self.diagnostics.push(Diagnostic::about(source, Code::RegistryUnreachable, title));
                (source, None)
            }
        }
    }

    fn parse_registry_path(&mut self, path: &Path) -> (SourceId, Option<RegistryFile>) {
        match self.host.parts(path) {
            Ok(None) => self.parse_file::<RegistryFile>(path),
            Ok(Some(files)) => {
                let parts = files.iter().map(|file| self.parse_file::<RegistryFile>(file)).collect();
                self.joined(parts, &path.display().to_string())
            }
            // The file says the same, with its name.
            Err(_) => self.parse_file::<RegistryFile>(path),
        }
    }

    /// Parts as one registry; none if one of them has mistakes.
    fn joined(
        &mut self,
        parts: Vec<(SourceId, Option<RegistryFile>)>,
        name: &str,
    ) -> (SourceId, Option<RegistryFile>) {
        let Some((first, _)) = parts.first() else {
            let source = self.diagnostics.sources.add(name, "");
            let title = format!("{name} holds no part of a registry");
            self.diagnostics.push(Diagnostic::about(source, Code::UnreadableFile, title));
            return (source, None);
        };
        let first = *first;
        let whole: Option<Vec<RegistryFile>> = parts.into_iter().map(|(_, part)| part).collect();
        (first, whole.map(|parts| parts.into_iter().flatten().collect()))
    }

    /// Only the public half leaves this function.
    fn key(&mut self, node: SourceId, field: Option<&Field<String>>, path: &Path) -> Option<VerifyingKey> {
        let shown = path.display().to_string();
        let at = |code, title: String| match field {
            Some(field) => Diagnostic::at(field.span, code, title),
            None => Diagnostic::about(node, code, title),
        };
        if self.host.mode(path).is_some_and(|mode| mode & 0o007 != 0) {
            let title = format!("everybody on this host can read the private key {shown}");
            let diagnostic = at(Code::KeyReadableByOthers, title).label("its permissions are too wide");
            self.diagnostics.push(diagnostic.help(format!("`chmod 600 {shown}`")));
        }
        let read = self.host.read(path).map(Zeroizing::new);
        let read = read.map_err(|source| key::KeyError::Read { path: shown.clone(), source });
        match read.and_then(|bytes| key::parse_private(&bytes)) {
            Ok(key) => Some(key.verifying_key()),
            Err(error @ key::KeyError::Read { .. }) => {
                let diagnostic = at(Code::UnreadableKey, error.to_string()).label("the private key");
                self.diagnostics
                    .push(diagnostic.help(format!("`viamesh key generate --out {shown}` makes one")));
                None
            }
            Err(error) => {
                let diagnostic =
                    at(Code::UnreadableKey, format!("{shown}: {error}")).label("the private key");
                self.diagnostics.push(diagnostic);
                None
            }
        }
    }
}

/// The name by which a policy or command means a node: `common_name`, or `organization/common_name`.
///
/// # Errors
/// [`NameError`] if no node or several are meant.
pub fn find_name<'a>(wanted: &str, names: &[&'a NodeName]) -> Result<&'a NodeName, NameError<'a>> {
    if let Some(exact) = names.iter().find(|name| name.to_string() == wanted) {
        return Ok(exact);
    }
    let same: Vec<_> = names.iter().copied().filter(|name| name.common_name == wanted).collect();
    match same.as_slice() {
        [] => Err(NameError::Unknown),
        [one] => Ok(one),
        _ => Err(NameError::Ambiguous(same)),
    }
}

/// Why a name means no node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError<'a> {
    /// Nobody is called so.
    Unknown,
    /// These are.
    Ambiguous(Vec<&'a NodeName>),
}
