//! Ancillary data of sendmsg and recvmsg (cmsg(3)), laid out without pointers.

use std::mem::size_of;

/// Room for all messages that are sent or asked for.
pub(super) const CAPACITY: usize = 256;

/// Octets of `struct cmsghdr` with its alignment.
const HEADER: usize = align(size_of::<libc::cmsghdr>());

const fn align(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

/// A buffer aligned as the kernel wants it.
#[repr(C, align(8))]
pub(super) struct ControlBuffer {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl ControlBuffer {
    pub(super) const fn new() -> Self {
        ControlBuffer { bytes: [0; CAPACITY], len: 0 }
    }

    /// Octets in use: 0 must be passed to the kernel as 0.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// Appends a message. There is room for all kinds that exist here.
    pub(super) fn push(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        let end = self.len + HEADER + align(data.len());
        let Some(space) = self.bytes.get_mut(self.len..end) else { return };
        let word = size_of::<usize>();
        space.fill(0);
        space[..word].copy_from_slice(&(HEADER + data.len()).to_ne_bytes());
        space[word..word + 4].copy_from_slice(&level.to_ne_bytes());
        space[word + 4..word + 8].copy_from_slice(&kind.to_ne_bytes());
        space[HEADER..HEADER + data.len()].copy_from_slice(data);
        self.len = end;
    }

    /// The messages in the first `len` octets, which the kernel wrote.
    pub(super) fn messages(&self, len: usize) -> Messages<'_> {
        Messages { rest: &self.bytes[..len.min(CAPACITY)] }
    }
}

/// Iterator over `(level, type, data)`.
pub(super) struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = (libc::c_int, libc::c_int, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let word = size_of::<usize>();
        let len = usize::from_ne_bytes(self.rest.get(..word)?.try_into().ok()?);
        let level = i32::from_ne_bytes(*self.rest.get(word..)?.first_chunk()?);
        let kind = i32::from_ne_bytes(*self.rest.get(word + 4..)?.first_chunk()?);
        let data = self.rest.get(HEADER..len)?;
        self.rest = self.rest.get(align(len)..).unwrap_or_default();
        Some((level, kind, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_read_back() {
        let mut buffer = ControlBuffer::new();
        buffer.push(1, 2, &[9, 8]);
        buffer.push(3, 4, &[7; 12]);
        let messages: Vec<_> = buffer.messages(buffer.len()).collect();
        assert_eq!(messages, [(1, 2, &[9, 8][..]), (3, 4, &[7; 12][..])]);
        assert_eq!(buffer.len() % size_of::<usize>(), 0);
    }

    #[test]
    fn broken_lengths_end_the_walk() {
        let mut buffer = ControlBuffer::new();
        buffer.push(1, 2, &[0; 4]);
        assert_eq!(buffer.messages(10).count(), 0);
        buffer.bytes[..8].copy_from_slice(&4usize.to_ne_bytes());
        assert_eq!(buffer.messages(buffer.len()).count(), 0);
        buffer.bytes[..8].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(buffer.messages(buffer.len()).count(), 0);
    }
}
