//! A kernel with the blocks of a graph.

use cranelift_codegen::ir::types::{I8, I16, I32};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Type, Value};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder as Builder, FunctionBuilderContext};
use harp_isa::abi::ArgumentBlock;

use super::super::choices::Choices;
use super::super::clif::{self, element, signature};
use super::super::{Family, Generated};
use super::cells::{Cell, Cells, count_type};
use super::counts::{Counted, Counting, Ways};
use super::marks;
use super::shape::{MAX_NODES, Node, Shape};
use crate::oracle::{Argument, Case, Elements};

/// Words of a work-item's memory: cells, data, which is read and written, and results.
pub(super) const CELLS: u32 = 4;
pub(super) const DATA: u32 = CELLS;
pub(super) const DATA_WORDS: u32 = 6;
pub(super) const RESULTS: u32 = DATA + DATA_WORDS + 2;
pub(super) const OWN_WORDS: u32 = 16;

/// Words that all work-items read, a power of two.
pub(super) const TABLE_WORDS: u32 = 8;

/// Numbers that all work-items are given.
const SCALARS: u32 = 3;

/// A number that the last of them never is.
pub(super) const NEVER: i64 = 0x1234_5678;

/// How a block counts its visits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    /// Down to 0, together with others.
    Down(Cell),
    /// Up to a limit of its own.
    Up(Cell, i64),
    /// No visits of its own, but those of others that are noted here, up to a limit.
    Others(Cell, i64),
}

impl Count {
    /// Where it is counted.
    pub(super) fn cell(self) -> Cell {
        let (Count::Down(cell) | Count::Up(cell, _) | Count::Others(cell, _)) = self;
        cell
    }
}

/// A kernel in the making.
pub(super) struct Filling<'s, 'c, 'u> {
    pub(super) shape: &'s Shape,
    pub(super) choices: &'c mut Choices<'u>,
    pub(super) family: Family,
    /// The blocks of the nodes, and the types of their parameters behind those of cells.
    pub(super) blocks: Vec<Block>,
    pub(super) params: Vec<Vec<Type>>,
    /// The values of blocks that others may use: parameters and computed values, by node.
    pub(super) made: Vec<Vec<(Value, Type)>>,
    /// The same for the entry block.
    pub(super) roots: Vec<(Value, Type)>,
    /// The conditions of branches, by node.
    pub(super) conditions: Vec<Option<Value>>,
    /// Words that are equal in all work-items, and others.
    pub(super) uniforms: Vec<Value>,
    pub(super) varied: Vec<Value>,
    pub(super) dominators: Vec<u64>,
    pub(super) distances: Vec<Option<usize>>,
    pub(super) reached: u64,
    pub(super) cells: Cells,
    pub(super) trace: Option<Cell>,
    /// How nodes count that must.
    pub(super) counts: Vec<Option<Count>>,
    /// Where visits of a node are noted for others, by node, and the node whose visits set that back.
    pub(super) rounds: Vec<(usize, Cell, Option<usize>)>,
    /// The number of branches, of eight, whose condition is uniform.
    pub(super) uniform: usize,
    /// Addresses of the work-item's memory, and of what all read.
    pub(super) own: Value,
    pub(super) table: Value,
    /// Types of values, some more often than others.
    pub(super) types: Vec<Type>,
    pub(super) may_trap: bool,
    /// Whether there are atomic operations.
    pub(super) has_atomics: bool,
    /// Whether blocks are not in the order of the graph.
    any_order: bool,
    /// The current node.
    pub(super) at: usize,
}

/// The kernel, made with the remaining bytes.
pub(super) fn kernel(
    shape: &Shape,
    origin: &'static str,
    choices: &mut Choices<'_>,
    family: Family,
) -> Generated {
    let may_trap = choices.once_in(12);
    let mut shape = shape.clone();
    end_somewhere(&mut shape, may_trap, choices);
    let extents = match choices.below(6) {
        0..=3 => [1 + choices.below(40) as u64, 1, 1],
        4 => [1 + choices.below(150) as u64, 1, 1],
        _ => {
            [1 + choices.below(9) as u64, 1 + choices.below(5) as u64, 1 + choices.below(2) as u64]
        }
    };
    let args = arguments(choices, family, extents.iter().product::<u64>() as usize);
    let signature = signature(CallConv::Fast, [family.word_int()], []);
    let mut marks = Vec::new();
    let mut context = FunctionBuilderContext::new();
    let func = clif::function("kernel", &signature, family.word, &mut context, |b, params| {
        let start = b.current_block().expect("the entry");
        let mut filling = Filling::new(&shape, choices, family, may_trap, (b, params[0]));
        filling.make(b);
        let mut features = filling.features();
        features.push(origin);
        marks = marks::marks(&shape, &filling.blocks, start, &features);
    });
    Generated { marks, ..Case::kernel(func, family.word, extents, args).into() }
}

