//! Offers and choices of algorithms: pure functions over proposals (RFC 7296 §2.7, §3.3).

use crate::error::Violation;
use crate::event::EspAlgorithm;
use crate::key_exchange::Method;
use crate::key_schedule::Prf;
use crate::sealed_payload::{IkeCipher, Integrity};
use crate::wire::registry::{encryption, integrity, key_exchange, prf, protocol, transform};
use crate::wire::{Proposal, Transform};

/// What we accept and offer for IKE SAs, most preferred first.
#[derive(Debug, Clone)]
pub struct IkePolicy {
    /// Ciphers.
    pub ciphers: Vec<IkeCipher>,
    /// Pseudo-random functions.
    pub prfs: Vec<Prf>,
    /// Key exchange methods of IKE_SA_INIT.
    pub methods: Vec<Method>,
    /// Additional key exchange methods (first round), offered in a proposal of its own ahead of the
    /// classical one: old peers reject a proposal with an unknown transform type as a whole.
    pub additional: Vec<Method>,
}

/// What was agreed for an IKE SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IkeSuite {
    /// Cipher.
    pub cipher: IkeCipher,
    /// Pseudo-random function.
    pub prf: Prf,
    /// Key exchange method.
    pub method: Method,
    /// Additional key exchange method.
    pub additional: Option<Method>,
}

impl IkeSuite {
    /// Name of the key exchange for people, hybrid or not.
    pub const fn key_exchange_name(self) -> &'static str {
        match (self.method, self.additional) {
            (method, None) => method.name(),
            (Method::X25519, Some(Method::MlKem512)) => "X25519 + ML-KEM-512",
            (Method::X25519, Some(Method::MlKem768)) => "X25519 + ML-KEM-768",
            (Method::X25519, Some(Method::MlKem1024)) => "X25519 + ML-KEM-1024",
            (Method::P256, Some(Method::MlKem512)) => "P-256 + ML-KEM-512",
            (Method::P256, Some(Method::MlKem768)) => "P-256 + ML-KEM-768",
            (Method::P256, Some(Method::MlKem1024)) => "P-256 + ML-KEM-1024",
            (Method::P384, Some(Method::MlKem512)) => "P-384 + ML-KEM-512",
            (Method::P384, Some(Method::MlKem768)) => "P-384 + ML-KEM-768",
            (Method::P384, Some(Method::MlKem1024)) => "P-384 + ML-KEM-1024",
            _ => "two exchanges",
        }
    }
}

/// What we accept and offer for CHILD SAs, most preferred first.
#[derive(Debug, Clone)]
pub struct ChildPolicy {
    /// Ciphers.
    pub algorithms: Vec<EspAlgorithm>,
    /// Key exchange methods; empty where no key exchange is possible (IKE_AUTH) or wanted.
    pub methods: Vec<Method>,
    /// Additional key exchange methods.
    pub additional: Vec<Method>,
}

/// What was agreed for a CHILD SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildSuite {
    /// Cipher.
    pub algorithm: EspAlgorithm,
    /// Whether sequence numbers have 64 bits.
    pub esn: bool,
    /// Key exchange method of this exchange, if any.
    pub method: Option<Method>,
    /// Additional key exchange method.
    pub additional: Option<Method>,
}

/// A choice from an offer: the suite, the proposal to send back, and the SPI that stood in the offer.
pub struct Choice<S> {
    /// What was agreed.
    pub suite: S,
    /// The single proposal of the response, without SPI.
    pub proposal: Proposal,
    /// The initiator's SPI.
    pub spi: Vec<u8>,
}

impl IkePolicy {
    /// Proposals for IKE_SA_INIT (no SPI) or a rekey (eight octets). Ciphers that need a hash beside them come
    /// last, and without additional key exchange: a peer that knows no better ones is an old one.
    //= RFC 7296 §3.3: AEAD ciphers and others stand in proposals of their own
    pub fn offer(&self, spi: &[u8]) -> Vec<Proposal> {
        let (aead, hashed): (Vec<IkeCipher>, Vec<IkeCipher>) =
            self.ciphers.iter().partition(|cipher| cipher.integrity().is_none());
        let mut sets = Vec::new();
        if !aead.is_empty() {
            sets = with_hybrid_first(self.transforms(&aead), &self.additional);
        }
        if !hashed.is_empty() {
            sets.push(self.transforms(&hashed));
        }
        number(protocol::IKE, spi, sets)
    }

