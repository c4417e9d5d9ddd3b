//! Any sequence of calls of the kernel builder: it gives a kernel or a typed error, and so does compiling what
//! it gives, whatever numbers, types and orders the calls come with.
//!
//! A sequence is bytes: a machine, how often an operand is any number instead of one that fits, and the calls.
//! With none of the former many sequences are kernels; with some the first such operand is an error.

use arbitrary::{Arbitrary, Result, Unstructured};
use harp_isa::ArchId;
use harp_jit::ir::condcodes::{FloatCC, IntCC};
use harp_jit::ir::types::{F16, F32, F64, F128, I8, I8X16, I16, I32, I32X4, I64, I64X2, I128};
use harp_jit::ir::{
    AtomicRmwOp, Block, BlockArg, Constant, DynamicStackSlot, Endianness, FuncRef, GlobalValue,
    Immediate, JumpTable, MemFlagsData, SigRef, StackSlot, StackSlotData, StackSlotKind, TrapCode,
    Type, Value,
};
use harp_jit::{
    BufferParam, CallConv, CompileError, CompileOptions, DataAccess, DataId, ElementType,
    Execution, FuncId, IntegerElement, KernelBuilder, KernelSource, Linkage, Module, OptLevel,
    ParamType,
};

use crate::generate::clif::{import, jump_table, signature};
use crate::generate::{FLOATS, INTS};
use crate::machines::FEW;
use crate::random::{Counts, counts};

/// The most calls of a sequence.
const CALLS: usize = 48;

/// Makes the calls that `bytes` stand for, and compiles what comes of them.
/// Panics if the compiler finds a defect of its own.
pub fn check(bytes: &[u8]) -> Counts {
    let mut u = Unstructured::new(bytes);
    let choice = u.choose_index(FEW.len()).unwrap_or_default();
    let arch: ArchId = FEW[choice].parse().expect("the list holds ids");
    let mut source = KernelSource::new("calls", arch);
    let (built, calls) = build(&mut u, &mut source);
    let came_to = |what| counts([("calls", calls), (what, 1)]);
    if !built {
        assert!(source.compile(&CompileOptions::default()).is_err());
        // What was built is not compiled, but it can be looked at.
        assert!(!source.to_string().is_empty());
        return came_to("misused");
    }
    let options = CompileOptions {
        opt_level: if bytes.len().is_multiple_of(2) { OptLevel::Speed } else { OptLevel::None },
        execution: match bytes.len().is_multiple_of(3) {
            true => Execution::SingleLane,
            false => Execution::Simt,
        },
        check_alignment: bytes.len().is_multiple_of(5),
        ..CompileOptions::default()
    };
    match source.compile(&options) {
        Ok(_) => came_to("compiled"),
        Err(error @ CompileError::Internal { .. }) => panic!("{error}\n{source}"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            came_to("refused")
        }
    }
}

/// Whether the builder took it, and how many calls there were.
fn build(u: &mut Unstructured<'_>, source: &mut KernelSource) -> (bool, usize) {
    let builder = KernelBuilder::new(source);
    let hostility = u.int_in_range(-3..=3_i8).unwrap_or_default().max(0).unsigned_abs() * 8;
    let mut caller = Caller { b: builder, u, hostility, values: Vec::new(), blocks: Vec::new() };
    // Whatever the bytes are used up by, the sequence ends there.
    let ends = |_: &usize| caller.u.is_empty() || caller.call().is_err();
    let calls = (1..=CALLS).find(ends).unwrap_or(CALLS);
    caller.b.return_();
    let blocks = std::mem::take(&mut caller.blocks);
    for block in blocks.into_iter().filter(|_| caller.hostility == 0) {
        caller.b.switch_to_block(block);
        caller.b.return_();
    }
    (caller.b.finalize().is_ok(), calls)
}

/// Does one of these things.
macro_rules! choose {
    ($caller:ident; $($choice:expr;)*) => {{
        let mut left = $caller.u.choose_index([$(stringify!($choice)),*].len())?;
        loop {
            $(
                if left == 0 {
                    break $choice;
                }
                left -= 1;
            )*
        }
    }};
}

/// Calls one of these methods, which take the same arguments, of the builder or of its instructions: its result.
macro_rules! one_of {
    ($caller:ident.$b:ident, $args:tt, [$($method:ident)*]) => {
        choose! { $caller; $(one_of!(@call $caller.$b, $method $args);)* }
    };
    ($caller:ident, $args:tt, [$($method:ident)*]) => {
        choose! { $caller; $(one_of!(@call $caller.b.ins(), $method $args);)* }
    };
    (@call $of:expr, $method:ident ($($arg:expr),*)) => { $of.$method($($arg),*) };
}

