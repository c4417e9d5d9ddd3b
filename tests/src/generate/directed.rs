//! Kernels that apply every operation to operands at the edges of their types, in registers, in all
//! pairs, or as constants on either side.
//!
//! The cells of narrow operands have noise above the operand, which must not matter.

use std::rc::Rc;

use cranelift_codegen::ir::{MemFlagsData, Type, Value, types};
use harp_isa::ArchId;
use harp_jit::{BuildError, KernelBuilder, KernelSource, ParamType};

use super::memory::float_to_cell;
use super::operations::{Build, operations};
use super::{F32_EDGES, F64_EDGES, Family};
use crate::oracle::{Argument, Case, Elements};

/// Results of one kernel, so that kernels stay of a size that is likely in practice.
const RESULTS: usize = 64;

/// Operands of one work-item.
pub(super) type Operands = [u64; 3];

/// Cases in which every operation of `arch` gets every pair of edges.
///
/// # Errors
///
/// If the builder refuses one, which is a defect.
pub fn directed(arch: ArchId) -> Result<Vec<Case>, BuildError> {
    let family = Family::of(arch);
    let mut cases = Vec::new();
    for (ty, to, operations) in operations(family) {
        let mut edges = edges(ty);
        // Floats wider than a word are long sequences on integers, judged on their own.
        let long = [ty, to].iter().any(|&ty| ty.is_float() && !family.in_register(ty));
        if long {
            edges.truncate(8);
        }
        let builds: Vec<Build> = operations.iter().map(|o| Rc::clone(&o.build)).collect();
        for some in builds.chunks(RESULTS) {
            cases.push(case(arch, ty, to, some, &pairs(&edges))?);
        }
        let with_constants: Vec<Build> = operations
            .iter()
            .filter(|operation| operation.constants && !long)
            .flat_map(|operation| edges.iter().map(move |&edge| (&operation.build, edge)))
            .flat_map(|(build, edge)| [0, 1].map(|side| with_constant(build, ty, side, edge)))
            .collect();
        for some in with_constants.chunks(RESULTS) {
            cases.push(case(arch, ty, to, some, &singles(&edges))?);
        }
    }
    Ok(cases)
}

/// Cases of one work-item in ten that divides by zero or, signed, overflows.
///
/// # Errors
///
/// If the builder refuses one, which is a defect.
pub fn divisions(arch: ArchId) -> Result<Vec<Case>, BuildError> {
    let mut cases = Vec::new();
    for &ty in Family::of(arch).ints() {
        let smallest = 1 << (ty.bits() - 1);
        let minus_one = u64::MAX >> (64 - ty.bits());
        let operations: [Build; 4] = [
            Rc::new(|b, [x, y, _]| b.ins().udiv(x, y)),
            Rc::new(|b, [x, y, _]| b.ins().urem(x, y)),
            Rc::new(|b, [x, y, _]| b.ins().sdiv(x, y)),
            Rc::new(|b, [x, y, _]| b.ins().srem(x, y)),
        ];
        for operation in operations {
            for bad in [[5, 0, 0], [0, 0, 0], [smallest, minus_one, 0]] {
                let mut operands = [[smallest, 3, 0]; 10];
                operands[6] = bad;
                cases.push(case(arch, ty, ty, &[Rc::clone(&operation)], &operands)?);
            }
        }
    }
    Ok(cases)
}

/// The operation with a constant in place of its operand number `side`.
fn with_constant(build: &Build, ty: Type, side: usize, bits: u64) -> Build {
    let build = Rc::clone(build);
    Rc::new(move |b, mut operands| {
        operands[side] = match ty {
            types::F32 => b.ins().f32const(f32::from_bits(bits as u32)),
            types::F64 => b.ins().f64const(f64::from_bits(bits)),
            _ => b.ins().iconst(ty, bits.cast_signed()),
        };
        build(b, operands)
    })
}

