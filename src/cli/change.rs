//! `viamesh reload`, `apply`, `confirm` and `undo`: another configuration for the running daemon.

use std::path::Path;
use std::time::Duration;

use super::arguments::{Apply, Global};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::Request;
use crate::control::protocol::NodeText;

pub(super) fn reload(global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    ask::print(&Request::Reload, global, output)
}

pub(super) fn apply(apply: &Apply, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let file = read(&apply.file)?;
    let seconds = apply.confirm_within.map(|time| u32::try_from(time.as_secs()).unwrap_or(u32::MAX).max(1));
    ask::print(&Request::Apply { file, confirm_seconds: seconds }, global, output)
}

pub(super) fn confirm(global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    ask::print(&Request::Confirm, global, output)
}

pub(super) fn undo(global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    ask::print(&Request::Undo, global, output)
}

/// A node file as it goes to the daemon.
pub(super) fn read(path: &Path) -> Result<NodeText, Failure> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(NodeText { name, text }),
        Err(error) => {
            let reason = crate::config::key::reason(&error);
            Err(Failure::new(Exit::BadConfiguration, format!("cannot read {name}: {reason}")))
        }
    }
}

/// A time as people write it: `90s`, `5m`, `1h`; a bare number is seconds.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().find(|(_, character)| !character.is_ascii_digit()) {
        Some((at, _)) => text.split_at(at),
        None => (text, "s"),
    };
    let number: u64 = number.parse().map_err(|_| "a number and `s`, `m` or `h`".to_owned())?;
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        _ => return Err(format!("`{unit}` is no unit of time: write `s`, `m` or `h`")),
    };
    let time = Duration::from_secs(number.saturating_mul(seconds));
    if time.is_zero() { Err("more than nothing".to_owned()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let seconds = |text| time(text).map(|time| time.as_secs());
        assert_eq!((seconds("90"), seconds("90s")), (Ok(90), Ok(90)));
        assert_eq!((seconds("5m"), seconds("2h")), (Ok(300), Ok(7200)));
        for wrong in ["", "m", "5 parsecs", "-1s", "0s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
