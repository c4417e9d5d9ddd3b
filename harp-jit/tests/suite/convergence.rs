//! Tests of the blocks of a kernel in which all lanes are known to be together.

use harp_jit::prelude::*;
use harp_jit::{ConvergenceProof, DivergenceStrategy, Kernel};

fn compiled(fill: impl FnOnce(&mut KernelBuilder<'_>)) -> Kernel {
    let mut source = KernelSource::new("k", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    fill(&mut b);
    b.finalize().unwrap();
    let options = CompileOptions {
        convergence: true,
        divergence: DivergenceStrategy::SplitJoin,
        ..CompileOptions::default()
    };
    source.compile(&options).unwrap()
}

/// The proof for the block with the first instruction built with `mnemonic`.
fn proof_of(kernel: &Kernel, mnemonic: &str) -> Option<ConvergenceProof> {
    let text = kernel.disassembly();
    let line = text.lines().find(|line| line.contains(mnemonic)).unwrap();
    let offset = u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap();
    let blocks = kernel.entry().convergence();
    let block = blocks.iter().find(|block| (block.start..block.end).contains(&offset)).unwrap();
    block.proof
}

#[test]
fn blocks_cover_the_code_in_order() {
    let kernel = compiled(|b| {
        let (x, n) = (b.param(ParamType::Pointer), b.param(ParamType::I32));
        let i = b.global_id(0);
        let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, n);
        b.if_then(inside, |b| b.store_elem(n, x, i));
        b.return_();
    });
    let blocks = kernel.entry().convergence();
    assert_eq!(blocks[0].start, 0);
    assert_eq!(blocks.last().unwrap().end, kernel.code().len() as u64);
    assert!(blocks.is_sorted_by(|a, b| a.end == b.start && a.start < a.end));
    assert_eq!(blocks[0].proof, Some(ConvergenceProof::Structure));
}

#[test]
fn each_rule_proves_what_the_one_before_does_not() {
    // `test` 0 compares the work-item's number, which diverges; others test an argument, which is uniform. With
    // `last` nothing follows the branch.
    let kernel = |test: u8, last: bool| {
        compiled(|b| {
            let (x, n) = (b.param(ParamType::Pointer), b.param(ParamType::I32));
            let i = b.global_id(0);
            let zero = b.ins().iconst(types::I32, 0);
            let condition = match test {
                0 => b.ins().icmp(IntCC::UnsignedLessThan, i, n),
                _ => b.ins().icmp(IntCC::NotEqual, n, zero),
            };
            b.if_then(condition, |b| {
                let product = b.ins().imul(n, i);
                b.store_elem(product, x, i);
            });
            if !last {
                b.store_elem(zero, x, i);
            }
            b.return_();
        })
    };
    assert_eq!(proof_of(&kernel(1, false), " mul"), Some(ConvergenceProof::Uniformity));
    assert_eq!(proof_of(&kernel(0, false), " mul"), None);
    assert_eq!(proof_of(&kernel(0, true), " mul"), Some(ConvergenceProof::EarlyExit));
}

#[test]
fn a_barrier_proves_that_lanes_are_together() {
    let kernel = compiled(|b| {
        let (x, n) = (b.param(ParamType::Pointer), b.param(ParamType::I32));
        let i = b.global_id(0);
        b.if_then(n, |b| {
            b.barrier();
            let product = b.ins().imul(n, i);
            b.store_elem(product, x, i);
        });
        b.store_elem(n, x, i);
        b.return_();
    });
    assert_eq!(proof_of(&kernel, " mul"), Some(ConvergenceProof::Structure));
}

#[test]
fn nothing_is_said_unless_it_is_asked_for() {
    let mut source = KernelSource::new("k", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    b.return_();
    b.finalize().unwrap();
    assert!(source.compile(&CompileOptions::default()).unwrap().entry().convergence().is_empty());
}
