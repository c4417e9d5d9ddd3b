//! Random kernels: bytes to a valid, race-free kernel with a grid and arguments.
//!
//! Work-items communicate through nothing: each owns a slice of the buffers that the kernel writes,
//! of integers and of floats of each type; what all of them read, nobody writes. Loops have trip
//! counts that are equal in all work-items, as long as harp-jit asks for that; branches have not.
//! A NaN's bits go nowhere (see [`Case`]). All bytes give a kernel, and fewer bytes give a smaller
//! one.
//!
//! Beside them stand directed kernels ([`directed()`]): every operation at the edges of its operands' types.

use cranelift_codegen::ir::{MemFlagsData, Type, Value, types};
use cranelift_frontend::Variable;
use harp_isa::{ArchId, WordSize};
use harp_jit::{BuildError, KernelBuilder, KernelSource, ParamType};

use crate::oracle::{Argument, Case, Elements};

pub mod calls;
mod choices;
mod conversions;
mod directed;
pub mod divergent;
mod floats;
mod flow;
pub mod functions;
pub mod graphs;
mod integers;
mod memory;
mod operations;
mod statements;

pub use choices::{F32_EDGES, F64_EDGES};
pub use conversions::conversions;
pub use directed::{directed, divisions};

use choices::Choices;
use memory::{FLOAT_SLICE, INT_SLICE, TABLE_WORDS};

/// The machines that a kernel may use everything of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Family {
    /// The word.
    pub word: WordSize,
    /// Whether extension X is there.
    pub extension: bool,
}

impl Family {
    /// That of one machine.
    pub fn of(arch: ArchId) -> Family {
        Family { word: arch.word(), extension: arch.has_extension() }
    }

    /// The integer types, the word's first.
    pub fn ints(self) -> &'static [Type] {
        match self.word {
            WordSize::Four => &[types::I32, types::I8, types::I16, types::I64],
            WordSize::Eight => &[types::I64, types::I32, types::I8, types::I16],
        }
    }

    /// Whether a register holds values of type `ty`; else two do.
    pub fn in_register(self, ty: Type) -> bool {
        ty.bits() <= u32::from(self.word.bits())
    }

    /// The float types, the machine's own first.
    pub fn floats(self) -> &'static [Type] {
        match self.word {
            WordSize::Four => &[types::F32, types::F64],
            WordSize::Eight => &[types::F64, types::F32],
        }
    }

    /// The type in which memory holds a float: base machines store no parts of words.
    pub fn float_cell(self, ty: Type) -> Type {
        if self.extension || ty.bits() >= u32::from(self.word.bits()) {
            ty
        } else {
            self.word_int()
        }
    }

    /// The integer type of the word.
    pub fn word_int(self) -> Type {
        self.ints()[0]
    }
}

/// The kernel that `bytes` stand for on machines like `arch`.
///
/// # Errors
///
/// If the builder refuses the kernel, which is a defect.
pub fn kernel(bytes: &[u8], arch: ArchId) -> Result<Case, BuildError> {
    let family = Family::of(arch);
    let mut choices = Choices::new(bytes);
    let extents = match choices.below(4) {
        0 | 1 => [1 + choices.below(40) as u64, 1, 1],
        2 => [1 + choices.below(9) as u64, 1 + choices.below(5) as u64, 1],
        _ => {
            [1 + choices.below(5) as u64, 1 + choices.below(3) as u64, 1 + choices.below(3) as u64]
        }
    };
    let items = extents.iter().product::<u64>() as usize;
    let args = arguments(&mut choices, family, items);

    let mut source = KernelSource::new("generated", arch);
    let mut b = KernelBuilder::new(&mut source);
    let mut generator = Generator::new(&mut b, family, choices, &args);
    generator.body(&mut b);
    b.finalize()?;
    Ok(Case { func: source.finished()?.clone(), word: family.word, extents, args })
}

