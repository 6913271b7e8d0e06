//! Single values: how each type is written, and what to say when it is written otherwise.

use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

use ipnet::{IpNet, Ipv6Net};
use serde_json::json;

use super::code::Code;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::record::{FromYaml, Shape};
use super::settings::{Family, IfUnreachable};
use super::suggestion::{enumerate, nearest};
use super::yaml::{Kind, Value};

/// A type that is written as one scalar.
pub(crate) trait Scalar: Sized {
    /// What people call it, with an example.
    const NOUN: &'static str;

    /// Reads it.
    fn parse(text: &str) -> Result<Self, Wrong>;

    /// What was probably meant by a text that [`Scalar::parse`] refuses, so that later checks can go on.
    fn guess(_text: &str) -> Option<Self> {
        None
    }

    /// The JSON Schema of how it is written.
    fn schema() -> serde_json::Value {
        json!({"type": "string"})
    }
}

/// What is wrong with a scalar.
#[derive(Debug, Default)]
pub(crate) struct Wrong {
    /// [`Code::InvalidValue`] unless given.
    pub(crate) code: Option<Code>,
    /// The first line; made from the type's noun unless given.
    pub(crate) title: Option<String>,
    pub(crate) label: String,
    pub(crate) help: Option<String>,
}

impl Wrong {
    pub(crate) fn because(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl<T: Scalar> FromYaml for T {
    fn from_yaml(value: &Value, diagnostics: &mut Diagnostics) -> Option<Self> {
        let Kind::Scalar(text) = &value.kind else {
            let title = format!("{} belongs here, not {}", T::NOUN, value.noun());
            diagnostics.push(Diagnostic::at(value.span, Code::WrongType, title).label("not a single value"));
            return None;
        };
        match T::parse(text.trim()) {
            Ok(read) => Some(read),
            Err(wrong) => {
                let title = wrong.title.unwrap_or_else(|| format!("`{}` is not {}", text.trim(), T::NOUN));
                let diagnostic = Diagnostic::at(value.span, wrong.code.unwrap_or(Code::InvalidValue), title);
                let diagnostic = diagnostic.label(wrong.label);
                diagnostics.push(match wrong.help {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                });
                T::guess(text.trim())
            }
        }
    }

    fn shape() -> Shape {
        Shape::Scalar { noun: T::NOUN, schema: T::schema() }
    }
}

impl Scalar for String {
    const NOUN: &'static str = "a text";

    fn parse(text: &str) -> Result<Self, Wrong> {
        if text.is_empty() { Err(Wrong::because("empty")) } else { Ok(text.to_owned()) }
    }

    fn schema() -> serde_json::Value {
        json!({"type": ["string", "number"]})
    }
}

impl Scalar for bool {
    const NOUN: &'static str = "`true` or `false`";

    fn parse(text: &str) -> Result<Self, Wrong> {
        match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Wrong::because("neither `true` nor `false`")),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"type": "boolean"})
    }
}

/// Reads decimal or, after `0x`, hexadecimal digits.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None if text.bytes().all(|digit| digit.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

macro_rules! integers {
    ($($type:ty: $noun:literal;)*) => {$(
        impl Scalar for $type {
            const NOUN: &'static str = $noun;

            fn parse(text: &str) -> Result<Self, Wrong> {
                let Some(value) = number(text) else { return Err(Wrong::because("not a whole number")) };
                Self::try_from(value).map_err(|_| Wrong::because(format!("at most {}", Self::MAX)))
            }

            fn schema() -> serde_json::Value {
                json!({"type": ["integer", "string"], "minimum": 0, "maximum": Self::MAX})
            }
        }
    )*};
}

integers! {
    u8: "a number up to 255";
    u16: "a number up to 65535";
    u32: "a number up to 4294967295";
}

impl Scalar for u64 {
    const NOUN: &'static str = "a number";

    fn parse(text: &str) -> Result<Self, Wrong> {
        number(text).ok_or_else(|| Wrong::because("not a whole number"))
    }

    fn schema() -> serde_json::Value {
        json!({"type": ["integer", "string"], "minimum": 0})
    }
}

/// A UDP port: anything but 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port(pub(crate) u16);

impl Scalar for Port {
    const NOUN: &'static str = "a port, 1 to 65535";

    fn parse(text: &str) -> Result<Self, Wrong> {
        match number(text).and_then(|value| u16::try_from(value).ok()) {
            Some(port) if port != 0 => Ok(Self(port)),
            _ => Err(Wrong::because("not a port")),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"type": ["integer", "string"], "minimum": 1, "maximum": 65535})
    }
}

/// A firewall mark; ranet writes it as text, strongSwan allows a mask after it, which we have no use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u32);

