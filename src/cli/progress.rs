//! A sign of life while a command waits.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is done sooner needs no sign of life.
const SOON: Duration = Duration::from_secs(1);
/// Time between two pictures.
const TICK: Duration = Duration::from_millis(120);

/// Shows on a terminal that a command waits, from the second second on. Dropping it wipes the line; where standard
/// error is no terminal it does nothing.
pub(super) struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins to wait for what `text` says.
    pub(super) fn start(text: &'static str) -> Self {
        if !io::stderr().is_terminal() {
            return Self { running: None };
        }
        let (stop, stopped) = mpsc::channel();
        let show = move || {
            if stopped.recv_timeout(SOON) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.set_elapsed(SOON);
            bar.set_message(text);
            bar.enable_steady_tick(TICK);
            let _ = stopped.recv();
            bar.finish_and_clear();
        };
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(show);
        Self { running: thread.ok().map(|thread| (stop, thread)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            // The line is wiped before anything else is written.
            let _ = thread.join();
        }
    }
}