/// Types that values can be of.
const TYPES: [Type; 7] = [I8, I16, I32, I32, I64, F32, F64];

/// What makes calls, and what it knows to call them with.
struct Caller<'b, 'u, 'c> {
    b: KernelBuilder<'b>,
    u: &'c mut Unstructured<'u>,
    /// In how many of 64 operands anything comes instead of what fits.
    hostility: u8,
    values: Vec<Value>,
    blocks: Vec<Block>,
}

impl Caller<'_, '_, '_> {
    fn hostile(&mut self) -> Result<bool> {
        Ok(self.hostility > 0 && self.u.ratio(self.hostility, 64)?)
    }

    /// Any number of an entity, mostly a small one.
    fn number(&mut self) -> Result<u32> {
        let most = if self.u.ratio(1, 4)? { u32::MAX - 1 } else { 150 };
        self.u.int_in_range(0..=most)
    }

    /// A value of the type, or any.
    fn value(&mut self, ty: Type) -> Result<Value> {
        if self.hostile()? {
            return Ok(Value::from_u32(self.number()?));
        }
        let dfg = &self.b.inner().func.dfg;
        let fits = |&value: &Value| dfg.value_is_valid(value) && dfg.value_type(value) == ty;
        let known: Vec<Value> = self.values.iter().copied().filter(fits).collect();
        if !known.is_empty() && self.u.ratio(7, 8)? {
            return Ok(*self.u.choose(&known)?);
        }
        Ok(match ty {
            ty if ty == self.b.word_float() => self.b.float_const(0.5),
            F32 => self.b.ins().f32const(1.5),
            F64 => self.b.ins().f64const(-0.0),
            ty => {
                let ty = if INTS.contains(&ty) { ty } else { I32 };
                self.b.ins().iconst(ty, i64::arbitrary(self.u)?)
            }
        })
    }

    /// One of these types, or any.
    fn one(&mut self, types: &[Type]) -> Result<Type> {
        let dynamic = I32X4.vector_to_dynamic().unwrap_or(I8);
        let odd = [I128, F16, F128, I8X16, I32X4, I64X2, dynamic];
        let types = if self.hostile()? { &odd } else { types };
        Ok(*self.u.choose(types)?)
    }

    fn new_block(&mut self) -> Block {
        let block = self.b.create_block();
        self.blocks.push(block);
        block
    }

    /// A block that may have been there before, or any.
    fn block(&mut self) -> Result<Block> {
        Ok(if !self.hostile()? && !self.blocks.is_empty() {
            *self.u.choose(&self.blocks)?
        } else if self.u.arbitrary()? {
            Block::from_u32(self.number()?)
        } else {
            self.new_block()
        })
    }

    /// A new block, and maybe an argument for its parameter.
    fn target(&mut self) -> Result<(Block, Vec<BlockArg>)> {
        let hostile = self.hostile()?;
        let block = if hostile { self.block()? } else { self.new_block() };
        if !self.u.ratio(1, 3)? {
            return Ok((block, Vec::new()));
        }
        let ty = self.one(&INTS)?;
        let argument = self.value(ty)?;
        let param = self.b.append_block_param(block, ty);
        self.values.extend((!hostile && self.hostility > 0).then_some(param));
        let arg = if hostile { BlockArg::TryCallRet(self.number()?) } else { argument.into() };
        Ok((block, vec![arg]))
    }

    /// The name of a parameter: a new one, or one that may have been there before.
    fn name(&mut self) -> Result<String> {
        let number = if self.hostile()? { 0 } else { self.b.inner().func.dfg.num_values() };
        Ok(format!("name {number}"))
    }

    fn call(&mut self) -> Result<()> {
        let value = match self.u.int_in_range(0..=37)? {
            kind @ 0..=14 => self.compute(kind)?,
            15 => {
                let (from, to) = (self.one(&TYPES)?, self.one(&TYPES)?);
                let x = self.value(from)?;
                if self.hostile()? || from.is_int() && to.is_int() && from.bits() < to.bits() {
                    one_of!(self, (to, x), [uextend sextend ireduce fpromote fdemote fcvt_to_sint_sat
                        fcvt_to_uint fcvt_from_uint fcvt_from_sint splat scalar_to_vector bmask])
                } else {
                    x
                }
            }
            16 | 17 => {
                let ty = self.one(&TYPES)?;
                let (x, y) = (self.value(ty)?, self.value(ty)?);
                let truth = if ty.is_int() {
                    self.b.ins().icmp(IntCC::SignedLessThan, x, y)
                } else {
                    self.b.ins().fcmp(FloatCC::LessThanOrEqual, x, y)
                };
                self.values.push(truth);
                self.b.ins().select(truth, x, y)
            }
            18..=20 => self.memory()?,
            21 => return self.entities(),
            22 | 23 => return self.control(),
            24..=27 => return self.structured(),
            28..=34 => self.own()?,
            35 => choose! { self;
                self.integers::<u8>()?;
                self.integers::<i32>()?;
                self.integers::<u64>()?;
                self.array::<f32>()?.base();
                self.array::<f64>()?.base();
            },
            36 if self.hostile()? => {
                let (block, ty) = (self.block()?, self.one(&TYPES)?);
                choose! { self;
                    self.b.switch_to_block(block);
                    self.b.seal_block(block);
                    self.b.seal_all_blocks();
                    _ = self.b.append_block_param(block, ty);
                    self.b.return_();
                }
                return Ok(());
            }
            _ => self.module()?,
        };
        self.values.push(value);
        Ok(())
    }

    fn compute(&mut self, kind: u8) -> Result<Value> {
        let ty = self.one(if matches!(kind, 8 | 9 | 13) { &FLOATS } else { &INTS })?;
        let x = self.value(ty)?;
        let imm = if matches!(kind, 10 | 11) { i64::arbitrary(self.u)? } else { 0 };
        let y = if matches!(kind, 10..=13) { x } else { self.value(ty)? };
        Ok(match kind {
            0..=7 => {
                one_of!(self, (x, y), [iadd isub imul udiv sdiv urem srem umulhi smulhi band bor bxor
                band_not bor_not bxor_not ishl ushr sshr rotl rotr umin umax smin smax avg_round])
            }
            8 | 9 => one_of!(self, (x, y), [fadd fsub fmul fdiv fmin fmax fcopysign]),
            10 | 11 => {
                one_of!(self, (x, imm), [iadd_imm_s iadd_imm_u imul_imm_s udiv_imm_u sdiv_imm_s
                urem_imm_u srem_imm_s band_imm_s bor_imm_u bxor_imm_s rotl_imm_u rotr_imm_u ishl_imm_u
                ushr_imm_u sshr_imm_u])
            }
            12 => one_of!(self, (x), [ineg iabs bnot bitrev bswap clz cls ctz popcnt]),
            13 => one_of!(self, (x), [fneg fabs sqrt ceil floor trunc nearest]),
            _ => {
                one_of!(self, (x, y), [uadd_overflow sadd_overflow usub_overflow ssub_overflow
                smul_overflow])
                .0
            }
        })
    }

    /// What it loads, or an operand.
    fn memory(&mut self) -> Result<Value> {
        let (ty, word) = (self.one(&TYPES)?, self.b.word_int());
        let (address, index, value) = (self.value(word)?, self.value(word)?, self.value(ty)?);
        let mut flags = MemFlagsData::new();
        if self.u.arbitrary()? {
            flags = flags.with_aligned();
        }
        if self.u.ratio(1, 8)? {
            flags = flags.with_endianness(Endianness::Big);
        }
        let offset: i32 = self.u.arbitrary()?;
        let size = self.u.int_in_range(0..=64)?;
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3);
        Ok(choose! { self;
            self.b.ins().load(ty, flags, address, offset);
            { self.b.ins().store(flags, value, address, offset); value };
            self.b.load_elem(ty, address, index);
            { self.b.store_elem(value, address, index); value };
            self.b.ins().atomic_rmw(ty, flags, AtomicRmwOp::Add, address, value);
            { self.b.ins().atomic_store(flags, value, address); value };
            {
                let slot = self.b.inner().create_sized_stack_slot(slot);
                self.values.push(self.b.ins().stack_load(word, ty, slot, offset % 16));
                self.b.ins().stack_addr(word, slot, 0)
            };
            self.b.ins().uload8(I32, flags, address, offset);
        })
    }

    /// An atomic operation on an array of integers, or its address.
    fn integers<T: IntegerElement>(&mut self) -> Result<Value> {
        let (array, word) = (self.array::<T>()?, self.b.word_int());
        let (index, x, y) = (self.value(word)?, self.value(T::CLIF)?, self.value(T::CLIF)?);
        Ok(choose! { self;
            self.b.atomic(AtomicRmwOp::Umax, array, index, x);
            self.b.compare_exchange(array, index, x, y);
            array.base();
        })
    }

    fn array<T: ElementType>(&mut self) -> Result<BufferParam<T>> {
        let (name, word) = (self.name()?, self.b.word_int());
        let len = if self.hostile()? { u32::MAX } else { 16 };
        let (base, index, value) = (self.value(word)?, self.value(word)?, self.value(T::CLIF)?);
        let array = choose! { self;
            self.b.buffer::<T>(&name);
            self.b.group_param(&name);
            self.b.group_buffer(&name, len);
            BufferParam::at(base);
        };
        if self.u.arbitrary()? {
            self.b.store(array, index, value);
        }
        self.values.push(self.b.load(array, index));
        Ok(array)
    }

    /// A function and a datum of a module.
    fn module(&mut self) -> Result<Value> {
        let mut module = Module::new(self.b.arch(), CompileOptions::default());
        let signature = signature(CallConv::Fast, [I32], [I32]);
        let function = module.declare_function("f", Linkage::Import, &signature);
        let datum = module.declare_data("d", Linkage::Import, DataAccess::ReadOnly);
        let mut ids = (function.expect("the name is new"), datum.expect("the name is new"));
        if self.hostile()? {
            ids = (FuncId::from_u32(self.number()?), DataId::from_u32(self.number()?));
        }
        let argument = self.value(I32)?;
        if self.hostile()? {
            let [] = self.b.call(&module, ids.0, &[argument, argument]);
        }
        self.values.extend(self.b.call::<1>(&module, ids.0, &[argument]));
        Ok(self.b.data_address(&module, ids.1))
    }

    /// Instructions that refer to other things than values and blocks: to a function, or by any number.
    fn entities(&mut self) -> Result<()> {
        let word = self.b.word_int();
        if !self.hostile()? {
            let names = ["f", "harp_of_some_lane", "harp_assume_uniform", "harp_ballot"];
            let (ty, name) = (self.one(&TYPES)?, *self.u.choose(&names)?);
            let (argument, signature) = (self.value(ty)?, signature(CallConv::Fast, [ty], [ty]));
            let callee = import(self.b.inner().func, name, signature, true);
            self.b.ins().call(callee, &[argument]);
            return Ok(());
        }
        let (number, ty, value) = (self.number()?, self.one(&TYPES)?, self.value(I32)?);
        choose! { self;
            _ = self.b.ins().call(FuncRef::from_u32(number), &[value]);
            _ = self.b.ins().call_indirect(SigRef::from_u32(number), value, &[value]);
            _ = self.b.ins().return_call(FuncRef::from_u32(number), &[]);
            _ = self.b.ins().func_addr(word, FuncRef::from_u32(number));
            _ = self.b.ins().stack_addr(word, StackSlot::from_u32(number), 0);
            _ = self.b.ins().stack_store(word, value, StackSlot::from_u32(number), 4);
            _ = self.b.ins().symbol_value(word, GlobalValue::from_u32(number));
            _ = self.b.ins().tls_value(ty, GlobalValue::from_u32(number));
            _ = self.b.ins().br_table(value, JumpTable::from_u32(number));
            _ = self.b.ins().vconst(ty, Constant::from_u32(number));
            _ = self.b.ins().shuffle(value, value, Immediate::from_u32(number));
            _ = self.b.ins().dynamic_stack_addr(word, DynamicStackSlot::from_u32(number));
            _ = self.b.ins().extractlane(value, number as u8);
        }
        Ok(())
    }

    fn control(&mut self) -> Result<()> {
        let ty = self.one(&INTS)?;
        let condition = self.value(ty)?;
        let ((first, first_args), (second, second_args)) = (self.target()?, self.target()?);
        let kind = self.u.int_in_range(0..=5)?;
        match kind {
            0 => drop(self.b.ins().jump(first, &first_args)),
            1 | 2 => {
                self.b.ins().brif(condition, first, &first_args, second, &second_args);
            }
            3 => {
                let (first, second) = ((first, first_args), (second, second_args));
                let mut calls = [second, first.clone(), first];
                // What is no value of the kernel cannot be put into a table.
                let is_value =
                    |arg: &BlockArg| arg.as_value().is_some_and(|it| it.as_u32() < 1 << 30);
                calls.iter_mut().for_each(|(_, args)| args.retain(is_value));
                let index = self.value(I32)?;
                let table = jump_table(self.b.inner(), calls).expect("there are targets");
                self.b.ins().br_table(index, table);
            }
            4 => drop(self.b.ins().trapnz(condition, TrapCode::unwrap_user(3))),
            _ if self.hostile()? => drop(self.b.ins().return_(&[condition])),
            _ => drop(self.b.ins().trapz(condition, TrapCode::INTEGER_OVERFLOW)),
        }
        if kind < 4 && self.blocks.contains(&first) && !self.hostile()? {
            self.b.switch_to_block(first);
            self.blocks.retain(|&block| block != first);
        }
        Ok(())
    }

    fn structured(&mut self) -> Result<()> {
        let (int, ty) = (self.one(&INTS)?, self.one(&TYPES)?);
        let [condition, start, end, step] =
            [self.value(int)?, self.value(int)?, self.value(int)?, self.value(int)?];
        let (value, last) = (self.value(ty)?, if self.hostile()? { 11 } else { 5 });
        let first = (self.u.int_in_range(0..=last)?, value);
        let second = (self.u.int_in_range(0..=last)?, value);
        let keys = if self.hostile()? { [0, self.number()?.into(), 0] } else { [-1, 0, 7] };
        choose! { self;
            inside(&mut self.b, first, condition);
            self.b.if_then(condition, |b| _ = b.ins().iadd(start, end));
            self.b.if_else(condition, |b| _ = b.lane_id(), KernelBuilder::return_);
            self.b.while_loop(
                |b| { inside(b, first, condition); b.ins().icmp(IntCC::Equal, start, end) },
                |b| inside(b, second, condition)
            );
            one_of!(self.b, (start, end, step, |b, i| {
                b.if_then(i, |b| inside(b, first, condition));
                inside(b, second, i);
                b.ins().imul(i, step);
            }), [for_range for_range_unsigned]);
            self.values.extend(self.b.loop_with([value], |b, [value]| {
                b.break_if(condition);
                inside(b, first, condition);
                b.continue_if_with(condition, &[value]);
                [value]
            }));
            _ = self.b.loop_with([], |b, []| {
                b.break_if(condition);
                b.while_loop(|_| start, |b| inside(b, first, condition));
                inside(b, second, condition);
                []
            });
            self.b.switch(condition, &keys, |b, case| {
                inside(b, if case == Some(0) { first } else { second }, condition);
            });
        }
        Ok(())
    }

    /// The builder's own methods: the result, or an operand.
    fn own(&mut self) -> Result<Value> {
        let (ty, int, word) = (self.one(&TYPES)?, self.one(&INTS)?, self.b.word_int());
        let (value, other) = (self.value(ty)?, self.value(ty)?);
        let (condition, lane) = (self.value(int)?, self.value(word)?);
        let dim = self.u.int_in_range(0..=if self.hostility == 0 { 2 } else { 3 })?;
        let types = [ParamType::I8, ParamType::I32, ParamType::I64, ParamType::F64];
        let (param, name) = (*self.u.choose(&types)?, self.name()?);
        let formats = ["{", "}", "{}", "{:x} {:u} {}", "{:?} {} {}"];
        let (number, format) = match self.hostile()? {
            true => (i64::arbitrary(self.u)?, *self.u.choose(&formats)?),
            false => (-5, "{} and {}: {:x}"),
        };
        Ok(choose! { self;
            one_of!(self.b, (dim), [global_size local_id group_count global_id]);
            self.b.group_array(I32, 16);
            self.b.param(param);
            self.b.scalar::<bool>(&name);
            self.b.scalar::<usize>(&name);
            self.b.scalar::<f64>(&name);
            {
                let variable = self.b.declare_var(ty);
                self.b.def_var(variable, value);
                self.b.use_var(variable)
            };
            one_of!(self.b, (condition), [any all likely unlikely]);
            one_of!(self.b, (value), [assume_uniform assert_uniform]);
            self.b.ballot(condition, self.hostility / 12);
            self.b.shuffle(value, lane);
            self.b.select(condition, value, other);
            self.b.word_const(number);
            { self.b.barrier(); value };
            { self.b.assert_convergent(); value };
            { self.b.assert(condition, "it holds"); value };
            { self.b.trap_if(condition, TrapCode::unwrap_user(9)); value };
            { self.b.return_if(condition); value };
            { self.b.print(format, &[value, lane, condition]); value };
        })
    }
}

/// A call inside of a loop; most of the last ones are misuse.
fn inside(b: &mut KernelBuilder<'_>, (kind, value): (u8, Value), condition: Value) {
    match kind {
        0 => b.return_if(condition),
        1 => b.assert(condition, "inside"),
        2 => b.print("{}", &[value]),
        3 => {
            let condition = b.unlikely(condition);
            b.if_then(condition, |_| {});
        }
        4 => _ = b.assume_uniform(value),
        5 => {}
        6 => b.break_if(condition),
        7 => b.continue_if_with(condition, &[value]),
        8 => b.break_(),
        9 => b.continue_(),
        10 => b.seal_all_blocks(),
        _ => b.break_if_with(value, &[value, value]),
    }
}