/// Buffers: the integers, a table that is only read, a buffer a float type; then scalars.
fn arguments(choices: &mut Choices<'_>, family: Family, items: usize) -> Vec<Argument> {
    let word = usize::from(family.word.bytes());
    let word_bits = u32::from(family.word.bits());
    let ints = |choices: &mut Choices<'_>, words: usize| {
        let values = std::iter::repeat_with(|| choices.int(word_bits));
        let bytes = values.take(words).flat_map(|v| v.to_le_bytes().into_iter().take(word));
        Argument::Buffer(Elements::Ints, bytes.collect())
    };
    // The items' slices differ even where the bytes have run out.
    let mut data = ints(choices, 16);
    if let Argument::Buffer(_, bytes) = &mut data {
        let pattern = std::mem::take(bytes);
        let all = (0..items * INT_SLICE).map(|at| {
            let item = at / INT_SLICE;
            pattern[(at + item * 3) % pattern.len()].wrapping_add((item * (at % 7)) as u8)
        });
        *bytes = all.collect();
    }
    let mut args = vec![data, ints(choices, TABLE_WORDS)];
    for &ty in family.floats() {
        let few: Vec<u64> = (0..11)
            .map(|_| if ty == types::F32 { choices.f32().into() } else { choices.f64() })
            .collect();
        let cell = family.float_cell(ty);
        let size = cell.bytes() as usize;
        let all = (0..items * FLOAT_SLICE)
            .flat_map(|at| few[at % few.len()].to_le_bytes().into_iter().take(size));
        args.push(Argument::Buffer(Elements::of(cell), all.collect()));
    }
    args.push(Argument::Scalar(ParamType::I32, choices.int(32)));
    args.push(Argument::Scalar(ParamType::I8, choices.int(8)));
    match family.word {
        WordSize::Four => args.push(Argument::Scalar(ParamType::F32, choices.f32().into())),
        WordSize::Eight => {
            args.push(Argument::Scalar(ParamType::I64, choices.int(64)));
            args.push(Argument::Scalar(ParamType::F64, choices.f64()));
        }
    }
    args
}

/// A kernel in the making.
struct Generator<'u> {
    choices: Choices<'u>,
    family: Family,
    /// Values that can be used here.
    pool: Vec<(Value, Type)>,
    /// Integers of the word that are equal in all work-items.
    uniforms: Vec<Value>,
    variables: Vec<(Variable, Type)>,
    /// The work-item's slice of the integers, the table, the slices of floats.
    slice: Value,
    table: Value,
    float_slices: Vec<(Type, Value)>,
    /// Whether the kernel may trap.
    may_trap: bool,
    /// Expressions that may still be made.
    budget: usize,
    depth: usize,
    loops: usize,
}

