//! Threads that shall be on time: a link that wakes late looks like a slow network.

/// How much such a thread comes before others (19 last, -20 first).
const PRIORITY: i32 = -10;

/// By default the kernel lets a thread oversleep by 50 µs, to save wake-ups.
pub(crate) fn wake_up_precisely() {
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Puts the calling thread before the programs that load the machine, where that is allowed (it takes real root).
pub(crate) fn come_first() {
    // SAFETY: a system call with three integers; on Linux the zero means the calling thread alone.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, PRIORITY) };
}
