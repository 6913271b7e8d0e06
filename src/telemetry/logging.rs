//! Where log lines go: standard error, as text or as JSON, at a level that can be changed while running.
//!
//! | level | meaning |
//! |---|---|
//! | ERROR | we stop |
//! | WARN | somebody would want to be woken |
//! | INFO | a state that the user cares about changed |
//! | DEBUG | departures from the happy path |
//! | TRACE | per packet |

use std::io::{self, IsTerminal};

use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people; without times under systemd, whose journal adds them.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How to log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogOptions {
    /// `-v` adds one, `-q` takes one away; 0 is INFO.
    pub verbosity: i8,
    /// A filter such as `viamesh::node=debug,info`, instead of the verbosity.
    pub filter: Option<String>,
    /// Text or JSON.
    pub format: Format,
    /// Whether to colour text.
    pub color: bool,
}

impl LogOptions {
    /// The filter that these options mean.
    pub fn directives(&self) -> String {
        if let Some(filter) = &self.filter {
            return filter.clone();
        }
        // Libraries are quieter than we are: netlink tells each message at DEBUG.
        match self.verbosity {
            i8::MIN..=-2 => "error",
            -1 => "warn",
            0 => "warn,viamesh=info",
            1 => "warn,viamesh=debug",
            2 => "info,viamesh=trace",
            3.. => "trace",
        }
        .to_owned()
    }
}

/// Why logging cannot be set up or changed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is no filter.
    #[error("`{filter}` is no log filter: {source}")]
    Filter {
        /// What was given.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// Somebody set up logging before.
    #[error("logging is set up already")]
    Twice,
}

/// Changes the level while running.
#[derive(Debug, Clone)]
pub struct LogLevel {
    handle: reload::Handle<EnvFilter, Registry>,
    usual: String,
}

impl LogLevel {
    /// Sets another filter.
    ///
    /// # Errors
    /// When `filter` is none; the one in force stays.
    pub fn set(&self, filter: &str) -> Result<(), LogError> {
        let parsed = parse(filter)?;
        self.handle.reload(parsed).map_err(|_| LogError::Twice)
    }

    /// Adds directives to the filter of the start.
    ///
    /// # Errors
    /// As [`LogLevel::set`].
    pub fn raise(&self, directives: &str) -> Result<(), LogError> {
        self.set(&format!("{},{directives}", self.usual))
    }

    /// Returns to the filter of the start.
    pub fn revert(&self) {
        // It was parsed before.
        let _ = self.set(&self.usual);
    }

    /// The filter in force.
    pub fn current(&self) -> String {
        self.handle.with_current(ToString::to_string).unwrap_or_default()
    }
}

fn parse(filter: &str) -> Result<EnvFilter, LogError> {
    EnvFilter::try_new(filter).map_err(|source| LogError::Filter { filter: filter.to_owned(), source })
}

/// Sends the process's log lines to standard error from now on.
///
/// # Errors
/// When the filter is wrong, or logging is set up already.
pub fn start(options: &LogOptions) -> Result<LogLevel, LogError> {
    // Under systemd standard error is a socket to the journal, which keeps the time itself.
    let times = io::stderr().is_terminal() || std::env::var_os("JOURNAL_STREAM").is_none();
    let (subscriber, level) = subscriber(options, io::stderr, times)?;
    subscriber.try_init().map_err(|_| LogError::Twice)?;
    Ok(level)
}

type Subscriber = Box<dyn tracing::Subscriber + Send + Sync>;

fn subscriber<W>(options: &LogOptions, writer: W, times: bool) -> Result<(Subscriber, LogLevel), LogError>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let usual = options.directives();
    let (filter, handle) = reload::Layer::new(parse(&usual)?);
    let registry = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(writer).with_ansi(options.color).with_target(false);
    let subscriber: Subscriber = match (options.format, times) {
        (Format::Json, _) => Box::new(registry.with(lines.json().flatten_event(true).with_target(true))),
        (Format::Text, true) => Box::new(registry.with(lines)),
        (Format::Text, false) => Box::new(registry.with(lines.without_time())),
    };
    Ok((subscriber, LogLevel { handle, usual }))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Memory {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    /// What is written while `log` runs.
    pub(crate) fn logged(options: &LogOptions, log: impl FnOnce(&LogLevel)) -> String {
        let memory = Memory::default();
        let writer = memory.clone();
        let (subscriber, level) = subscriber(options, move || writer.clone(), false).unwrap();
        tracing::subscriber::with_default(subscriber, || log(&level));
        memory.text()
    }

    #[test]
    fn the_level_can_be_raised_for_a_while() {
        let options = LogOptions { filter: Some("info".to_owned()), ..LogOptions::default() };
        let text = logged(&options, |level| {
            tracing::debug!("before");
            level.set("debug").unwrap();
            assert_eq!(level.current(), "debug");
            tracing::debug!(peer = "bravo", "during");
            level.revert();
            tracing::debug!("after");
        });
        assert_eq!(text, "DEBUG during peer=\"bravo\"\n");
    }

    #[test]
    fn json_lines_have_their_fields_at_the_top() {
        let options =
            LogOptions { filter: Some("info".to_owned()), format: Format::Json, ..LogOptions::default() };
        let text = logged(&options, |_| tracing::info!(peer = "bravo", "link up"));
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["peer"], &line["message"]), (&"bravo".into(), &"link up".into()));
    }

    #[test]
    fn a_wrong_filter_changes_nothing() {
        let options = LogOptions { filter: Some("info".to_owned()), ..LogOptions::default() };
        logged(&options, |level| {
            let error = level.set("viamesh=loud").unwrap_err();
            assert!(error.to_string().starts_with("`viamesh=loud` is no log filter"), "{error}");
            assert_eq!(level.current(), "info");
        });
    }

    #[test]
    fn every_verbosity_is_a_filter() {
        for verbosity in i8::MIN..=i8::MAX {
            let options = LogOptions { verbosity, ..LogOptions::default() };
            assert!(parse(&options.directives()).is_ok(), "{verbosity}");
        }
    }
}
