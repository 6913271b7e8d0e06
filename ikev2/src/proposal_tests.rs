//! Tests of `proposal`.

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

/// What each of our ciphers, functions and methods is called on the wire: what a peer that offers only this
/// gets is this.
#[test]
fn every_algorithm_is_offered_and_chosen_alone() {
    let all = IkePolicy {
        ciphers: IkeCipher::ALL.to_vec(),
        prfs: vec![Prf::HmacSha256, Prf::HmacSha384, Prf::HmacSha512],
        methods: vec![Method::X25519, Method::P256, Method::P384],
        additional: vec![Method::MlKem768, Method::MlKem1024, Method::MlKem512],
    };
    for cipher in IkeCipher::ALL {
        for prf in all.prfs.clone() {
            for method in all.methods.clone() {
                let alone = IkePolicy {
                    ciphers: vec![cipher],
                    prfs: vec![prf],
                    methods: vec![method],
                    additional: vec![],
                };
                let suite = IkeSuite { cipher, prf, method, additional: None };
                for (offering, choosing) in [(&alone, &all), (&all, &alone)] {
                    let choice = choosing.select(&offering.offer(&[]), None).unwrap();
                    assert_eq!(choice.suite, suite);
                    let confirmed = offering.confirm(&[choice.proposal]).unwrap();
                    assert_eq!(confirmed.suite, suite);
                }
            }
        }
    }
    for additional in all.additional.clone() {
        let alone = IkePolicy { additional: vec![additional], ..all.clone() };
        let choice = alone.select(&all.offer(&[]), Some(31)).unwrap();
        assert_eq!(choice.suite.additional, Some(additional));
        assert_eq!(all.confirm(&[choice.proposal]).unwrap().suite, choice.suite);
    }
}

#[test]
fn old_ciphers_come_last_and_one_hash_is_chosen() {
    let all = IkePolicy { ciphers: IkeCipher::ALL.to_vec(), additional: vec![Method::MlKem768], ..ike() };
    let offer = all.offer(&[]);
    assert_eq!(offer.len(), 3, "hybrid, classical, and for old peers");
    let aead = |proposal: &Proposal| Offer(proposal).allows_no_integrity();
    assert_eq!(offer.iter().map(aead).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(all.select(&offer[2..], None).unwrap().suite.cipher, IkeCipher::ALL[3]);
    let mut choice = all.select(&offer[2..], None).unwrap().proposal;
    choice.transforms.push(integrity_transform(Integrity::HmacSha512));
    assert!(all.confirm(&[choice]).is_err(), "two hashes are no answer");
}