    fn transforms(&self, ciphers: &[IkeCipher]) -> Vec<Transform> {
        let mut transforms = Vec::new();
        let mut add = |offered: Transform| {
            if !transforms.contains(&offered) {
                transforms.push(offered);
            }
        };
        ciphers.iter().for_each(|cipher| add(ike_cipher_transform(*cipher)));
        self.prfs.iter().for_each(|prf| add(Transform::new(transform::PRF, prf_code(*prf))));
        ciphers
            .iter()
            .filter_map(|cipher| cipher.integrity())
            .for_each(|hash| add(integrity_transform(hash)));
        method_transforms(transform::KEY_EXCHANGE, &self.methods).for_each(add);
        transforms
    }

    /// The first acceptable proposal. Within it our preferences count, except that the method of the KE
    /// payload (`sent`) wins if acceptable, which saves a round trip.
    pub fn select(&self, offered: &[Proposal], sent: Option<u16>) -> Option<Choice<IkeSuite>> {
        let offered = offered.iter().filter(|proposal| proposal.protocol == protocol::IKE);
        offered.filter_map(|proposal| self.select_in(proposal, sent)).next()
    }

    fn select_in(&self, proposal: &Proposal, sent: Option<u16>) -> Option<Choice<IkeSuite>> {
        let offer = Offer(proposal);
        let known = [transform::ENCRYPTION, transform::PRF, transform::INTEGRITY, transform::KEY_EXCHANGE];
        if !offer.has_only(&known) {
            return None;
        }
        let cipher = self.ciphers.iter().copied().find(|cipher| offer.has_cipher(*cipher))?;
        let prf = offer.first_of(&self.prfs, |prf| Transform::new(transform::PRF, prf_code(*prf)))?;
        let method = offer.method(&self.methods, sent)?;
        let additional = offer.additional(&self.additional)?;
        let mut transforms = vec![
            ike_cipher_transform(cipher),
            Transform::new(transform::PRF, prf_code(prf)),
            Transform::new(transform::KEY_EXCHANGE, method.code()),
        ];
        transforms.extend(cipher.integrity().map(integrity_transform));
        transforms.extend(offer.additional_answer(additional));
        let suite = IkeSuite { cipher, prf, method, additional };
        Some(Choice { suite, proposal: answer(proposal, transforms), spi: proposal.spi.clone() })
    }

    /// As initiator: what the responder's SA payload agrees to.
    ///
    /// # Errors
    /// [`Violation`] if it is not exactly one of the things that were offered.
    pub fn confirm(&self, chosen: &[Proposal]) -> Result<Choice<IkeSuite>, Violation> {
        let proposal = single(chosen)?;
        self.select_in(proposal, None).filter(|choice| is_exact(proposal, choice)).ok_or(NOT_OFFERED)
    }
}

impl ChildPolicy {
    /// Proposals with our inbound SPI. With methods: one proposal with key exchange and one without, for
    /// peers that are configured not to do one.
    pub fn offer(&self, spi: u32) -> Vec<Proposal> {
        let ciphers = self.algorithms.iter().map(|algorithm| esp_cipher_transform(*algorithm));
        let sequence_numbers = [1, 0].map(|id| Transform::new(transform::SEQUENCE_NUMBERS, id));
        let plain: Vec<Transform> = ciphers.chain(sequence_numbers).collect();
        let mut sets = Vec::new();
        if !self.methods.is_empty() {
            let mut with_exchange = plain.clone();
            with_exchange.extend(method_transforms(transform::KEY_EXCHANGE, &self.methods));
            sets = with_hybrid_first(with_exchange, &self.additional);
        }
        sets.push(plain);
        number(protocol::ESP, &spi.to_be_bytes(), sets)
    }

    /// The first acceptable proposal. `sent` is the method of the KE payload: without one, only proposals
    /// that need no key exchange are acceptable.
    pub fn select(&self, offered: &[Proposal], sent: Option<u16>) -> Option<Choice<ChildSuite>> {
        let offered = offered.iter().filter(|proposal| proposal.protocol == protocol::ESP);
        offered.filter_map(|proposal| self.select_in(proposal, sent)).next()
    }

