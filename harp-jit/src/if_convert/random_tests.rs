//! Tests with random acyclic regions, before and after conversion, on simulated lanes.

use cranelift_codegen::ir::SourceLoc;
use harp_isa::abi::LaneField;
use harp_isa::{ArchId, Gpr, Opcode, RegClass};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use smallvec::{SmallVec, smallvec};

use super::{Region, convert, needs_guard};
use crate::regalloc;
use crate::validate;
use crate::vcode::{BlockId, MInst, MOperand, Reg, VBlock, VCode};

/// A node of the generated graph: a block, or an edge with code of its own.
#[derive(Default)]
struct Node {
    params: Vec<Reg>,
    code: Vec<MInst>,
    /// The registers defined here and in dominating blocks.
    available: Vec<Reg>,
    /// The nodes that jump here.
    sources: Vec<usize>,
    succs: Vec<usize>,
}

/// Generates regions from random bytes.
struct Generator<'a> {
    bytes: std::slice::Iter<'a, u8>,
    vcode: VCode,
    nodes: Vec<Node>,
}

impl Generator<'_> {
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % limit
    }

    fn gpr(&mut self) -> Reg {
        self.vcode.new_reg(RegClass::Gpr)
    }

    fn any(&mut self, node: usize) -> Reg {
        let count = self.nodes[node].available.len();
        // Later values are more likely.
        let back = self.below(count).min(self.below(count));
        self.nodes[node].available[count - 1 - back]
    }

    fn push(&mut self, node: usize, opcode: Opcode, operands: &[MOperand]) {
        let operands = SmallVec::from_slice(operands);
        self.nodes[node].code.push(MInst::Op { opcode, guard: None, operands });
    }

    fn instruction(&mut self, node: usize) {
        let (x, y) = (self.any(node), self.any(node));
        let (x, y) = (MOperand::Use(x), MOperand::Use(y));
        let dst = self.gpr();
        let def = MOperand::Def(dst);
        match self.below(9) {
            0 => self.push(node, Opcode::Add, &[def, x, y]),
            1 => self.push(node, Opcode::Addi, &[def, x, MOperand::Imm(1)]),
            2 => self.push(node, Opcode::Xor, &[def, x, y]),
            3 => self.push(node, Opcode::Ld, &[def, x, MOperand::Imm(4)]),
            4 => self.push(node, Opcode::AmoSwap, &[def, x, y]),
            5 => {
                let value = self.below(100_000) as i64 * 300;
                self.nodes[node].code.push(MInst::Const { dst, value });
            }
            6 => return self.push(node, Opcode::St, &[x, y, MOperand::Imm(8)]),
            7 => {
                let divisor = self.gpr();
                let (odd, one) = (MOperand::Def(divisor), MOperand::Imm(1));
                self.push(node, Opcode::Ori, &[odd, y, one]);
                self.push(node, Opcode::Div, &[def, x, MOperand::Use(divisor)]);
            }
            _ => {
                // The instruction that a `select` becomes.
                let condition = self.condition(node);
                let old = self.any(node);
                let operands = smallvec![MOperand::Mod { old, new: dst }, x, MOperand::Imm(3)];
                let (opcode, guard) = (Opcode::Andi, Some(condition));
                self.nodes[node].code.push(MInst::Op { opcode, guard, operands });
            }
        }
        self.nodes[node].available.push(dst);
    }

    fn condition(&mut self, node: usize) -> Reg {
        let (bit, condition) = (self.gpr(), self.vcode.new_reg(RegClass::Pred));
        let value = self.any(node);
        let mask = 1 << self.below(4);
        self.push(
            node,
            Opcode::Andi,
            &[MOperand::Def(bit), MOperand::Use(value), MOperand::Imm(mask)],
        );
        let opcode = if self.below(2) == 0 { Opcode::Rtop } else { Opcode::Iszero };
        self.push(node, opcode, &[MOperand::Def(condition), MOperand::Use(bit)]);
        condition
    }

    fn add_node(&mut self, available: Vec<Reg>) -> usize {
        self.nodes.push(Node { available, ..Node::default() });
        self.nodes.len() - 1
    }

    /// A graph in which `places` hold the nodes requested so far: nodes that jump to later places. Returns
    /// the code; block 0 is the head, the last block the end.
    fn graph(mut self, places: usize) -> VCode {
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); places];
        let lane = self.gpr();
        let head = self.add_node(vec![lane]);
        let word = MInst::LaneWord { dst: lane, field: LaneField::Lane };
        self.nodes[head].code.push(word);
        for place in 0..places {
            let node = if place == 0 {
                head
            } else {
                let sources = std::mem::take(&mut waiting[place]);
                if sources.is_empty() {
                    continue;
                }
                self.meet(sources)
            };
            for _ in 0..self.below(4) {
                self.instruction(node);
            }
            if place == places - 1 {
                let results = (0..3).map(|i| (self.any(node), Gpr::new(i))).collect();
                self.nodes[node].code.push(MInst::Ret { results });
                continue;
            }
            if place > 0 && self.below(3) == 0 {
                let target = place + 1 + self.below(places - 1 - place);
                waiting[target].push(node);
                continue;
            }
            let condition = self.condition(node);
            let sides = [(); 2].map(|()| self.add_node(self.nodes[node].available.clone()));
            for side in sides {
                for _ in 0..self.below(3) {
                    self.instruction(side);
                }
                let target = place + 1 + self.below((places - 1 - place).min(4));
                waiting[target].push(side);
            }
            self.nodes[node].succs = sides.to_vec();
            let [taken, not_taken] = sides.map(BlockId::new);
            let split = false;
            self.nodes[node].code.push(MInst::CondBr {
                condition,
                taken,
                not_taken,
                split,
                site: None,
            });
        }
        self.finish()
    }

    /// A node that others jump to.
    fn meet(&mut self, sources: Vec<usize>) -> usize {
        let common =
            |reg: &Reg| sources.iter().all(|&from| self.nodes[from].available.contains(reg));
        let available = self.nodes[sources[0]].available.iter().copied().filter(common).collect();
        let node = self.add_node(available);
        for _ in 0..self.below(4) {
            let param = self.gpr();
            self.nodes[node].params.push(param);
            self.nodes[node].available.push(param);
        }
        for &from in &sources {
            let args = (0..self.nodes[node].params.len()).map(|_| self.any(from)).collect();
            self.nodes[from].code.push(MInst::Jump { target: BlockId::new(node), args });
            self.nodes[from].succs = vec![node];
        }
        self.nodes[node].sources = sources;
        node
    }

    /// Orders the nodes topologically.
    fn finish(self) -> VCode {
        let mut order = Vec::new();
        let mut seen = vec![false; self.nodes.len()];
        post_order(&self.nodes, 0, &mut seen, &mut order);
        order.reverse();
        let mut ids = vec![BlockId::new(0); self.nodes.len()];
        order.iter().enumerate().for_each(|(index, &node)| ids[node] = BlockId::new(index));
        let mut vcode = self.vcode;
        let mut nodes: Vec<_> = self.nodes.into_iter().map(Some).collect();
        for node in order {
            let node = nodes[node].take().unwrap();
            let start = vcode.insts.len();
            for mut inst in node.code {
                match &mut inst {
                    MInst::Jump { target, .. } => *target = ids[target.index()],
                    MInst::CondBr { taken, not_taken, .. } => {
                        *taken = ids[taken.index()];
                        *not_taken = ids[not_taken.index()];
                    }
                    _ => {}
                }
                vcode.insts.push(inst);
            }
            vcode.srclocs.resize(vcode.insts.len(), SourceLoc::default());
            vcode.blocks.push(VBlock {
                insts: start..vcode.insts.len(),
                params: node.params,
                succs: node.succs.iter().map(|&succ| ids[succ]).collect(),
                preds: SmallVec::new(),
            });
        }
        vcode.compute_preds();
        vcode
    }
}

