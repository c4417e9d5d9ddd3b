//! What many random cases must reach: what of it they lack is a defect of the generator.

use std::collections::BTreeSet;

use super::Reached;
use crate::generate::Kind;

/// What a run of a thousand cases must have compiled and executed.
#[derive(Clone, Debug)]
pub struct Needed {
    /// Operations, by the names of [`Reached::operations`]. None other may be made.
    pub operations: BTreeSet<String>,
    /// Constructs, by those of [`Reached::constructs`].
    pub constructs: BTreeSet<String>,
}

/// Names of constructs, with bars between them: those that must be executed both by any work-items and by some but
/// not others, those that some but not others must execute, and those that any must.
type Constructs = [&'static str; 3];

fn names([both, some, any]: Constructs) -> BTreeSet<String> {
    let split = |text: &'static str| text.split(" | ").filter(|name| !name.is_empty());
    let any = split(both).chain(split(any)).map(str::to_owned);
    let some = split(both).chain(split(some)).map(|name| format!("{name}, some"));
    any.chain(some).collect()
}

/// What cases of this kind need.
pub fn needed(kind: Kind) -> Needed {
    let (all, constructs) = match kind {
        Kind::Functions => (operations(), FUNCTIONS),
        Kind::Lowerings => (operations(), LOWERINGS),
        Kind::Kernels => (BTreeSet::new(), KERNELS),
        Kind::Calls => (BTreeSet::new(), [""; 3]),
        Kind::Graphs => (BTreeSet::new(), GRAPHS),
    };
    let made = |name: &String| kind == Kind::Functions || !of_functions_alone(name);
    let operations = all.into_iter().filter(made).collect();
    Needed { operations, constructs: names(constructs) }
}

impl Needed {
    /// What was not executed, operations first.
    pub fn missing(&self, reached: &Reached) -> Vec<String> {
        let operations = self.operations.iter().filter(|it| !reached.operations.contains_key(*it));
        let constructs = self.constructs.iter().filter(|it| !reached.constructs.contains_key(*it));
        operations.chain(constructs).cloned().collect()
    }

    /// Operations that were made although nobody knows of them.
    pub fn unknown<'a>(&self, reached: &'a Reached) -> Vec<&'a str> {
        let known = |name: &&String| self.operations.is_empty() || self.operations.contains(*name);
        let made = reached.compiled_operations.keys();
        made.filter(|name| !known(name)).map(String::as_str).collect()
    }
}

/// Whether work-items do not do it: there are no functions to call.
fn of_functions_alone(name: &str) -> bool {
    let calls = ["call_indirect", "return_call_indirect", "return_call", "func_addr"];
    name.split('.').next().is_some_and(|opcode| calls.contains(&opcode))
}

/// Those of functions on one lane.
const FUNCTIONS: Constructs = [
    "",
    "",
    "big-endian atomic access | loop | irreducible cycle | big-endian access | aligned access | access in \
        any alignment | stack slot | call | indirect call | tail call | indirect tail call | switch | more \
        than six parameters | more than four results | work-item that traps | spill slots | spilled \
        predicates",
];

/// Those of kernels with all operations.
const LOWERINGS: Constructs = [
    "loop | work-item that traps",
    "switch",
    "splits | splits in splits | uniform branches | aligned access | access in any alignment | big-endian \
        access | big-endian atomic access | stack slot | surplus of work-items | spill slots | spilled \
        predicates",
];

