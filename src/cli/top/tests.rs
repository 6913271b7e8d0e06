//! What the screen shows, on a terminal that is a buffer.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::screen::draw;
use super::state::{Command, State, View};
use crate::control::report::tests::{link, status_of};
use crate::control::report::{PolicyState, PolicyStatus, StatusReport};
use crate::telemetry::{Health, Severity};

fn status(second: u32) -> StatusReport {
    let rtt = 20.0 + f64::from(second % 7);
    let traffic = u64::from(second) * 500_000;
    let mut bravo = link(Some(rtt), traffic, traffic / 4);
    bravo.loss_percent = Some(if second > 10 { 40.0 } else { 0.0 });
    let mut status = status_of(vec![("bravo", vec![bravo]), ("partner/delta", vec![link(None, 0, 0)])]);
    status.policies.push(PolicyStatus {
        policy: "inspected".to_owned(),
        state: PolicyState::Up,
        path: ["alpha", "bravo", "charlie", "bravo"].map(str::to_owned).to_vec(),
        remark: None,
        reason: None,
        mtu: Some(1342),
        packets: 120_433,
        dropped: 0,
    });
    status.problems.push(Health {
        code: "peer/no-answer".to_owned(),
        subject: "partner/delta".to_owned(),
        severity: Severity::Warning,
        text: "partner/delta cannot be reached: no answer (7 tries)".to_owned(),
        next_step: "is its daemon running?".to_owned(),
    });
    status
}

fn state() -> State {
    let mut state = State::new(false);
    for second in 0..16 {
        state.take_at(Duration::from_secs(u64::from(second)), status(second));
    }
    state
}

fn screen(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_overview_has_links_policies_and_problems() {
    insta::assert_snapshot!(screen(&state(), 130, 20));
}

#[test]
fn enter_opens_a_node_and_escape_comes_back() {
    let mut state = state();
    assert!(!state.obey(Command::Open));
    assert_eq!(state.view, View::Node("bravo".to_owned()));
    insta::assert_snapshot!(screen(&state, 100, 20));
    state.obey(Command::Back);
    state.obey(Command::Down);
    state.obey(Command::Down);
    state.obey(Command::Open);
    assert_eq!(state.view, View::Node("partner/delta".to_owned()), "the cursor stays in the list");
}

#[test]
fn a_policy_shows_its_stops_with_repeats() {
    let mut state = state();
    state.obey(Command::Other);
    state.obey(Command::Open);
    assert_eq!(state.view, View::Policy("inspected".to_owned()));
    let text = screen(&state, 80, 20);
    assert!(text.contains("3  bravo") && text.contains("visit 2"), "{text}");
}

#[test]
fn any_size_can_be_drawn_and_colours_only_if_wanted() {
    let mut state = state();
    for (width, height) in [(1, 1), (10, 3), (40, 8), (300, 100)] {
        screen(&state, width, height);
    }
    let styled = |state: &State| {
        let mut terminal = Terminal::new(TestBackend::new(130, 20)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let cells = terminal.backend().buffer().content().to_vec();
        cells.iter().any(|cell| cell.fg != ratatui::style::Color::Reset)
    };
    assert!(!styled(&state));
    state.colour = true;
    assert!(styled(&state));
}

#[test]
fn a_silent_daemon_and_a_pause_are_said() {
    let mut state = state();
    state.set_silent(true);
    assert!(screen(&state, 100, 20).contains("the daemon does not answer"));
    state.set_silent(false);
    state.obey(Command::Pause);
    assert!(screen(&state, 100, 20).contains("paused"));
    assert!(state.obey(Command::Quit));
}
