//! AES-GCM in ESP against published packets: the test cases of draft-mcgrew-gcm-test-01, which was written
//! for RFC 4106. Both back-ends.

mod support;

use esp::{Algorithm, Backend, Discard, HEADER_LEN, ICV_LEN, InboundSa};
use support::{WINDOW, hex, receive};

struct Vector {
    algorithm: Algorithm,
    key: &'static str,
    salt: &'static str,
    /// SPI and sequence number as they are authenticated: 8 or 12 bytes.
    additional_data: &'static str,
    plaintext: &'static str,
    packet: &'static str,
}

const AES_128: Algorithm = Algorithm::Aes128Gcm16;
const AES_256: Algorithm = Algorithm::Aes256Gcm16;

const VECTORS: [Vector; 9] = [
    Vector {
        algorithm: AES_128,
        key: "4c80cdefbb5d10da906ac73c3613a634",
        salt: "2e443b68",
        additional_data: "00004321 8765432100000000",
        plaintext: "45000048699a000080114db7c0a80102c0a801010a9bf15638d3010000010000
            00000000045f736970045f756470037369700963796265726369747902646b00 0021000101020201",
        packet: "00004321000000004956ed7e3b244cfe
            fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34
            cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce
            61bc17d768fd9732459018148f6cbe722fd04796562dfdb4",
    },
    Vector {
        algorithm: AES_128,
        key: "feffe9928665731c6d6a8f9467308308",
        salt: "cafebabe",
        additional_data: "0000a5f8 0000000a",
        plaintext: "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d00100
            00010000000000000373697009637962 65726369747902646b00000100010001",
        packet: "0000a5f80000000afacedbaddecaf888
            deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f1ba76d5d114d2a5c
            3de81827c10e9a4f51330d0eec416642cfbb85a5b47e48a4ec3b9ba95d918bd1
            83b70d3aa8bc6ee4c309e9d85a41ad4a",
    },
    Vector {
        algorithm: AES_256,
        key: "abbccddef00112233445566778899aababbccddef00112233445566778899aab",
        salt: "11223344",
        additional_data: "4a2cbfe3 00000002",
        plaintext: "4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee000000000
            7002400020bf0000020405b40101040201020201",
        packet: "4a2cbfe3000000020102030405060708
            ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d763
            748a637985771d347f0545659f14e99def842d8eb335f4eecfdbf831824b4c49 15956c96",
    },
    Vector {
        algorithm: AES_128,
        key: "3de09874b388e6491988d0c3607eae1f",
        salt: "57690e43",
        additional_data: "42f67e3f 1010101010101010",
        plaintext: "4500001c42a200008001441f406793b6e00000020a00f5ff01020201",
        packet: "42f67e3f101010104e280000a2fca1a3
            fba2ca845e5df9f0f22c3e6e86dd831e1fc65792cd1af9130e1379ed369f071f 35e034be95f112e4e7d05d35",
    },
    Vector {
        algorithm: AES_128,
        key: "abbccddef00112233445566778899aab",
        salt: "decaf888",
        additional_data: "00000100 0000000000000001",
        plaintext: "4500004933ba00007f119106c3fb1d10c2b1d326c02831ce0035dd7b800302d5
            00004e20001e8c18d75b81dc91baa0476b91b924b280389d92c963bac046ec95 9b6266c04722b14923010101",
        packet: "0000010000000001cafedebaceface74
            18a6fd42f72cbf4ab2a2ea901f73d814e3e7f243d95412e1c349c1d2fbec168f
            9190feebaf2cb01984e65863965d7472b79da345e0e780191f0d2f0e0f496c22
            6f2127b27db35724e7845d68651f57e65f354f75ff17015769623436",
    },
    Vector {
        algorithm: AES_256,
        key: "abbccddef00112233445566778899aababbccddef00112233445566778899aab",
        salt: "73616c74",
        additional_data: "17405e67 156f3126dd0db99b",
        plaintext: "45080028732c00004006e9f90a0106120a01038f06b88023dd6bafbecb712602 50101f646d540001",
        packet: "17405e67dd0db99b616e640169766563
            f2d69ecdbd5a0d5b8d5ef38bad4da58d1f278fde98ef67549d524a3018d9a57f
            f4d3a31ce673119e451626c2415771e3b7eebca614c89b35",
    },
    Vector {
        algorithm: AES_128,
        key: "7d773d00c144c525ac619d18c84a3f47",
        salt: "d9664267",
        additional_data: "335467ae ffffffff",
        plaintext: "01020201",
        packet: "335467aeffffffff43457e9182443bc6 437f866bcb3f699fe9b0822bac961c4504bef270",
    },
    Vector {
        algorithm: AES_128,
        key: "abbccddef00112233445566778899aab",
        salt: "decaf888",
        additional_data: "00000100 0000000000000001",
        plaintext: "746f016265016f72016e6f7401746f0162650001",
        packet: "0000010000000001cafedebaceface74
            29c9fc69a197d038ccdd14e2ddfcaa0543332164412503524303ed3c6c5f283843af8c3e",
    },
    Vector {
        algorithm: AES_256,
        key: "6c6567616c697a656d6172696a75616e61616e64646f69746265666f72656961",
        salt: "7475726e",
        additional_data: "796b6963 ffffffffffffffff",
        plaintext: "45000030da3a00008001df3bc0a80005c0a800010800c6cd0200070061626364
            65666768696a6b6c6d6e6f707172737401020201",
        packet: "796b6963ffffffff333021696765746d
            f97ab2aa356d8edce17644ac8c78e25dd24dedbb29ebf1b64a274b39b49c3a86
            4cd3d78ca4ae68a32b42458fb57dbe821dcc63b9d0937ba2945f669368661a32 9fb4c053",
    },
];

