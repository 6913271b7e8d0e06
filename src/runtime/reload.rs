//! Another configuration for the running daemon: all of it or nothing, and only what differs is touched.

use super::TunLinux;
use super::configuration::{Candidate, Loaded, Purpose, Trial};
use super::control_loop::ControlLoop;
use super::daemon::{open_class_tun, open_socket};
use crate::config::Settings;
use crate::control::protocol::{NodeText, Refusal};
use crate::control::report::{ChangeReport, FORMAT};
use crate::control::{Reply, Request, Responder};
use crate::node::Reconfiguration;
use crate::policy::Class;
use crate::telemetry::{Health, HealthCode};
use std::time::{Duration, Instant};

/// The component in the log.
const CONFIG: &str = "viamesh::config";

/// How long a socket that is not needed any more stays open for farewells.
const FAREWELL: Duration = Duration::from_secs(1);

/// The shortest and the longest trial.
const TRIAL: std::ops::RangeInclusive<u32> = 1..=86_400;

impl ControlLoop {
    /// A request that is about the configuration.
    pub(super) fn take_change(&mut self, request: Request, responder: Responder) {
        let waiting = self.configuration.trial.is_some();
        match request {
            Request::Plan { file } => self.load(Purpose::Plan(responder), file),
            Request::Confirm => self.confirm(responder),
            Request::Undo if waiting => self.load(Purpose::Revert(Some(responder)), None),
            Request::Reload | Request::Apply { .. } | Request::Undo if waiting => {
                let refusal = Refusal::new(1, "a change waits for confirmation: nothing has changed");
                let help = "`viamesh confirm` keeps it, `viamesh undo` goes back";
                responder.finish(Reply::Refused(refusal.help(help)));
            }
            Request::Reload => self.load(Purpose::Reload(Some(responder)), None),
            Request::Apply { file, confirm_seconds } => match confirm_seconds {
                Some(seconds) if !TRIAL.contains(&seconds) => {
                    responder.refuse(2, "a trial takes from one second to one day");
                }
                seconds => {
                    let trial = seconds.map(|seconds| Duration::from_secs(seconds.into()));
                    self.load(Purpose::Apply(responder, trial), Some(file));
                }
            },
            Request::Undo => match self.configuration.previous() {
                Some(file) => self.load(Purpose::Undo(responder), Some(file)),
                None => responder.refuse(1, "there is no node file from before to go back to"),
            },
            _ => responder.refuse(1, "this does not change the configuration"),
        }
    }

    /// SIGHUP, or a source of the registry: reload, and tell the log how it went.
    pub(super) fn reload_unasked(&mut self) {
        if self.configuration.trial.is_some() {
            tracing::warn!(target: CONFIG, "not reloaded: a change waits for confirmation");
            return;
        }
        self.load(Purpose::Reload(None), None);
    }

    pub(super) fn load(&mut self, purpose: Purpose, file: Option<NodeText>) {
        match self.configuration.load(purpose, file) {
            Ok(()) => self.notifier.reloading(self.host.clock.monotonic()),
            Err(purpose) => {
                match purpose {
                    Purpose::Registry(registry) => self.registry_again = Some(registry),
                    // Whatever said so will be read by the next one.
                    Purpose::Reload(None) => self.reload_again = true,
                    purpose => {
                        if let Some(responder) = purpose.into_responder() {
                            responder.refuse(1, "another change is under way: nothing has changed");
                        }
                    }
                }
            }
        }
    }

    /// A configuration was loaded.
    pub(super) fn take_loaded(&mut self, loaded: Loaded) {
        self.configuration.finished();
        let Loaded { purpose, text, result } = loaded;
        match (result, &purpose) {
            (Ok(candidate), _) => self.take_candidate(purpose, text, candidate),
            (Err(refusal), Purpose::Revert(_)) => {
                // The files cannot be used any more: what was in force before the trial can.
                tracing::error!(target: CONFIG, "going back without the files: {}", refusal.text);
                let previous = self.configuration.trial.as_ref().map(|trial| trial.previous.clone());
                match previous {
                    Some(settings) => {
                        self.take_candidate(purpose, text, Candidate { settings, warnings: 0 });
                    }
                    None => self.refuse(purpose, refusal),
                }
            }
            (Err(refusal), _) => self.refuse(purpose, refusal),
        }
        self.notifier.ready("running");
        if std::mem::take(&mut self.reload_again) {
            self.reload_unasked();
        } else if let Some(registry) = self.registry_again.take() {
            self.load(Purpose::Registry(registry), None);
        }
    }