impl<'u> Generator<'u> {
    fn new(
        b: &mut KernelBuilder<'_>,
        family: Family,
        mut choices: Choices<'u>,
        args: &[Argument],
    ) -> Generator<'u> {
        let word = family.word_int();
        let mut pointers = Vec::new();
        let mut scalars = Vec::new();
        for arg in args {
            match *arg {
                Argument::Buffer(..) => pointers.push(b.param(ParamType::Pointer)),
                Argument::Scalar(ty, _) => scalars.push((b.param(ty), ty.clif_type(family.word))),
            }
        }
        let ids: Vec<Value> = (0..3).map(|dim| b.global_id(dim)).collect();
        let sizes: Vec<Value> = (0..3).map(|dim| b.global_size(dim)).collect();
        let rows = b.ins().imul(ids[2], sizes[1]);
        let row = b.ins().iadd(rows, ids[1]);
        let items = b.ins().imul(row, sizes[0]);
        let item = b.ins().iadd(items, ids[0]);
        let slice = |b: &mut KernelBuilder<'_>, base: Value, bytes: usize| {
            let bytes = b.ins().iconst(word, bytes as i64);
            let offset = b.ins().imul(item, bytes);
            b.ins().iadd(base, offset)
        };
        let own = slice(b, pointers[0], INT_SLICE);
        let floats = family.floats().iter().zip(&pointers[2..]);
        let float_slices = floats
            .map(|(&ty, &base)| {
                (ty, slice(b, base, FLOAT_SLICE * family.float_cell(ty).bytes() as usize))
            })
            .collect();

        let mut uniforms = sizes.clone();
        for &(value, ty) in scalars.iter().filter(|(_, ty)| ty.is_int()) {
            uniforms.push(if ty == word { value } else { b.ins().sextend(word, value) });
        }
        let mut pool = scalars;
        pool.extend(ids.iter().chain([&item]).map(|&id| (id, word)));
        let may_trap = choices.once_in(6);
        let budget = 12 + choices.below(4) * 40;
        let mut generator = Generator {
            choices,
            family,
            pool,
            uniforms,
            variables: Vec::new(),
            slice: own,
            table: pointers[1],
            float_slices,
            may_trap,
            budget,
            depth: 0,
            loops: 0,
        };
        generator.declare_variables(b);
        generator
    }

    /// Variables of every type, most of them set to something.
    fn declare_variables(&mut self, b: &mut KernelBuilder<'_>) {
        let types = self.family.ints().iter().chain(self.family.floats());
        let types: Vec<Type> = types.copied().flat_map(|ty| [ty, ty]).collect();
        for ty in types {
            let variable = b.declare_var(ty);
            if self.choices.below(4) > 0 {
                let value = self.leaf(b, ty);
                b.def_var(variable, value);
            }
            self.variables.push((variable, ty));
        }
    }

    /// A value of type `ty`, made by as many as `depth` operations in a row.
    fn value(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        if depth == 0 || self.budget == 0 || self.choices.below(4) == 0 {
            return self.leaf(b, ty);
        }
        self.budget -= 1;
        let value =
            if ty.is_float() { self.float_op(b, ty, depth) } else { self.int_op(b, ty, depth) };
        self.pool.push((value, ty));
        value
    }

    /// A value that is there already, or a constant.
    fn leaf(&mut self, b: &mut KernelBuilder<'_>, ty: Type) -> Value {
        let here: Vec<Value> =
            self.pool.iter().filter(|(_, have)| *have == ty).map(|(value, _)| *value).collect();
        let variables: Vec<Variable> =
            self.variables.iter().filter(|(_, have)| *have == ty).map(|(v, _)| *v).collect();
        match self.choices.below(5) {
            0..=2 if !here.is_empty() => self.choices.one(&here),
            3 if !variables.is_empty() => {
                let variable = self.choices.one(&variables);
                b.use_var(variable)
            }
            _ => self.constant(b, ty),
        }
    }

    fn constant(&mut self, b: &mut KernelBuilder<'_>, ty: Type) -> Value {
        match ty {
            types::F32 => {
                let bits = self.choices.f32();
                b.ins().f32const(f32::from_bits(bits))
            }
            types::F64 => {
                let bits = self.choices.f64();
                b.ins().f64const(f64::from_bits(bits))
            }
            _ => {
                let bits = self.choices.int(ty.bits());
                b.ins().iconst(ty, bits.cast_signed())
            }
        }
    }

    /// Something to branch or select on: 0 or not 0.
    fn condition(&mut self, b: &mut KernelBuilder<'_>, depth: usize) -> Value {
        match self.choices.below(8) {
            0..=2 => self.compare_ints(b, depth),
            3 | 4 => self.compare_floats(b, depth),
            5 => {
                let (x, y) = (self.condition_or_leaf(b, depth), self.condition_or_leaf(b, depth));
                match self.choices.below(4) {
                    0 => b.ins().band(x, y),
                    1 => b.ins().bor(x, y),
                    2 => b.ins().bxor(x, y),
                    _ => {
                        let one = b.ins().iconst(types::I8, 1);
                        b.ins().bxor(x, one)
                    }
                }
            }
            6 => self.uniform_condition(b),
            _ => {
                let ty = self.choices.one(self.family.ints());
                self.value(b, ty, depth)
            }
        }
    }

    /// An `i8`, mostly 0 or 1.
    fn condition_or_leaf(&mut self, b: &mut KernelBuilder<'_>, depth: usize) -> Value {
        match self.choices.below(8) {
            7 => self.leaf(b, types::I8),
            n if n < 5 || depth == 0 => self.compare_ints(b, depth),
            _ => self.compare_floats(b, depth),
        }
    }

    /// A word that is equal in all work-items.
    fn uniform(&mut self, b: &mut KernelBuilder<'_>) -> Value {
        let (x, y) = (self.choices.one(&self.uniforms), self.choices.one(&self.uniforms));
        match self.choices.below(6) {
            0 | 1 => x,
            2 => b.ins().iadd(x, y),
            3 => b.ins().bxor(x, y),
            4 => b.assume_uniform(x),
            _ => self.constant(b, self.family.word_int()),
        }
    }

    fn uniform_condition(&mut self, b: &mut KernelBuilder<'_>) -> Value {
        let (x, y) = (self.uniform(b), self.uniform(b));
        let condition = self.int_condition();
        b.ins().icmp(condition, x, y)
    }
}

/// Flags of an access inside an allocation.
fn inside(choices: &mut Choices<'_>, aligned: bool) -> MemFlagsData {
    let flags =
        if choices.once_in(2) { MemFlagsData::new().with_notrap() } else { MemFlagsData::new() };
    if aligned { flags.with_aligned() } else { flags }
}