/// Where something ends in type `ty`.
fn edges(ty: Type) -> Vec<u64> {
    match ty {
        types::F32 => F32_EDGES.map(u64::from).into(),
        types::F64 => F64_EDGES.into(),
        _ => {
            let width = u64::from(ty.bits());
            let mask = u64::MAX >> (64 - width);
            let top = 1 << (width - 1);
            let mut all = vec![0, 1, 2, 3, mask, mask - 1, mask - 6, top, top - 1, top + 1];
            all.extend([width - 1, width, width + 1, 0x5a, 0x80, 0x55aa, 0xff00, 0x8000]);
            all.extend([0xdead_beef, 0x1234_5678_9abc_def0]);
            all.iter_mut().for_each(|value| *value &= mask);
            all.sort_unstable();
            all.dedup();
            all
        }
    }
}

/// Every pair of edges, with a third one.
fn pairs(edges: &[u64]) -> Vec<Operands> {
    let count = edges.len();
    let all = (0..count).flat_map(|i| (0..count).map(move |j| (i, j)));
    all.map(|(i, j)| [edges[i], edges[j], edges[(i + 2 * j + 1) % count]]).collect()
}

/// Every edge, with two others.
fn singles(edges: &[u64]) -> Vec<Operands> {
    let count = edges.len();
    (0..count).map(|i| [edges[i], edges[(i + 1) % count], edges[(i + 3) % count]]).collect()
}

/// A kernel in which each work-item applies all operations to its operands of type `ty` and stores
/// the results, of type `to`.
pub(super) fn case(
    arch: ArchId,
    ty: Type,
    to: Type,
    builds: &[Build],
    operands: &[Operands],
) -> Result<Case, BuildError> {
    let family = Family::of(arch);
    let word = family.word_int();
    let cell = |ty: Type| match ty {
        _ if ty.is_float() => family.float_cell(ty),
        _ if family.in_register(ty) => word,
        _ => ty,
    };
    let cell_bytes = |ty: Type| i64::from(cell(ty).bytes());

    let mut source = KernelSource::new("directed", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (inputs, outputs) = (b.param(ParamType::Pointer), b.param(ParamType::Pointer));
    let item = b.global_id(0);
    let slice = |b: &mut KernelBuilder<'_>, base: Value, bytes: i64| {
        let bytes = b.ins().iconst(word, bytes);
        let offset = b.ins().imul(item, bytes);
        b.ins().iadd(base, offset)
    };
    let from = slice(&mut b, inputs, 3 * cell_bytes(ty));
    let into = slice(&mut b, outputs, builds.len() as i64 * cell_bytes(to));
    let flags = MemFlagsData::trusted();
    let values = [0, 1, 2].map(|index| {
        let loaded_type = if ty.is_float() { ty } else { cell(ty) };
        let loaded = b.ins().load(loaded_type, flags, from, index * cell(ty).bytes() as i32);
        if ty == loaded_type { loaded } else { b.ins().ireduce(ty, loaded) }
    });
    for (index, build) in builds.iter().enumerate() {
        let result = build(&mut b, values);
        let result = match cell(to) {
            cell if cell == to => result,
            _ if to.is_float() => float_to_cell(&mut b, family, result),
            _ => b.ins().uextend(word, result),
        };
        b.ins().store(flags, result, into, index as i32 * cell(to).bytes() as i32);
    }
    b.return_();
    b.finalize()?;

    let noise = if ty.is_int() { 0xb5a3_9c71_e6d2_8f4b << (ty.bits() - 1) << 1 } else { 0 };
    let words =
        operands.iter().flatten().map(|&value| if ty == cell(ty) { value } else { value | noise });
    let inputs = words.flat_map(|w| w.to_le_bytes().into_iter().take(cell(ty).bytes() as usize));
    let outputs = vec![0; operands.len() * builds.len() * cell(to).bytes() as usize];
    let args = [(cell(ty), inputs.collect()), (cell(to), outputs)];
    Ok(Case {
        func: source.finished()?.clone(),
        word: family.word,
        extents: [operands.len() as u64, 1, 1],
        args: args.map(|(ty, bytes)| Argument::Buffer(Elements::of(ty), bytes)).into(),
    })
}