/// Gives a shape without an end one.
fn end_somewhere(shape: &mut Shape, traps: bool, choices: &mut Choices<'_>) {
    if shape.distances(traps)[0].is_some() {
        return;
    }
    let reached = shape.reached(0);
    let live: Vec<usize> = (0..shape.len()).filter(|node| reached >> node & 1 == 1).collect();
    let from = choices.one(&live);
    let room = shape.len() < MAX_NODES && !shape.nodes[from].next.is_empty();
    if room {
        let end = shape.len();
        shape.nodes[from].next.push(end);
        shape.nodes.push(Node::default());
    } else {
        shape.nodes[from] = Node::default();
    }
}

/// The memory of the work-items, what all of them read, and a few numbers.
fn arguments(choices: &mut Choices<'_>, family: Family, items: usize) -> Vec<Argument> {
    let (size, bits) = (usize::from(family.word.bytes()), u32::from(family.word.bits()));
    let pattern: Vec<u64> = (0..13).map(|_| choices.int(bits)).collect();
    let numbers = (0..items * OWN_WORDS as usize).map(|at| {
        let (item, at) = (at / OWN_WORDS as usize, at % OWN_WORDS as usize);
        let differs = (item * (1 + at % 3)) >> (at % 5);
        if at >= RESULTS as usize { 0 } else { pattern[(at + item * 5) % 13] ^ differs as u64 }
    });
    let own = numbers.flat_map(|number| number.to_le_bytes().into_iter().take(size)).collect();
    let table = choices.words(TABLE_WORDS as usize, family.word);
    let ty = family.word_param();
    let mut args =
        vec![Argument::Buffer(Elements::Ints, own), Argument::Buffer(Elements::Ints, table)];
    args.extend((1..SCALARS).map(|_| Argument::Scalar(ty, choices.int(bits))));
    args.push(Argument::Scalar(ty, choices.below(9) as u64));
    args
}

impl<'s, 'c, 'u> Filling<'s, 'c, 'u> {
    /// Makes the entry block without its terminator, and a block without instructions for each node.
    fn new(
        shape: &'s Shape,
        choices: &'c mut Choices<'u>,
        family: Family,
        may_trap: bool,
        (b, args): (&mut Builder<'_>, Value),
    ) -> Filling<'s, 'c, 'u> {
        let word = family.word_int();
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let mut read = |offset: u32| b.ins().load(word, flags, args, offset.cast_signed());
        let sizes = [0, 1].map(|dim| read(ArgumentBlock::grid_extent(dim, family.word)));
        let [own, table] = [0, 1].map(|index| read(ArgumentBlock::argument(index, family.word)));
        let scalars = (2..2 + SCALARS).map(|index| ArgumentBlock::argument(index, family.word));
        let uniforms: Vec<Value> = scalars.map(read).collect();
        let ids = clif::ids(b, word);
        let item = clif::item(b, ids, sizes[0], sizes[1]);
        let own = element(b, own, item, OWN_WORDS * word.bytes());
        let mut varied = vec![item];
        for at in 0..1 + choices.below(4) as u32 {
            let offset = ((DATA + at) * word.bytes()).cast_signed();
            varied.push(b.ins().load(word, MemFlagsData::trusted(), own, offset));
        }
        let roots = varied.iter().chain(&uniforms).map(|&value| (value, word)).collect();
        let mut types = vec![word, word, I32, I8];
        types.extend(family.ints());
        if choices.once_in(4) {
            types.push(family.floats()[0]);
        }
        let cells = Cells::new(b, own, choices);
        let blocks = shape.nodes.iter().map(|_| b.create_block()).collect();
        Filling {
            dominators: shape.dominators(),
            distances: shape.distances(may_trap),
            reached: shape.reached(0),
            params: vec![Vec::new(); shape.len()],
            made: vec![Vec::new(); shape.len()],
            counts: vec![None; shape.len()],
            conditions: vec![None; shape.len()],
            rounds: Vec::new(),
            uniform: choices.one(&[0, 0, 3, 6, 7]),
            trace: None,
            any_order: false,
            at: 0,
            shape,
            choices,
            family,
            blocks,
            roots,
            uniforms,
            varied,
            cells,
            own,
            table,
            types,
            may_trap,
            has_atomics: false,
        }
    }

    fn make(&mut self, b: &mut Builder<'_>) {
        if self.choices.below(2) == 0 {
            // Blocks note that they were visited.
            let start = b.ins().iconst(self.family.word_int(), 1);
            self.trace = Some(self.cells.anywhere(b, self.choices, start));
        }
        self.prepare_counts(b);
        self.lay_out(b);
        let most = self.choices.below(6);
        for node in 0..self.shape.len() {
            let own = (0..self.choices.below(most + 1)).map(|_| self.choices.one(&self.types));
            self.params[node] = own.collect();
            for ty in self.cells.param_types().into_iter().chain(self.params[node].clone()) {
                b.append_block_param(self.blocks[node], ty);
            }
        }
        let args = self.args(b, 0, true);
        b.ins().jump(self.blocks[0], &args);
        for node in self.shape.order() {
            self.block(b, node);
        }
    }