fn post_order(nodes: &[Node], node: usize, seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[node], true) {
        return;
    }
    for &succ in &nodes[node].succs {
        post_order(nodes, succ, seen, order);
    }
    order.push(node);
}

/// Variants of the code with one side effect without its guard, or under another one's guard.
fn with_another_guard(vcode: &VCode) -> Vec<VCode> {
    let guarded: Vec<(usize, Reg)> = (vcode.insts.iter().enumerate())
        .filter_map(|(at, inst)| match inst {
            MInst::Op { opcode, guard: Some(guard), .. } if needs_guard(*opcode) => {
                Some((at, *guard))
            }
            _ => None,
        })
        .collect();
    let with = |at: usize, other: Option<Reg>| {
        let mut wrong = vcode.clone();
        if let MInst::Op { guard, .. } = &mut wrong.insts[at] {
            *guard = other;
        }
        wrong
    };
    let Some(&(last, guard)) = guarded.last() else { return Vec::new() };
    let other = guarded.iter().find(|&&(_, other)| other != guard);
    let swapped = other.map(|&(_, other)| with(last, Some(other)));
    std::iter::once(with(last, None)).chain(swapped).collect()
}

#[test]
fn random_regions_do_what_their_branches_did() {
    let outcomes = std::cell::RefCell::new([0_usize; 4]);
    let machines: [ArchId; 3] =
        ["4w8/2/4", "4w16/4/16", "8b32/64/32+x"].map(|arch| arch.parse().unwrap());
    let config = Config { cases: 700, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let test = |(bytes, places, machine): (Vec<u8>, usize, usize)| {
        let generator =
            Generator { bytes: bytes.iter(), vcode: VCode::default(), nodes: Vec::new() };
        let before = generator.graph(places);
        before.validate().unwrap_or_else(|error| panic!("{error}\n{before}"));
        let mut after = before.clone();
        let end = BlockId::new(before.blocks.len() - 1);
        let region = Region { head: BlockId::new(0), end };
        let arch = machines[machine];
        let predicated = convert(&mut after, &[region], arch).unwrap();
        after.validate().unwrap_or_else(|error| panic!("{error}\n{before}\nto\n{after}"));
        assert_eq!(after.blocks.len(), 2, "{after}");
        let mut outcomes = outcomes.borrow_mut();
        validate::converted(&before, &after, arch.word())
            .unwrap_or_else(|error| panic!("{error}\n{before}\nto\n{after}"));
        for wrong in with_another_guard(&after) {
            let seen = validate::converted(&before, &wrong, arch.word()).is_err();
            outcomes[2] += 1;
            outcomes[3] += usize::from(seen);
        }
        outcomes[0] += predicated.branches;
        // The allocator's checker proves the allocation right.
        let allocated = regalloc::allocate(&after, arch, true).unwrap();
        let moves = after.blocks().flat_map(|(id, _)| allocated.steps(id));
        let spills = moves
            .filter(|step| matches!(step, regalloc::Step::Move(edit) if edit.is_predicate_spill()));
        outcomes[1] += spills.count();
        Ok(())
    };
    runner
        .run(&(vec(any::<u8>(), 0..400), 2..12_usize, 0..3_usize), test)
        .unwrap_or_else(|error| panic!("{error}"));
    let [branches, spills, wrong, seen] = outcomes.into_inner();
    assert!(branches > 1500 && spills > 200, "{branches} branches, {spills} spills of predicates");
    // Some guards never hold, or always do, and some loads are unused, so not every wrong guard can be seen.
    assert!(wrong > 500 && seen * 10 > wrong * 8, "{seen} seen of {wrong} wrong guards");
}
