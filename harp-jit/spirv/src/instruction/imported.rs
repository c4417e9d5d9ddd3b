//! Built-in functions of OpenCL C that a module imports: LLVM's own back end for SPIR-V leaves the calls for which it knows no
//! instruction, under the names that clang gives them (Itanium C++ ABI, section 5.1).

use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, types};
use rspirv::spirv::{FPRoundingMode, Op};

use super::dot::{FOUR_BYTES, IntegerDot};
use crate::error::Result;
use crate::function::Translator;
use crate::reader::Instruction;

/// A built-in function that may be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Imported {
    /// An atomic operation on what the first argument points to.
    Atomic(Atomic),
    Conversion(Conversion),
    /// A product of vectors of four bytes (`cl_khr_integer_dot_product`).
    Dot(IntegerDot),
    /// A fence of memory.
    Fence,
    /// A barrier of the subgroup.
    SubgroupBarrier,
    /// Which fences the memory needs that a generic pointer points to.
    Fences,
    /// A generic pointer as one to some class of memory, if it is.
    Cast,
    /// `printf`, which takes any number of arguments although its type says how many.
    Print,
}

/// An atomic operation that gives the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomic {
    /// With the second argument.
    With(AtomicRmwOp),
    /// With 1.
    WithOne(AtomicRmwOp),
    /// On floats, by the instruction that does the same.
    OnFloat(Op),
}

/// A conversion of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conversion {
    from: Number,
    to: Number,
    saturates: bool,
    rounding: Option<FPRoundingMode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Signed,
    Unsigned,
    Float,
}

impl Imported {
    /// The function of this name, if it is known.
    fn of(name: &str) -> Option<Imported> {
        if name == "printf" {
            return Some(Imported::Print);
        }
        if matches!(name, "__to_global" | "__to_local" | "__to_private") {
            return Some(Imported::Cast);
        }
        let (name, params) = demangled(name)?;
        match name {
            "mem_fence" | "read_mem_fence" | "write_mem_fence" => Some(Imported::Fence),
            "sub_group_barrier" => Some(Imported::SubgroupBarrier),
            "get_fence" => Some(Imported::Fences),
            _ => match name.split_once('_') {
                Some(("convert", rest)) => Conversion::of(rest, params).map(Imported::Conversion),
                Some(("dot", rest)) => IntegerDot::of(rest, params).map(Imported::Dot),
                _ => Atomic::of(name, params).map(Imported::Atomic),
            },
        }
    }
}

impl IntegerDot {
    /// The product whose function's name goes on like this behind `dot_`, such as `acc_sat_4x8packed_us_int`.
    fn of(name: &str, params: &str) -> Option<IntegerDot> {
        if name == "acc_sat" {
            // `Dv4_hDv4_c`, say, or `Dv4_hS_` where both are of one type.
            let (first, second) = params.strip_prefix("Dv4_")?.split_at_checked(1)?;
            let second = second.strip_prefix("Dv4_").unwrap_or(first);
            let signs = [Number::of(first)?, Number::of(second)?].map(|n| n == Number::Signed);
            return Some(IntegerDot { signs, accumulates: true, packed: None });
        }
        let (accumulates, rest) = match name.strip_prefix("acc_sat_") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let signs = match rest.strip_prefix("4x8packed_")? {
            "uu_uint" => [false, false],
            "ss_int" => [true, true],
            "us_int" => [false, true],
            "su_int" => [true, false],
            _ => return None,
        };
        Some(IntegerDot { signs, accumulates, packed: Some(FOUR_BYTES) })
    }
}

