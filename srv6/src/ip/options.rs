//! Options of IPv6 hop-by-hop and destination options headers (RFC 8200 §4.2).

use super::ipv6::ExtensionHeader;
use crate::error::{Error, Malformed, Unsupported};

const PAD_1: u8 = 0;
const PAD_N: u8 = 1;

/// Checks that no option in the header forbids to go on without understanding it. No option is understood here but
/// padding, and none needs to be.
///
/// # Errors
/// [`Unsupported::Option`] for an option that must be understood, [`Malformed`] when one ends beyond the header.
pub fn check(header: &ExtensionHeader<'_>) -> Result<(), Error> {
    let mut at = 2_usize;
    while let Some((kind, rest)) = header.bytes.get(at..).and_then(<[u8]>::split_first) {
        if *kind == PAD_1 {
            at = at.saturating_add(1);
            continue;
        }
        let len = usize::from(*rest.first().ok_or(Malformed::ExtensionChain)?);
        if len >= rest.len() {
            return Err(Malformed::ExtensionChain.into());
        }
        //= RFC 8200 §4.2
        // The two highest bits say what to do with an option that is not understood: 00 skip, 01 discard, 10
        // discard and answer, 11 discard and answer unless the destination is multicast. A SID never is.
        let discard = kind >> 6;
        if *kind != PAD_N && discard != 0 {
            let pointer = u32::try_from(header.offset.saturating_add(at)).unwrap_or(u32::MAX);
            return Err(Unsupported::Option { pointer, answered: discard != 1 }.into());
        }
        at = at.saturating_add(2).saturating_add(len);
    }
    Ok(())
}
