//! Identities: what stands in ID payloads and what keys are pinned to (RFC 7296 §3.5).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::error::{Malformed, Misuse};

/// Identification type numbers (RFC 7296 §3.5).
const ID_IPV4_ADDR: u8 = 1;
const ID_FQDN: u8 = 2;
const ID_RFC822_ADDR: u8 = 3;
const ID_IPV6_ADDR: u8 = 5;
const ID_DER_ASN1_DN: u8 = 9;
const ID_KEY_ID: u8 = 11;

/// Longest identity that is accepted from a peer, in octets.
const MAX_LEN: usize = 1024;

/// Who a peer is. Two identities are equal when type and octets are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// DER encoding of an X.501 distinguished name.
    DistinguishedName(Vec<u8>),
    /// A fully qualified domain name, without trailing dot or zero.
    Fqdn(String),
    /// A user@host name.
    Rfc822(String),
    /// Vendor-specific octets.
    KeyId(Vec<u8>),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
}

impl Identity {
    /// The distinguished name that ranet gives to an endpoint: O, CN and serialNumber, in this order.
    ///
    /// O and CN are UTF8String, serialNumber is PrintableString, which is what ranet's certificates
    /// library chooses. Each must have 1 to 64 characters (X.520 upper bounds).
    ///
    /// # Errors
    /// [`Misuse::BadIdentity`] if a part is empty, too long, or the serial number is not printable.
    pub fn ranet(organization: &str, common_name: &str, serial_number: &str) -> Result<Self, Misuse> {
        let bounded = |text: &str| (1..=64).contains(&text.chars().count());
        if !bounded(organization) {
            return Err(Misuse::BadIdentity("organization"));
        }
        if !bounded(common_name) {
            return Err(Misuse::BadIdentity("common name"));
        }
        if !bounded(serial_number) || !serial_number.bytes().all(is_printable_string_octet) {
            return Err(Misuse::BadIdentity("serial number"));
        }
        let mut name = Vec::new();
        // Attribute types 2.5.4.10 (O), 2.5.4.3 (CN) and 2.5.4.5 (serialNumber).
        relative_distinguished_name(&mut name, 10, tag::UTF8_STRING, organization.as_bytes());
        relative_distinguished_name(&mut name, 3, tag::UTF8_STRING, common_name.as_bytes());
        relative_distinguished_name(&mut name, 5, tag::PRINTABLE_STRING, serial_number.as_bytes());
        let mut der = Vec::new();
        tag_length_value(&mut der, tag::SEQUENCE, &name);
        Ok(Self::DistinguishedName(der))
    }

    /// ID Type of the ID payload.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::DistinguishedName(_) => ID_DER_ASN1_DN,
            Self::Fqdn(_) => ID_FQDN,
            Self::Rfc822(_) => ID_RFC822_ADDR,
            Self::KeyId(_) => ID_KEY_ID,
            Self::Ipv4(_) => ID_IPV4_ADDR,
            Self::Ipv6(_) => ID_IPV6_ADDR,
        }
    }

    /// Identification data of the ID payload.
    pub(crate) fn octets(&self) -> Vec<u8> {
        match self {
            Self::DistinguishedName(octets) | Self::KeyId(octets) => octets.clone(),
            Self::Fqdn(text) | Self::Rfc822(text) => text.as_bytes().to_vec(),
            Self::Ipv4(address) => address.octets().to_vec(),
            Self::Ipv6(address) => address.octets().to_vec(),
        }
    }

    /// Reads type and data of an ID payload.
    pub(crate) fn parse(kind: u8, data: &[u8]) -> Result<Self, Malformed> {
        if data.len() > MAX_LEN {
            return Err(Malformed::Length("identity"));
        }
        let text = || String::from_utf8(data.to_vec()).map_err(|_| Malformed::Value("identity"));
        match kind {
            ID_DER_ASN1_DN => Ok(Self::DistinguishedName(data.to_vec())),
            ID_KEY_ID => Ok(Self::KeyId(data.to_vec())),
            ID_FQDN => Ok(Self::Fqdn(text()?)),
            ID_RFC822_ADDR => Ok(Self::Rfc822(text()?)),
            ID_IPV4_ADDR => {
                let octets: [u8; 4] = data.try_into().map_err(|_| Malformed::Length("identity"))?;
                Ok(Self::Ipv4(octets.into()))
            }
            ID_IPV6_ADDR => {
                let octets: [u8; 16] = data.try_into().map_err(|_| Malformed::Length("identity"))?;
                Ok(Self::Ipv6(octets.into()))
            }
            _ => Err(Malformed::Value("identity type")),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DistinguishedName(der) => match readable_name(der) {
                Some(text) => f.write_str(&text),
                None => write_hex(f, "dn:#", der),
            },
            Self::Fqdn(text) | Self::Rfc822(text) => f.write_str(text),
            Self::KeyId(octets) => write_hex(f, "keyid:#", octets),
            Self::Ipv4(address) => address.fmt(f),
            Self::Ipv6(address) => address.fmt(f),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({self})")
    }
}