impl Atomic {
    fn of(name: &str, params: &str) -> Option<Atomic> {
        let of_old = name.strip_prefix("atom_").or_else(|| name.strip_prefix("atomic_"))?;
        let name = of_old.strip_prefix("fetch_").unwrap_or(of_old);
        let name = name.strip_suffix("_explicit").unwrap_or(name);
        let number = Number::of(unqualified(params.strip_prefix('P')?))?;
        Some(match (name, number) {
            ("inc", _) => Atomic::WithOne(AtomicRmwOp::Add),
            ("dec", _) => Atomic::WithOne(AtomicRmwOp::Sub),
            ("xchg" | "exchange", _) => Atomic::With(AtomicRmwOp::Xchg),
            ("min", Number::Signed) => Atomic::With(AtomicRmwOp::Smin),
            ("min", Number::Unsigned) => Atomic::With(AtomicRmwOp::Umin),
            ("min", Number::Float) => Atomic::OnFloat(Op::AtomicFMinEXT),
            ("max", Number::Signed) => Atomic::With(AtomicRmwOp::Smax),
            ("max", Number::Unsigned) => Atomic::With(AtomicRmwOp::Umax),
            ("max", Number::Float) => Atomic::OnFloat(Op::AtomicFMaxEXT),
            ("add", Number::Float) => Atomic::OnFloat(Op::AtomicFAddEXT),
            (_, Number::Float) => return None,
            ("add", _) => Atomic::With(AtomicRmwOp::Add),
            ("sub", _) => Atomic::With(AtomicRmwOp::Sub),
            ("and", _) => Atomic::With(AtomicRmwOp::And),
            ("or", _) => Atomic::With(AtomicRmwOp::Or),
            ("xor", _) => Atomic::With(AtomicRmwOp::Xor),
            _ => return None,
        })
    }
}

impl Conversion {
    /// The conversion whose name goes on like this behind `convert_`, such as `uchar4_sat_rte`.
    fn of(name: &str, params: &str) -> Option<Conversion> {
        let mut parts = name.split('_');
        let to = match parts.next()?.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "char" | "short" | "int" | "long" => Number::Signed,
            "uchar" | "ushort" | "uint" | "ulong" => Number::Unsigned,
            "half" | "float" | "double" => Number::Float,
            _ => return None,
        };
        // A vector is `Dv4_i`, say.
        let from = params.strip_prefix("Dv").and_then(|vector| vector.split_once('_'));
        let from = Number::of(from.map_or(params, |(_, component)| component))?;
        let mut conversion = Conversion { from, to, saturates: false, rounding: None };
        for part in parts {
            match part {
                "sat" => conversion.saturates = true,
                "rte" => conversion.rounding = Some(FPRoundingMode::RTE),
                "rtz" => conversion.rounding = Some(FPRoundingMode::RTZ),
                "rtp" => conversion.rounding = Some(FPRoundingMode::RTP),
                "rtn" => conversion.rounding = Some(FPRoundingMode::RTN),
                _ => return None,
            }
        }
        Some(conversion)
    }
}

impl Number {
    /// The number whose mangled type a text begins with.
    fn of(mangled: &str) -> Option<Number> {
        Some(match mangled.as_bytes() {
            [b'c' | b'a' | b's' | b'i' | b'l', ..] => Number::Signed,
            [b'h' | b't' | b'j' | b'm', ..] => Number::Unsigned,
            [b'f' | b'd', ..] | [b'D', b'h', ..] => Number::Float,
            _ => return None,
        })
    }
}

/// The name of a function and its parameters' types, of a mangled name.
fn demangled(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("_Z")?;
    let (length, rest) = number(rest)?;
    rest.split_at_checked(length)
}

/// The number that a text begins with, and what is behind it.
fn number(text: &str) -> Option<(usize, &str)> {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    Some((digits.parse().ok()?, rest))
}

/// A mangled type without its qualifiers: those of vendors, such as address spaces, `volatile`, `const`, `restrict`.
fn unqualified(mut mangled: &str) -> &str {
    loop {
        let vendor = mangled.strip_prefix('U').and_then(number);
        mangled = match vendor.and_then(|(length, rest)| rest.get(length..)) {
            Some(rest) => rest,
            None => match mangled.strip_prefix(['V', 'K', 'r']) {
                Some(rest) => rest,
                None => return mangled,
            },
        };
    }
}

