//! Stateless cookies against floods of IKE_SA_INIT (RFC 7296 §2.6).

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Makes and checks cookies: version | HMAC(secret, Ni | address and port | SPIi). The secret changes
/// regularly; the one before stays good for as long again.
pub(crate) struct CookieJar {
    current: Generation,
    previous: Option<Generation>,
    rotate_at: Option<Instant>,
    rotation: Duration,
}

struct Generation {
    version: u8,
    secret: Zeroizing<[u8; 32]>,
}

impl CookieJar {
    pub(crate) fn new(rotation: Duration, rng: &mut ChaCha20Rng) -> Self {
        Self { current: Generation::new(0, rng), previous: None, rotate_at: None, rotation }
    }

    /// The cookie that this initiator must send back.
    pub(crate) fn bake(
        &mut self,
        nonce: &[u8],
        from: SocketAddr,
        spi_i: u64,
        rng: &mut ChaCha20Rng,
        now: Instant,
    ) -> Vec<u8> {
        self.rotate(rng, now);
        self.current.cookie(nonce, from, spi_i)
    }

    /// Whether `cookie` is one of ours for this initiator.
    pub(crate) fn accepts(
        &mut self,
        cookie: &[u8],
        nonce: &[u8],
        from: SocketAddr,
        spi_i: u64,
        rng: &mut ChaCha20Rng,
        now: Instant,
    ) -> bool {
        self.rotate(rng, now);
        let generations = [Some(&self.current), self.previous.as_ref()];
        generations.into_iter().flatten().any(|generation| {
            cookie.first() == Some(&generation.version)
                && bool::from(generation.cookie(nonce, from, spi_i).ct_eq(cookie))
        })
    }

    fn rotate(&mut self, rng: &mut ChaCha20Rng, now: Instant) {
        let due = *self.rotate_at.get_or_insert(now + self.rotation);
        if now < due {
            return;
        }
        // After two periods without use the old secret is past its grace as well.
        let within_grace = now < due + self.rotation;
        let next = Generation::new(self.current.version.wrapping_add(1), rng);
        let old = std::mem::replace(&mut self.current, next);
        self.previous = within_grace.then_some(old);
        self.rotate_at = Some(now + self.rotation);
    }
}

impl Generation {
    fn new(version: u8, rng: &mut ChaCha20Rng) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        rng.fill_bytes(secret.as_mut());
        Self { version, secret }
    }

    fn cookie(&self, nonce: &[u8], from: SocketAddr, spi_i: u64) -> Vec<u8> {
        let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(self.secret.as_ref()) else {
            unreachable!("HMAC takes keys of any length")
        };
        mac.update(nonce);
        match from.ip() {
            IpAddr::V4(address) => mac.update(&address.octets()),
            IpAddr::V6(address) => mac.update(&address.octets()),
        }
        mac.update(&from.port().to_be_bytes());
        mac.update(&spi_i.to_be_bytes());
        let mut cookie = vec![self.version];
        cookie.extend_from_slice(&mac.finalize().into_bytes());
        cookie
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test needs some instant to start from")]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    const ROTATION: Duration = Duration::from_secs(120);

    #[test]
    fn a_cookie_is_bound_to_nonce_address_and_spi() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let mut jar = CookieJar::new(ROTATION, &mut rng);
        let now = Instant::now();
        let from = "192.0.2.1:500".parse().unwrap();
        let cookie = jar.bake(b"nonce", from, 7, &mut rng, now);
        assert!(jar.accepts(&cookie, b"nonce", from, 7, &mut rng, now));
        assert!(!jar.accepts(&cookie, b"other", from, 7, &mut rng, now));
        assert!(!jar.accepts(&cookie, b"nonce", "192.0.2.2:500".parse().unwrap(), 7, &mut rng, now));
        assert!(!jar.accepts(&cookie, b"nonce", from, 8, &mut rng, now));
        assert!(!jar.accepts(&cookie[..32], b"nonce", from, 7, &mut rng, now));
        assert!(!jar.accepts(b"", b"nonce", from, 7, &mut rng, now));
    }

    #[test]
    fn an_old_cookie_is_good_for_one_more_generation_only() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let mut jar = CookieJar::new(ROTATION, &mut rng);
        let start = Instant::now();
        let from = "192.0.2.1:500".parse().unwrap();
        let cookie = jar.bake(b"nonce", from, 7, &mut rng, start);
        assert!(jar.accepts(&cookie, b"nonce", from, 7, &mut rng, start + ROTATION));
        assert!(!jar.accepts(&cookie, b"nonce", from, 7, &mut rng, start + 2 * ROTATION));
    }
}