impl Identity {
    /// Whether both name the same. A distinguished name that a person typed into a peer's configuration has
    /// PrintableStrings where ours has UTF8Strings.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let name = match other {
            Self::DistinguishedName(der) => read_value(der, tag::SEQUENCE),
            _ => None,
        };
        self == other || name.is_some_and(|(name, rest)| rest.is_empty() && self.is_same_name(name))
    }

    /// Whether this is the distinguished name whose sequence has the content `name`. How strings are encoded does
    /// not matter (PrintableString or UTF8String), since authorities choose it anew.
    //= RFC 5280 §7.1, without folding of case and spaces: what is pinned is written as it is certified
    pub(crate) fn is_same_name(&self, name: &[u8]) -> bool {
        let Self::DistinguishedName(der) = self else { return false };
        let Some((ours, [])) = read_value(der, tag::SEQUENCE) else { return false };
        ours == name || attributes(ours).is_some_and(|ours| attributes(name) == Some(ours))
    }
}

/// Types and values of the attributes of a name, string types left out; `None` if it has anything else in it.
fn attributes(mut sets: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut found = Vec::new();
    while !sets.is_empty() {
        let (set, after) = read_value(sets, tag::SET)?;
        let (pair, rest) = read_value(set, tag::SEQUENCE)?;
        let (attribute, value) = read_value(pair, tag::OBJECT_IDENTIFIER)?;
        let kind = value.first().copied().filter(|kind| tag::STRINGS.contains(kind))?;
        let (text, behind) = read_value(value, kind)?;
        if !rest.is_empty() || !behind.is_empty() {
            return None;
        }
        found.push((attribute, text));
        sets = after;
    }
    Some(found)
}

/// ASN.1 tags used in names.
mod tag {
    pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(super) const UTF8_STRING: u8 = 0x0C;
    pub(super) const PRINTABLE_STRING: u8 = 0x13;
    const IA5_STRING: u8 = 0x16;
    /// Strings whose octets are comparable with each other.
    pub(super) const STRINGS: [u8; 3] = [UTF8_STRING, PRINTABLE_STRING, IA5_STRING];
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const SET: u8 = 0x31;
}

fn is_printable_string_octet(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&octet)
}

/// SET { SEQUENCE { OID 2.5.4.`attribute`, string } }
fn relative_distinguished_name(out: &mut Vec<u8>, attribute: u8, string_tag: u8, value: &[u8]) {
    let mut pair = Vec::new();
    tag_length_value(&mut pair, tag::OBJECT_IDENTIFIER, &[0x55, 0x04, attribute]);
    tag_length_value(&mut pair, string_tag, value);
    let mut sequence = Vec::new();
    tag_length_value(&mut sequence, tag::SEQUENCE, &pair);
    tag_length_value(out, tag::SET, &sequence);
}

fn tag_length_value(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    out.push(tag);
    match u8::try_from(value.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let octets = value.len().to_be_bytes();
            let significant: Vec<u8> = octets.iter().copied().skip_while(|octet| *octet == 0).collect();
            out.push(0x80 | u8::try_from(significant.len()).unwrap_or(0x7F));
            out.extend_from_slice(&significant);
        }
    }
    out.extend_from_slice(value);
}

/// `O=…, CN=…` for names made of the usual attributes; `None` if the DER is anything else.
fn readable_name(der: &[u8]) -> Option<String> {
    let (sequence, rest) = read_value(der, tag::SEQUENCE)?;
    if !rest.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    let mut sets = sequence;
    while !sets.is_empty() {
        let (set, after) = read_value(sets, tag::SET)?;
        let (pair, _) = read_value(set, tag::SEQUENCE)?;
        let (attribute, value) = read_value(pair, tag::OBJECT_IDENTIFIER)?;
        let label = match attribute {
            [0x55, 0x04, 3] => "CN",
            [0x55, 0x04, 5] => "serialNumber",
            [0x55, 0x04, 6] => "C",
            [0x55, 0x04, 10] => "O",
            [0x55, 0x04, 11] => "OU",
            _ => return None,
        };
        let (text, _) = read_value(value, *value.first()?)?;
        let text = std::str::from_utf8(text).ok()?;
        // Control characters would let a peer forge log lines.
        if text.chars().any(char::is_control) {
            return None;
        }
        parts.push(format!("{label}={text}"));
        sets = after;
    }
    Some(parts.join(", "))
}

