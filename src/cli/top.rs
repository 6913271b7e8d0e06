//! `viamesh top`: the mesh on a terminal, as it is now.

mod screen;
mod state;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::arguments::Global;
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::{Reply, Request};
use state::{Command, State};

/// Time between two looks at the daemon.
const PERIOD: Duration = Duration::from_secs(1);

pub(super) fn run(global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    if output.json() || !std::io::stdout().is_terminal() {
        let failure = Failure::new(Exit::Usage, "`top` draws on a terminal");
        return Err(failure.help("`viamesh status --json` tells programs the same"));
    }
    // Before the screen changes: an unreachable daemon is an error in words.
    let mut state = State::new(output.colour());
    look(&mut state, global)?;
    let mut terminal = ratatui::try_init()?;
    let outcome = follow(&mut terminal, &mut state, global);
    ratatui::restore();
    outcome
}

fn look(state: &mut State, global: &Global) -> Result<(), Failure> {
    if let Reply::Status(status) = ask::ask(&Request::Status { node: None }, global)? {
        state.take(status);
    }
    Ok(())
}

fn follow(
    terminal: &mut ratatui::DefaultTerminal,
    state: &mut State,
    global: &Global,
) -> Result<Exit, Failure> {
    let mut next = Instant::now() + PERIOD;
    loop {
        terminal.draw(|frame| screen::draw(frame, state))?;
        let wait = next.saturating_duration_since(Instant::now());
        if event::poll(wait)? {
            if let Event::Key(key) = event::read()?
                && let Some(command) = command(key)
                && state.obey(command)
            {
                return Ok(Exit::Done);
            }
            continue;
        }
        next = Instant::now() + PERIOD;
        if !state.paused() {
            // A daemon that restarts comes back: what was seen last stays on the screen meanwhile.
            let answered = look(state, global).is_ok();
            state.set_silent(!answered);
        }
    }
}

fn command(key: KeyEvent) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Command::Quit,
        KeyCode::Char('q') => Command::Quit,
        KeyCode::Up | KeyCode::Char('k') => Command::Up,
        KeyCode::Down | KeyCode::Char('j') => Command::Down,
        KeyCode::Tab | KeyCode::BackTab => Command::Other,
        KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => Command::Open,
        KeyCode::Esc | KeyCode::Left | KeyCode::Char('h') | KeyCode::Backspace => Command::Back,
        KeyCode::Char(' ' | 'p') => Command::Pause,
        _ => return None,
    })
}