impl Scalar for Mark {
    const NOUN: &'static str = "a firewall mark such as 0x1";

    fn parse(text: &str) -> Result<Self, Wrong> {
        let mark = text.split('/').next().unwrap_or_default();
        match number(mark).and_then(|value| u32::try_from(value).ok()) {
            Some(mark) => Ok(Self(mark)),
            None => Err(Wrong::because("not a mark of 32 bits")),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"type": ["integer", "string"]})
    }
}

impl Scalar for IpNet {
    const NOUN: &'static str = "a network such as 10.1.0.0/16 or 2001:db8::/48";

    fn parse(text: &str) -> Result<Self, Wrong> {
        if let Ok(address) = text.parse::<IpAddr>() {
            let host = Self::from(address);
            return Err(Wrong::because("its prefix length is missing")
                .help(format!("write `{host}` for that one host")));
        }
        let network: Self = text.parse().map_err(|_| Wrong::because("not a network"))?;
        if network.trunc() == network { Ok(network) } else { Err(host_bits(text, network)) }
    }

    fn guess(text: &str) -> Option<Self> {
        text.parse()
            .ok()
            .map(|network: Self| network.trunc())
            .or_else(|| text.parse().ok().map(|host: IpAddr| host.into()))
    }
}

fn host_bits(text: &str, network: IpNet) -> Wrong {
    Wrong {
        code: Some(Code::HostBitsSet),
        title: Some(format!("`{text}` is an address, not a network")),
        label: format!("bits after the /{} are not zero", network.prefix_len()),
        help: Some(format!(
            "write `{}` for the network, or `{}` for that one host",
            network.trunc(),
            IpNet::from(network.addr())
        )),
    }
}

impl Scalar for Ipv6Net {
    const NOUN: &'static str = "an IPv6 network such as fd5d:ac::/32";

    fn parse(text: &str) -> Result<Self, Wrong> {
        match IpNet::parse(text)? {
            IpNet::V6(network) => Ok(network),
            IpNet::V4(_) => Err(Wrong::because("this is IPv4")),
        }
    }
}

macro_rules! addresses {
    ($($type:ty: $noun:literal;)*) => {$(
        impl Scalar for $type {
            const NOUN: &'static str = $noun;

            fn parse(text: &str) -> Result<Self, Wrong> {
                text.parse().map_err(|_| Wrong::because("cannot be read as one"))
            }
        }
    )*};
}

addresses! {
    IpAddr: "an IP address such as 10.1.0.1 or 2001:db8::1";
    Ipv6Addr: "an IPv6 address such as fd5d:ac:0:9::e";
}

impl Scalar for Duration {
    const NOUN: &'static str = "a time such as 500ms, 10s, 5m or 1h30m";

    fn parse(text: &str) -> Result<Self, Wrong> {
        duration(text).ok_or_else(|| Wrong::because("units are ms, s, m, h and d"))
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": "^([0-9]+ ?(ms|s|m|h|d) ?)+$"})
    }
}

/// Whole numbers with units, added up; nothing beyond 1,000 days.
fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (count, after) = rest.split_at_checked(digits)?;
        let after = after.trim_start();
        let unit_len = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit_len)?;
        let millis: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        total = total.checked_add(Duration::from_millis(count.parse::<u64>().ok()?.checked_mul(millis)?))?;
        rest = after.trim_start();
    }
    (total <= Duration::from_secs(86_400_000)).then_some(total)
}