    fn select_in(&self, proposal: &Proposal, sent: Option<u16>) -> Option<Choice<ChildSuite>> {
        let offer = Offer(proposal);
        let known = [
            transform::ENCRYPTION,
            transform::INTEGRITY,
            transform::KEY_EXCHANGE,
            transform::SEQUENCE_NUMBERS,
        ];
        if !offer.has_only(&known) || !offer.allows_no_integrity() || proposal.spi.len() != 4 {
            return None;
        }
        let algorithm = offer.first_of(&self.algorithms, |algorithm| esp_cipher_transform(*algorithm))?;
        let sequence = |esn: &bool| Transform::new(transform::SEQUENCE_NUMBERS, u16::from(*esn));
        let esn = offer.first_of(&[true, false], sequence)?;
        let method = match (offer.has(transform::KEY_EXCHANGE), sent) {
            (false, _) => None,
            (true, Some(sent)) => match offer.method(&self.methods, Some(sent)) {
                Some(method) => Some(method),
                None if offer.lists(transform::KEY_EXCHANGE, key_exchange::NONE) => None,
                None => return None,
            },
            (true, None) if offer.lists(transform::KEY_EXCHANGE, key_exchange::NONE) => None,
            (true, None) => return None,
        };
        let additional = offer.additional(&self.additional)?;
        if additional.is_some() && method.is_none() {
            return None;
        }
        let mut transforms = vec![esp_cipher_transform(algorithm), sequence(&esn)];
        if offer.has(transform::KEY_EXCHANGE) {
            let code = method.map_or(key_exchange::NONE, Method::code);
            transforms.push(Transform::new(transform::KEY_EXCHANGE, code));
        }
        transforms.extend(offer.additional_answer(additional));
        let suite = ChildSuite { algorithm, esn, method, additional };
        Some(Choice { suite, proposal: answer(proposal, transforms), spi: proposal.spi.clone() })
    }

    /// As initiator: what the responder's SA payload agrees to; `sent` as in [`Self::select`].
    ///
    /// # Errors
    /// [`Violation`] if it is not exactly one of the things that were offered.
    pub fn confirm(&self, chosen: &[Proposal], sent: Option<u16>) -> Result<Choice<ChildSuite>, Violation> {
        let proposal = single(chosen)?;
        self.select_in(proposal, sent).filter(|choice| is_exact(proposal, choice)).ok_or(NOT_OFFERED)
    }
}

const NOT_OFFERED: Violation = Violation::NotOffered("an SA proposal");

/// Questions to one proposal of a peer.
struct Offer<'a>(&'a Proposal);

impl Offer<'_> {
    //= RFC 7296 §3.3.6: a proposal with a transform type that is not understood is rejected as a whole.
    fn has_only(&self, known: &[u8]) -> bool {
        let additional = transform::ADDITIONAL_KEY_EXCHANGE_1..=transform::ADDITIONAL_KEY_EXCHANGE_7;
        self.0
            .transforms
            .iter()
            .all(|offered| known.contains(&offered.kind) || additional.contains(&offered.kind))
    }

    fn has(&self, kind: u8) -> bool {
        self.0.transforms.iter().any(|offered| offered.kind == kind)
    }

    fn lists(&self, kind: u8, id: u16) -> bool {
        self.0
            .transforms
            .iter()
            .any(|offered| offered.kind == kind && offered.id == id && offered.is_understood())
    }

    /// AEAD ciphers go without integrity transform or with NONE (RFC 7296 §3.3.3).
    fn allows_no_integrity(&self) -> bool {
        !self.has(transform::INTEGRITY) || self.lists(transform::INTEGRITY, integrity::NONE)
    }

    /// Whether the cipher is offered, with what it needs beside it.
    fn has_cipher(&self, cipher: IkeCipher) -> bool {
        let hash_fits = match cipher.integrity() {
            Some(hash) => self.0.transforms.contains(&integrity_transform(hash)),
            None => self.allows_no_integrity(),
        };
        hash_fits && self.0.transforms.contains(&ike_cipher_transform(cipher))
    }

    fn first_of<T: Copy>(&self, preferred: &[T], as_transform: impl Fn(&T) -> Transform) -> Option<T> {
        preferred.iter().copied().find(|candidate| self.0.transforms.contains(&as_transform(candidate)))
    }

    fn method(&self, preferred: &[Method], sent: Option<u16>) -> Option<Method> {
        let offered = |method: &&Method| self.lists(transform::KEY_EXCHANGE, method.code());
        let by_payload = preferred.iter().find(|method| Some(method.code()) == sent).filter(offered);
        by_payload.or_else(|| preferred.iter().find(offered)).copied()
    }

    /// `None` if an additional exchange is demanded that we cannot do; `Some(None)` if none is needed.
    fn additional(&self, preferred: &[Method]) -> Option<Option<Method>> {
        let mut chosen = None;
        for kind in transform::ADDITIONAL_KEY_EXCHANGE_1..=transform::ADDITIONAL_KEY_EXCHANGE_7 {
            if !self.has(kind) {
                continue;
            }
            let usable = preferred.iter().find(|method| self.lists(kind, method.code()));
            match usable {
                // One additional round is what we do; further ones must be optional.
                Some(method) if chosen.is_none() => chosen = Some(*method),
                _ if self.lists(kind, key_exchange::NONE) => {}
                _ => return None,
            }
        }
        Some(chosen)
    }

    /// Transforms of the answer for the additional types that were offered.
    fn additional_answer(&self, chosen: Option<Method>) -> Vec<Transform> {
        let mut pending = chosen;
        let kinds = transform::ADDITIONAL_KEY_EXCHANGE_1..=transform::ADDITIONAL_KEY_EXCHANGE_7;
        let mut answer = Vec::new();
        for kind in kinds.filter(|kind| self.has(*kind)) {
            let method = pending.take_if(|method| self.lists(kind, method.code()));
            answer.push(Transform::new(kind, method.map_or(key_exchange::NONE, Method::code)));
        }
        answer
    }
}

