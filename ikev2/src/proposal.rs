//! Offers and choices of algorithms: pure functions over proposals (RFC 7296 §2.7, §3.3).

use crate::error::Violation;
use crate::event::EspAlgorithm;
use crate::key_exchange::Method;
use crate::key_schedule::Prf;
use crate::sealed_payload::IkeCipher;
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
            (Method::X25519, Some(_)) => "X25519 + ML-KEM-768",
            (_, Some(_)) => "P-256 + ML-KEM-768",
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
    /// Proposals for IKE_SA_INIT (no SPI) or a rekey (eight octets).
    pub fn offer(&self, spi: &[u8]) -> Vec<Proposal> {
        let mut classical: Vec<Transform> =
            self.ciphers.iter().map(|cipher| ike_cipher_transform(*cipher)).collect();
        classical.extend(self.prfs.iter().map(|prf| Transform::new(transform::PRF, prf_code(*prf))));
        classical.extend(method_transforms(transform::KEY_EXCHANGE, &self.methods));
        number(protocol::IKE, spi, with_hybrid_first(classical, &self.additional))
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
        if !offer.has_only(&known) || !offer.allows_no_integrity() {
            return None;
        }
        let cipher = offer.first_of(&self.ciphers, |cipher| ike_cipher_transform(*cipher))?;
        let prf = offer.first_of(&self.prfs, |prf| Transform::new(transform::PRF, prf_code(*prf)))?;
        let method = offer.method(&self.methods, sent)?;
        let additional = offer.additional(&self.additional)?;
        let mut transforms = vec![
            ike_cipher_transform(cipher),
            Transform::new(transform::PRF, prf_code(prf)),
            Transform::new(transform::KEY_EXCHANGE, method.code()),
        ];
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
    let explicit_no_integrity = usize::from(Offer(proposal).has(transform::INTEGRITY));
    proposal.transforms.len() == choice.proposal.transforms.len() + explicit_no_integrity
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
    }
}

fn esp_cipher_transform(algorithm: EspAlgorithm) -> Transform {
    ike_cipher_transform(match algorithm {
        EspAlgorithm::Aes256Gcm16 => IkeCipher::Aes256Gcm16,
        EspAlgorithm::Aes128Gcm16 => IkeCipher::Aes128Gcm16,
        EspAlgorithm::ChaCha20Poly1305 => IkeCipher::ChaCha20Poly1305,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ike() -> IkePolicy {
        IkePolicy {
            ciphers: vec![IkeCipher::Aes256Gcm16, IkeCipher::Aes128Gcm16],
            prfs: vec![Prf::HmacSha256, Prf::HmacSha512],
            methods: vec![Method::X25519],
            additional: vec![],
        }
    }

    fn child(methods: Vec<Method>) -> ChildPolicy {
        ChildPolicy { algorithms: vec![EspAlgorithm::Aes256Gcm16], methods, additional: vec![] }
    }

    #[test]
    fn two_equal_policies_agree_on_their_first_choices() {
        let choice = ike().select(&ike().offer(&[]), Some(31)).unwrap();
        assert_eq!(choice.suite.cipher, IkeCipher::Aes256Gcm16);
        assert_eq!(choice.suite.prf, Prf::HmacSha256);
        assert_eq!(ike().confirm(&[choice.proposal]).map(|choice| choice.suite), Ok(choice.suite));
    }

    #[test]
    fn answers_that_were_not_offered_are_refused() {
        let offer = ike().offer(&[]);
        // Several transforms per type is an offer, not an answer.
        assert!(ike().confirm(&offer).is_err());
        assert!(ike().confirm(&[]).is_err());
        let mut choice = ike().select(&offer, None).unwrap();
        choice.proposal.transforms.push(Transform::new(transform::PRF, prf::HMAC_SHA2_384));
        assert!(ike().confirm(&[choice.proposal]).is_err());
    }

    #[test]
    fn a_proposal_with_an_unknown_transform_type_is_skipped_as_a_whole() {
        let mut offer = ike().offer(&[]);
        let mut strange = offer[0].clone();
        strange.transforms.push(Transform::new(200, 1));
        offer[0].number = 2;
        let choice = ike().select(&[strange.clone(), offer[0].clone()], None).unwrap();
        assert_eq!(choice.proposal.number, 2);
        assert!(ike().select(&[strange], None).is_none());
    }

    #[test]
    fn extended_sequence_numbers_are_preferred_and_optional() {
        let mut offer = child(vec![]).offer(7);
        assert!(child(vec![]).select(&offer, None).unwrap().suite.esn);
        offer[0].transforms.retain(|offered| *offered != Transform::new(transform::SEQUENCE_NUMBERS, 1));
        assert!(!child(vec![]).select(&offer, None).unwrap().suite.esn);
    }

    #[test]
    fn a_child_key_exchange_needs_a_value_and_the_offer_without_one_serves_else() {
        let offer = child(vec![Method::X25519]).offer(7);
        assert_eq!(offer.len(), 2);
        let both = child(vec![Method::X25519]);
        assert_eq!(both.select(&offer, Some(31)).unwrap().suite.method, Some(Method::X25519));
        assert_eq!(both.select(&offer, None).unwrap().suite.method, None);
        assert_eq!(child(vec![]).select(&offer, Some(31)).unwrap().suite.method, None);
    }

    #[test]
    fn an_explicit_absence_of_integrity_is_accepted_and_a_demand_for_it_is_not() {
        let mut offer = ike().offer(&[]);
        offer[0].transforms.push(Transform::new(transform::INTEGRITY, integrity::NONE));
        assert!(ike().select(&offer, None).is_some());
        let mut demanding = ike().offer(&[]);
        demanding[0].transforms.push(Transform::new(transform::INTEGRITY, 12));
        assert!(ike().select(&demanding, None).is_none());
    }
}
