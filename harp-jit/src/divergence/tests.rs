//! Plans of small functions by hand, and of random ones against a simulated warp.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{
    AbiParam, Block, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder, Signature,
    TrapCode, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings;
use cranelift_codegen::verifier::verify_function;
use cranelift_frontend::Variable;
use harp_isa::ArchId;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};

use super::simulator::{End, Trace, Warp};
use super::{Imbalance, Plan, Unsupported, check, plan};
use crate::analysis::Uniformity;
use crate::builder::{KernelBuilder, KernelSource};
use crate::legalize::legalize;

const HEADER: &str = "
    fn0 = %harp_lane_id() -> i32
    fn1 = %emit(i32)
    fn2 = %harp_warp_id() -> i32
block0(v0: i32):
    v1 = call fn0()
    v2 = call fn2()
";

fn verify(func: &Function) {
    let flags = settings::Flags::new(settings::builder());
    verify_function(func, &flags).unwrap_or_else(|errors| panic!("{errors}\n{}", func.display()));
}

/// A kernel with a lane number `v1` and a warp number `v2`.
fn kernel(body: &str) -> Function {
    let text = format!("function %f(i32) {{{HEADER}{body}}}");
    cranelift_reader::parse_functions(&text).unwrap().remove(0)
}

fn planned(func: &Function) -> Result<(Function, Plan, Uniformity), Unsupported> {
    let mut func = func.clone();
    legalize(&mut func);
    let facts = Uniformity::compute(&func);
    let plan = plan(&mut func, &facts)?;
    verify(&func);
    check(&func, &plan).unwrap_or_else(|error| panic!("{error}\n{}{plan}", func.display()));
    Ok((func, plan, facts))
}

/// Plans and runs; returns the plan and the number of splits in which lanes disagreed.
fn runs(func: &Function) -> Result<(Plan, usize), Unsupported> {
    let (after, plan, facts) = planned(func)?;
    // The simulator knows no conditional traps, so the reference runs legal code too.
    let mut reference = func.clone();
    legalize(&mut reference);
    let mut parted = 0;
    for ids in [vec![0, 1, 2, 3, 4, 5, 6, 7], vec![-3, 5], vec![2, 2, 2]] {
        parted += compare(&reference, &after, &plan, &facts, &ids);
    }
    Ok((plan, parted))
}

/// Every lane must do what it does alone.
fn compare(
    func: &Function,
    after: &Function,
    plan: &Plan,
    facts: &Uniformity,
    ids: &[i32],
) -> usize {
    const FUEL: usize = 2000;
    let alone: Vec<(End, Trace)> = ids
        .iter()
        .map(|&id| {
            let mut lane = Warp::new(func, None, vec![id]);
            (lane.run(7, FUEL), lane.traces.remove(0))
        })
        .collect();
    if alone.iter().any(|lane| lane.0 == End::OutOfFuel) {
        return 0;
    }
    let mut warp = Warp::new(after, Some((plan, facts)), ids.to_vec());
    let end = warp.run(7, FUEL * 100);
    assert_ne!(end, End::OutOfFuel, "{}", after.display());
    for ((_, wanted), given) in alone.iter().zip(&warp.traces) {
        // A trap stops the lanes that are not as far.
        let done = if end == End::Trapped && !given.trapped {
            wanted.emitted.starts_with(&given.emitted)
        } else {
            wanted == given
        };
        assert!(done, "{wanted:?} wanted, {given:?}\n{}\n{plan}", after.display());
    }
    assert_eq!(end == End::Trapped, alone.iter().any(|lane| lane.0 == End::Trapped));
    warp.parted
}

fn refused(func: &Function) -> String {
    planned(func).err().unwrap().what
}

#[test]
fn a_diamond_gets_one_join() {
    let func = kernel(
        "   brif v1, block1, block2
        block1: call fn1(v0)
            jump block3(v1)
        block2: jump block3(v2)
        block3(v3: i32): call fn1(v3)
            return",
    );
    let (plan, parted) = runs(&func).unwrap();
    assert_eq!(plan.splits().len(), 1);
    assert!(parted > 0);
}

#[test]
fn an_if_without_else_joins_on_its_direct_edge_too() {
    let func = kernel(
        "   brif v1, block1, block2(v2)
        block1: jump block2(v0)
        block2(v3: i32): call fn1(v3)
            return",
    );
    let (after, plan, _) = planned(&func).unwrap();
    let join = plan.splits().next().unwrap().join.unwrap();
    let sources = after.layout.blocks().filter(|&b| after.block_successors(b).any(|to| to == join));
    assert_eq!(sources.count(), 2);
    assert!(runs(&func).unwrap().1 > 0);
}

