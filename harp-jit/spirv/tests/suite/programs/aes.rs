//! AES: blocks in both directions against the standard's example and a reference by its formulas.

use harp_runtime::Arg;

use super::{groups, opencl};
use crate::support::numbers;

const ROUNDS: usize = 10;

fn product(mut a: u8, b: u8) -> u8 {
    let mut sum = 0;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            sum ^= a;
        }
        a = a << 1 ^ if a & 0x80 == 0 { 0 } else { 0x1b };
    }
    sum
}

fn substitute(a: u8) -> u8 {
    let inverse = (1..=255).find(|&b| product(a, b) == 1).unwrap_or(0);
    (0..5).fold(0x63, |sum, n| sum ^ inverse.rotate_left(n))
}

fn expanded(key: [u8; 16]) -> Vec<u8> {
    let mut all = key.to_vec();
    let mut constant = 1;
    while all.len() < 16 * (ROUNDS + 1) {
        let len = all.len();
        let mut word: [u8; 4] = all[len - 4..].try_into().unwrap();
        if len.is_multiple_of(16) {
            word.rotate_left(1);
            word = word.map(substitute);
            word[0] ^= constant;
            constant = product(constant, 2);
        }
        for (n, byte) in word.into_iter().enumerate() {
            all.push(all[len - 16 + n] ^ byte);
        }
    }
    all
}

fn encrypted(block: &[u8], keys: &[u8]) -> Vec<u8> {
    let add = |state: &mut [u8], round: usize| {
        for (byte, key) in state.iter_mut().zip(&keys[16 * round..]) {
            *byte ^= key;
        }
    };
    let mut state = block.to_vec();
    add(&mut state, 0);
    for round in 1..=ROUNDS {
        let old: Vec<u8> = state.iter().copied().map(substitute).collect();
        let shifted: Vec<u8> = (0..16).map(|n| old[(n / 4 + n % 4) % 4 * 4 + n % 4]).collect();
        for (n, byte) in state.iter_mut().enumerate() {
            let at = |row: usize| shifted[n / 4 * 4 + (n + row) % 4];
            *byte = match round {
                ROUNDS => shifted[n],
                _ => product(at(0), 2) ^ product(at(1), 3) ^ at(2) ^ at(3),
            };
        }
        add(&mut state, round);
    }
    state
}

/// The keys, the plain text and the cipher; the first block is the standard's, appendix B.
fn texts() -> [Vec<u8>; 3] {
    let hex = |number: u128| number.to_be_bytes();
    let keys = expanded(hex(0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c));
    let mut plain = hex(0x3243_f6a8_885a_308d_3131_98a2_e037_0734).to_vec();
    plain.extend(numbers(128).map(|n| n as u8).take(16 * 7));
    let cipher: Vec<u8> = plain.chunks(16).flat_map(|block| encrypted(block, &keys)).collect();
    assert_eq!(cipher[..16], hex(0x3925_841d_02dc_09fb_dc11_8597_196a_0b32));
    [keys, plain, cipher]
}

#[test]
fn encrypts() {
    let [keys, plain, cipher] = texts();
    opencl("aes_encrypt", |case| {
        let out = case.zeros::<u8>(plain.len());
        let (input, keys) = (case.buffer(&plain), case.buffer(&keys));
        let group = Arg::group::<u8>(4 * 16);
        let args = [(&input).into(), (&out).into(), (&keys).into(), (ROUNDS as i32).into(), group];
        case.launch("encrypt", groups(plain.len() / 4, 16), &args);
        assert_eq!(case.read(&out), cipher, "{case}");
    });
}

#[test]
fn decrypts() {
    let [keys, plain, cipher] = texts();
    opencl("aes_decrypt", |case| {
        let out = case.zeros::<u8>(plain.len());
        let (input, keys) = (case.buffer(&cipher), case.buffer(&keys));
        let group = Arg::group::<u8>(4 * 32);
        let args = [(&input).into(), (&out).into(), (&keys).into(), (ROUNDS as i32).into(), group];
        case.launch("decrypt", groups(plain.len() / 4, 32), &args);
        assert_eq!(case.read(&out), plain, "{case}");
    });
}
