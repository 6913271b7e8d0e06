//! A cursor that runs out with an error instead of a panic.

use crate::error::Malformed;

/// Reads big-endian fields from the front of a slice; `what` names the structure in errors.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(octets: &'a [u8], what: &'static str) -> Self {
        Self { rest: octets, what }
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed::Truncated(self.what))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated(self.what))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Everything that is left.
    pub(super) fn remainder(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `length` octets as a reader of their own, where `length` counts `already` read ones too.
    pub(super) fn sub(&mut self, length: u16, already: usize, what: &'static str) -> Result<Self, Malformed> {
        let remaining = usize::from(length).checked_sub(already).ok_or(Malformed::Length(what))?;
        let octets = self.take(remaining).map_err(|_| Malformed::Truncated(what))?;
        Ok(Self::new(octets, what))
    }

    /// # Errors
    /// [`Malformed::Length`] if octets are left over.
    pub(super) fn finish(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed::Length(self.what)) }
    }
}
