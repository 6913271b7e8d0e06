//! The task that keeps the kernel as the node wants it, beside the control loop: netlink takes its time.

use crate::kernel::{Change, Changes, Claim, ConnectedNetwork, HostRoute, Kernel, KernelState, Problem};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// How often everything is compared with the kernel again although nothing was told.
const RESYNC: Duration = Duration::from_secs(60);

/// What the control loop learns from the host.
#[derive(Debug)]
pub(super) enum HostNews {
    /// Networks that this host's interfaces are part of.
    Connected(Vec<ConnectedNetwork>),
    /// What others have in the tables that are imported.
    Routes(Vec<HostRoute>),
    /// The kernel has come to a state.
    Applied {
        /// Which, by the number that [`KernelTask::want`] gave it.
        serial: u64,
        /// What could not be done; replaces what was told before.
        problems: Vec<Problem>,
    },
}

/// The control loop's side of the task.
pub(super) struct KernelTask {
    wanted: watch::Sender<(u64, Option<KernelState>)>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Vec<Problem>>,
}

impl KernelTask {
    /// Start the task, after the TUN was opened.
    pub(super) async fn start(
        claim: Claim,
        tun: &str,
        restore_file: PathBuf,
        news: mpsc::Sender<HostNews>,
    ) -> io::Result<Self> {
        let kernel = Kernel::new(claim.clone(), Some(restore_file))?;
        let changes = Changes::open(claim, tun).await?;
        let (wanted, states) = watch::channel((0, None));
        let (stop, stopped) = oneshot::channel();
        let keeper = Keeper { kernel, changes, states, news, import_tables: BTreeSet::new() };
        let task = tokio::spawn(keeper.run(stopped));
        Ok(Self { wanted, stop: Some(stop), task })
    }

    /// Bring the kernel to this state, as soon as the state before is done with. Returns its number.
    pub(super) fn want(&self, state: KernelState) -> u64 {
        let mut serial = 0;
        self.wanted.send_modify(|(last, wanted)| {
            *last += 1;
            serial = *last;
            *wanted = Some(state);
        });
        serial
    }

    /// Remove everything and end. Returns what could not be removed.
    pub(super) async fn clean(mut self) -> Vec<Problem> {
        if let Some(stop) = self.stop.take() {
            // The task may have ended already; then there is nobody to tell.
            let _ = stop.send(());
        }
        self.task.await.unwrap_or_default()
    }
}

struct Keeper {
    kernel: Kernel,
    changes: Changes,
    states: watch::Receiver<(u64, Option<KernelState>)>,
    news: mpsc::Sender<HostNews>,
    import_tables: BTreeSet<u32>,
}

impl Keeper {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) -> Vec<Problem> {
        self.tell_networks().await;
        let mut resync = tokio::time::interval_at(tokio::time::Instant::now() + RESYNC, RESYNC);
        loop {
            tokio::select! {
                _ = &mut stopped => return self.kernel.clean().await,
                changed = self.states.changed() => {
                    if changed.is_err() {
                        return self.kernel.clean().await;
                    }
                    self.apply().await;
                }
                change = self.changes.next() => self.follow(change).await,
                _ = resync.tick() => {
                    self.kernel.resync();
                    self.apply().await;
                    if !self.import_tables.is_empty() {
                        self.tell_routes().await;
                    }
                }
            }
        }
    }

    async fn apply(&mut self) {
        let (serial, Some(state)) = self.states.borrow_and_update().clone() else { return };
        let problems = self.kernel.apply(&state).await;
        // If nobody listens any more, the daemon is stopping.
        let _ = self.news.send(HostNews::Applied { serial, problems }).await;
        if self.import_tables != state.import_tables {
            self.import_tables = state.import_tables;
            self.tell_routes().await;
        }
    }

    async fn follow(&mut self, change: Change) {
        if change.addresses || change.links {
            self.tell_networks().await;
        }
        // A link that goes down takes its routes along, which is not always told.
        if (change.routes || change.links) && !self.import_tables.is_empty() {
            self.tell_routes().await;
        }
        if change.ours {
            self.kernel.resync();
            self.apply().await;
        }
    }

    async fn tell_routes(&mut self) {
        if let Ok(routes) = self.kernel.host_routes(&self.import_tables).await {
            let _ = self.news.send(HostNews::Routes(routes)).await;
        }
    }

    async fn tell_networks(&mut self) {
        // Without an answer the last one stays in force; the next change asks again.
        if let Ok(networks) = self.kernel.connected_networks().await {
            let _ = self.news.send(HostNews::Connected(networks)).await;
        }
    }
}