fn single(chosen: &[Proposal]) -> Result<&Proposal, Violation> {
    match chosen {
        [proposal] => Ok(proposal),
        _ => Err(Violation::Unexpected("number of proposals in a response")),
    }
}

/// Whether a response holds one transform per type and nothing else than what we would answer to it.
fn is_exact<S>(proposal: &Proposal, choice: &Choice<S>) -> bool {
    let says_no_integrity =
        Offer(proposal).has(transform::INTEGRITY) && !Offer(&choice.proposal).has(transform::INTEGRITY);
    proposal.transforms.len() == choice.proposal.transforms.len() + usize::from(says_no_integrity)
}

fn with_hybrid_first(classical: Vec<Transform>, additional: &[Method]) -> Vec<Vec<Transform>> {
    if additional.is_empty() {
        return vec![classical];
    }
    let mut hybrid = classical.clone();
    hybrid.extend(method_transforms(transform::ADDITIONAL_KEY_EXCHANGE_1, additional));
    vec![hybrid, classical]
}

fn number(protocol: u8, spi: &[u8], sets: Vec<Vec<Transform>>) -> Vec<Proposal> {
    let numbered = (1u8..).zip(sets);
    numbered
        .map(|(number, transforms)| Proposal { number, protocol, spi: spi.to_vec(), transforms })
        .collect()
}

fn answer(proposal: &Proposal, transforms: Vec<Transform>) -> Proposal {
    Proposal { number: proposal.number, protocol: proposal.protocol, spi: Vec::new(), transforms }
}

fn method_transforms(kind: u8, methods: &[Method]) -> impl Iterator<Item = Transform> {
    methods.iter().map(move |method| Transform::new(kind, method.code()))
}

fn prf_code(function: Prf) -> u16 {
    match function {
        Prf::HmacSha256 => prf::HMAC_SHA2_256,
        Prf::HmacSha384 => prf::HMAC_SHA2_384,
        Prf::HmacSha512 => prf::HMAC_SHA2_512,
    }
}

fn ike_cipher_transform(cipher: IkeCipher) -> Transform {
    match cipher {
        IkeCipher::Aes256Gcm16 => {
            Transform::with_key_length(transform::ENCRYPTION, encryption::AES_GCM_16, 256)
        }
        IkeCipher::Aes128Gcm16 => {
            Transform::with_key_length(transform::ENCRYPTION, encryption::AES_GCM_16, 128)
        }
        IkeCipher::ChaCha20Poly1305 => Transform::new(transform::ENCRYPTION, encryption::CHACHA20_POLY1305),
        IkeCipher::Aes256Cbc(_) => {
            Transform::with_key_length(transform::ENCRYPTION, encryption::AES_CBC, 256)
        }
        IkeCipher::Aes128Cbc(_) => {
            Transform::with_key_length(transform::ENCRYPTION, encryption::AES_CBC, 128)
        }
    }
}

fn integrity_transform(hash: Integrity) -> Transform {
    let id = match hash {
        Integrity::HmacSha256 => integrity::HMAC_SHA2_256_128,
        Integrity::HmacSha384 => integrity::HMAC_SHA2_384_192,
        Integrity::HmacSha512 => integrity::HMAC_SHA2_512_256,
    };
    Transform::new(transform::INTEGRITY, id)
}

fn esp_cipher_transform(algorithm: EspAlgorithm) -> Transform {
    ike_cipher_transform(match algorithm {
        EspAlgorithm::Aes256Gcm16 => IkeCipher::Aes256Gcm16,
        EspAlgorithm::Aes128Gcm16 => IkeCipher::Aes128Gcm16,
        EspAlgorithm::ChaCha20Poly1305 => IkeCipher::ChaCha20Poly1305,
    })
}

#[cfg(test)]
#[path = "proposal_tests.rs"]
mod tests;
