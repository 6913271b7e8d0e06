//! `viamesh run`

use super::arguments::{Global, Run};
use super::check;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::load::System;
use crate::config::{Code, Request, Settings, credentials, key};
use crate::runtime::{self, RunOptions};
use crate::telemetry::logging::{self, Format, LogOptions};

pub(super) fn run(run: &Run, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let request = check::request(&global.config, &run.files, global);
    let loaded = crate::config::load(&request, &System);
    let rendered = loaded.diagnostics.render(output.colour_stderr());
    if !rendered.is_empty() {
        output.narrate(rendered.trim_end());
    }
    let Some(settings) = loaded.settings else {
        let message = format!("the configuration in {} cannot be used", global.config.display());
        // A source that does not answer may do so a moment later: that is worth another try.
        let exit = if loaded.diagnostics.only_errors_of(Code::RegistryUnreachable) {
            Exit::Failed
        } else {
            Exit::BadConfiguration
        };
        return Err(Failure::new(exit, message));
    };
    let log = LogOptions {
        verbosity: i8::try_from(global.verbose).unwrap_or(i8::MAX),
        filter: None,
        format: if global.json { Format::Json } else { Format::Text },
        color: output.colour_stderr(),
    };
    start(settings, request, run, &log)
}

/// Runs the daemon until it is told to stop.
fn start(settings: Settings, files: Request, run: &Run, log: &LogOptions) -> Result<Exit, Failure> {
    let key = key::load(&settings.private_key)
        .map_err(|error| Failure::new(Exit::BadConfiguration, error.to_string()))?;
    let hmac_keys: Result<Vec<_>, _> =
        settings.hmac_keys.iter().map(|wanted| key::load_hmac(wanted.id, &wanted.file)).collect();
    let hmac_keys = hmac_keys.map_err(|error| Failure::new(Exit::BadConfiguration, error.to_string()))?;
    let credentials =
        credentials::load(&settings, &System).map_err(|error| Failure::new(Exit::BadConfiguration, error))?;
    let level = logging::start(log).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    let options = RunOptions {
        settings,
        files,
        key,
        credentials,
        hmac_keys,
        log_level: Some(level),
        ike_keylog: run.ike_keylog.clone(),
    };
    runtime::run(options).map_err(|error| {
        let failure = Failure::new(Exit::from_code(error.exit_code), error.text);
        match error.help {
            Some(help) => failure.help(help),
            None => failure,
        }
    })?;
    Ok(Exit::Done)
}