    fn take_candidate(&mut self, purpose: Purpose, text: String, candidate: Candidate) {
        let plan = match self.node.plan(candidate.settings) {
            Ok(plan) => plan,
            Err(reason) => {
                let text = format!("{reason}: nothing has changed");
                let help = "`systemctl restart viamesh` restarts it";
                return self.refuse(purpose, Refusal::new(1, text).help(help));
            }
        };
        let report = ChangeReport {
            format: FORMAT,
            applied: !matches!(purpose, Purpose::Plan(_)),
            changes: plan.changes().lines(plan.settings()),
            needs_restart: plan.changes().needs_restart.iter().map(|&name| name.to_owned()).collect(),
            warnings: candidate.warnings,
            confirm_seconds: match &purpose {
                Purpose::Apply(_, Some(trial)) => Some(trial.as_secs()),
                _ => None,
            },
        };
        if let Purpose::Plan(responder) = purpose {
            return responder.finish(Reply::Change(report));
        }
        match self.carry_out(plan) {
            Ok(before) => self.keep(purpose, text, before, report),
            Err(refusal) => self.refuse(purpose, refusal),
        }
    }

    /// Do it. Sockets and TUNs come first, since that is all that can fail. Returns the settings before.
    fn carry_out(&mut self, plan: Reconfiguration) -> Result<Settings, Refusal> {
        let mut opened = Vec::new();
        for (index, spec) in plan.opens() {
            let socket = open_socket(spec).map_err(|error| {
                let refusal = Refusal::new(error.exit_code, format!("{}: nothing has changed", error.text));
                Refusal { help: error.help, ..refusal }
            })?;
            opened.push((*index, socket));
        }
        let tuns = self.open_tuns(&plan)?;
        let worker = self.host.workers.first();
        for (index, socket) in opened {
            if worker.is_none_or(|worker| worker.set_socket(index, Some(socket)).is_err()) {
                return Err(Refusal::new(1, "the data path is too busy to take a new socket: try again"));
            }
        }
        for (class, tun) in tuns {
            if worker.is_none_or(|worker| worker.set_tun(class, Some(tun)).is_err()) {
                return Err(Refusal::new(1, "the data path is too busy to take a new TUN: try again"));
            }
        }
        let before = self.node.settings().clone();
        let classes: Vec<Class> = self.node.classes().iter().map(|(class, _)| class).collect();
        let now = self.host.clock.now();
        let closed = self.node.reconfigure(plan, now);
        self.closing.extend(closed.into_iter().map(|index| (now + FAREWELL, index)));
        let gone = classes.into_iter().filter(|class| !self.node.classes().contains(*class));
        self.closing_tuns.extend(gone.map(|class| (now + FAREWELL, class)));
        self.drain();
        Ok(before)
    }

    /// The TUNs of classes that are new. One whose number was free since a moment is still open.
    fn open_tuns(&mut self, plan: &Reconfiguration) -> Result<Vec<(Class, TunLinux)>, Refusal> {
        let mut opened = Vec::new();
        for (class, _) in plan.classes().iter().filter(|(class, _)| !self.node.classes().contains(*class)) {
            if self.closing_tuns.iter().any(|(_, closing)| *closing == class) {
                continue;
            }
            let tun = open_class_tun(plan.settings(), class).map_err(|error| {
                let refusal = Refusal::new(error.exit_code, format!("{}: nothing has changed", error.text));
                Refusal { help: error.help, ..refusal }
            })?;
            opened.push((class, tun));
        }
        Ok(opened)
    }

    /// The change is in force: make it last as long as it shall, and answer.
    fn keep(&mut self, purpose: Purpose, text: String, before: Settings, report: ChangeReport) {
        let how = match &purpose {
            Purpose::Reload(_) | Purpose::Plan(_) => "configuration reloaded",
            Purpose::Apply(_, None) => "configuration applied",
            Purpose::Apply(_, Some(_)) => "configuration applied on trial",
            Purpose::Undo(_) | Purpose::Revert(_) => "went back to the configuration before",
            Purpose::Registry(_) => "registry changed",
        };
        self.configuration.runs_on(&text);
        self.follow_registry();
        let quiet = matches!(purpose, Purpose::Registry(_)) && report.changes.is_empty();
        if !quiet {
            tracing::info!(target: CONFIG, changes = report.changes.len(), "{how}");
        }
        for change in &report.changes {
            tracing::info!(target: CONFIG, "{change}");
        }
        if !report.needs_restart.is_empty() {
            tracing::warn!(target: CONFIG, fields = report.needs_restart.join(", "), "changed, and needs a restart");
        }
        let installed = match &purpose {
            Purpose::Apply(_, Some(trial)) => {
                let deadline = self.host.clock.now() + *trial;
                self.configuration.trial = Some(Trial { text, deadline, previous: before });
                Ok(())
            }
            Purpose::Apply(_, None) | Purpose::Undo(_) => self.configuration.install(&text),
            Purpose::Revert(_) => {
                self.configuration.trial = None;
                Ok(())
            }
            Purpose::Reload(_) | Purpose::Plan(_) => {
                self.configuration.note(&text);
                Ok(())
            }
            Purpose::Registry(registry) => {
                self.registry_in_force(registry.as_ref());
                Ok(())
            }
        };
        if !matches!(purpose, Purpose::Registry(_)) {
            self.reload_problem = None;
        }
        self.update_health();
        let Some(responder) = purpose.into_responder() else { return };
        match installed {
            Ok(()) => self.when_kernel_has_it(responder, Reply::Change(report)),
            Err(error) => responder.finish(self.not_written(&error)),
        }
    }

