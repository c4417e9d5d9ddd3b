//! The check of shared registers finds them in wrong places: mutants of the code of random kernels.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{ExtFuncData, ExternalName, FuncRef, Signature, Value};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::Variable;
use harp_isa::{ArchId, Opcode, OpcodeFlags, RegClass};
use hashbrown::HashSet;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::candidates::Candidates;
use super::liveness::Live;
use super::mentions::Mentions;
use super::nesting::Nesting;
use super::{Setting, check, share};
use crate::abi::EntryKind;
use crate::builder::{BufferParam, KernelBuilder, KernelSource};
use crate::options::CompileOptions;
use crate::pipeline;
use crate::times::Clock;
use crate::unit::Unit;
use crate::vcode::{MInst, MOperand, Reg, SharedReg, VCode};

/// Makes kernels of bytes: uniform and divergent branches and loops, values of both kinds, memory, and calls.
struct Generator<'a> {
    bytes: std::slice::Iter<'a, u8>,
    vars: Vec<Variable>,
    data: BufferParam<i32>,
    callee: FuncRef,
}

impl Generator<'_> {
    fn below(&mut self, limit: u8) -> u8 {
        self.bytes.next().copied().unwrap_or(0) % limit
    }

    fn value(&mut self, b: &mut KernelBuilder<'_>) -> Value {
        let var = usize::from(self.below(6));
        b.use_var(self.vars[var])
    }

    fn assign(&mut self, b: &mut KernelBuilder<'_>) {
        let [x, y] = [self.value(b), self.value(b)];
        let value = match self.below(5) {
            0 => b.ins().iadd(x, y),
            1 => b.ins().bxor(x, y),
            2 => b.ins().imul(x, y),
            3 => b.load(self.data, x),
            _ => x,
        };
        let var = usize::from(self.below(6));
        b.def_var(self.vars[var], value);
    }

    fn condition(&mut self, b: &mut KernelBuilder<'_>) -> Value {
        let [x, y] = [self.value(b), self.value(b)];
        b.ins().icmp(IntCC::SignedLessThan, x, y)
    }

    fn statements(&mut self, b: &mut KernelBuilder<'_>, depth: u8) {
        for _ in 0..=self.below(4) {
            self.statement(b, depth);
        }
    }

    fn statement(&mut self, b: &mut KernelBuilder<'_>, depth: u8) {
        match if depth == 0 { self.below(6) } else { self.below(12) } {
            0..=3 => self.assign(b),
            4 => {
                let [at, value] = [self.value(b), self.value(b)];
                b.store(self.data, at, value);
            }
            5 => {
                if self.below(3) == 0 {
                    let callee = self.callee;
                    b.ins().call(callee, &[]);
                }
            }
            6 | 7 => {
                let condition = self.condition(b);
                b.if_then(condition, |b| self.statements(b, depth - 1));
            }
            8 | 9 => {
                let condition = self.condition(b);
                let this = std::cell::RefCell::new(self);
                b.if_else(
                    condition,
                    |b| this.borrow_mut().statements(b, depth - 1),
                    |b| this.borrow_mut().statements(b, depth - 1),
                );
            }
            _ => {
                let (start, end) = (b.ins().iconst(I32, 0), self.value(b));
                let step = b.ins().iconst(I32, 1);
                b.for_range(start, end, step, |b, i| {
                    b.def_var(self.vars[0], i);
                    self.statements(b, depth - 1);
                });
            }
        }
    }
}