/// Content of the element at the start of `der` and what follows it.
fn read_value(der: &[u8], expected_tag: u8) -> Option<(&[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first()?;
    if tag != expected_tag {
        return None;
    }
    let (length, rest) = match length {
        0..=0x7F => (usize::from(length), rest),
        0x81 => rest.split_first().map(|(&octet, rest)| (usize::from(octet), rest))?,
        0x82 => {
            let (octets, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*octets)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

fn write_hex(f: &mut fmt::Formatter<'_>, prefix: &str, octets: &[u8]) -> fmt::Result {
    f.write_str(prefix)?;
    octets.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranet_names_have_the_octets_that_its_own_test_expects() {
        let identity = Identity::ranet("acme organization", "some server", "0").unwrap();
        let expected = "303e311a3018060355040a0c1161636d65206f7267616e697a6174696f6e3114301206035504030c0b73\
                        6f6d6520736572766572310a30080603550405130130";
        let hex: String = identity.octets().iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(hex, expected);
        assert_eq!(identity.to_string(), "O=acme organization, CN=some server, serialNumber=0");
    }

    #[test]
    fn long_names_use_the_long_form_of_lengths() {
        let organization = "\u{e9}".repeat(64);
        let Identity::DistinguishedName(der) = Identity::ranet(&organization, &organization, "0").unwrap()
        else {
            panic!("not a name")
        };
        assert_eq!(der[..3], [0x30, 0x82, 0x01]);
        assert!(readable_name(&der).is_some());
    }

    #[test]
    fn parts_that_a_certificate_would_refuse_are_refused() {
        assert_eq!(Identity::ranet("", "a", "0"), Err(Misuse::BadIdentity("organization")));
        assert_eq!(Identity::ranet("o", &"x".repeat(65), "0"), Err(Misuse::BadIdentity("common name")));
        assert_eq!(Identity::ranet("o", "a", "a@b"), Err(Misuse::BadIdentity("serial number")));
    }

    #[test]
    fn every_kind_survives_a_round_trip() {
        for identity in [
            Identity::ranet("o", "n", "1").unwrap(),
            Identity::Fqdn("a.mesh.test".into()),
            Identity::Rfc822("a@mesh.test".into()),
            Identity::KeyId(vec![1, 2, 0xAA, 0xBB]),
            Identity::Ipv4(Ipv4Addr::LOCALHOST),
            Identity::Ipv6(Ipv6Addr::LOCALHOST),
        ] {
            assert_eq!(Identity::parse(identity.kind(), &identity.octets()), Ok(identity));
        }
    }

    #[test]
    fn names_are_the_same_whatever_type_their_strings_have() {
        let build = |string_tag, text: &[u8]| {
            let mut name = Vec::new();
            relative_distinguished_name(&mut name, 10, string_tag, text);
            relative_distinguished_name(&mut name, 3, tag::UTF8_STRING, b"node");
            name
        };
        let pinned = |content: &[u8]| {
            let mut der = Vec::new();
            tag_length_value(&mut der, tag::SEQUENCE, content);
            Identity::DistinguishedName(der)
        };
        let name = build(tag::UTF8_STRING, b"acme");
        let identity = pinned(&name);
        assert!(identity.is_same_name(&name));
        assert!(identity.is_same_name(&build(tag::PRINTABLE_STRING, b"acme")));
        assert!(!identity.is_same_name(&build(tag::UTF8_STRING, b"acmf")));
        assert!(!identity.is_same_name(&name[..name.len() - 1]));
        assert!(!identity.is_same_name(&[&name[..], &name].concat()));
        assert!(!identity.is_same_name(&[]));
        assert!(!Identity::Fqdn("node".into()).is_same_name(&name));
        let typed = pinned(&build(tag::PRINTABLE_STRING, b"acme"));
        assert!(identity.is_same(&typed) && typed.is_same(&identity) && typed != identity);
        assert!(!identity.is_same(&pinned(&build(tag::PRINTABLE_STRING, b"acmf"))));
        let Identity::DistinguishedName(der) = &typed else { panic!("{typed}") };
        assert!(!identity.is_same(&Identity::DistinguishedName([der.as_slice(), &[0]].concat())));
        assert!(
            !identity.is_same(&Identity::Fqdn("node".into()))
                && !typed.is_same(&Identity::KeyId(der.clone()))
        );
    }

    #[test]
    fn a_name_with_control_characters_is_shown_as_octets() {
        let mut name = Vec::new();
        relative_distinguished_name(&mut name, 3, tag::UTF8_STRING, b"a\nb");
        let mut der = Vec::new();
        tag_length_value(&mut der, tag::SEQUENCE, &name);
        assert!(Identity::DistinguishedName(der).to_string().starts_with("dn:#"));
    }
}
