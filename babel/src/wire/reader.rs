//! A cursor over octets; every read says which field was missing.

use crate::Malformed;

/// The octets of one TLV that were not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    name: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads `octets`; errors name the TLV `name`.
    #[must_use]
    pub const fn new(octets: &'a [u8], name: &'static str) -> Self {
        Self { rest: octets, name }
    }

    /// The next `count` octets.
    ///
    /// # Errors
    /// [`Malformed::TooShort`].
    pub fn octets(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or(Malformed::TooShort(self.name))?;
        self.rest = tail;
        Ok(head)
    }

    /// The next `N` octets.
    ///
    /// # Errors
    /// [`Malformed::TooShort`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(Malformed::TooShort(self.name))?;
        self.rest = tail;
        Ok(*head)
    }

    /// The next octet.
    ///
    /// # Errors
    /// [`Malformed::TooShort`].
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(u8::from_be_bytes)
    }

    /// The next 16-bit number.
    ///
    /// # Errors
    /// [`Malformed::TooShort`].
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array::<2>().map(u16::from_be_bytes)
    }

    /// The next 32-bit number.
    ///
    /// # Errors
    /// [`Malformed::TooShort`].
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array::<4>().map(u32::from_be_bytes)
    }

    /// What is left.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
