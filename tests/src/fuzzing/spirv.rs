//! Any bytes as a module of SPIR-V: it is kernels or a typed error, whatever is wrong in it.
//!
//! Noise is no module, so bytes that do not start like one are choices instead: a random kernel is written as SPIR-V,
//! and changed in a few places.

use std::ops::Range;

use arbitrary::{Result, Unstructured};
use harp_isa::ArchId;
use harp_jit::{CompileError, CompileOptions, ModuleError};
use harp_spirv::SpirvModule;

use crate::generate::{Family, Kind};
use crate::random::{Counts, add};
use crate::spirv::write;

/// The first word of a module.
const MAGIC: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// Words of the header, which stay, as most modules would end there.
const HEADER: usize = 5;

/// A machine of each word.
const MACHINES: [&str; 2] = ["4w32/16/8/2+x", "8b8/2/16/1+x"];

/// Entry points of a module that are looked at.
const ENTRIES: usize = 4;

/// Bytes of modules that are compiled.
const SMALL: usize = 1 << 13;

/// Reads `bytes`, or a module made of them, and builds and compiles its kernels.
/// Panics if the compiler finds a defect of its own.
pub fn check(bytes: &[u8]) -> Counts {
    if bytes.starts_with(&MAGIC) {
        return check_module(bytes);
    }
    match changed(&mut Unstructured::new(bytes)) {
        Ok(module) => check_module(&module),
        Err(_) => check_module(bytes),
    }
}

fn check_module(bytes: &[u8]) -> Counts {
    let mut reached = Counts::new();
    let module = match SpirvModule::parse(bytes) {
        Ok(module) => module,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            add(&mut reached, "unreadable", 1);
            return reached;
        }
    };
    add(&mut reached, "modules", 1);
    for entry in module.entry_points().iter().take(ENTRIES) {
        for machine in MACHINES {
            let arch: ArchId = machine.parse().expect("the list holds ids");
            match module.kernel(entry.name(), arch) {
                Ok(_) if bytes.len() > SMALL => add(&mut reached, "large", 1),
                Ok(kernel) => match kernel.compile(&CompileOptions::default()) {
                    Ok(_) => add(&mut reached, "compiled", 1),
                    Err(ModuleError::Compile(error @ CompileError::Internal { .. })) => {
                        panic!("{}: {error}", entry.name());
                    }
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        add(&mut reached, "not compiled", 1);
                    }
                },
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    add(&mut reached, "refused", 1);
                }
            }
        }
    }
    reached
}

/// A random kernel with a few changes, first of all those, then what is left of the bytes.
fn changed(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let kinds = [Kind::Lowerings, Kind::Kernels, Kind::Calls, Kind::Graphs];
    let (kind, family) = (*u.choose(&kinds)?, *u.choose(&Family::ALL)?);
    let changes = (0..u.int_in_range(0..=4)?).map(|_| Ok((u.arbitrary()?, u.arbitrary()?)));
    let changes: Vec<(u32, [u8; 4])> = changes.collect::<Result<_>>()?;
    let rest = u.bytes(u.len())?;
    let case = kind.generate(rest, family).case;
    let written = write(&case).unwrap_or_else(|error| panic!("{error}:\n{case}"));
    let mut words: Vec<[u8; 4]> = written.as_chunks().0.to_vec();
    for (at, new) in changes {
        change(&mut words, at as usize, new);
    }
    Ok(words.into_flattened())
}

/// Changes a word, or removes or repeats an instruction. Most of the time an opcode, an id or a number becomes another one
/// of the module, or the next one.
fn change(words: &mut Vec<[u8; 4]>, at: usize, new: [u8; 4]) {
    let at = HEADER + at % (words.len() - HEADER).max(1);
    let Some(&[low, high, ..]) = words.get(at) else { return };
    let number = u32::from_le_bytes(new) as usize;
    let (how, number) = (number % 8, number / 8);
    words[at] = match how {
        0..=2 => words[number % words.len()],
        3 => u32::from_le_bytes(words[at]).wrapping_add(1).to_le_bytes(),
        4 => [number as u8, high, words[at][2], words[at][3]],
        5 => [low ^ 1 << (number % 8), high, words[at][2], words[at][3]],
        6 => {
            words.drain(instruction(words, at));
            return;
        }
        _ => {
            let piece = instruction(words, at);
            let again = words[piece.clone()].to_vec();
            words.splice(piece.end..piece.end, again);
            return;
        }
    };
}

/// The words of the instruction that a word belongs to.
fn instruction(words: &[[u8; 4]], at: usize) -> Range<usize> {
    let mut start = HEADER;
    loop {
        let [.., low, high] = words[start];
        let end = start + usize::from(u16::from_le_bytes([low, high])).max(1);
        if end > at {
            return start..end.min(words.len());
        }
        start = end;
    }
}
