//! The task that keeps the kernel as the node wants it, beside the control loop: netlink takes its time.

use crate::kernel::{Change, Changes, Claim, Kernel, KernelState, Problem};
use ipnet::IpNet;
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
    Connected(Vec<IpNet>),
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
        let keeper = Keeper { kernel, changes, states, news };
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
                }
            }
        }
    }

    async fn apply(&mut self) {
        let (serial, Some(state)) = self.states.borrow_and_update().clone() else { return };
        let problems = self.kernel.apply(&state).await;
        // If nobody listens any more, the daemon is stopping.
        let _ = self.news.send(HostNews::Applied { serial, problems }).await;
    }

    async fn follow(&mut self, change: Change) {
        if change.addresses || change.links {
            self.tell_networks().await;
        }
        if change.ours {
            self.kernel.resync();
            self.apply().await;
        }
    }

    async fn tell_networks(&mut self) {
        // Without an answer the last one stays in force; the next change asks again.
        if let Ok(networks) = self.kernel.connected_networks().await {
            let networks = networks.into_iter().map(|connected| connected.network).collect();
            let _ = self.news.send(HostNews::Connected(networks)).await;
        }
    }
}