    fn not_written(&self, error: &std::io::Error) -> Reply {
        let file = self.configuration.file().display();
        let text = format!("the change is in force, but cannot be written to {file}: {error}");
        Reply::Refused(Refusal::new(1, text).help("a restart would undo it: copy the file there by hand"))
    }

    fn confirm(&mut self, responder: Responder) {
        let Some(trial) = self.configuration.trial.take() else {
            return responder.refuse(1, "there is no change to confirm");
        };
        match self.configuration.install(&trial.text) {
            Ok(()) => {
                tracing::info!(target: CONFIG, "configuration confirmed");
                self.update_health();
                let file = self.configuration.file().display();
                responder.finish(Reply::Done { text: format!("confirmed; it is in {file} now") });
            }
            Err(error) => {
                // The trial goes on: it would be lost with the next restart anyway.
                self.configuration.trial = Some(trial);
                responder.finish(self.not_written(&error));
            }
        }
    }

    /// That a change is on trial.
    pub(super) fn trial_note(&self) -> Option<Health> {
        self.configuration.trial.as_ref()?;
        let file = self.configuration.file().display().to_string();
        let text = "a change is in force on trial, and a restart undoes it";
        let next_step = "`viamesh confirm` keeps it, `viamesh undo` goes back";
        Some(Health::new(HealthCode::ConfigUnconfirmed, file, text, next_step))
    }

    fn refuse(&mut self, purpose: Purpose, refusal: Refusal) {
        tracing::warn!(target: CONFIG, reason = refusal.text, "configuration not changed");
        if let Some(details) = &refusal.details {
            for line in details.lines().filter(|line| !line.trim().is_empty()) {
                tracing::warn!(target: CONFIG, "{line}");
            }
        }
        if let Purpose::Registry(_) = purpose {
            self.registry_trouble(HealthCode::RegistryRefused, &refusal.text);
        } else if let Purpose::Reload(_) | Purpose::Revert(_) = purpose {
            let text = format!("the last reload failed: {}", refusal.text);
            let next_step = "`viamesh check` shows what is wrong; then `viamesh reload`";
            let file = self.configuration.file().display().to_string();
            self.reload_problem = Some(Health::new(HealthCode::ConfigNotReloaded, file, text, next_step));
            self.update_health();
        }
        if let Some(responder) = purpose.into_responder() {
            responder.finish(Reply::Refused(refusal));
        }
    }

    /// Answer once the kernel has what the node wants by now.
    fn when_kernel_has_it(&mut self, responder: Responder, reply: Reply) {
        if self.kernel_has >= self.kernel_wants {
            return responder.finish(reply);
        }
        self.for_kernel.push((self.kernel_wants, responder, reply));
    }

    /// The kernel has come to a state.
    pub(super) fn take_kernel_serial(&mut self, serial: u64) {
        self.kernel_has = serial;
        let (done, waiting) =
            std::mem::take(&mut self.for_kernel).into_iter().partition(|(at, ..)| *at <= serial);
        self.for_kernel = waiting;
        let done: Vec<(u64, Responder, Reply)> = done;
        for (_, responder, reply) in done {
            responder.finish(reply);
        }
    }

    /// When something of this file is due.
    pub(super) fn configuration_deadline(&self) -> Option<Instant> {
        let trial = self.configuration.trial.as_ref().map(|trial| trial.deadline);
        let closing = self.closing.iter().map(|(at, _)| *at);
        trial.into_iter().chain(closing).chain(self.closing_tuns.iter().map(|(at, _)| *at)).min()
    }

    /// End trials that nobody confirmed, and close sockets that nobody needs.
    pub(super) fn configuration_due(&mut self, now: Instant) {
        if let Some(trial) = &mut self.configuration.trial
            && trial.deadline <= now
        {
            tracing::warn!(target: CONFIG, "nobody confirmed the change: going back");
            // Should another load be under way, the next try comes soon.
            trial.deadline = now + FAREWELL;
            self.load(Purpose::Revert(None), None);
        }
        self.close_tuns(now);
        let (due, waiting) = std::mem::take(&mut self.closing).into_iter().partition(|(at, _)| *at <= now);
        self.closing = waiting;
        let due: Vec<(Instant, crate::forwarding::SocketIndex)> = due;
        for (_, index) in due {
            if self.node.release_socket(index) {
                for worker in &self.host.workers {
                    // A full queue means that the descriptor stays open a little longer.
                    let _ = worker.set_socket(index, None);
                }
            }
        }
    }

    /// Close the TUNs of classes that are gone, when the kernel has stopped to feed them.
    fn close_tuns(&mut self, now: Instant) {
        let classes = self.node.classes();
        let (due, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.closing_tuns)
            .into_iter()
            .filter(|(_, class)| !classes.contains(*class))
            .partition(|(at, _)| *at <= now);
        self.closing_tuns = waiting;
        for (_, class) in due {
            for worker in &self.host.workers {
                // A full queue means that the TUN stays open: nothing leads there any more.
                let _ = worker.set_tun(class, None);
            }
        }
    }
}
