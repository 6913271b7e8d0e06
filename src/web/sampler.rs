//! Looks at the node every now and then, so that whoever opens the page sees how links did before.

use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

use crate::control::report::{DropRow, FORMAT, GraphReport, History, StatusReport, ViewReport};
use crate::control::server::ask;
use crate::control::{Incoming, Reply, Request};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(2);

/// How old a view may be before it is made again: any number of browsers costs the control loop the same.
const FRESH: Duration = Duration::from_secs(1);

/// What is remembered of the node.
pub(super) struct Sampler {
    requests: mpsc::Sender<Incoming>,
    started: Instant,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    history: History,
    view: Option<(Instant, StatusReport, GraphReport)>,
}

impl Sampler {
    pub(super) fn new(requests: mpsc::Sender<Incoming>) -> Self {
        Self { requests, started: Instant::now(), memory: Mutex::default() }
    }

    /// Looks again and again until the daemon ends.
    pub(super) async fn run(&self) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(Reply::Status(status)) = ask(&self.requests, Request::Status { node: None }).await
            else {
                return;
            };
            self.memory.lock().await.history.record(self.started.elapsed(), &status);
        }
    }

    /// The state now, and the samples since look `since`. `None` if the daemon is ending.
    pub(super) async fn view(&self, since: u64) -> Option<ViewReport> {
        let mut memory = self.memory.lock().await;
        if memory.view.as_ref().is_none_or(|(at, ..)| at.elapsed() > FRESH) {
            let status = match ask(&self.requests, Request::Status { node: None }).await? {
                Reply::Status(status) => status,
                _ => return None,
            };
            let graph = match ask(&self.requests, Request::Routes { address: None }).await? {
                Reply::Routes(routes) => GraphReport::of(&status, &routes),
                _ => return None,
            };
            memory.view = Some((Instant::now(), status, graph));
        }
        let (_, status, graph) = memory.view.as_ref()?;
        Some(ViewReport {
            format: FORMAT,
            number: memory.history.number(),
            status: status.clone(),
            graph: graph.clone(),
            history: memory.history.since(since),
            drops: DropRow::of(status),
        })
    }
}
