//! The thread that starts all programs of a world.
//!
//! Programs ask the kernel to be killed when their parent dies (PR_SET_PDEATHSIG), and to the kernel the parent is
//! the *thread* that forked. So one thread, which lives as long as the world, forks them all.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::process::{Process, ProcessInner, RunOutput};
use crate::root::{Entry, Root};

type Order = Box<dyn FnOnce() + Send>;

/// Starts programs, and ends those that are left when it is dropped.
#[derive(Debug)]
pub(crate) struct Spawner {
    orders: Mutex<Option<Sender<Order>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    directory: PathBuf,
    started: Mutex<Vec<Weak<ProcessInner>>>,
    counter: AtomicU32,
}

impl Spawner {
    /// Logs go to files in `directory`.
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let (orders, inbox) = channel::<Order>();
        let work = move || inbox.into_iter().for_each(|order| order());
        let thread = std::thread::Builder::new().name("spawner".into()).spawn(work);
        let thread = thread.trying(|| "starting a thread".into())?;
        Ok(Self {
            orders: Mutex::new(Some(orders)),
            thread: Mutex::new(Some(thread)),
            directory: directory.to_owned(),
            started: Mutex::default(),
            counter: AtomicU32::new(0),
        })
    }

    /// Starts a program with one log file for both of its outputs.
    pub(crate) fn spawn(&self, host: &Host, root: Option<&Root>, mut command: Command) -> Result<Process> {
        let (what, stem) = self.names(host, &command);
        let log = stem.with_extension("log");
        let (out, err) = create_twice(&log)?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = self.start(host, root, command, &what)?;
        let process = Process::new(child, what, log)?;
        let mut started = lock(&self.started);
        started.retain(|process| process.strong_count() > 0);
        started.push(process.downgrade());
        Ok(process)
    }

    /// Runs a program to its end.
    pub(crate) fn run(
        &self,
        host: &Host,
        root: Option<&Root>,
        mut command: Command,
        limit: Duration,
    ) -> Result<RunOutput> {
        let (what, stem) = self.names(host, &command);
        let (stdout, stderr) = (stem.with_extension("out"), stem.with_extension("err"));
        let create = |path: &Path| File::create(path).trying(|| format!("creating {}", path.display()));
        command.stdin(Stdio::null()).stdout(create(&stdout)?).stderr(create(&stderr)?);
        let child = self.start(host, root, command, &what)?;
        let process = Process::new(child, what.clone(), stderr.clone())?;
        let status = process.wait(limit)?;
        let read = |path: &Path| {
            let bytes = std::fs::read(path).trying(|| format!("reading {}", path.display()))?;
            // Nobody else knows of these files: a poll that runs a program many times leaves none behind.
            let _ = std::fs::remove_file(path);
            Ok::<_, LabError>(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(RunOutput { what, status, stdout: read(&stdout)?, stderr: read(&stderr)? })
    }

    /// What to call a program in messages, and the path of its log without extension.
    fn names(&self, host: &Host, command: &Command) -> (String, PathBuf) {
        let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let stem = self.directory.join(format!("{}-{program}-{number}", host.name()));
        (format!("{} in {}", program, host.name()), stem)
    }

    fn start(&self, host: &Host, root: Option<&Root>, mut command: Command, what: &str) -> Result<Child> {
        let entry = root.map(Root::prepare).transpose()?;
        let parent = std::process::id();
        let host = host.clone();
        let order = move || {
            let namespace = host.namespace().as_fd().as_raw_fd();
            let prepare = move || {
                prepare_child(namespace, parent)?;
                entry.as_ref().map_or(Ok(()), Entry::enter)
            };
            // SAFETY: between fork and exec the closure makes only system calls, which is all that is allowed
            // there; `host` keeps the descriptor open until the fork has happened.
            unsafe { command.pre_exec(prepare) };
            command.spawn()
        };
        self.order(order)?.trying(|| format!("starting {what}"))
    }

    /// Has the thread do something and waits for the result.
    fn order<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (result, answer) = channel();
        let order: Order = Box::new(move || drop(result.send(work())));
        let gone = || LabError::Misuse("the world of this host is gone".into());
        lock(&self.orders).as_ref().ok_or_else(gone)?.send(order).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())
    }

    /// Ends all programs and the thread.
    pub(crate) fn shut_down(&self) {
        let left: Vec<_> = lock(&self.started).drain(..).filter_map(|process| process.upgrade()).collect();
        // First ask all, then wait for each: they end side by side.
        left.iter().for_each(|process| process.ask_to_end());
        left.iter().for_each(|process| process.end());
        drop(lock(&self.orders).take());
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Runs in the child before exec: system calls only.
fn prepare_child(namespace: i32, parent: u32) -> std::io::Result<()> {
    // SAFETY: plain system calls with integers; the descriptor is open.
    unsafe {
        if libc::setpgid(0, 0) != 0
            || libc::setns(namespace, libc::CLONE_NEWNET) != 0
            || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
        {
            return Err(std::io::Error::last_os_error());
        }
        // The parent may have died before the request to be killed with it.
        if libc::getppid() as u32 != parent {
            libc::_exit(1);
        }
    }
    Ok(())
}

fn create_twice(path: &Path) -> Result<(File, File)> {
    let file = File::options().create(true).append(true).open(path);
    let file = file.trying(|| format!("creating {}", path.display()))?;
    let twin = file.try_clone().trying(|| format!("opening {} again", path.display()))?;
    Ok((file, twin))
}

/// Locks, whatever became of the thread that held the lock before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
