//! Architecture ids as text and as target triples.

use crate::random::machine;
use harp_isa::{
    ArchId, ArchIdError, ArchIdField as Field, Encoding, Gpr, Pred, TripleError, WordSize,
};
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
    fn no_text_panics(id in "\\PC*", near in "(4|8|16)?[wbx]?[0-9]{0,3}(/[0-9]{0,21}){0,5}(\\+x|\\+s[0-9]{0,3}(/[0-9]{0,3})?){0,3}") {
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
        for (gprs, preds) in [(0, 0), (1, 0), (1, 1)] {
            let is_equal = (gprs, preds) == (arch.shared_gprs(), arch.shared_preds());
            if let Ok(other) = other.with_shared(gprs, preds) {
                prop_assert_eq!(arch.is_object_compatible(other), is_equal);
            }
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
fn shared_registers() {
    let arch: ArchId = "4w24/12/32/16+x+s8/4".parse().unwrap();
    assert_eq!((arch.gprs(), arch.preds()), (24, 12));
    assert_eq!((arch.shared_gprs(), arch.shared_preds()), (8, 4));
    assert_eq!((arch.all_gprs(), arch.all_preds()), (32, 16));
    // The order of options does not matter, and presets have them, too.
    assert_eq!("4w24/12/32/16+s8/4+x".parse(), Ok(arch));
    assert_eq!("harp64+s32/0+x".parse::<ArchId>().unwrap().to_string(), "8w32/32/16/16+x+s32");
    let triple: Triple = "unknown-harp_harp64_s32_x-none-unknown".parse().unwrap();
    assert_eq!(ArchId::try_from(&triple).unwrap().to_string(), "8w32/32/16/16+x+s32");
    assert_eq!(Triple::from(arch).vendor.as_str(), "harp_4w24_12_32_16_x_s8_4");

    let names = |reg: u8| {
        (arch.gpr_name(Gpr::new(reg)).to_string(), arch.pred_name(Pred::new(reg)).to_string())
    };
    assert_eq!(names(11), ("%r11".to_owned(), "@p11".to_owned()));
    assert_eq!(names(12), ("%r12".to_owned(), "@s0".to_owned()));
    assert_eq!(names(24), ("%s0".to_owned(), "@p24".to_owned()));
    assert_eq!(names(31), ("%s7".to_owned(), "@p31".to_owned()));
    assert_eq!(names(32), ("%r32".to_owned(), "@p32".to_owned()));
    assert_eq!((arch.shared_gpr(7), arch.shared_gpr(8)), (Some(Gpr::new(31)), None));
    assert_eq!((arch.shared_pred(3), arch.shared_pred(4)), (Some(Pred::new(15)), None));

    let without = arch.with_shared(0, 0).unwrap();
    assert_eq!(without.to_string(), "4w24/12/32/16+x");
    assert!(!without.has_shared() && !without.is_shared_gpr(Gpr::new(24)));
    assert!(!arch.is_object_compatible(without));
    let error = ArchIdError::OutOfRange { field: Field::SharedGprs, given: 0 };
    assert_eq!(arch.with_shared(0, 1), Err(error));
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
        ("4w8/8+x+x", E::NotANumber { id: id("4w8/8+x+x"), field: Field::Preds, given: id("8+x") }),
        (
            "4w8/8+s1+s1",
            E::NotANumber { id: id("4w8/8+s1+s1"), field: Field::Preds, given: id("8+s1") },
        ),
        ("4w8/8+s", missing("4w8/8+s", Field::SharedGprs)),
        ("4w8/8+s1/", missing("4w8/8+s1/", Field::SharedPreds)),
        (
            "4w8/8+sx",
            E::NotANumber { id: id("4w8/8+sx"), field: Field::SharedGprs, given: id("x") },
        ),
        (
            "4w8/8+s1/2/3",
            E::NotANumber { id: id("4w8/8+s1/2/3"), field: Field::SharedPreds, given: id("2/3") },
        ),
        ("4w8/8+s0", range(Field::SharedGprs, 0)),
        ("4w8/8+s0/4", range(Field::SharedGprs, 0)),
        ("4w8/8+s300", range(Field::SharedGprs, 300)),
        ("4w60/8+s5", E::TooManyRegisters { field: Field::Gprs, own: 60, shared: 5, limit: 64 }),
        (
            "4b60/8+s4/57",
            E::TooManyRegisters { field: Field::Preds, own: 8, shared: 57, limit: 64 },
        ),
        (
            "4b8/8+s255/255",
            E::TooManyRegisters { field: Field::Gprs, own: 8, shared: 255, limit: 64 },
        ),
        (
            "4w8/8+s4/9",
            E::PredicatesWiderThanRegisters { preds: 17, pred_bits: 5, gprs: 12, gpr_bits: 4 },
        ),
        // 1 + 4 + 6 + 3 * 6 + 6
        ("4w32/16+x+s1", E::ExtensionTooWide { needed: 35, limit: 32 }),
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