fn kernel(bytes: &[u8], arch: ArchId) -> KernelSource {
    let mut source = KernelSource::new("random", arch);
    let mut b = KernelBuilder::new(&mut source);
    let signature = b.inner().import_signature(Signature::new(CallConv::Fast));
    let callee = b.inner().import_function(ExtFuncData {
        name: ExternalName::testcase("called"),
        signature,
        colocated: true,
        patchable: false,
    });
    let data = b.buffer::<i32>("data");
    let starts = [b.scalar::<i32>("x"), b.scalar::<i32>("y"), b.scalar::<i32>("z"), b.warp_id()];
    let starts = starts.into_iter().chain([b.lane_id(), b.global_id(0)]);
    let vars = starts.map(|start| {
        let var = b.declare_var(I32);
        b.def_var(var, start);
        var
    });
    let vars = vars.collect();
    let mut generator = Generator { bytes: bytes.iter(), vars, data, callee };
    generator.statements(&mut b, 3);
    let values: Vec<Value> = generator.vars.iter().map(|&var| b.use_var(var)).collect();
    let sum = values.into_iter().reduce(|x, y| b.ins().iadd(x, y)).unwrap();
    let at = b.lane_id();
    b.store(data, at, sum);
    b.return_();
    b.finalize().unwrap();
    source
}

const MACHINES: [&str; 3] = ["4w24/12/32/16+x+s8/4", "4w16/16/8/4+s3/2", "4b32/32/16/16+x+s32/32"];

/// Kernels with calls call what nothing is known of.
fn setting(source: &KernelSource, vcode: &VCode) -> Setting {
    let may_use_groups = |inst: &MInst| matches!(inst, MInst::Call { .. }) || inst.uses_groups();
    let by_rows = !vcode.insts.iter().any(may_use_groups);
    Setting { arch: source.arch(), entry: EntryKind::Kernel, by_rows }
}

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// An instruction reads the number of another register that interferes with its own.
    SwappedNumbers,
    /// A register has the place of one that interferes.
    SameNumber,
    /// The same, where both interfere only because the sides of a split run one after the other.
    OtherSide,
    /// A jump passes what was copied, not the copy.
    DroppedCopy,
    /// A value that is needed after a call stays in a shared register.
    OverCall,
    /// An address of a lane's own value is shared.
    Row,
    /// A parameter of a join is shared.
    JoinParameter,
}

type Mutant = (Kind, VCode);

struct Code<'a> {
    vcode: &'a VCode,
    arch: ArchId,
    /// The registers that are shared.
    shared: Candidates,
    live: Live,
    /// What is alive at the same time if the sides of splits are taken to run side by side.
    beside: Live,
    /// All registers that are needed after a call.
    over_calls: Vec<Reg>,
}

