//! Router identifiers (RFC 8966 §4.1.3).

use std::fmt;

/// The eight octets that name a router; all zeros and all ones are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(pub [u8; 8]);

impl RouterId {
    //= RFC 8966 §4.1.3
    /// Whether the value may name a router.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        let value = u64::from_be_bytes(self.0);
        value != 0 && value != u64::MAX
    }
}

impl fmt::Display for RouterId {
    /// Four groups of hexadecimal digits, as BIRD and babeld print it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, octet) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_str(":")?;
            }
            write!(formatter, "{octet:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_values_are_invalid() {
        assert!(!RouterId([0; 8]).is_valid());
        assert!(!RouterId([0xFF; 8]).is_valid());
        assert!(RouterId([0, 0, 0, 0, 0, 0, 0, 1]).is_valid());
    }

    #[test]
    fn prints_octets() {
        assert_eq!(RouterId([0, 1, 2, 3, 4, 5, 6, 0xAB]).to_string(), "00:01:02:03:04:05:06:ab");
    }
}
