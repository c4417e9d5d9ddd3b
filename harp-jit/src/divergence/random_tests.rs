//! Tests with random programs, structured and unstructured, on a simulated warp.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{
    AbiParam, Block, ExtFuncData, ExternalName, FuncRef, Function, MemFlagsData, Signature,
    TrapCode, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings;
use cranelift_frontend::Variable;
use harp_isa::ArchId;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};

use super::tests::{runs, runs_with, verify};
use crate::analysis::Loads;
use crate::builder::{KernelBuilder, KernelSource};

/// Generates programs from random bytes. All-zero bytes give a small program, so failures shrink.
struct Generator<'a> {
    bytes: std::slice::Iter<'a, u8>,
    vars: Vec<Variable>,
    emit: FuncRef,
}

impl<'a> Generator<'a> {
    fn new(b: &mut KernelBuilder<'_>, bytes: &'a [u8]) -> Generator<'a> {
        let mut signature = Signature::new(CallConv::Fast);
        signature.params.push(AbiParam::new(I32));
        let signature = b.inner().import_signature(signature);
        let emit = b.inner().import_function(ExtFuncData {
            name: ExternalName::testcase("emit"),
            signature,
            colocated: true,
            patchable: false,
        });
        let start = [b.warp_id(), b.lane_id(), b.warp_id(), b.lane_id()];
        let vars = start.map(|value| {
            let var = b.declare_var(I32);
            b.def_var(var, value);
            var
        });
        Generator { bytes: bytes.iter(), vars: vars.to_vec(), emit }
    }

    fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    fn var(&mut self) -> Variable {
        let index = self.below(4);
        self.vars[usize::from(index)]
    }

    /// A variable, or a small number.
    fn operand(&mut self, b: &mut KernelBuilder<'_>) -> Value {
        match self.below(5) {
            4 => {
                let number = i64::from(self.below(4));
                b.ins().iconst(I32, number)
            }
            index => b.use_var(self.vars[usize::from(index)]),
        }
    }

    fn condition(&mut self, b: &mut KernelBuilder<'_>) -> Value {
        let [x, y] = [self.operand(b), self.operand(b)];
        let codes = [IntCC::NotEqual, IntCC::UnsignedLessThan, IntCC::SignedLessThan];
        let code = codes[usize::from(self.below(3))];
        b.ins().icmp(code, x, y)
    }

    fn emit(&mut self, b: &mut KernelBuilder<'_>) {
        let value = self.operand(b);
        let emit = self.emit;
        b.ins().call(emit, &[value]);
    }

    fn assign(&mut self, b: &mut KernelBuilder<'_>) {
        let [x, y] = [self.operand(b), self.operand(b)];
        let value = match self.below(5) {
            3 => b.ins().load(I32, MemFlagsData::trusted(), x, 0),
            0 => b.ins().iadd(x, y),
            1 => b.ins().bxor(x, y),
            2 => b.ins().band(x, y),
            _ => x,
        };
        let var = self.var();
        b.def_var(var, value);
    }

    fn statements(&mut self, b: &mut KernelBuilder<'_>, depth: u8) {
        for _ in 0..=self.below(3) {
            self.statement(b, depth);
        }
    }

    fn statement(&mut self, b: &mut KernelBuilder<'_>, depth: u8) {
        let kind = if depth == 0 { self.below(3) } else { self.below(8) };
        match kind {
            0 => self.emit(b),
            1 | 2 => self.assign(b),
            3 => {
                let condition = self.condition(b);
                b.if_then(condition, |b| self.statements(b, depth - 1));
            }
            4 => {
                let condition = self.condition(b);
                // Both closures draw from one source of bytes.
                let this = std::cell::RefCell::new(self);
                b.if_else(
                    condition,
                    |b| this.borrow_mut().statements(b, depth - 1),
                    |b| this.borrow_mut().statements(b, depth - 1),
                );
            }
            5 => {
                let [start, step] = [0, 1].map(|number| b.ins().iconst(I32, number));
                let (bound, three) = (self.operand(b), b.ins().iconst(I32, 3));
                let end = b.ins().band(bound, three);
                let counter = self.var();
                b.for_range_unsigned(start, end, step, |b, i| {
                    b.def_var(counter, i);
                    self.statements(b, depth - 1);
                });
            }
            6 => {
                let var = self.var();
                let this = std::cell::RefCell::new(self);
                b.while_loop(
                    |b| {
                        this.borrow_mut().assign(b);
                        let (value, two) = (b.use_var(var), b.ins().iconst(I32, 2));
                        b.ins().icmp(IntCC::UnsignedLessThan, value, two)
                    },
                    |b| {
                        this.borrow_mut().statements(b, depth - 1);
                        let (value, one) = (b.use_var(var), b.ins().iconst(I32, 1));
                        let next = b.ins().iadd(value, one);
                        b.def_var(var, next);
                    },
                );
            }
            _ => {
                let condition = self.condition(b);
                let (rare, five) = (self.operand(b), b.ins().iconst(I32, 5));
                let rare = b.ins().icmp(IntCC::Equal, rare, five);
                let trap = b.ins().band(condition, rare);
                b.ins().trapnz(trap, TrapCode::unwrap_user(1));
            }
        }
    }

    /// A graph of at most `most` blocks without any structure.
    fn graph(&mut self, b: &mut KernelBuilder<'_>, most: u8) {
        let count = 2 + self.below(most - 1);
        let blocks: Vec<Block> = (0..count).map(|_| b.create_block()).collect();
        b.ins().jump(blocks[0], &[]);
        for (index, &block) in blocks.iter().enumerate() {
            b.switch_to_block(block);
            for _ in 0..self.below(3) {
                self.assign(b);
            }
            self.emit(b);
            // Mostly forward edges, so that many graphs terminate.
            let mut target = || {
                let step = usize::from(self.below(4));
                blocks[if step == 3 { index / 2 } else { (index + 1 + step).min(blocks.len() - 1) }]
            };
            let [on_true, on_false] = [target(), target()];
            if block == blocks[blocks.len() - 1] {
                b.return_();
                continue;
            }
            match self.below(8) {
                0 => {
                    b.ins().jump(on_true, &[]);
                }
                1 if self.below(4) == 3 => {
                    b.ins().trap(TrapCode::unwrap_user(2));
                }
                _ => {
                    let condition = self.condition(b);
                    b.ins().brif(condition, on_true, &[], on_false, &[]);
                }
            }
        }
    }
}