impl<'a> Code<'a> {
    fn new(vcode: &'a VCode, arch: ArchId) -> Code<'a> {
        let nesting = Nesting::compute(vcode).unwrap();
        let shared = Candidates::new(vcode, vcode.shared.keys().copied().collect());
        let all = Candidates::new(vcode, defined(vcode));
        let compute = |nesting: &Nesting, candidates: &Candidates| {
            Live::compute(vcode, nesting, candidates, &Mentions::new(vcode, candidates))
        };
        let over_calls = compute(&nesting, &all).over_calls;
        let over_calls = over_calls.ones().map(|number| all.regs()[number]).collect();
        let live = compute(&nesting, &shared);
        let beside = compute(&nesting.without_joins(), &shared);
        Code { vcode, arch, shared, live, beside, over_calls }
    }

    fn with(&self, kind: Kind, change: impl FnOnce(&mut VCode)) -> Mutant {
        let mut broken = self.vcode.clone();
        change(&mut broken);
        (kind, broken)
    }

    fn mutants(&self) -> Vec<Mutant> {
        let mut mutants = Vec::new();
        let shared: BTreeMap<usize, (Reg, SharedReg)> =
            self.vcode.shared.iter().map(|(&reg, &place)| (reg.index(), (reg, place))).collect();
        for &(reg, _) in shared.values() {
            let number = self.shared.number(reg).unwrap();
            let others: BTreeSet<usize> = self.live.conflicts[number].iter().copied().collect();
            for other_number in others.into_iter().take(3) {
                let other = self.shared.regs()[other_number];
                let its = self.vcode.shared[&other];
                if let Some(at) = self.reader(reg) {
                    mutants.push(self.with(Kind::SwappedNumbers, |vcode| {
                        let wrong = vcode.new_reg(reg.class());
                        vcode.shared.insert(wrong, its);
                        vcode.insts[at].rewrite_regs(|read| {
                            if *read == reg {
                                *read = wrong;
                            }
                        });
                    }));
                }
                let kind = match self.beside.conflicts[number].contains(&other_number) {
                    true => Kind::SameNumber,
                    false => Kind::OtherSide,
                };
                mutants.push(self.with(kind, |vcode| {
                    vcode.shared.insert(reg, its);
                }));
            }
        }
        self.vcode
            .blocks()
            .for_each(|(_, block)| self.params(&block.params, block.insts.start, &mut mutants));
        let own = |reg: &&Reg| !self.vcode.shared.contains_key(*reg);
        for &reg in self.over_calls.iter().filter(own) {
            // The first one of each class is not the kernel's.
            let place = match reg.class() {
                RegClass::Gpr => self.arch.shared_gpr(0).map(SharedReg::Gpr),
                RegClass::Pred => self.arch.shared_pred(0).map(SharedReg::Pred),
            };
            let Some(place) = place else { continue };
            mutants.push(self.with(Kind::OverCall, |vcode| {
                vcode.shared.insert(reg, place);
            }));
        }
        for at in 0..self.vcode.insts.len() {
            self.inst(at, &mut mutants);
        }
        mutants
    }

    /// An instruction that reads the register.
    fn reader(&self, reg: Reg) -> Option<usize> {
        self.vcode.insts.iter().position(|inst| {
            let mut reads = false;
            inst.for_each_reg(|read, access| reads |= read == reg && !access.is_def());
            reads
        })
    }

    fn some_place(&self, class: RegClass) -> Option<SharedReg> {
        self.vcode.shared.values().copied().filter(|place| place.class() == class).min()
    }

    fn params(&self, params: &[Reg], first: usize, mutants: &mut Vec<Mutant>) {
        if self.vcode.insts[first] != MInst::Join {
            return;
        }
        for &param in params {
            let Some(place) = self.some_place(param.class()) else { continue };
            mutants.push(self.with(Kind::JoinParameter, |vcode| {
                vcode.shared.insert(param, place);
            }));
        }
    }

    fn inst(&self, at: usize, mutants: &mut Vec<Mutant>) {
        let vcode = self.vcode;
        match &vcode.insts[at] {
            MInst::Jump { args, .. } => {
                for (index, &arg) in args.iter().enumerate() {
                    let copied = vcode.insts[..at].iter().find_map(|inst| match inst {
                        MInst::Op { opcode: Opcode::Ori, operands, .. } => match operands[..] {
                            [MOperand::Def(dst), MOperand::Use(src), MOperand::Imm(0)] => {
                                let moved = vcode.shared.get(&dst) != vcode.shared.get(&src);
                                (dst == arg && moved).then_some(src)
                            }
                            _ => None,
                        },
                        _ => None,
                    });
                    let Some(copied) = copied else { continue };
                    mutants.push(self.with(Kind::DroppedCopy, |vcode| {
                        if let MInst::Jump { args, .. } = &mut vcode.insts[at] {
                            args[index] = copied;
                        }
                    }));
                }
            }
            MInst::Op { opcode, operands, .. } if is_memory(*opcode) => {
                if let [MOperand::Def(value) | MOperand::Use(value), MOperand::Use(base), ..] =
                    operands[..]
                    && ![value, base].iter().any(|reg| vcode.shared.contains_key(reg))
                    && let Some(place) = self.some_place(RegClass::Gpr)
                {
                    mutants.push(self.with(Kind::Row, |vcode| {
                        vcode.shared.insert(base, place);
                    }));
                }
            }
            _ => {}
        }
    }
}

fn is_memory(opcode: Opcode) -> bool {
    let flags = opcode.flags();
    flags.intersects(OpcodeFlags::LOAD | OpcodeFlags::STORE) && !flags.contains(OpcodeFlags::ATOMIC)
}

/// All registers that something defines.
fn defined(vcode: &VCode) -> Vec<Reg> {
    let mut regs: Vec<Reg> = vcode.blocks.iter().flat_map(|block| &block.params).copied().collect();
    for inst in &vcode.insts {
        inst.for_each_reg(|reg, access| {
            if access.is_def() {
                regs.push(reg);
            }
        });
    }
    regs
}

#[test]
fn registers_in_wrong_places_are_found() {
    let machines: [ArchId; 3] = MACHINES.map(|arch| arch.parse().unwrap());
    let options = CompileOptions::default();
    let found: std::cell::RefCell<BTreeMap<Kind, [usize; 2]>> = Default::default();
    let test = |(bytes, machine): (Vec<u8>, usize)| {
        let source = kernel(&bytes, machines[machine]);
        let unit = Unit::of_kernel(&source, &options);
        let mut vcode = pipeline::select(source.function(), unit, &Clock::new()).unwrap().vcode;
        let setting = setting(&source, &vcode);
        share(&mut vcode, setting);
        check(&vcode, source.arch(), EntryKind::Kernel)
            .unwrap_or_else(|error| panic!("{error}\n{vcode}"));
        if vcode.shared.is_empty() {
            return Ok(());
        }
        let mut found = found.borrow_mut();
        for (kind, broken) in Code::new(&vcode, source.arch()).mutants() {
            let [all, caught] = found.entry(kind).or_default();
            *all += 1;
            *caught += usize::from(check(&broken, source.arch(), EntryKind::Kernel).is_err());
        }
        Ok(())
    };
    let config = Config { cases: 250, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner
        .run(&(vec(any::<u8>(), 0..200), 0..3_usize), test)
        .unwrap_or_else(|error| panic!("{error}"));
    let found = found.into_inner();
    assert_eq!(found.len(), 7, "{found:?}");
    for (kind, [all, caught]) in &found {
        assert!(*all >= 20 && caught * 100 >= all * 99, "{kind:?}: {found:?}");
    }
}

/// The beginnings of reasons why a value is not shared.
const REASONS: [&str; 11] = [
    "lanes have different ",
    "its instruction gives each lane its own",
    "lanes come from different sides of a split",
    "its instruction has no shared result",
    "no shared register was left",
    "it is needed after a call",
    "each lane has its element of a row",
    "` takes it from the lanes' own registers",
    "` uses it where lanes have left a split",
    "it is written only where ",
    " is from before lanes left a split",
];

#[test]
fn each_value_has_a_place_or_a_reason() {
    let seen: std::cell::RefCell<BTreeMap<&str, usize>> = Default::default();
    let options = CompileOptions::default();
    let test = |(bytes, machine): (Vec<u8>, usize)| {
        let source = kernel(&bytes, MACHINES[machine].parse().unwrap());
        let unit = Unit::of_kernel(&source, &options);
        let mut vcode = pipeline::select(source.function(), unit, &Clock::new()).unwrap().vcode;
        let setting = setting(&source, &vcode);
        share(&mut vcode, setting);
        let values = super::explain(&vcode, setting, source.sources());
        let shared = values.iter().filter(|value| value.shared.is_some());
        let shared: HashSet<&str> = shared.map(|value| &*value.name).collect();
        assert_eq!(shared.len(), vcode.shared.len());
        for value in &values {
            let Some(reason) = &value.reason else {
                assert!(value.shared.is_some(), "{value}{vcode}");
                continue;
            };
            if reason == super::explain::MUST_AGREE {
                assert!(value.shared.is_some(), "{value}{vcode}");
                *seen.borrow_mut().entry(super::explain::MUST_AGREE).or_default() += 1;
                continue;
            }
            assert!(value.shared.is_none(), "{value}{vcode}");
            let kind = REASONS.iter().find(|kind| reason.contains(**kind));
            let kind = kind.unwrap_or_else(|| panic!("{value}{vcode}"));
            *seen.borrow_mut().entry(kind).or_default() += 1;
            if let Some(other) = reason.strip_prefix(REASONS[0]) {
                assert!(!shared.contains(other), "{value}{vcode}");
            }
        }
        Ok(())
    };
    let config = Config { cases: 250, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng)
        .run(&(vec(any::<u8>(), 0..200), 0..3_usize), test)
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(seen.borrow().len() >= 10, "{seen:?}");
    assert!(seen.borrow().contains_key(super::explain::MUST_AGREE), "{seen:?}");
}
