//! IANA numbers with their names ("Internet Key Exchange Version 2 (IKEv2) Parameters").
#![expect(dead_code, reason = "the registry is kept whole where a group of numbers belongs together")]

use crate::error::Unsupported;

/// Exchange types (RFC 7296 §3.1, RFC 9242, RFC 9370).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeType {
    /// First exchange, in the clear.
    IkeSaInit,
    /// Authentication and first CHILD SA.
    IkeAuth,
    /// New or rekeyed SAs.
    CreateChildSa,
    /// Deletes, liveness, notifications.
    Informational,
    /// Additional key exchanges before IKE_AUTH.
    IkeIntermediate,
    /// Additional key exchanges after CREATE_CHILD_SA.
    IkeFollowupKe,
}

impl ExchangeType {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::IkeSaInit => 34,
            Self::IkeAuth => 35,
            Self::CreateChildSa => 36,
            Self::Informational => 37,
            Self::IkeIntermediate => 43,
            Self::IkeFollowupKe => 44,
        }
    }

    pub(super) const fn from_code(code: u8) -> Result<Self, Unsupported> {
        Ok(match code {
            34 => Self::IkeSaInit,
            35 => Self::IkeAuth,
            36 => Self::CreateChildSa,
            37 => Self::Informational,
            43 => Self::IkeIntermediate,
            44 => Self::IkeFollowupKe,
            _ => return Err(Unsupported::Exchange(code)),
        })
    }
}

/// Payload types (RFC 7296 §3.2, RFC 7383).
pub(crate) mod payload {
    pub(crate) const NONE: u8 = 0;
    pub(crate) const SECURITY_ASSOCIATION: u8 = 33;
    pub(crate) const KEY_EXCHANGE: u8 = 34;
    pub(crate) const IDENTIFICATION_INITIATOR: u8 = 35;
    pub(crate) const IDENTIFICATION_RESPONDER: u8 = 36;
    pub(crate) const CERTIFICATE: u8 = 37;
    pub(crate) const CERTIFICATE_REQUEST: u8 = 38;
    pub(crate) const AUTHENTICATION: u8 = 39;
    pub(crate) const NONCE: u8 = 40;
    pub(crate) const NOTIFY: u8 = 41;
    pub(crate) const DELETE: u8 = 42;
    pub(crate) const VENDOR_ID: u8 = 43;
    pub(crate) const TRAFFIC_SELECTOR_INITIATOR: u8 = 44;
    pub(crate) const TRAFFIC_SELECTOR_RESPONDER: u8 = 45;
    pub(crate) const ENCRYPTED: u8 = 46;
    pub(crate) const CONFIGURATION: u8 = 47;
    pub(crate) const EAP: u8 = 48;
    pub(crate) const ENCRYPTED_FRAGMENT: u8 = 53;
}

/// Security protocol identifiers (RFC 7296 §3.3.1).
pub(crate) mod protocol {
    pub(crate) const NONE: u8 = 0;
    pub(crate) const IKE: u8 = 1;
    pub(crate) const AH: u8 = 2;
    pub(crate) const ESP: u8 = 3;
}

/// Transform types (RFC 7296 §3.3.2, RFC 9370 §3.1).
pub(crate) mod transform {
    pub(crate) const ENCRYPTION: u8 = 1;
    pub(crate) const PRF: u8 = 2;
    pub(crate) const INTEGRITY: u8 = 3;
    pub(crate) const KEY_EXCHANGE: u8 = 4;
    pub(crate) const SEQUENCE_NUMBERS: u8 = 5;
    pub(crate) const ADDITIONAL_KEY_EXCHANGE_1: u8 = 6;
    pub(crate) const ADDITIONAL_KEY_EXCHANGE_7: u8 = 12;
    /// Attribute type of the key length in bits.
    pub(crate) const ATTRIBUTE_KEY_LENGTH: u16 = 14;
}

/// Encryption transform IDs.
pub(crate) mod encryption {
    pub(crate) const AES_CBC: u16 = 12;
    pub(crate) const AES_GCM_16: u16 = 20;
    pub(crate) const CHACHA20_POLY1305: u16 = 28;
}

/// Integrity transform IDs.
pub(crate) mod integrity {
    pub(crate) const NONE: u16 = 0;
    pub(crate) const HMAC_SHA2_256_128: u16 = 12;
    pub(crate) const HMAC_SHA2_384_192: u16 = 13;
    pub(crate) const HMAC_SHA2_512_256: u16 = 14;
}

