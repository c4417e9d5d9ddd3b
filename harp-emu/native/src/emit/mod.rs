//! Host code for a region.
//!
//! Each block of the region is a block of Cranelift's, or several. Registers and predicates are variables, of which
//! Cranelift's builder makes SSA values: for a register one for lane 0 and one for each vector, of which a block uses
//! those that the register's class before the block needs. On machines with many registers most vectors are no variables:
//! between blocks they are in the machine's registers, from which a block loads what it reads. Whatever must be left to the
//! interpreter jumps to a *stub*, which writes the state as it was at the head of the block, or behind its last effect, and
//! returns. Counts are added to the frame at the ends of blocks, and in stubs for the part that was done.
//!
//! | module | contents |
//! |---|---|
//! | `values` | registers and predicates in their forms |
//! | `alu`, `divide`, `predicates`, `memory` | what instructions do |
//! | `check` | whether addresses can be accessed |
//! | `helper` | functions that regions call for accesses that would take much code |
//! | `less` | comparisons of which several instructions are one |
//! | `assume` | what is assumed of their results, and guarded |
//! | `late` | the order of instructions without effects |
//! | `parts` | pieces of code that regions and these functions share |
//! | `block` | a block's instructions, and what they count |
//! | `slots` | words of memory whose contents are known |
//! | `write` | writes in the lanes that execute |
//! | `once` | what is done once for all lanes |
//! | `few`, `lane` | what is done lane by lane where few are active; instructions in one lane |
//! | `control` | jumps, splits, joins; edges between blocks |
//! | `ways` | ways into the region and out of it |

mod alu;
mod assume;
mod block;
mod check;
mod control;
mod divide;
mod few;
mod helper;
mod lane;
mod late;
mod less;
mod memory;
mod once;
mod parts;
mod predicates;
mod slots;
mod values;
mod ways;
mod write;

use std::collections::BTreeMap;

use cranelift_codegen::Context;
use cranelift_codegen::ir::{
    self, AbiParam, AliasRegionData, Block, FuncRef, InstBuilder, MemFlagsData, Signature,
    UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};

use crate::frame::at;
use crate::homes::homes;
use crate::live::{Live, Reads, live as live_in};
use crate::region::{Key, Region};
use crate::rows::Rows;
use crate::rules::Rules;
use crate::shape::Shape;
use block::At;
use helper::{Helper, has_many_rows};
use ways::WayOut;

/// Accesses of the frame, registers and predicates.
fn aligned() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// The variables of the function.
struct Variables {
    /// Lane 0 of each register.
    scalars: Vec<Variable>,
    /// All lanes of each register.
    vectors: Vec<Vec<Variable>>,
    preds: Vec<Variable>,
    active: Variable,
    budget: Variable,
}

struct Emitter<'a, 'b> {
    b: FunctionBuilder<'b>,
    rules: Rules,
    shape: Shape,
    region: &'a Region,
    live: &'a Live,
    /// What host code reads or writes back.
    touched: Live,
    memory_bytes: u64,
    has_fma: bool,
    call_conv: CallConv,
    /// Registers whose vectors are in the machine's registers between blocks, as bits.
    homes: u64,
    /// Accesses of the machine's registers, which overlap with no others.
    register_flags: MemFlagsData,
    variables: Variables,
    blocks: BTreeMap<Key, Block>,
    /// The predicates that the region reads or writes, and those that it writes, as bits.
    preds: [u64; 2],
    frame: Value,
    memory: Value,
    registers: Value,
    predicates: Value,
    /// Where in the region it is.
    at: At,
    rows: Rows,
    helpers: Vec<(Helper, FuncRef)>,
    ways_out: Vec<(WayOut, Block)>,
    /// The variables of words of memory that are followed.
    slot_variables: BTreeMap<(u8, u64), (Variable, Vec<Variable>)>,
    /// Places so far at which it may be left in any case.
    places: i64,
    /// Whether rows of words that are no neighbours are accessed by helpers.
    calls_for_rows: bool,
}