    /// Gives blocks that must count their counts.
    fn prepare_counts(&mut self, b: &mut Builder<'_>) {
        let shared = if self.choices.once_in(3) { None } else { Some(self.shared_count(b)) };
        let most = (60 / self.shape.len()).clamp(1, 6);
        let ways = Ways::new(self.shape, &self.distances);
        let Counted { nodes, anew } = ways.counted(self.shape, self.choices);
        for (node, counting) in nodes.into_iter().enumerate() {
            self.counts[node] = match (counting, shared) {
                (Counting::Nothing, _) => None,
                (Counting::Rounds(head), _) => {
                    let known = self.rounds.iter().find(|(node, ..)| *node == head);
                    let cell = known.map(|(_, cell, _)| *cell).unwrap_or_else(|| {
                        let cell = self.own_count(b);
                        self.rounds.push((head, cell, anew[head]));
                        cell
                    });
                    Some(Count::Others(cell, 1 + self.choices.below(most) as i64))
                }
                (Counting::Visits, Some(cell)) if !self.choices.once_in(8) => {
                    Some(Count::Down(cell))
                }
                (Counting::Visits, _) => {
                    let cell = self.own_count(b);
                    Some(Count::Up(cell, 1 + self.choices.below(most) as i64))
                }
            };
        }
    }

    /// A count from 0 on.
    fn own_count(&mut self, b: &mut Builder<'_>) -> Cell {
        let ty = count_type(self.choices, self.family.word_int());
        let start = b.ins().iconst(ty, 0);
        self.cells.anywhere(b, self.choices, start)
    }

    /// A count of all visits together, equal in all work-items at the start or not.
    fn shared_count(&mut self, b: &mut Builder<'_>) -> Cell {
        let word = self.family.word_int();
        let ty = count_type(self.choices, word);
        let number = b.ins().iconst(ty, 1 + self.choices.below(16) as i64);
        let list = match self.choices.below(4) {
            0 | 1 => return self.cells.anywhere(b, self.choices, number),
            2 => &self.varied,
            _ => &self.uniforms,
        };
        let value = self.choices.one(list);
        let small = b.ins().band_imm_s(value, 7);
        let small = self.cast(b, small, ty);
        let start = b.ins().iadd(number, small);
        self.cells.anywhere(b, self.choices, start)
    }

    /// In the order of the graph, or in any.
    fn lay_out(&mut self, b: &mut Builder<'_>) {
        let mut order: Vec<Block> = self.blocks.clone();
        self.any_order = self.choices.below(4) > 0;
        if self.any_order {
            self.choices.shuffle(&mut order);
        }
        b.ensure_inserted_block();
        for block in order {
            b.func.layout.append_block(block);
        }
    }

    /// The features of the kernel as a whole.
    fn features(&self) -> Vec<&'static str> {
        let has = |of: &dyn Fn(Type) -> bool| self.made.iter().flatten().any(|&(_, ty)| of(ty));
        let reached = self.shape.nodes.iter().enumerate();
        let reached = reached.filter(|(at, _)| self.reached >> at & 1 == 1);
        let doomed = |trap| {
            reached.clone().any(|(at, node)| self.distances[at].is_none() && node.trap == trap)
        };
        let ends = reached.clone().filter(|(_, node)| node.next.is_empty() && !node.trap);
        let inner = self.rounds.iter().any(|(.., anew)| anew.is_some());
        let features = [
            (ends.count() > 1, "several ends"),
            (self.any_order, "blocks in any order"),
            (has(&|ty| ty == I8 || ty == I16), "narrow values"),
            (has(&|ty| !self.family.in_register(ty)), "values of two words"),
            (has(&Type::is_float), "floats"),
            (doomed(true), "trap that is never taken"),
            (doomed(false), "loop without an end that is never entered"),
            (self.cells.in_memory > 0, "count in memory"),
            (!self.cells.params.is_empty(), "count in a parameter of all blocks"),
            (self.trace.is_none(), "values alone"),
            (self.reached.count_ones() < self.shape.len() as u32, "dead block"),
            (self.may_trap, "traps that may be taken"),
            (self.has_atomics, "atomic operation"),
            (!self.rounds.is_empty(), "count of a loop's rounds"),
            (inner, "count of an inner loop's rounds"),
        ];
        features.into_iter().filter(|(there, _)| *there).map(|(_, name)| name).collect()
    }
}