#[test]
fn a_uniform_branch_is_left_alone() {
    let func = kernel(
        "   brif v2, block1, block2
        block1: jump block2
        block2: return",
    );
    let (after, plan, _) = planned(&func).unwrap();
    assert_eq!(plan.splits().len(), 0);
    assert_eq!(after.layout.blocks().count(), 3);
}

#[test]
fn nested_branches_with_one_post_dominator_chain_their_joins() {
    let func = kernel(
        "   v9 = iconst.i32 2
            v8 = band v1, v9
            brif v1, block1, block4(v2)
        block1: brif v8, block2, block4(v1)
        block2: call fn1(v8)
            jump block4(v0)
        block4(v3: i32): call fn1(v3)
            return",
    );
    let (after, plan, _) = planned(&func).unwrap();
    let joins: Vec<Block> = plan.splits().map(|split| split.join.unwrap()).collect();
    assert_eq!(joins.len(), 2);
    assert_eq!(after.block_successors(joins[0]).collect::<Vec<_>>(), [joins[1]]);
    assert!(runs(&func).unwrap().1 > 0);
}

#[test]
fn a_uniform_loop_on_one_side_keeps_its_branch() {
    let func = kernel(
        "   v9 = iconst.i32 4
            v8 = iconst.i32 1
            v7 = iconst.i32 0
            brif v1, block1(v7), block3
        block1(v3: i32): v4 = icmp ult v3, v9
            brif v4, block2, block3
        block2: call fn1(v3)
            v5 = iadd v3, v8
            jump block1(v5)
        block3: return",
    );
    let (plan, parted) = runs(&func).unwrap();
    assert_eq!(plan.splits().len(), 1);
    assert!(parted > 0);
}

#[test]
fn continue_in_a_uniform_loop_joins_at_the_latch() {
    let func = kernel(
        "   v9 = iconst.i32 4
            v8 = iconst.i32 1
            v7 = iconst.i32 0
            jump block1(v7)
        block1(v3: i32): v4 = icmp ult v3, v9
            brif v4, block2, block5
        block2: v6 = icmp ult v1, v3
            brif v6, block4, block3
        block3: call fn1(v3)
            jump block4
        block4: v5 = iadd v3, v8
            jump block1(v5)
        block5: return",
    );
    let (plan, parted) = runs(&func).unwrap();
    assert_eq!(plan.splits().len(), 1);
    assert!(parted > 0);
}

#[test]
fn a_back_edge_can_be_the_place_of_the_join() {
    let func = kernel(
        "   jump block1
        block1: brif v2, block2, block5
        block2: brif v1, block1, block3
        block3: call fn1(v1)
            jump block1
        block5: return",
    );
    // The loop never ends (the warp's number does not change), so it is only planned.
    let (after, plan, _) = planned(&func).unwrap();
    let join = plan.splits().next().unwrap().join.unwrap();
    assert_eq!(after.block_successors(join).count(), 1);
}

#[test]
fn a_block_of_two_conditions_is_refused() {
    let func = kernel(
        "   v9 = iconst.i32 2
            v8 = band v1, v9
            brif v1, block2, block1
        block1: brif v8, block2, block3
        block2: call fn1(v1)
            jump block4
        block3: jump block4
        block4: return",
    );
    let what = refused(&func);
    assert!(what.contains("block2") && what.contains("%harp_lane_id"), "{what}");
}

#[test]
fn a_divergent_loop_is_refused() {
    let func = kernel(
        "   jump block1(v0)
        block1(v3: i32): v4 = icmp ult v3, v1
            brif v4, block2, block3
        block2: v5 = iadd v3, v0
            jump block1(v5)
        block3: return",
    );
    assert!(refused(&func).contains("divergent loop"));
}

#[test]
fn a_return_in_a_uniform_loop_is_a_divergent_loop() {
    let func = kernel(
        "   jump block1(v0)
        block1(v3: i32): v4 = icmp ult v3, v0
            brif v4, block2, block3
        block2: v5 = iadd v3, v0
            brif v1, block1(v5), block4
        block3: return
        block4: return",
    );
    assert!(refused(&func).contains("divergent loop"));
}

#[test]
fn returns_on_both_sides_join() {
    let func = kernel(
        "   brif v1, block1, block2
        block1: call fn1(v0)
            return
        block2: return",
    );
    assert!(runs(&func).unwrap().1 > 0);
}

#[test]
fn traps_do_not_move_the_join() {
    let func = kernel(
        "   v9 = iconst.i32 100
            v8 = icmp eq v1, v9
            trapnz v8, user1
            brif v1, block1, block2
        block1: trapnz v8, user2
            jump block2
        block2: call fn1(v1)
            return",
    );
    let (plan, parted) = runs(&func).unwrap();
    assert_eq!(plan.splits().len(), 3);
    assert!(plan.splits().all(|split| split.join.is_some()));
    assert!(parted > 0);
}

