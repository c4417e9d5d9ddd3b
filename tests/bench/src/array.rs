//! Arrays whose elements are one machine word each, made from 32-bit inputs.

use harp_isa::WordSize;
use harp_runtime::{Arg, Buffer, BufferError, Device};

/// A buffer of words or of the machine's native floats.
#[derive(Debug)]
pub enum Array {
    /// Integers on 4-byte words.
    I32(Buffer<i32>),
    /// Integers on 8-byte words.
    I64(Buffer<i64>),
    /// Floats on 4-byte words.
    F32(Buffer<f32>),
    /// Floats on 8-byte words.
    F64(Buffer<f64>),
}

impl Array {
    /// An array of integers.
    ///
    /// # Errors
    ///
    /// If the device has no memory left.
    pub fn of_ints(device: &Device, values: &[i32]) -> Result<Array, BufferError> {
        Ok(match device.arch().word() {
            WordSize::Four => Array::I32(device.buffer_from_slice(values)?),
            WordSize::Eight => {
                let wide: Vec<i64> = values.iter().copied().map(i64::from).collect();
                Array::I64(device.buffer_from_slice(&wide)?)
            }
        })
    }

    /// An array of floats.
    ///
    /// # Errors
    ///
    /// If the device has no memory left.
    pub fn of_floats(device: &Device, values: &[f32]) -> Result<Array, BufferError> {
        Ok(match device.arch().word() {
            WordSize::Four => Array::F32(device.buffer_from_slice(values)?),
            WordSize::Eight => {
                let wide: Vec<f64> = values.iter().copied().map(f64::from).collect();
                Array::F64(device.buffer_from_slice(&wide)?)
            }
        })
    }

    /// The array as an argument.
    pub fn arg(&self) -> Arg {
        match self {
            Array::I32(buffer) => buffer.into(),
            Array::I64(buffer) => buffer.into(),
            Array::F32(buffer) => buffer.into(),
            Array::F64(buffer) => buffer.into(),
        }
    }

    /// The elements as 32 bits: integers truncated, floats rounded.
    ///
    /// # Errors
    ///
    /// If the buffer belongs to another device.
    pub fn words(&self, device: &Device) -> Result<Vec<u32>, BufferError> {
        Ok(match self {
            Array::I32(buffer) => words(device.read(buffer)?, i32::cast_unsigned),
            Array::I64(buffer) => words(device.read(buffer)?, |value| value as u32),
            Array::F32(buffer) => words(device.read(buffer)?, f32::to_bits),
            Array::F64(buffer) => words(device.read(buffer)?, |value| (value as f32).to_bits()),
        })
    }
}

fn words<T>(values: Vec<T>, word: impl FnMut(T) -> u32) -> Vec<u32> {
    values.into_iter().map(word).collect()
}

/// An integer as an argument of one word.
pub fn int(device: &Device, value: i32) -> Arg {
    match device.arch().word() {
        WordSize::Four => value.into(),
        WordSize::Eight => i64::from(value).into(),
    }
}
