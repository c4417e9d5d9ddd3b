//! Values with operators, so that formulas read like mathematics.
//!
//! An operator appends an instruction to the current block of a cranelift-frontend builder.

use std::cell::RefCell;

use cranelift_codegen::ir::{InstBuilder, Type, Value};
use cranelift_frontend::FunctionBuilder;

use crate::Fma;
use crate::format::Constant;
use crate::table::Float;

mod int;
mod operators;
mod real;

/// A builder, without its lifetime.
pub(crate) trait Build {
    fn build(&mut self, build: &mut dyn FnMut(&mut FunctionBuilder<'_>));
}

impl Build for FunctionBuilder<'_> {
    fn build(&mut self, build: &mut dyn FnMut(&mut FunctionBuilder<'_>)) {
        build(self);
    }
}

/// The code of a function under construction.
pub(crate) struct Code<'c> {
    builder: RefCell<&'c mut dyn Build>,
    pub(crate) float: Float,
    pub(crate) fma: Fma,
}

impl<'c> Code<'c> {
    pub(crate) fn new(builder: &'c mut dyn Build, float: Float, fma: Fma) -> Code<'c> {
        Code { builder: RefCell::new(builder), float, fma }
    }

    /// Gives `build` the builder.
    fn with<T>(&self, build: impl FnOnce(&mut FunctionBuilder<'_>) -> T) -> T {
        let (mut build, mut result) = (Some(build), None);
        self.builder.borrow_mut().build(&mut |builder| {
            result = build.take().map(|build| build(builder));
        });
        result.expect("`build` calls its argument once")
    }

    pub(crate) fn real(&'c self, number: f64) -> Real<'c> {
        let value = self.with(|b| match self.float {
            Float::F32 => b.ins().f32const(number as f32),
            Float::F64 => b.ins().f64const(number),
        });
        Real { code: self, value }
    }

    /// The float nearest to a constant.
    pub(crate) fn near(&'c self, constant: &Constant) -> Real<'c> {
        self.real(constant.parts(self.float)[0])
    }

    pub(crate) fn as_real(&'c self, value: Value) -> Real<'c> {
        Real { code: self, value }
    }

    pub(crate) fn as_int(&'c self, value: Value) -> Int<'c> {
        Int { code: self, value }
    }

    /// An integer with as many bits as the format.
    pub(crate) fn int(&'c self, number: i64) -> Int<'c> {
        self.int_of(self.float.int(), number)
    }

    /// An integer of any type.
    pub(crate) fn int_of(&'c self, ty: Type, number: i64) -> Int<'c> {
        // CLIF's immediates of narrow types have zeros above.
        let kept = u64::MAX >> (64 - ty.bits());
        let number = (number as u64 & kept) as i64;
        Int { code: self, value: self.with(|b| b.ins().iconst(ty, number)) }
    }

    pub(crate) fn nan(&'c self) -> Real<'c> {
        self.real(f64::NAN)
    }

    pub(crate) fn infinity(&'c self) -> Real<'c> {
        self.real(f64::INFINITY)
    }

    /// 2^n, if that is a normal number.
    pub(crate) fn power_of_two(&'c self, n: Int<'c>) -> Real<'c> {
        ((n + self.float.bias()) << self.float.fraction_bits()).as_bits()
    }

    /// `common`, or what `rare` gives if `condition` holds: then lanes branch.
    pub(crate) fn unless<const N: usize>(
        &'c self,
        condition: Bool<'c>,
        common: [Value; N],
        rare: impl FnOnce() -> [Value; N],
    ) -> [Value; N] {
        let end = self.with(|b| {
            let (branch, end) = (b.create_block(), b.create_block());
            for value in common {
                let ty = b.func.dfg.value_type(value);
                b.append_block_param(end, ty);
            }
            let args: Vec<_> = common.iter().map(|&value| value.into()).collect();
            b.ins().brif(condition.value, branch, &[], end, &args);
            b.switch_to_block(branch);
            b.seal_block(branch);
            b.set_cold_block(branch);
            end
        });
        let results = rare();
        self.with(|b| {
            let args: Vec<_> = results.iter().map(|&value| value.into()).collect();
            b.ins().jump(end, &args);
            b.switch_to_block(end);
            b.seal_block(end);
            std::array::from_fn(|i| b.block_params(end)[i])
        })
    }

    /// Replaces `values` by what `step` makes of them as long as it says so for what it is given.
    pub(crate) fn repeat<const N: usize>(
        &'c self,
        values: [Value; N],
        more: impl FnOnce([Value; N]) -> Bool<'c>,
        step: impl FnOnce([Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let (header, body, end) = self.with(|b| {
            let blocks = (b.create_block(), b.create_block(), b.create_block());
            for value in values {
                let ty = b.func.dfg.value_type(value);
                b.append_block_param(blocks.0, ty);
            }
            let args: Vec<_> = values.iter().map(|&value| value.into()).collect();
            b.ins().jump(blocks.0, &args);
            b.switch_to_block(blocks.0);
            blocks
        });
        let current: [Value; N] = self.with(|b| std::array::from_fn(|i| b.block_params(header)[i]));
        let condition = more(current);
        self.with(|b| {
            b.ins().brif(condition.value, body, &[], end, &[]);
            b.switch_to_block(body);
            b.seal_block(body);
        });
        let next = step(current);
        self.with(|b| {
            let args: Vec<_> = next.iter().map(|&value| value.into()).collect();
            b.ins().jump(header, &args);
            b.seal_block(header);
            b.switch_to_block(end);
            b.seal_block(end);
        });
        current
    }
}

/// A float.
#[derive(Clone, Copy)]
pub(crate) struct Real<'c> {
    pub(crate) code: &'c Code<'c>,
    pub(crate) value: Value,
}

/// An integer.
#[derive(Clone, Copy)]
pub(crate) struct Int<'c> {
    pub(crate) code: &'c Code<'c>,
    pub(crate) value: Value,
}

/// A truth value.
#[derive(Clone, Copy)]
pub(crate) struct Bool<'c> {
    code: &'c Code<'c>,
    value: Value,
}

/// What a condition can choose.
pub(crate) trait Choice<'c>: Copy {
    fn value(self) -> Value;
    fn with_value(self, value: Value) -> Self;
}

impl<'c> Choice<'c> for Real<'c> {
    fn value(self) -> Value {
        self.value
    }

    fn with_value(self, value: Value) -> Self {
        Real { value, ..self }
    }
}

impl<'c> Choice<'c> for Int<'c> {
    fn value(self) -> Value {
        self.value
    }

    fn with_value(self, value: Value) -> Self {
        Int { value, ..self }
    }
}

impl<'c> Bool<'c> {
    /// `yes` if it holds, else `no`.
    pub(crate) fn select<T: Choice<'c>>(self, yes: T, no: T) -> T {
        yes.with_value(self.code.with(|b| b.ins().select(self.value, yes.value(), no.value())))
    }

    /// 1 if it holds, else 0.
    pub(crate) fn as_int(self) -> Int<'c> {
        let ty = self.code.float.int();
        Int { code: self.code, value: self.code.with(|b| b.ins().uextend(ty, self.value)) }
    }
}
