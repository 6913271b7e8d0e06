//! Sub-TLVs (RFC 8966 §4.4), with those of RFC 9079 and RFC 9616.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{address_encoding::complete, packet, reader::Reader};
use crate::Malformed;

/// Timestamps (RFC 9616 §6).
pub const TIMESTAMP: u8 = 3;
/// Ours, experimental (RFC 8966 §5): in an IHU, "send me unicast Hellos at this interval" in centiseconds.
pub const FAST_HELLO: u8 = 112;
/// Source prefix (RFC 9079 §7.1); mandatory.
pub const SOURCE_PREFIX: u8 = 128;

/// Which sub-TLVs of a TLV are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// TLVs that know none.
    Plain,
    /// Hello: one timestamp.
    Hello,
    /// IHU: two timestamps.
    Ihu,
    /// Update and requests for an IPv4 prefix: source prefix.
    Ipv4Route,
    /// Update and requests for an IPv6 prefix: source prefix.
    Ipv6Route,
}

/// What the sub-TLVs of one TLV say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubTlvs {
    /// The TLV must be ignored: it carries a mandatory sub-TLV that is unknown or that makes no sense here.
    pub ignore: bool,
    /// The timestamp of a Hello, in microseconds.
    pub transmit: Option<u32>,
    /// Origin and receive timestamp of an IHU, in microseconds.
    pub echo: Option<(u32, u32)>,
    /// The unicast Hello interval that the neighbour asks for, in centiseconds.
    pub fast_hello: Option<u16>,
    /// The source prefix.
    pub source: Option<IpNet>,
}

impl SubTlvs {
    /// Reads the sub-TLVs that follow the fields of a TLV.
    ///
    /// # Errors
    /// [`Malformed`] if one overruns the TLV, or a source prefix has an impossible length.
    pub fn parse(octets: &[u8], context: Context) -> Result<Self, Malformed> {
        let mut found = Self::default();
        for sub_tlv in packet::tlvs(octets) {
            let sub_tlv = sub_tlv.map_err(|_| Malformed::Overrun("a sub-TLV"))?;
            found.read(sub_tlv.kind, sub_tlv.body, context)?;
        }
        Ok(found)
    }

    fn read(&mut self, kind: u8, body: &[u8], context: Context) -> Result<(), Malformed> {
        let mut reader = Reader::new(body, "a sub-TLV");
        match (kind, context) {
            (TIMESTAMP, Context::Hello) => self.transmit = reader.u32().ok(),
            (TIMESTAMP, Context::Ihu) => self.echo = reader.u32().and_then(|o| Ok((o, reader.u32()?))).ok(),
            (FAST_HELLO, Context::Ihu) => self.fast_hello = reader.u16().ok().filter(|i| *i > 0),
            //= RFC 9079 §7.1
            (SOURCE_PREFIX, Context::Ipv4Route | Context::Ipv6Route) => {
                self.ignore |= self.source.is_some();
                self.source = Some(source_prefix(&mut reader, context == Context::Ipv4Route)?);
            }
            //= RFC 8966 §4.4
            (128.., _) => self.ignore = true,
            _ => {}
        }
        Ok(())
    }
}

fn source_prefix(reader: &mut Reader<'_>, ipv4: bool) -> Result<IpNet, Malformed> {
    let length = reader.u8()?;
    let longest = if ipv4 { 32 } else { 128 };
    //= RFC 9079 §7.1
    if length == 0 || length > longest {
        return Err(Malformed::Value("the source prefix length"));
    }
    let octets = reader.octets(usize::from(length.div_ceil(8)))?;
    let net = if ipv4 {
        Ipv4Net::new(complete::<4>(&[], octets).into(), length).map(IpNet::V4)
    } else {
        Ipv6Net::new(complete::<16>(&[], octets).into(), length).map(IpNet::V6)
    };
    net.map(|net| net.trunc()).map_err(|_| Malformed::Value("the source prefix length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_optional_is_skipped_and_unknown_mandatory_ignores_the_tlv() {
        let optional = SubTlvs::parse(&[0, 1, 0, 55, 2, 1, 2], Context::Plain).unwrap();
        assert_eq!(optional, SubTlvs::default());
        assert!(SubTlvs::parse(&[200, 0], Context::Plain).unwrap().ignore, "a zero-length one at the end");
        assert!(SubTlvs::parse(&[55, 1, 9, 128, 1, 8], Context::Hello).unwrap().ignore);
    }

    #[test]
    fn overrun_is_malformed() {
        for octets in [&[3, 5, 0][..], &[3][..], &[200][..], &[1, 1][..]] {
            assert!(SubTlvs::parse(octets, Context::Plain).is_err(), "{octets:?}");
        }
    }

    #[test]
    fn source_prefixes() {
        let one = SubTlvs::parse(&[128, 2, 8, 10], Context::Ipv4Route).unwrap();
        assert_eq!(one.source, Some("10.0.0.0/8".parse().unwrap()));
        assert!(SubTlvs::parse(&[128, 2, 8, 10, 128, 2, 8, 11], Context::Ipv4Route).unwrap().ignore);
        assert!(SubTlvs::parse(&[128, 1, 0], Context::Ipv6Route).is_err());
        assert!(SubTlvs::parse(&[128, 6, 33, 1, 2, 3, 4, 5], Context::Ipv4Route).is_err());
        assert!(SubTlvs::parse(&[128, 2, 16, 10], Context::Ipv4Route).is_err());
    }

    #[test]
    fn short_timestamps_are_ignored() {
        assert_eq!(SubTlvs::parse(&[3, 3, 1, 2, 3], Context::Hello).unwrap().transmit, None);
        assert_eq!(SubTlvs::parse(&[3, 4, 0, 0, 1, 0], Context::Hello).unwrap().transmit, Some(256));
        assert_eq!(SubTlvs::parse(&[3, 4, 0, 0, 1, 0], Context::Ihu).unwrap().echo, None);
    }
}