/// One of a few words.
pub(super) fn choice<T: Copy>(text: &str, choices: &[(&'static str, T)]) -> Result<T, Wrong> {
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let words = || choices.iter().map(|(word, _)| *word);
    let wrong = Wrong::because("not one of the words that belong here");
    Err(match nearest(text, words()) {
        Some(meant) => wrong.help(format!("did you mean `{meant}`?")),
        None => wrong.help(format!("there are {}", enumerate(words()))),
    })
}

macro_rules! choices {
    ($($type:ty: $noun:literal, [$($word:literal => $value:expr),* $(,)?];)*) => {$(
        impl Scalar for $type {
            const NOUN: &'static str = $noun;

            fn parse(text: &str) -> Result<Self, Wrong> {
                choice(text, &[$(($word, $value)),*])
            }

            fn schema() -> serde_json::Value {
                json!({"enum": [$($word),*]})
            }
        }
    )*};
}

/// What a node can offer to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// A way out to the internet.
    Internet,
}

choices! {
    Family: "`ip4` or `ip6`", ["ip4" => Family::Ip4, "ip6" => Family::Ip6];
    IfUnreachable: "`drop`, `any-path` or `next`",
        ["drop" => IfUnreachable::Drop, "any-path" => IfUnreachable::AnyPath, "next" => IfUnreachable::Next];
    Offer: "`internet`", ["internet" => Offer::Internet];
}

/// An IP protocol, by name or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protocol(pub(crate) u8);

impl Scalar for Protocol {
    const NOUN: &'static str = "an IP protocol such as tcp, udp, icmp or 47";

    fn parse(text: &str) -> Result<Self, Wrong> {
        if let Some(value) = number(text) {
            return u8::try_from(value).map(Self).map_err(|_| Wrong::because("protocols end at 255"));
        }
        let names = [
            ("icmp", 1),
            ("tcp", 6),
            ("udp", 17),
            ("dccp", 33),
            ("gre", 47),
            ("esp", 50),
            ("ah", 51),
            ("icmpv6", 58),
        ];
        let more = [("sctp", 132), ("udplite", 136)];
        choice(text, &[&names[..], &more[..]].concat()).map(Self)
    }

    fn schema() -> serde_json::Value {
        json!({"type": ["integer", "string"]})
    }
}

impl Protocol {
    /// Whether packets of it carry ports.
    pub(crate) fn has_ports(self) -> bool {
        matches!(self.0, 6 | 17 | 33 | 132 | 136)
    }
}

/// A port, or a range of them as `8000-8100`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortRange(pub(crate) RangeInclusive<u16>);

impl Scalar for PortRange {
    const NOUN: &'static str = "a port or a range such as 8000-8100";

    fn parse(text: &str) -> Result<Self, Wrong> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| number(text.trim()).and_then(|value| u16::try_from(value).ok());
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
            (Some(first), Some(last)) => {
                Err(Wrong::because("ends before it begins").help(format!("write `{last}-{first}`")))
            }
            _ => Err(Wrong::because("cannot be read as one")),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"type": ["integer", "string"]})
    }
}

/// A DSCP value, by number or by the names of RFC 4594.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dscp(pub(crate) u8);

impl Scalar for Dscp {
    const NOUN: &'static str = "a DSCP such as ef, af31, cs5 or 46";

    fn parse(text: &str) -> Result<Self, Wrong> {
        let lower = text.to_ascii_lowercase();
        let digit = |index: usize, max: u8| {
            let digit = lower.as_bytes().get(index)?.checked_sub(b'0')?;
            (digit <= max).then_some(digit)
        };
        let value = match (lower.as_str(), lower.len()) {
            ("ef", _) => Some(46),
            ("va" | "voice-admit", _) => Some(44),
            ("le", _) => Some(1),
            ("df" | "be", _) => Some(0),
            (name, 3) if name.starts_with("cs") => digit(2, 7).map(|class| class * 8),
            (name, 4) if name.starts_with("af") => match (digit(2, 4), digit(3, 3)) {
                (Some(class @ 1..), Some(drop @ 1..)) => Some(class * 8 + drop * 2),
                _ => None,
            },
            _ => number(text).and_then(|value| u8::try_from(value).ok()),
        };
        match value {
            Some(value) if value <= 63 => Ok(Self(value)),
            _ => Err(Wrong::because("not a DSCP, 0 to 63")),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"type": ["integer", "string"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_up() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("1h30m"), Some(Duration::from_secs(5400)));
        assert_eq!(duration("1 h 30 m"), Some(Duration::from_secs(5400)));
        for wrong in ["", "10", "s", "1x", "-1s", "1001d", "99999999999999999999s", "1é"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dscp_names_are_those_of_rfc_4594() {
        for (name, value) in [("ef", 46), ("AF31", 26), ("af43", 38), ("cs5", 40), ("cs0", 0), ("63", 63)] {
            assert_eq!(Dscp::parse(name).map(|dscp| dscp.0).ok(), Some(value), "{name}");
        }
        for wrong in ["64", "af51", "af10", "af34", "cs8", "csé", "x"] {
            assert!(Dscp::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_may_be_hexadecimal() {
        assert_eq!(number("0x1f"), Some(31));
        assert_eq!(number("0123"), Some(123));
        for wrong in ["", "0x", "+1", "-1", "1_000", "0x-1"] {
            assert!(number(wrong).is_none_or(|_| wrong.is_empty()), "{wrong}");
        }
    }

    #[test]
    fn port_ranges_have_an_order() {
        assert_eq!(PortRange::parse("8000-8100").ok(), Some(PortRange(8000..=8100)));
        assert_eq!(PortRange::parse("443").ok(), Some(PortRange(443..=443)));
        assert!(PortRange::parse("9-8").is_err());
        assert!(PortRange::parse("70000").is_err());
    }
}
