//! A warp that executes CLIF with a plan: the machine's rules for `split` and `join`, written down
//! once more for the tests.
//!
//! With one lane and no plan it is the reference, with several lanes the subject.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockCall, Function, Inst, InstructionData, Opcode, Value};

use super::{Plan, claims};
use crate::intrinsic::Intrinsic;

/// What one lane did: its calls of `%emit`, and whether it trapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) emitted: Vec<i32>,
    pub(super) trapped: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Returned,
    Trapped,
    OutOfFuel,
}

struct Entry {
    /// Where these lanes go; none for those that fall through.
    side: Option<BlockCall>,
    lanes: Vec<usize>,
}

pub(super) struct Warp<'a> {
    func: &'a Function,
    plan: Option<&'a Plan>,
    ids: Vec<i32>,
    values: Vec<SecondaryMap<Value, i32>>,
    active: Vec<usize>,
    stack: Vec<Entry>,
    pub(super) traces: Vec<Trace>,
    /// Splits whose lanes disagreed.
    pub(super) parted: usize,
    pub(super) warp_id: i32,
    /// Whether what nobody looks at differs from lane to lane.
    pub(super) undef_differs: bool,
    /// The values that were claimed to be uniform, in the order in which they were computed.
    pub(super) claims: Vec<claims::Seen>,
}

impl<'a> Warp<'a> {
    /// A warp of lanes with these numbers.
    pub(super) fn new(func: &'a Function, plan: Option<&'a Plan>, ids: Vec<i32>) -> Self {
        let lanes = ids.len();
        Warp {
            func,
            plan,
            ids,
            values: vec![SecondaryMap::new(); lanes],
            active: (0..lanes).collect(),
            stack: Vec::new(),
            traces: vec![Trace::default(); lanes],
            parted: 0,
            warp_id: 3,
            undef_differs: true,
            claims: Vec::new(),
        }
    }

    /// Runs at most `fuel` blocks from the entry, whose parameters are all `argument`.
    pub(super) fn run(&mut self, argument: i32, mut fuel: usize) -> End {
        let mut block = self.func.layout.entry_block().unwrap();
        for &param in self.func.dfg.block_params(block) {
            self.set(param, |_| argument);
        }
        while fuel > 0 {
            fuel -= 1;
            if self.plan.is_some_and(|plan| plan.is_join(block)) {
                // The parameters were passed before: registers stay when lanes change.
                let entry = self.stack.pop().expect("join on an empty stack");
                self.active = entry.lanes;
                if let Some(call) = entry.side {
                    block = self.follow(call);
                    continue;
                }
            }
            let mut next = None;
            for inst in self.func.layout.block_insts(block) {
                match self.step(inst) {
                    Step::Next => {}
                    Step::Go(target) => next = Some(target),
                    Step::End(end) => {
                        assert!(end != End::Returned || self.stack.is_empty(), "return in a split");
                        return end;
                    }
                }
            }
            block = next.expect("a block ends in a terminator");
        }
        End::OutOfFuel
    }

    fn get(&self, lane: usize, value: Value) -> i32 {
        self.values[lane][self.func.dfg.resolve_aliases(value)]
    }

    /// Sets a value in the active lanes.
    fn set(&mut self, value: Value, of_lane: impl Fn(usize) -> i32) {
        for &lane in &self.active {
            self.values[lane][value] = of_lane(lane);
        }
    }

    /// Passes the block arguments; all are read before any is written.
    fn follow(&mut self, call: BlockCall) -> Block {
        let pool = &self.func.dfg.value_lists;
        let target = call.block(pool);
        let args: Vec<Value> = call.args(pool).map(|arg| arg.as_value().unwrap()).collect();
        let read: Vec<Vec<i32>> = (0..self.ids.len())
            .map(|lane| args.iter().map(|&arg| self.get(lane, arg)).collect())
            .collect();
        for (index, &param) in self.func.dfg.block_params(target).iter().enumerate() {
            self.set(param, |lane| read[lane][index]);
        }
        target
    }

