//! Architecture ids as text and as target triples.

use crate::random::machine;
use harp_isa::{ArchId, ArchIdError, ArchIdField as Field, Encoding, TripleError, WordSize};
use proptest::prelude::*;
use target_lexicon::Triple;

proptest! {
    #[test]
    fn text_round_trip(arch in machine()) {
        prop_assert_eq!(arch.to_string().parse(), Ok(arch));
    }

    #[test]
    fn triple_round_trip(arch in machine()) {
        let triple = Triple::from(arch);
        prop_assert_eq!(ArchId::try_from(&triple), Ok(arch));
        let parsed: Triple = triple.to_string().parse().unwrap();
        prop_assert_eq!(ArchId::try_from(&parsed), Ok(arch));
    }

    #[test]
    fn no_text_panics(id in "\\PC*", near in "(4|8|16)?[wbx]?[0-9]{0,3}(/[0-9]{0,21}){0,5}(\\+x)?") {
        for id in [id, near] {
            if let Ok(arch) = id.parse::<ArchId>() {
                prop_assert_eq!(arch.to_string().parse(), Ok(arch));
            }
        }
    }

    #[test]
    fn compatibility_ignores_lanes_and_warps(arch in machine(), lanes in 1..=64_u8, warps in 1..=64_u8) {
        let other = arch.with_lanes(lanes).unwrap().with_warps(warps).unwrap();
        prop_assert!(arch.is_object_compatible(other));
        if let Ok(other) = other.with_extension(!arch.has_extension()) {
            prop_assert!(!arch.is_object_compatible(other));
        }
    }
}

#[test]
fn fields_and_presets() {
    let arch: ArchId = "8b33/5/7/9+x".parse().unwrap();
    assert_eq!((arch.word(), arch.encoding()), (WordSize::Eight, Encoding::Byte));
    assert_eq!((arch.gprs(), arch.preds(), arch.lanes(), arch.warps()), (33, 5, 7, 9));
    assert!(arch.has_extension());
    let short: ArchId = "4w8/2".parse().unwrap();
    assert_eq!((short.lanes(), short.warps(), short.has_extension()), (1, 1, false));
    assert_eq!("harp32".parse::<ArchId>().unwrap().to_string(), "4w8/8/16/16");
    assert_eq!("harp64+x".parse::<ArchId>().unwrap().to_string(), "8w32/32/16/16+x");
}

#[test]
fn every_error() {
    use ArchIdError as E;
    let id = |id: &str| id.to_owned();
    let missing = |text: &str, field| E::Missing { id: id(text), field };
    let range = |field, given| E::OutOfRange { field, given };
    for (text, error) in [
        ("", E::WordSize { id: id("") }),
        ("2w8/8", E::WordSize { id: id("2w8/8") }),
        ("harp65", E::WordSize { id: id("harp65") }),
        ("4", E::Encoding { id: id("4") }),
        ("4x8/8", E::Encoding { id: id("4x8/8") }),
        ("4w", missing("4w", Field::Gprs)),
        ("4w8", missing("4w8", Field::Preds)),
        ("4w8/8/", missing("4w8/8/", Field::Lanes)),
        ("4w8/8/1/", missing("4w8/8/1/", Field::Warps)),
        ("4w8/+8", E::NotANumber { id: id("4w8/+8"), field: Field::Preds, given: id("+8") }),
        ("4w8/8/1/1/1", E::Trailing { id: id("4w8/8/1/1/1"), rest: id("1") }),
        ("4w7/2", range(Field::Gprs, 7)),
        ("4w65/2", range(Field::Gprs, 65)),
        ("4w8/1", range(Field::Preds, 1)),
        ("4b8/65", range(Field::Preds, 65)),
        ("4w8/8/0", range(Field::Lanes, 0)),
        ("4w8/8/65", range(Field::Lanes, 65)),
        ("4w8/8/1/0", range(Field::Warps, 0)),
        ("4w8/8/1/300", range(Field::Warps, 300)),
        ("4w8/9", E::PredicatesWiderThanRegisters { preds: 9, pred_bits: 4, gprs: 8, gpr_bits: 3 }),
        // 1 + 6 + 6 + 3 * 6 + 6
        ("4w64/64/1/1+x", E::ExtensionTooWide { needed: 37, limit: 32 }),
    ] {
        assert_eq!(text.parse::<ArchId>(), Err(error), "{text}");
    }
}

#[test]
fn the_extension_fits_where_its_longest_instruction_does() {
    // 1 + 4 + 6 + 3 * 5 + 6 = 32
    assert!("4w32/16/32/16+x".parse::<ArchId>().is_ok());
    assert!("4w32/17/32/16+x".parse::<ArchId>().is_err());
    assert!("4b64/64/1/1+x".parse::<ArchId>().is_ok());
    assert!("8w64/64/1/1+x".parse::<ArchId>().is_ok());
}

#[test]
fn foreign_triples_are_refused() {
    for triple in ["x86_64-unknown-linux-gnu", "riscv64-harp_4w8_8-none-unknown"] {
        let parsed: Triple = triple.parse().unwrap();
        assert!(matches!(ArchId::try_from(&parsed), Err(TripleError::NotHarp { .. })), "{triple}");
    }
    let bad: Triple = "unknown-harp_4w8_1-none-unknown".parse().unwrap();
    let error = ArchId::try_from(&bad).unwrap_err();
    let source = ArchIdError::OutOfRange { field: Field::Preds, given: 1 };
    assert_eq!(error, TripleError::ArchId { triple: bad.to_string(), source });
}