#[test]
fn a_trap_block_may_be_shared() {
    let func = kernel(
        "   v9 = iconst.i32 6
            v8 = icmp eq v1, v9
            brif v8, block3, block1
        block1: call fn1(v1)
            v7 = icmp eq v1, v0
            brif v7, block3, block2
        block2: return
        block3: trap user1",
    );
    runs(&func).unwrap();
}

#[test]
fn both_sides_may_trap() {
    let func = kernel(
        "   brif v1, block1, block2
        block1: trap user1
        block2: trap user2",
    );
    let (plan, _) = runs(&func).unwrap();
    assert_eq!(plan.splits().next().unwrap().join, None);
}

#[test]
fn divergent_tables_are_chains_of_splits() {
    let func = kernel(
        "   br_table v1, block4, [block1, block2, block1, block4, block3, block2]
        block1: call fn1(v0)
            jump block5
        block2: call fn1(v1)
            jump block5
        block3: call fn1(v2)
            jump block5
        block4: jump block5
        block5: call fn1(v0)
            return",
    );
    let (plan, parted) = runs(&func).unwrap();
    assert_eq!(plan.splits().len(), 3);
    assert!(parted >= 3);
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let text = "   brif v1, block1, block2
        block1: jump block3
        block2: jump block3
        block3: return";
    let (after, good, _) = planned(&kernel(text)).unwrap();
    let split = *good.splits().next().unwrap();
    let join = split.join.unwrap();
    let with = |joins: &[Block]| {
        let mut plan = Plan::default();
        plan.add(super::Split { join: None, ..split });
        plan.joins.extend(joins.iter().copied());
        check(&after, &plan)
    };
    assert_eq!(with(&[join]), Ok(()));
    assert!(matches!(with(&[]), Err(Imbalance::OpenAtReturn { .. })));
    let [one, other] = [1, 2].map(Block::from_u32);
    assert!(matches!(with(&[one, other]), Err(Imbalance::TwoJoins { .. })));
    // Which of the two paths is found first is no business of the test.
    assert!(with(&[one]).is_err());
    assert!(with(&[join, other]).is_err());
    let entry = after.layout.entry_block().unwrap();
    assert_eq!(with(&[entry, join]), Err(Imbalance::NothingToJoin { block: entry }));
}

/// Makes programs out of random bytes. All zero bytes make a small one, so failures shrink.
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
        let value = match self.below(4) {
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
                b.for_range(start, end, step, |b, i| {
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
                let rare = self.operand(b);
                let hundred = b.ins().iconst(I32, 5);
                let both = b.ins().icmp(IntCC::Equal, rare, hundred);
                let trap = b.ins().band(condition, both);
                b.ins().trapnz(trap, TrapCode::unwrap_user(1));
            }
        }
    }

    /// A graph of blocks without any structure.
    fn graph(&mut self, b: &mut KernelBuilder<'_>) {
        let count = 2 + self.below(7);
        let blocks: Vec<Block> = (0..count).map(|_| b.create_block()).collect();
        b.ins().jump(blocks[0], &[]);
        for (index, &block) in blocks.iter().enumerate() {
            b.switch_to_block(block);
            for _ in 0..self.below(3) {
                self.assign(b);
            }
            self.emit(b);
            // Mostly forward, so that many graphs end.
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

/// What random programs came to.
#[derive(Debug, Default)]
struct Outcomes {
    refused: usize,
    uniform: usize,
    parted: usize,
}

fn random_programs(
    cases: u32,
    fill: impl Fn(&mut Generator<'_>, &mut KernelBuilder<'_>),
) -> Outcomes {
    let outcomes = std::cell::RefCell::new(Outcomes::default());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let test = |bytes: Vec<u8>| -> TestCaseResult {
        let func = build(&bytes, &fill);
        // What the entry does not reach is no business of a plan; the mid-end drops it.
        let mut context = cranelift_codegen::Context::for_function(func);
        context.compute_cfg();
        context.compute_domtree();
        let flags = settings::Flags::new(settings::builder());
        context.eliminate_unreachable_code(&flags).unwrap();
        let mut outcomes = outcomes.borrow_mut();
        match runs(&context.func) {
            Err(_) => outcomes.refused += 1,
            Ok((_, 0)) => outcomes.uniform += 1,
            Ok(_) => outcomes.parted += 1,
        }
        Ok(())
    };
    TestRunner::new(config).run(&vec(any::<u8>(), 0..120), test).unwrap_or_else(|e| panic!("{e}"));
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
    assert!(outcomes.refused > 5 && outcomes.uniform > 5, "{outcomes:?}");
}

#[test]
fn random_graphs_run_as_each_lane_alone_or_are_refused() {
    let outcomes = random_programs(20000, |generator, b| generator.graph(b));
    assert!(outcomes.parted > 60, "{outcomes:?}");
    assert!(outcomes.refused > 60 && outcomes.uniform > 5, "{outcomes:?}");
}
