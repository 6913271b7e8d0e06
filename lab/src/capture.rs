//! A packet capture, taken at the emulator.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::error::{LabError, Result, Trying};
use crate::frame::{Frame, VIRTIO_LENGTH};
use crate::spawner::lock;

/// The pcap magic number for stamps in nanoseconds; our byte order is the file's.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: (u16, u16) = (2, 4);
const LINKTYPE_ETHERNET: u32 = 1;
const SNAP_LENGTH: u32 = 262_144;

/// A capture in progress; dropping it ends it. Frames are in the file as soon as the emulator has dealt with them;
/// super-frames are written as the single frames that they stand for.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    sink: Arc<Mutex<Sink>>,
}

/// The emulator's side of a capture.
#[derive(Debug, Clone)]
pub(crate) struct CaptureTap {
    sink: Arc<Mutex<Sink>>,
    /// Only frames between these two stations.
    between: Option<(usize, usize)>,
}

#[derive(Debug)]
struct Sink {
    /// `None` once the capture has ended.
    file: Option<File>,
    buffer: Vec<u8>,
    frames: u64,
    failure: Option<io::Error>,
    epoch: (Instant, SystemTime),
}

impl Capture {
    /// Creates the file; the second value goes to the emulator.
    pub(crate) fn create(path: &Path, between: Option<(usize, usize)>) -> Result<(Self, CaptureTap)> {
        let doing = || format!("creating the capture {}", path.display());
        let mut file = File::create(path).trying(doing)?;
        file.write_all(&file_header()).trying(doing)?;
        let epoch = (Instant::now(), SystemTime::now());
        let sink = Sink { file: Some(file), buffer: Vec::new(), frames: 0, failure: None, epoch };
        let sink = Arc::new(Mutex::new(sink));
        Ok((Self { path: path.to_owned(), sink: sink.clone() }, CaptureTap { sink, between }))
    }

    /// The pcap file (Ethernet link type, nanosecond stamps).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the capture and says how many frames are in the file.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn finish(self) -> Result<u64> {
        let mut sink = lock(&self.sink);
        sink.flush();
        sink.file = None;
        match sink.failure.take() {
            None => Ok(sink.frames),
            Some(source) => {
                Err(LabError::System { what: format!("writing the capture {}", self.path.display()), source })
            }
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let mut sink = lock(&self.sink);
        sink.flush();
        sink.file = None;
    }
}

impl CaptureTap {
    /// Whether the capture has not ended.
    pub(crate) fn is_open(&self) -> bool {
        lock(&self.sink).file.is_some()
    }

    /// Whether it wants frames of this sender to these receivers.
    pub(crate) fn wants(&self, from: usize, receivers: &[usize]) -> bool {
        self.between
            .is_none_or(|(a, b)| receivers.iter().any(|to| (from, *to) == (a, b) || (from, *to) == (b, a)))
    }

    pub(crate) fn write(&self, frame: &Frame<'_>, at: Instant) {
        let mut sink = lock(&self.sink);
        for part in frame.split() {
            sink.append(part.get(VIRTIO_LENGTH..).unwrap_or_default(), at);
        }
    }

    /// Brings what was written into the file.
    pub(crate) fn flush(&self) {
        lock(&self.sink).flush();
    }
}

impl Sink {
    fn append(&mut self, ethernet: &[u8], at: Instant) {
        let (start, start_of_day) = self.epoch;
        let stamp = start_of_day + at.saturating_duration_since(start);
        let stamp = stamp.duration_since(UNIX_EPOCH).unwrap_or_default();
        // The format has 32 bits for seconds, good until 2106, and frames are far shorter than 4 GiB.
        let seconds = u32::try_from(stamp.as_secs()).unwrap_or(u32::MAX);
        let length = u32::try_from(ethernet.len()).unwrap_or(SNAP_LENGTH);
        for word in [seconds, stamp.subsec_nanos(), length, length] {
            self.buffer.extend_from_slice(&word.to_ne_bytes());
        }
        self.buffer.extend_from_slice(ethernet);
        self.frames += 1;
    }

    fn flush(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&self.buffer)
        {
            self.failure.get_or_insert(error);
        }
        self.buffer.clear();
    }
}

fn file_header() -> Vec<u8> {
    let mut header = MAGIC.to_ne_bytes().to_vec();
    header.extend_from_slice(&VERSION.0.to_ne_bytes());
    header.extend_from_slice(&VERSION.1.to_ne_bytes());
    for word in [0, 0, SNAP_LENGTH, LINKTYPE_ETHERNET] {
        header.extend_from_slice(&word.to_ne_bytes());
    }
    header
}
