//! The contents of a block, and its branch.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, TrapCode, Value};
use cranelift_frontend::FunctionBuilder as Builder;

use super::super::clif;
use super::fill::{Count, Filling, NEVER, OWN_WORDS, RESULTS};

impl Filling<'_, '_, '_> {
    /// Fills the block of a node.
    pub(super) fn block(&mut self, b: &mut Builder<'_>, node: usize) {
        self.at = node;
        let block = self.blocks[node];
        b.switch_to_block(block);
        self.cells.enter(b, block);
        self.count_rounds(b);
        let first = self.cells.param_types().len();
        let own = b.block_params(block)[first..].to_vec();
        self.made[node] = own.into_iter().zip(self.params[node].iter().copied()).collect();
        if self.choices.once_in(6) {
            self.doubt(b);
        }
        for _ in 0..self.choices.below(4) {
            let ty = self.choices.one(&self.types);
            let value = self.operation(b, ty);
            self.made[node].push((value, ty));
        }
        if self.choices.once_in(4) {
            self.store(b);
        }
        if self.choices.below(3) > 0 {
            self.note(b);
        }
        match self.shape.nodes[node].next.as_slice() {
            [] => self.end(b),
            &[only] if self.choices.once_in(12) => {
                let condition = self.condition(b);
                let (x, y) = (self.args(b, only, false), self.args(b, only, false));
                let target = self.blocks[only];
                b.ins().brif(condition, target, &x, target, &y);
            }
            &[only] => {
                let args = self.args(b, only, false);
                b.ins().jump(self.blocks[only], &args);
            }
            &[x, y] if !self.choices.once_in(10) => self.branch(b, x, y),
            several => {
                let several = several.to_vec();
                self.table(b, &several);
            }
        }
    }

    /// Traps in lanes that should have left the only predecessor along its other edge.
    fn doubt(&self, b: &mut Builder<'_>) {
        let mut before = self.shape.edges().filter(|&(_, to)| to == self.at);
        let (Some((from, _)), None) = (before.next(), before.next()) else { return };
        let Some(condition) = self.conditions[from] else { return };
        let code = TrapCode::unwrap_user(6);
        if self.shape.nodes[from].next[0] == self.at {
            b.ins().trapz(condition, code);
        } else {
            b.ins().trapnz(condition, code);
        }
    }

    /// Notes the visit for those that look at it, and lets those count anew that do from here on.
    fn count_rounds(&mut self, b: &mut Builder<'_>) {
        for &(head, cell, anew) in &self.rounds {
            if head == self.at {
                let old = self.cells.get(b, cell);
                let new = b.ins().iadd_imm_s(old, 1);
                self.cells.set(b, cell, new);
            } else if anew == Some(self.at) {
                let zero = b.ins().iconst(cell.ty, 0);
                self.cells.set(b, cell, zero);
            }
        }
    }

    /// Arguments for a branch to a node, at the start from the block before all.
    pub(super) fn args(&mut self, b: &mut Builder<'_>, to: usize, at_start: bool) -> Vec<BlockArg> {
        let mut args: Vec<BlockArg> = self.cells.args().into_iter().map(BlockArg::from).collect();
        let goes_back = !at_start && self.dominators[self.at] >> to & 1 == 1;
        for (index, ty) in self.params[to].clone().into_iter().enumerate() {
            // A loop-invariant argument.
            let stays = goes_back && self.choices.once_in(3);
            let same = self.made[to].get(index).filter(|_| stays);
            let arg = match same {
                Some(&(value, _)) => value,
                None => self.leaf(b, ty),
            };
            args.push(arg.into());
        }
        args
    }

    /// Notes the visit and some value.
    fn note(&mut self, b: &mut Builder<'_>) {
        let Some(cell) = self.trace else { return };
        let word = self.family.word_int();
        let value = match self.choices.below(2) {
            0 => b.ins().iconst(word, 1 + self.choices.below(100) as i64),
            _ => {
                let (value, _) = self.any();
                self.word_of(b, value)
            }
        };
        let old = self.cells.get(b, cell);
        let new = Self::mixed(b, old, value);
        self.cells.set(b, cell, new);
    }

    /// A number that differs if one of two does, mostly.
    fn mixed(b: &mut Builder<'_>, sum: Value, value: Value) -> Value {
        let sum = b.ins().imul_imm_s(sum, 33);
        b.ins().bxor(sum, value)
    }

    /// Traps, or returns after writing what was computed.
    fn end(&mut self, b: &mut Builder<'_>) {
        if self.shape.nodes[self.at].trap {
            let code = TrapCode::unwrap_user(1 + self.choices.below(5) as u8);
            b.ins().trap(code);
            return;
        }
        let word = self.family.word_int();
        let flags = MemFlagsData::trusted();
        let place = |at: u32| (at * word.bytes()).cast_signed();
        let mut sum = b.ins().iconst(word, 1 + self.at as i64);
        if let Some(cell) = self.trace {
            let noted = self.cells.get(b, cell);
            sum = Self::mixed(b, sum, noted);
        }
        let own = self.made[self.at].clone();
        let others: Vec<_> = (0..2 + self.choices.below(6)).map(|_| self.any()).collect();
        for (value, _) in own.into_iter().chain(others) {
            let value = self.word_of(b, value);
            sum = Self::mixed(b, sum, value);
        }
        b.ins().store(flags, sum, self.own, place(RESULTS));
        for at in RESULTS + 1..OWN_WORDS {
            let value = self.leaf(b, word);
            b.ins().store(flags, value, self.own, place(at));
        }
        b.ins().return_(&[]);
    }

    /// Counts the visit of this block, if it must. Whether the count is used up.
    fn counted(&mut self, b: &mut Builder<'_>) -> Option<Value> {
        let count = self.counts[self.at]?;
        let cell = count.cell();
        let old = self.cells.get(b, cell);
        let one = b.ins().iconst(cell.ty, 1);
        let (new, condition, limit) = match count {
            Count::Down(_) => (b.ins().isub(old, one), IntCC::SignedLessThanOrEqual, 0),
            Count::Up(_, limit) => (b.ins().iadd(old, one), IntCC::SignedGreaterThan, limit),
            Count::Others(_, limit) => (old, IntCC::SignedGreaterThan, limit),
        };
        self.cells.set(b, cell, new);
        self.made[self.at].push((new, cell.ty));
        Some(b.ins().icmp_imm_s(condition, new, limit))
    }

    /// Whether an edge may be taken. In an unreachable block every edge may.
    fn is_open(&self, to: usize) -> bool {
        let live = self.reached >> self.at & 1 == 1 && self.distances[self.at].is_some();
        !live || self.distances[to].is_some()
    }

    /// A condition that is 0 in all work-items, which the compiler cannot know.
    fn never(&mut self, b: &mut Builder<'_>) -> Value {
        match self.choices.below(2) {
            0 => {
                let last = self.uniforms[self.uniforms.len() - 1];
                b.ins().icmp_imm_s(IntCC::Equal, last, NEVER)
            }
            _ => b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, self.varied[0], NEVER),
        }
    }

    /// The index of the edge with the shortest path to an end.
    fn shortest(&self, next: &[usize]) -> usize {
        let far = |at: &usize| self.distances[next[*at]].unwrap_or(usize::MAX);
        (0..next.len()).min_by_key(far).unwrap_or(0)
    }

    fn branch(&mut self, b: &mut Builder<'_>, on_true: usize, on_false: usize) {
        let used_up = self.counted(b);
        let mut condition = self.condition(b);
        match (self.is_open(on_true), self.is_open(on_false), used_up) {
            (true, true, None) => {}
            (true, true, Some(used_up)) => {
                let first = self.shortest(&[on_true, on_false]) == 0;
                condition = self.truth(b, condition);
                condition = match (first, self.choices.below(2)) {
                    (true, 0) => b.ins().bor(condition, used_up),
                    (false, 0) => {
                        let left = Self::not(b, used_up);
                        b.ins().band(condition, left)
                    }
                    (first, _) => {
                        let way = b.ins().iconst(I8, i64::from(first));
                        b.ins().select(used_up, way, condition)
                    }
                };
            }
            (true, false, _) => {
                let never = self.never(b);
                condition = Self::not(b, never);
            }
            (false, ..) => {
                let never = self.never(b);
                condition = self.truth(b, condition);
                condition = b.ins().band(condition, never);
            }
        }
        self.conditions[self.at] = Some(condition);
        let (x, y) = (self.args(b, on_true, false), self.args(b, on_false, false));
        b.ins().brif(condition, self.blocks[on_true], &x, self.blocks[on_false], &y);
    }

    /// A `br_table`: first the edges that may be taken, then the others.
    fn table(&mut self, b: &mut Builder<'_>, next: &[usize]) {
        let used_up = self.counted(b);
        let (mut open, closed): (Vec<usize>, Vec<usize>) =
            next.iter().partition(|&&to| self.is_open(to));
        let shortest = self.shortest(&open);
        while !open.len().is_power_of_two() || self.choices.once_in(4) && open.len() < 8 {
            open.push(open[self.choices.below(open.len())]);
        }
        let mut index = match self.choices.below(3) {
            0 => self.choices.one(&self.varied),
            1 => self.choices.one(&self.uniforms),
            _ => self.any().0,
        };
        index = self.cast(b, index, I32);
        if !closed.is_empty() || self.choices.below(4) > 0 {
            index = b.ins().band_imm_s(index, open.len() as i64 - 1);
        }
        if let Some(used_up) = used_up {
            let way = b.ins().iconst(I32, shortest as i64);
            index = b.ins().select(used_up, way, index);
        }
        if !closed.is_empty() {
            let (never, way) = (self.never(b), b.ins().iconst(I32, open.len() as i64));
            index = b.ins().select(never, way, index);
        }
        let default = open[self.choices.below(open.len())];
        let targets = open.into_iter().chain(closed).chain([default]);
        let targets: Vec<_> =
            targets.map(|to| (self.blocks[to], self.args(b, to, false))).collect();
        clif::table(b, index, targets);
    }
}