impl Translator<'_, '_, '_> {
    /// Translates the call of a function that is imported; false if it is none of OpenCL C's.
    pub(crate) fn imported(&mut self, call: Instruction<'_>) -> Result<bool> {
        let name = self.module.decorations.name(call.word(0)?);
        let Some(function) = name.and_then(Imported::of) else { return Ok(false) };
        let inst = Instruction { operands: call.rest(1), ..call };
        match function {
            Imported::Atomic(operation) => self.atomic_function(inst, operation)?,
            Imported::Conversion(conversion) => self.converted(inst, conversion)?,
            Imported::Dot(dot) => self.dot_of_integers(inst, dot)?,
            Imported::Fence => {
                self.b.ins().fence();
            }
            Imported::SubgroupBarrier => {
                let one = self.b.ins().iconst(types::I8, 1);
                self.vote("harp_any", one);
            }
            Imported::Fences => self.fences_of_class(inst)?,
            Imported::Cast => self.cast_if_in_class(inst)?,
            Imported::Print => self.printf(inst)?,
        }
        Ok(true)
    }

    fn converted(&mut self, inst: Instruction<'_>, conversion: Conversion) -> Result<()> {
        let Conversion { from, to, saturates, rounding } = conversion;
        let [from_signed, to_signed] = [from, to].map(|number| number == Number::Signed);
        match (from, to) {
            (Number::Float, Number::Float) => self.float_to_float(inst, rounding),
            (Number::Float, _) => self.float_to_integer(inst, to_signed, saturates, rounding),
            (_, Number::Float) => self.integer_to_float(inst, from_signed, rounding),
            _ => self.integers(inst, from_signed, to_signed, saturates),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_mangled_names() {
        let rmw = |op| Some(Imported::Atomic(Atomic::With(op)));
        for (name, function) in [
            ("_Z10atomic_incPU3AS3Vi", Some(Imported::Atomic(Atomic::WithOne(AtomicRmwOp::Add)))),
            ("_Z8atom_minPU3AS1Vmm", rmw(AtomicRmwOp::Umin)),
            (
                "_Z25atomic_fetch_max_explicitPU3AS4VU7_Atomicii12memory_order12memory_scope",
                rmw(AtomicRmwOp::Smax),
            ),
            ("_Z11atomic_xchgPU3AS1Vff", rmw(AtomicRmwOp::Xchg)),
            ("_Z17sub_group_barrierj12memory_scope", Some(Imported::SubgroupBarrier)),
            ("__to_local", Some(Imported::Cast)),
            ("_Z9get_fencePU3AS4v", Some(Imported::Fences)),
            (
                "_Z19convert_double3_rtnDv3_m",
                Some(Imported::Conversion(Conversion {
                    from: Number::Unsigned,
                    to: Number::Float,
                    saturates: false,
                    rounding: Some(FPRoundingMode::RTN),
                })),
            ),
            (
                "_Z22convert_uchar2_sat_rteDv2_Dh",
                Some(Imported::Conversion(Conversion {
                    from: Number::Float,
                    to: Number::Unsigned,
                    saturates: true,
                    rounding: Some(FPRoundingMode::RTE),
                })),
            ),
            (
                "_Z28dot_acc_sat_4x8packed_us_intjji",
                Some(Imported::Dot(IntegerDot {
                    signs: [false, true],
                    accumulates: true,
                    packed: Some(FOUR_BYTES),
                })),
            ),
            (
                "_Z11dot_acc_satDv4_cS_i",
                Some(Imported::Dot(IntegerDot {
                    signs: [true, true],
                    accumulates: true,
                    packed: None,
                })),
            ),
            (
                "_Z11dot_acc_satDv4_cDv4_hi",
                Some(Imported::Dot(IntegerDot {
                    signs: [true, false],
                    accumulates: true,
                    packed: None,
                })),
            ),
            ("_Z11dot_acc_satDv4_", None),
            ("_Z20dot_4x8packed_ii_intjj", None),
            ("_Z10atomic_andPU3AS1Vff", None),
            ("_Z99atomic_inc", None),
            ("_Z7convertc", None),
            ("_Z15convert_double2Dv2_", None),
            ("_Z10atomic_incPU9", None),
            ("mem_fence", None),
            ("_Z", None),
        ] {
            assert_eq!(Imported::of(name), function, "{name}");
        }
    }
}
