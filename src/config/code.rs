//! The stable names of everything that can be wrong with a configuration.

use super::diagnostic::Severity;

/// Declares the codes: variant, stable name, severity and the sentence that the manual prints.
macro_rules! codes {
    ($($variant:ident $name:literal $severity:ident $meaning:literal)*) => {
        /// What is wrong. Names never change once released; each has a heading in the manual.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// Every code, in the order of the manual.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable name, such as `policy/unknown-node`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// How severe it is unless the diagnostic says otherwise.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What it means, in a sentence or two.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    UnreadableFile "config/unreadable-file" Error
        "A file cannot be read, is not UTF-8 text, or is larger than 16 MiB."
    RegistryUnreachable "config/registry-unreachable" Error
        "The registry is on another host, which does not answer or says what must not be believed, and there is no copy of it here yet."
    Syntax "config/syntax" Error
        "The text is not YAML (and so not JSON either). Nothing else in that file can be checked until it is."
    UnknownField "config/unknown-field" Error
        "A field that this place does not have, mostly a slip of the pen. Inside `remarks.viamesh` of the registry it is a warning, because a newer version may have written it."
    MissingField "config/missing-field" Error
        "A field that must be there is not."
    DuplicateField "config/duplicate-field" Error
        "One field is given twice in the same place; which one is meant cannot be known."
    WrongType "config/wrong-type" Error
        "A list stands where a single value belongs, a text where a number belongs, and the like."
    InvalidValue "config/invalid-value" Error
        "The type is right, but the value is not one of those that make sense here."
    HostBitsSet "config/host-bits-set" Error
        "A network has bits set after its prefix length. Either the length or the address is wrong."
    NotUsed "config/not-used" Warning
        "The field is accepted so that a ranet file loads unchanged, but viamesh does nothing with it."
    ReservedMark "config/reserved-mark" Warning
        "A firewall mark touches the bits that Tailscale (0xff0000) or NetBird (0x1bd00) use on the same host."
    NoIpv6 "config/no-ipv6" Warning
        "An endpoint wants IPv6 and this host has none, so the endpoint will not come up."
    UnreadableKey "identity/unreadable-key" Error
        "The private key file cannot be read or holds no Ed25519 key in PEM (PKCS#8)."
    KeyReadableByOthers "identity/key-readable-by-others" Error
        "Everybody on this host can read or change the private key. `chmod 600` it; if it may have been read, make a new one."
    UnreadableCertificate "identity/unreadable-certificate" Error
        "The certificate or its key cannot be read, the two do not belong together, or the certificate does not name this node's `ike.id`."
    UnreadableSharedKey "identity/unreadable-shared-key" Error
        "A file with a shared key cannot be read, or is too short for a key."
    NoSharedKey "identity/no-shared-key" Warning
        "The registry says that a node proves itself by a shared key, and `ike.shared_keys` has none for it, or the other way round. There will be no link to it."
    KeyMismatch "identity/key-mismatch" Error
        "The private key does not belong to any public key that the registry names for this node. Peers would refuse us."
    NotInRegistry "identity/not-in-registry" Error
        "The registry has no node with this organization and common name, so no peer knows this node."
    UnlistedEndpoint "identity/unlisted-endpoint" Error
        "An endpoint of this node has a serial number that the registry does not list, or lists with another family or port. Peers would refuse it."
    DuplicateEndpoint "identity/duplicate-endpoint" Error
        "Two endpoints of one node are the same: one serial number twice, or one family, port and address twice."
    BadPublicKey "registry/bad-public-key" Error
        "A `public_key` is not an Ed25519 public key in PEM (SubjectPublicKeyInfo)."
    BadAuthority "registry/bad-authority" Error
        "An `authority` is not an X.509 certificate in PEM."
    NoPublicKey "registry/no-public-key" Error
        "Neither the node nor its organization has a public key, so nobody can be sure who it is."
    DuplicateNode "registry/duplicate-node" Error
        "Two nodes of one organization have the same common name."
    SharedKey "registry/shared-key" Error
        "Two organizations have the same public key: each could pose as the other."
    SidCollision "registry/sid-collision" Error
        "Two nodes would use the same segment identifiers. Give one of them another `locator` in its `remarks`."
    BadLocator "registry/bad-locator" Error
        "A locator must be a unicast IPv6 /64."
    OverlappingAnnouncements "registry/overlapping-announcements" Warning
        "Two nodes say that they announce overlapping networks. The longer prefix wins; between equal ones the lower metric."
    UnknownNode "policy/unknown-node" Error
        "A policy names a node that is not in the registry."
    AmbiguousNode "policy/ambiguous-node" Error
        "A policy names a common name that several organizations have. Write `organization/common_name`."
    ForeignStop "policy/foreign-stop" Error
        "A stop or exit runs other software, and the registry does not list the SID that this place in the path needs."
    DuplicatePolicy "policy/duplicate-name" Error
        "Two policies have one name; counters and messages could not tell them apart."
    NeverMatches "policy/never-matches" Warning
        "Policies above take every packet that this one could match. The first match wins."
    MixedFamilies "policy/mixed-families" Error
        "`from` and `to` have no address family in common, so no packet can match. As a warning: one entry has no counterpart of its family on the other side."
    ExitCannotDeliver "policy/exit-cannot-deliver" Error
        "The exit neither announces the destination nor offers the internet, as far as the registry says (`--live`: as far as Babel says)."
    MirrorByHand "policy/mirror-by-hand" Warning
        "A policy of the registry ends at a node that runs other software, which follows no policy of ours. The message has the command for its kernel."
    PathTooLong "policy/path-too-long" Error
        "The stops cost so many bytes per packet that fewer than the 1280 that IPv6 needs remain."
    RepeatedStop "policy/repeated-stop" Error
        "One stop is named twice in a row; the packet is there already."
    OwnName "policy/own-name" Warning
        "This node itself is a stop of the policy. As the first stop it is an error: the packet is here already."
    NoFallback "policy/no-if-unreachable" Warning
        "The policy does not say what happens while its path is down. `drop` is in force."
    PortsWithoutProtocol "policy/ports-without-protocol" Error
        "Ports mean something for TCP, UDP, SCTP, DCCP and UDP-Lite only, and the policy names none of them."
}