fn build(bytes: &[u8], fill: impl FnOnce(&mut Generator<'_>, &mut KernelBuilder<'_>)) -> Function {
    let mut source = KernelSource::new("random", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    let mut generator = Generator::new(&mut b, bytes);
    fill(&mut generator, &mut b);
    b.finalize().unwrap();
    verify(source.function());
    source.function().clone()
}

/// Statistics of the random programs.
#[derive(Debug, Default)]
struct Outcomes {
    uniform: usize,
    parted: usize,
    /// Those with fewer splits if loads that decide branches are done once.
    spared: usize,
}

fn random_programs(
    cases: u32,
    fill: impl Fn(&mut Generator<'_>, &mut KernelBuilder<'_>),
) -> Outcomes {
    let outcomes = std::cell::RefCell::new(Outcomes::default());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let test = |bytes: Vec<u8>| -> TestCaseResult {
        let func = build(&bytes, &fill);
        // Plans do not cover unreachable blocks; the mid-end drops these.
        let mut context = cranelift_codegen::Context::for_function(func);
        context.compute_cfg();
        context.compute_domtree();
        let flags = settings::Flags::new(settings::builder());
        context.eliminate_unreachable_code(&flags).unwrap();
        let mut outcomes = outcomes.borrow_mut();
        let (plan, parted) = runs(&context.func);
        match parted {
            0 => outcomes.uniform += 1,
            _ => outcomes.parted += 1,
        }
        let (once, _) = runs_with(&context.func, Loads::Once);
        outcomes.spared += usize::from(once.splits().len() < plan.splits().len());
        Ok(())
    };
    // The same programs each time: the counts are part of what is tested.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(&vec(any::<u8>(), 0..120), test).unwrap_or_else(|error| panic!("{error}"));
    outcomes.into_inner()
}

#[test]
fn random_structured_programs_run_as_each_lane_alone() {
    let outcomes = random_programs(600, |generator, b| {
        generator.statements(b, 3);
        generator.emit(b);
        b.return_();
    });
    assert!(outcomes.parted > 60, "{outcomes:?}");
    assert!(outcomes.uniform > 5, "{outcomes:?}");
    assert!(outcomes.spared > 20, "{outcomes:?}");
}

#[test]
fn random_graphs_run_as_each_lane_alone() {
    let outcomes = random_programs(1500, |generator, b| generator.graph(b, 9));
    assert!(outcomes.parted > 60, "{outcomes:?}");
    assert!(outcomes.uniform > 5, "{outcomes:?}");
    assert!(outcomes.spared > 20, "{outcomes:?}");
}