/// What the generator makes: an operation that a long run never executed is a defect of it.
fn operations() -> BTreeSet<String> {
    let ints = ["i8", "i16", "i32", "i64"];
    let floats = ["f32", "f64"];
    let mut all = BTreeSet::new();
    let mut each = |names: &str, types: &[&str]| {
        for name in names.split_whitespace() {
            all.extend(types.iter().map(|ty| format!("{name}.{ty}")));
        }
    };
    each("iconst iadd isub imul ineg iabs umulhi smulhi udiv urem sdiv srem", &ints);
    each("smin smax umin umax band bor bxor bnot bitselect blendv", &ints);
    each("ishl ushr sshr rotl rotr popcnt clz ctz cls bitrev", &ints);
    each("uadd_overflow sadd_overflow usub_overflow ssub_overflow", &ints);
    each("umul_overflow smul_overflow uadd_overflow_cin sadd_overflow_cin", &ints);
    each("usub_overflow_bin ssub_overflow_bin select select_spectre_guard", &ints);
    each("bswap isplit", &ints[1..]);
    each("iconcat", &ints[..3]);
    each("uadd_overflow_trap", &ints[2..]);
    each("fadd fsub fmul fdiv sqrt fma fmin fmax fneg fabs fcopysign", &floats);
    each("ceil floor trunc nearest bitselect select select_spectre_guard", &floats);
    each("load store", &[&ints[..], &floats].concat());
    each("uload8 sload8 istore8", &ints[1..]);
    each("uload16 sload16 istore16", &ints[2..]);
    // The type is that of the address; of what is stored, it is that of the number.
    each("uload32 sload32", &ints[2..]);
    each("istore32", &ints[3..]);
    each("trapz trapnz brif", &ints);
    each("atomic_load atomic_store atomic_cas", &ints);
    each("stack_addr symbol_value func_addr", &ints[2..]);
    each("call_indirect return_call_indirect", &ints[2..]);
    for ty in ints {
        for condition in "eq ne slt sle sgt sge ult ule ugt uge".split(' ') {
            all.insert(format!("icmp.{ty}.{condition}"));
        }
        for op in "add sub and nand or xor xchg umin umax smin smax".split(' ') {
            all.insert(format!("atomic_rmw.{ty}.{op}"));
        }
        for from in ints {
            let other = if from == ty { String::new() } else { format!(".{from}") };
            all.insert(format!("bmask.{ty}{other}"));
        }
        for float in floats {
            for name in ["fcvt_to_sint", "fcvt_to_uint", "fcvt_to_sint_sat", "fcvt_to_uint_sat"] {
                all.insert(format!("{name}.{ty}.{float}"));
            }
            for name in ["fcvt_from_sint", "fcvt_from_uint"] {
                all.insert(format!("{name}.{float}.{ty}"));
            }
        }
    }
    for (at, wide) in ints.iter().enumerate() {
        for narrow in &ints[..at] {
            all.extend(["uextend", "sextend"].map(|name| format!("{name}.{wide}.{narrow}")));
            all.insert(format!("ireduce.{narrow}.{wide}"));
        }
    }
    let conditions = "eq ne lt le gt ge ord uno one ueq ult ule ugt uge";
    for ty in floats {
        all.extend(conditions.split(' ').map(|condition| format!("fcmp.{ty}.{condition}")));
    }
    let single = "f32const f64const fpromote.f64.f32 fdemote.f32.f64 bitcast.i32.f32 bitcast.f32.i32 \
                  bitcast.i64.f64 bitcast.f64.i64 jump br_table return call return_call trap fence";
    all.extend(single.split(' ').map(str::to_owned));
    all
}

/// Those of kernels with all control flow, each in some work-items and not in
/// others, except where a word on that makes no sense.
const KERNELS: Constructs = [
    "if | early return | loop with a uniform count | loop with a count of each lane's own | loop tested \
        at the top | loop tested at the bottom | loop that only breaks leave | nested loop | loop with two \
        entries | irreducible cycle | block of any graph | shared block | switch | case that falls through | \
        call | indirect call | call_indirect of several functions | tail call | indirect tail call | \
        conditional trap",
    "short-circuit and | short-circuit or | break | break of an outer loop | continue | continue of an \
        outer loop | return from a loop | guarded division | guarded access | call that may be recursive | \
        return_call_indirect of several functions | trap | division | access that may trap | work-item that \
        traps | load of what all read | stack slot | store of a part of a word",
    "barrier | count of lanes | surplus of work-items | lane | spill slots | spilled predicates",
];

/// The same for kernels from graphs.
const GRAPHS: Constructs = [
    "branch | switch | loop | loop of one block | loop in a loop | loop with several exits | loop with \
        several latches | latch of two loops | irreducible cycle | critical edge | both ways to one block | \
        end",
    "",
    "barrier | count of lanes | several ends | dead block | loop without an end that is never entered | \
        trap that is never taken | traps that may be taken | work-item that traps | narrow values | \
        values of two words | floats | values alone | count in memory | count of a loop's rounds | count \
        of an inner loop's rounds | count in a parameter of all blocks | blocks in any order | graph of \
        the catalogue | graph of the catalogue, changed | graphs put together | graph without a plan | \
        spill slots | spilled predicates",
];