    fn step(&mut self, inst: Inst) -> Step {
        let func = self.func;
        let args = func.dfg.inst_args(inst);
        let result = func.dfg.inst_results(inst).first().copied();
        match func.dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
                self.set(result.unwrap(), |_| imm.bits() as i32);
            }
            InstructionData::Binary { opcode, args: [x, y] } => {
                let columns = self.columns(&[x, y]);
                self.set(result.unwrap(), |lane| {
                    binary(opcode, columns[lane][0], columns[lane][1])
                });
            }
            InstructionData::Ternary { opcode: Opcode::Select, args } => {
                let columns = self.columns(&args);
                self.set(result.unwrap(), |lane| {
                    columns[lane][if columns[lane][0] == 0 { 2 } else { 1 }]
                });
            }
            InstructionData::IntCompare { cond, args: [x, y], .. } => {
                let columns = self.columns(&[x, y]);
                self.set(result.unwrap(), |lane| compare(cond, columns[lane][0], columns[lane][1]));
            }
            InstructionData::Call { .. } => {
                let ids = self.ids.clone();
                match Intrinsic::of_call(func, inst) {
                    Some(Intrinsic::LaneId) => self.set(result.unwrap(), |lane| ids[lane]),
                    Some(Intrinsic::WarpId) => {
                        let id = self.warp_id;
                        self.set(result.unwrap(), |_| id);
                    }
                    Some(Intrinsic::Undef) => {
                        let by_lane = i32::from(self.undef_differs);
                        self.set(result.unwrap(), |lane| 1000 + by_lane * ids[lane]);
                    }
                    Some(Intrinsic::Any) => {
                        let any = self.active.iter().any(|&lane| self.get(lane, args[0]) != 0);
                        self.set(result.unwrap(), |_| i32::from(any));
                    }
                    Some(Intrinsic::OfSomeLane) => {
                        let last = *self.active.last().expect("a lane is active");
                        let value = self.get(last, args[0]);
                        self.set(result.unwrap(), |_| value);
                    }
                    None if let Some(claim) = claims::of_call(func, inst) => {
                        let value = self.get(self.active[0], args[0]);
                        for &lane in &self.active {
                            let given = self.get(lane, args[0]);
                            assert_eq!(value, given, "{claim:?}\n{}", func.display());
                        }
                        self.claims.push(claims::Seen { claim, value });
                    }
                    _ => {
                        for lane in self.active.clone() {
                            let value = self.get(lane, args[0]);
                            self.traces[lane].emitted.push(value);
                        }
                    }
                }
            }
            InstructionData::Jump { destination, .. } => {
                return Step::Go(self.follow(destination));
            }
            InstructionData::Brif { arg, blocks, .. } => {
                return Step::Go(self.branch(inst, arg, blocks));
            }
            InstructionData::Trap { .. } => {
                for &lane in &self.active {
                    self.traces[lane].trapped = true;
                }
                return Step::End(End::Trapped);
            }
            InstructionData::MultiAry { opcode: Opcode::Return, .. } => {
                return Step::End(End::Returned);
            }
            _ => panic!("{} is not simulated", func.dfg.display_inst(inst)),
        }
        Step::Next
    }

    fn columns(&self, args: &[Value]) -> Vec<Vec<i32>> {
        let lanes = 0..self.ids.len();
        lanes.map(|lane| args.iter().map(|&arg| self.get(lane, arg)).collect()).collect()
    }

    fn branch(&mut self, inst: Inst, arg: Value, blocks: [BlockCall; 2]) -> Block {
        let (yes, no): (Vec<_>, Vec<_>) =
            self.active.iter().partition(|&&lane| self.get(lane, arg) != 0);
        let unanimous = yes.is_empty() || no.is_empty();
        if self.plan.is_some_and(|plan| plan.is_split(inst)) {
            self.stack.push(Entry { side: None, lanes: self.active.clone() });
            if !unanimous {
                self.parted += 1;
                self.stack.push(Entry { side: Some(blocks[1]), lanes: no });
                self.active.clone_from(&yes);
            }
        } else {
            assert!(unanimous, "divergent branch {inst}\n{}", self.func.display());
        }
        self.follow(blocks[usize::from(yes.is_empty())])
    }
}

enum Step {
    Next,
    Go(Block),
    End(End),
}

fn binary(opcode: Opcode, x: i32, y: i32) -> i32 {
    match opcode {
        Opcode::Iadd => x.wrapping_add(y),
        Opcode::Isub => x.wrapping_sub(y),
        Opcode::Imul => x.wrapping_mul(y),
        Opcode::Band => x & y,
        Opcode::Bor => x | y,
        Opcode::Bxor => x ^ y,
        _ => panic!("{opcode} is not simulated"),
    }
}

fn compare(cond: IntCC, x: i32, y: i32) -> i32 {
    let (ux, uy) = (x.cast_unsigned(), y.cast_unsigned());
    i32::from(match cond {
        IntCC::Equal => x == y,
        IntCC::NotEqual => x != y,
        IntCC::SignedLessThan => x < y,
        IntCC::UnsignedLessThan => ux < uy,
        IntCC::UnsignedLessThanOrEqual => ux <= uy,
        _ => panic!("{cond} is not simulated"),
    })
}