/// Host code that is not compiled yet.
pub(crate) struct Emitted {
    /// What the region calls: the function with number `n` is at place `n`.
    pub(crate) helpers: Vec<Context>,
    pub(crate) region: Context,
    pub(crate) rows: Rows,
    /// Places at which it may be left in any case.
    pub(crate) places: u64,
}

/// A function for the region, for the host `isa` and machines with that much memory.
pub(crate) fn emit(
    region: &Region,
    live: &Live,
    rules: Rules,
    memory_bytes: u64,
    isa: &dyn TargetIsa,
) -> Emitted {
    let mut context = Context::new();
    let call_conv = isa.default_call_conv();
    let mut signature = Signature::new(call_conv);
    signature.params.push(AbiParam::new(types::I64));
    context.func = ir::Function::with_name_signature(UserFuncName::user(0, 0), signature);
    let mut builder = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut builder);
    let shape = rules.shape;
    let mut declare =
        |ty, count: usize| -> Vec<Variable> { (0..count).map(|_| b.declare_var(ty)).collect() };
    let variables = Variables {
        scalars: declare(shape.int(), 64),
        vectors: (0..64).map(|_| declare(shape.int_vector(), shape.vectors())).collect(),
        preds: declare(types::I64, 64),
        active: declare(types::I64, 1)[0],
        budget: declare(types::I64, 1)[0],
    };
    let start = b.create_block();
    b.append_block_params_for_function_params(start);
    b.switch_to_block(start);
    b.seal_block(start);
    let frame = b.block_params(start)[0];
    let mut pointer = |offset| b.ins().load(types::I64, aligned(), frame, offset);
    let (memory, registers, predicates) =
        (pointer(at!(memory)), pointer(at!(registers)), pointer(at!(predicates)));
    let blocks = region.blocks.keys().map(|&key| (key, b.create_block())).collect();
    let has_fma =
        isa.isa_flags().iter().any(|flag| flag.name == "has_fma" && flag.as_bool() == Some(true));
    let preds = preds_of(region);
    let homes = homes(region, rules);
    let apart = AliasRegionData { user_id: 0, description: "registers".into() };
    let apart = b.func.dfg.alias_regions.insert(apart);
    let register_flags = aligned().with_alias_region(Some(apart));
    let at = At::start(region, region.head);
    let mut emitter = Emitter {
        b,
        rules,
        shape,
        region,
        live,
        touched: live_in(region, rules, Reads::Touched(live)),
        memory_bytes,
        has_fma,
        call_conv,
        homes,
        register_flags,
        variables,
        blocks,
        preds,
        frame,
        memory,
        registers,
        predicates,
        at,
        rows: Rows::default(),
        helpers: Vec::new(),
        ways_out: Vec::new(),
        slot_variables: BTreeMap::new(),
        places: 0,
        calls_for_rows: has_many_rows(region, rules),
    };
    emitter.ways_in();
    for &key in region.blocks.keys() {
        emitter.block(key);
    }
    emitter.ways_out();
    emitter.b.seal_all_blocks();
    let Emitter { b, rows, helpers, places, .. } = emitter;
    b.finalize(isa.frontend_config());
    if homes != 0 {
        late::order(&mut context.func);
    }
    let helpers = helpers
        .iter()
        .map(|(helper, _)| helper.function(shape, memory_bytes, isa.frontend_config()))
        .collect();
    Emitted { helpers, region: context, rows, places: places.cast_unsigned() }
}

/// The predicates that a region reads or writes, and those that it writes, as bits.
fn preds_of(region: &Region) -> [u64; 2] {
    let mut preds = [0u64; 2];
    for inst in region.blocks.values().flat_map(|block| &block.insts) {
        let written = inst.pred_written().map_or(0, |pred| 1u64 << pred);
        preds[0] |= inst.preds_read() | written;
        preds[1] |= written;
    }
    preds
}