fn nonce(vector: &Vector) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&hex(vector.salt));
    nonce[4..].copy_from_slice(&hex(vector.packet)[8..HEADER_LEN]);
    nonce
}

#[test]
fn the_cipher_seals_and_opens_each_vector() {
    for backend in Backend::ALL {
        for vector in &VECTORS {
            let cipher = vector.algorithm.aead(&hex(vector.key), backend).unwrap();
            let (plaintext, packet) = (hex(vector.plaintext), hex(vector.packet));
            let (ciphertext, icv) = packet[HEADER_LEN..].split_at(plaintext.len());
            let (nonce, additional_data) = (nonce(vector), hex(vector.additional_data));

            let mut data = plaintext.clone();
            let tag = cipher.seal_in_place(&nonce, &additional_data, &mut data);
            assert_eq!((data.as_slice(), tag.as_slice()), (ciphertext, icv), "{}", vector.packet);

            let tag: [u8; ICV_LEN] = icv.try_into().unwrap();
            assert_eq!(cipher.open_in_place(&nonce, &additional_data, &mut data, &tag), Ok(()));
            assert_eq!(data, plaintext);
        }
    }
}

/// Whole packets through an SA: those whose number a fresh window can know.
#[test]
fn an_sa_opens_the_vectors_within_reach_of_a_fresh_window() {
    let mut opened = 0;
    for backend in Backend::ALL {
        for vector in &VECTORS {
            let additional_data = hex(vector.additional_data);
            let esn = additional_data.len() == 12;
            if esn && additional_data[4..8] != [0; 4] {
                continue;
            }
            let spi = u32::from_be_bytes(additional_data[..4].try_into().unwrap());
            let key_material = hex(&[vector.key, vector.salt].concat());
            let sa = InboundSa::new(spi, vector.algorithm, &key_material, esn, WINDOW, backend).unwrap();

            let (accepted, payload) = receive(&sa, &hex(vector.packet)).unwrap();
            let plaintext = hex(vector.plaintext);
            let pad_len = usize::from(plaintext[plaintext.len() - 2]);
            assert_eq!(payload, plaintext[..plaintext.len() - 2 - pad_len]);
            assert_eq!(accepted.next_header(), 1);
            assert_eq!(receive(&sa, &hex(vector.packet)), Err(Discard::Replayed));
            opened += 1;
        }
    }
    assert_eq!(opened, 10);
}