/// Pseudo-random function transform IDs.
pub(crate) mod prf {
    pub(crate) const HMAC_SHA2_256: u16 = 5;
    pub(crate) const HMAC_SHA2_384: u16 = 6;
    pub(crate) const HMAC_SHA2_512: u16 = 7;
}

/// Key exchange method transform IDs.
pub(crate) mod key_exchange {
    pub(crate) const NONE: u16 = 0;
    pub(crate) const SECP256R1: u16 = 19;
    pub(crate) const SECP384R1: u16 = 20;
    pub(crate) const CURVE25519: u16 = 31;
    pub(crate) const ML_KEM_512: u16 = 35;
    pub(crate) const ML_KEM_768: u16 = 36;
    pub(crate) const ML_KEM_1024: u16 = 37;
}

/// Notify message types (RFC 7296 §3.10.1 and later registrations).
pub(crate) mod notify {
    pub(crate) const UNSUPPORTED_CRITICAL_PAYLOAD: u16 = 1;
    pub(crate) const INVALID_IKE_SPI: u16 = 4;
    pub(crate) const INVALID_MAJOR_VERSION: u16 = 5;
    pub(crate) const INVALID_SYNTAX: u16 = 7;
    pub(crate) const INVALID_SPI: u16 = 11;
    pub(crate) const NO_PROPOSAL_CHOSEN: u16 = 14;
    pub(crate) const INVALID_KE_PAYLOAD: u16 = 17;
    pub(crate) const AUTHENTICATION_FAILED: u16 = 24;
    pub(crate) const NO_ADDITIONAL_SAS: u16 = 35;
    pub(crate) const TS_UNACCEPTABLE: u16 = 38;
    pub(crate) const UNEXPECTED_NAT_DETECTED: u16 = 41;
    pub(crate) const TEMPORARY_FAILURE: u16 = 43;
    pub(crate) const CHILD_SA_NOT_FOUND: u16 = 44;
    pub(crate) const STATE_NOT_FOUND: u16 = 47;
    /// Types from here on are status, not errors.
    pub(crate) const FIRST_STATUS: u16 = 16384;
    pub(crate) const INITIAL_CONTACT: u16 = 16384;
    pub(crate) const NAT_DETECTION_SOURCE_IP: u16 = 16388;
    pub(crate) const NAT_DETECTION_DESTINATION_IP: u16 = 16389;
    pub(crate) const COOKIE: u16 = 16390;
    pub(crate) const USE_TRANSPORT_MODE: u16 = 16391;
    pub(crate) const REKEY_SA: u16 = 16393;
    pub(crate) const ESP_TFC_PADDING_NOT_SUPPORTED: u16 = 16394;
    pub(crate) const MOBIKE_SUPPORTED: u16 = 16396;
    pub(crate) const UPDATE_SA_ADDRESSES: u16 = 16400;
    pub(crate) const COOKIE2: u16 = 16401;
    pub(crate) const NO_NATS_ALLOWED: u16 = 16402;
    pub(crate) const CHILDLESS_IKEV2_SUPPORTED: u16 = 16418;
    pub(crate) const FRAGMENTATION_SUPPORTED: u16 = 16430;
    pub(crate) const SIGNATURE_HASH_ALGORITHMS: u16 = 16431;
    pub(crate) const INTERMEDIATE_EXCHANGE_SUPPORTED: u16 = 16438;
    pub(crate) const ADDITIONAL_KEY_EXCHANGE: u16 = 16441;
    pub(crate) const SA_RESOURCE_INFO: u16 = 16444;
}

/// Authentication methods (RFC 7296 §3.8, RFC 4754, RFC 7427).
pub(crate) mod auth_method {
    pub(crate) const RSA: u8 = 1;
    pub(crate) const SHARED_KEY: u8 = 2;
    pub(crate) const ECDSA_P256: u8 = 9;
    pub(crate) const ECDSA_P384: u8 = 10;
    pub(crate) const DIGITAL_SIGNATURE: u8 = 14;
}

/// Certificate encodings (RFC 7296 §3.6, RFC 7670).
pub(crate) mod certificate {
    pub(crate) const X509_SIGNATURE: u8 = 4;
    pub(crate) const RAW_PUBLIC_KEY: u8 = 15;
}

/// Traffic selector types (RFC 7296 §3.13.1).
pub(crate) mod traffic_selector {
    pub(crate) const IPV4_ADDR_RANGE: u8 = 7;
    pub(crate) const IPV6_ADDR_RANGE: u8 = 8;
}
