//! What `top` knows and what the user chose. Pure.

use std::time::{Duration, Instant};

use crate::control::report::{History, StatusReport};

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Up,
    Down,
    /// To the other list.
    Other,
    Open,
    Back,
    Pause,
    Quit,
}

/// Which list the cursor is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Links,
    Policies,
}

/// What the screen shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum View {
    Overview,
    Node(String),
    Policy(String),
}

/// Everything.
#[derive(Debug)]
pub(super) struct State {
    pub(super) status: Option<StatusReport>,
    pub(super) history: History,
    pub(super) view: View,
    pub(super) list: List,
    pub(super) cursor: usize,
    pub(super) colour: bool,
    pub(super) silent: bool,
    paused: bool,
    started: Instant,
}

impl State {
    pub(super) fn new(colour: bool) -> Self {
        Self {
            status: None,
            history: History::default(),
            view: View::Overview,
            list: List::Links,
            cursor: 0,
            colour,
            silent: false,
            paused: false,
            started: Instant::now(),
        }
    }

    /// Takes a new report.
    pub(super) fn take(&mut self, status: StatusReport) {
        let at = self.started.elapsed();
        self.take_at(at, status);
    }

    pub(super) fn take_at(&mut self, at: Duration, status: StatusReport) {
        self.history.record(at, &status);
        self.status = Some(status);
        self.cursor = self.cursor.min(self.rows(self.list).saturating_sub(1));
    }

    pub(super) fn set_silent(&mut self, silent: bool) {
        self.silent = silent;
    }

    pub(super) fn paused(&self) -> bool {
        self.paused
    }

    fn rows(&self, list: List) -> usize {
        let Some(status) = &self.status else { return 0 };
        match list {
            List::Links => status.nodes.iter().map(|node| node.links.len().max(1)).sum(),
            List::Policies => status.policies.len(),
        }
    }

    /// The node in the given row of the link list.
    fn node_at(&self, row: usize) -> Option<String> {
        let nodes = self.status.iter().flat_map(|status| &status.nodes);
        nodes.flat_map(|node| std::iter::repeat_n(&node.node, node.links.len().max(1))).nth(row).cloned()
    }

    /// Does what a key asks for. True if it is to end.
    pub(super) fn obey(&mut self, command: Command) -> bool {
        match command {
            Command::Quit => return true,
            Command::Pause => self.paused = !self.paused,
            Command::Back => self.view = View::Overview,
            Command::Up => self.cursor = self.cursor.saturating_sub(1),
            Command::Down => self.cursor = (self.cursor + 1).min(self.rows(self.list).saturating_sub(1)),
            Command::Other => {
                let other = if self.list == List::Links { List::Policies } else { List::Links };
                if self.rows(other) > 0 {
                    self.list = other;
                    self.cursor = 0;
                }
            }
            Command::Open => {
                let policies = self.status.iter().flat_map(|status| &status.policies);
                let opened = match self.list {
                    List::Links => self.node_at(self.cursor).map(View::Node),
                    List::Policies => {
                        policies.map(|policy| &policy.policy).nth(self.cursor).cloned().map(View::Policy)
                    }
                };
                self.view = opened.unwrap_or(View::Overview);
            }
        }
        false
    }
}
