//! CLIF values as words of arguments and results.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, ArgumentExtension, Type};
use harp_isa::WordSize;

/// How many words a value of type `ty` takes.
fn word_count(ty: Type, word: WordSize) -> usize {
    ty.bits().div_ceil(word.bits().into()) as usize
}

/// The words of an argument, the lowest first. The upper bits of an argument narrower than a word are
/// extended as the signature requires, else 0.
fn words_of(value: &DataValue, param: &AbiParam, word: WordSize) -> Vec<u64> {
    let ty = value.ty();
    let mut bytes = [0; 16];
    value.write_to_slice_le(&mut bytes[..ty.bytes() as usize]);
    let negative = bytes[ty.bytes() as usize - 1] >> 7 == 1;
    if param.extension == ArgumentExtension::Sext && negative {
        bytes[ty.bytes() as usize..].fill(0xff);
    }
    let bits = u128::from_le_bytes(bytes);
    let count = word_count(ty, word) as u32;
    (0..count)
        .map(|index| (bits >> (index * u32::from(word.bits()))) as u64 & word.mask())
        .collect()
}

/// The words of a call's arguments in order, as [`CallLayout`](crate::CallLayout) counts them: of a value
/// wider than a word the lowest comes first. The upper bits of a narrower value are extended as its parameter
/// requires, else 0.
pub fn argument_words(values: &[DataValue], params: &[AbiParam], word: WordSize) -> Vec<u64> {
    values.iter().zip(params).flat_map(|(value, param)| words_of(value, param, word)).collect()
}

/// The value of type `ty` that these words hold, the lowest first.
fn value_of(words: &[u64], ty: Type, word: WordSize) -> DataValue {
    let bits = words.iter().rev().fold(0_u128, |bits, &low| bits << word.bits() | u128::from(low));
    DataValue::read_from_slice_le(&bits.to_le_bytes(), ty)
}

/// The values of a call's results, whose words are given in order.
pub fn result_values(words: &[u64], results: &[AbiParam], word: WordSize) -> Vec<DataValue> {
    let mut rest = words;
    let values = results.iter().map(|result| {
        let count = word_count(result.value_type, word).min(rest.len());
        let (words, after) = rest.split_at(count);
        rest = after;
        value_of(words, result.value_type, word)
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
    use cranelift_codegen::ir::types;

    use super::*;

    #[test]
    fn values_survive_as_words() {
        for word in [WordSize::Four, WordSize::Eight] {
            for value in [
                DataValue::I8(-3),
                DataValue::I16(-300),
                DataValue::I32(i32::MIN),
                DataValue::I64(-0x1234_5678_9abc_def0),
                DataValue::F32(Ieee32::with_float(1.5)),
                DataValue::F64(Ieee64::with_float(-2.5)),
            ] {
                let param = AbiParam::new(value.ty());
                let words = words_of(&value, &param, word);
                assert_eq!(result_values(&words, &[param], word), [value]);
            }
        }
    }

    #[test]
    fn narrow_arguments_are_extended_as_the_signature_says() {
        let words = |param| words_of(&DataValue::I8(-1), &param, WordSize::Four);
        assert_eq!(words(AbiParam::new(types::I8).sext()), [0xffff_ffff]);
        assert_eq!(words(AbiParam::new(types::I8).uext()), [0xff]);
    }
}
