//! Any bytes as an object file: reading never panics, and what is read survives writing, printing,
//! assembling and linking.
//!
//! Noise is no object file, so bytes that do not start like one are choices instead: an object is
//! made of them, written, and damaged in a few places.

use arbitrary::Unstructured;
use harp_isa::object::{hof, placeholder};
use harp_isa::{
    ArchId, Chunk, Layout, Object, Op, Opcode, Operand, Permissions, Reference, assemble, decode,
    encode, link,
};

use super::isa;
use crate::random::{Counts, add, counts};

/// Bytes of contents from which on an object is not printed.
const LARGE: usize = 1 << 16;
/// Bytes of contents from which on it is not even written again.
const HUGE: usize = 1 << 20;
/// Alignment up to which an image is not too large for a case.
const WIDE: u64 = 1 << 12;

/// Reads `bytes`, or a file made of them, and takes the object through writer, printers, assembler
/// and linker. Panics if the object does not come back the same.
pub fn check(bytes: &[u8]) -> Counts {
    if bytes.starts_with(b"HARP") {
        return check_file(bytes);
    }
    match damaged_file(&mut Unstructured::new(bytes)) {
        Ok(file) => check_file(&file),
        Err(_) => check_file(bytes),
    }
}

fn check_file(file: &[u8]) -> Counts {
    if let Ok(object) = hof::read_exact(file) {
        // What is shown exactly gives the same bytes back, not just the same object.
        assert_eq!(hof::write(&object).as_deref(), Ok(file));
    }
    match hof::read(file) {
        Ok(object) => check_object(&object),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            counts([("errors", 1)])
        }
    }
}

/// Takes an object that a file can hold through writer, printers, assembler and linker.
/// Panics if the object does not come back the same.
pub fn check_object(object: &Object) -> Counts {
    let size: usize = object.chunks.iter().map(|chunk| chunk.data.len()).sum();
    if size > HUGE {
        return counts([("objects", 1), ("large", 1)]);
    }
    let file = hof::write(object).unwrap_or_else(|error| panic!("{error}: {object:?}"));
    assert_eq!(hof::read(&file).as_ref(), Ok(object));
    let references = object.chunks.iter().map(|chunk| chunk.references.len()).sum();
    let chunks = object.chunks.len();
    let mut reached = counts([("objects", 1), ("chunks", chunks), ("references", references)]);
    if size <= LARGE {
        let text = object.display_exact().to_string();
        let again = assemble(&text, object.arch, &[]);
        assert_eq!(again.as_ref(), Ok(object), "{text}");
        assert!(object.chunks.is_empty() || !object.display().to_string().is_empty());
    }
    // At the end of the address space nothing fits, so that only addresses are computed.
    let _ = link(&[object, object], object.arch.word().mask());
    if size <= LARGE && object.chunks.iter().all(|chunk| chunk.alignment <= WIDE) {
        add(&mut reached, "linked", link(&[object], 0).is_ok().into());
    }
    reached
}

fn damaged_file(u: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let object = object(u)?;
    let mut file = hof::write(&object).map_err(|_| arbitrary::Error::IncorrectFormat)?;
    // Most of the damage is in the numbers, which are words.
    let word = usize::from(object.arch.word().bytes());
    for _ in 0..u.int_in_range(0..=2)? {
        let at = u.choose_index(file.len())?;
        let at = if u.arbitrary()? { at / word * word } else { at };
        file[at] = u.arbitrary()?;
    }
    if u.ratio(1, 8)? {
        file.truncate(u.choose_index(file.len())?);
    }
    Ok(file)
}

/// An object of a few chunks that a file can hold.
/// Fails if `u` is exhausted, or asks for a machine whose instructions do not fit a word.
pub fn object(u: &mut Unstructured<'_>) -> arbitrary::Result<Object> {
    let arch = isa::arch(u)?;
    let chunks =
        (0..u.int_in_range(0..=4)?).map(|_| chunk(u, arch)).collect::<Result<Vec<_>, _>>()?;
    let entry = if chunks.is_empty() { 0 } else { u.choose_index(chunks.len())? };
    Ok(Object { arch, chunks, entry })
}

fn name(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    Ok(match u.int_in_range(0..=7)? {
        0 => u.arbitrary::<String>()?.replace('\0', "0"),
        1 => "\"\\\n\t*/".to_owned(),
        2 => "__WORD".to_owned(),
        3 => String::new(),
        other => format!("name{other}"),
    })
}

fn chunk(u: &mut Unstructured<'_>, arch: ArchId) -> arbitrary::Result<Chunk> {
    let mut chunk = Chunk {
        name: name(u)?,
        alignment: *u.choose(&[0, 1, 3, 4, 8, 64, WIDE, 2 * WIDE, 0xffff_ffff])?,
        permissions: Permissions::from_bits_truncate(u.int_in_range(0..=7)?),
        global: u.arbitrary()?,
        address: if u.ratio(1, 8)? { Some(u.int_in_range(1..=0xffff_ffff)?) } else { None },
        data: Vec::new(),
        references: Vec::new(),
    };
    for _ in 0..u.int_in_range(0..=8)? {
        item(u, arch, &mut chunk)?;
    }
    Ok(chunk)
}

/// Appends something to `chunk`.
fn item(u: &mut Unstructured<'_>, arch: ArchId, chunk: &mut Chunk) -> arbitrary::Result<()> {
    let offset = chunk.data.len() as u64;
    match u.int_in_range(0..=5)? {
        0 => chunk.data.extend(u.arbitrary::<[u8; 5]>()?),
        1 => chunk.data.extend(vec![0; u.int_in_range(0..=200)?]),
        2 => {
            chunk.references.push(Reference::from_word(name(u)?, offset, arch));
            let word = u64::from(u.ratio(1, 4)?).to_le_bytes();
            chunk.data.extend(&word[..arch.word().bytes().into()]);
        }
        3 => chunk.references.push(Reference {
            name: name(u)?,
            relative: u.arbitrary()?,
            base_offset: u.int_in_range(0..=0xffff_ffff)?,
            byte_offset: u.int_in_range(0..=64)?,
            size_bits: u.int_in_range(0..=arch.word().bits())?,
            shift: u.arbitrary()?,
        }),
        _ => code(u, arch, chunk)?,
    }
    Ok(())
}

/// Appends an instruction, maybe one that awaits an address.
fn code(u: &mut Unstructured<'_>, arch: ArchId, chunk: &mut Chunk) -> arbitrary::Result<()> {
    let bytes = u.arbitrary::<[u8; 16]>()?;
    let Ok((mut instruction, _)) = decode(&bytes, arch) else {
        chunk.data.extend(&bytes[..arch.word().bytes().into()]);
        return Ok(());
    };
    let offset = chunk.data.len() as u64;
    let opcode: Opcode = instruction.op.opcode();
    if Layout::new(arch).immediate_bits(opcode) > 0 && u.arbitrary()? {
        // Some keep their immediate, which is then not what stands in for an address.
        let keeps = u.ratio(1, 4)?;
        let mut operands: Vec<Operand> = Vec::new();
        instruction.op.for_each_operand(|operand| {
            operands.push(match operand {
                Operand::Imm(_) if !keeps => placeholder(opcode, arch).into(),
                other => other,
            });
        });
        instruction.op = Op::from_operands(opcode, &operands)
            .expect("the operands are those of an instruction of this opcode");
        chunk.references.extend(Reference::from_instruction(name(u)?, opcode, offset, arch));
    }
    encode(&instruction, arch, &mut chunk.data).expect("it was decoded for this machine");
    Ok(())
}
