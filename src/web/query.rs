//! The part of an address behind the question mark.

use std::collections::BTreeMap;

/// The fields of a query. Of a field that comes twice, the last counts.
pub(super) fn fields(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// Undoes percent-encoding. What is no UTF-8 afterwards is replaced.
fn decoded(text: &str) -> String {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        let hex = |digit: Option<u8>| char::from(digit?).to_digit(16);
        match octet {
            b'%' => {
                let mut ahead = rest.clone();
                if let (Some(high), Some(low)) = (hex(ahead.next()), hex(ahead.next())) {
                    octets.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                    rest = ahead;
                } else {
                    octets.push(octet);
                }
            }
            b'+' => octets.push(b' '),
            _ => octets.push(octet),
        }
    }
    String::from_utf8_lossy(&octets).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let read = fields("source=2001%3Adb8%3A%3A1&destination=10.0.0.1&note=a+b%2");
        assert_eq!(read["source"], "2001:db8::1");
        assert_eq!(read["destination"], "10.0.0.1");
        assert_eq!(read["note"], "a b%2");
        assert_eq!(fields(""), BTreeMap::new());
        assert_eq!(fields("%ff=%zz&&=")[""], "");
    }
}
