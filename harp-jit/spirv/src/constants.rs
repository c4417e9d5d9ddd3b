//! A module's constants, specialization constants included: what is known before a kernel runs.

use hashbrown::HashMap;
use rspirv::spirv::Op;
use smallvec::SmallVec;

use crate::error::{Result, SpirvErrorKind};
use crate::reader::{Id, Instruction};
use crate::types::{Kind, Types};

/// The most scalars of a constant, which becomes data if it is this large.
const MAX_SCALARS: u64 = 1 << 22;

/// A scalar that is known before a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    /// Its bits; those above the type's are zero.
    Bits(u64),
    /// So many bytes behind the start of a variable of the module.
    Address { variable: Id, offset: i64 },
}

/// The scalars of a constant. Most constants have few.
pub(crate) type Scalars = SmallVec<[Scalar; 4]>;

/// What a constant is made of.
#[derive(Clone, Debug)]
enum Value {
    Scalars(Box<[Scalar]>),
    Parts(Box<[Id]>),
    /// All bits are zero.
    Zero,
    /// Any value will do; it is taken for zero.
    Undefined,
    /// The operation that gives it is wrong or not supported, which matters to those who use it.
    Refused(Box<SpirvErrorKind>),
}

/// A constant.
#[derive(Clone, Debug)]
struct Constant {
    ty: Id,
    value: Value,
    /// Whether there may be an address in it.
    has_addresses: bool,
    /// Whether all of it may have any value.
    is_undefined: bool,
}

/// The constants of a module by their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants {
    by_id: HashMap<Id, Constant>,
}

impl Constants {
    /// Defines the constant of an instruction. `specialized` is the value that it has been given, if it is a
    /// specialization constant with one.
    pub(crate) fn define(
        &mut self,
        inst: Instruction<'_>,
        types: &Types,
        specialized: Option<u64>,
    ) -> Result<()> {
        let bits = |bits: u64| Value::Scalars([Scalar::Bits(bits)].into());
        let value = match inst.op {
            Op::ConstantTrue => bits(1),
            Op::ConstantFalse => bits(0),
            Op::SpecConstantTrue => bits(specialized.map_or(1, |value| u64::from(value != 0))),
            Op::SpecConstantFalse => bits(specialized.map_or(0, |value| u64::from(value != 0))),
            Op::Constant | Op::SpecConstant => {
                let own = literal(inst, types)?;
                let mask = u64::MAX >> (64 - width(types, inst.ty)?);
                bits(specialized.unwrap_or(own) & mask)
            }
            Op::ConstantComposite | Op::SpecConstantComposite => {
                self.check_parts(inst, types)?;
                Value::Parts(inst.operands.into())
            }
            Op::SpecConstantCompositeReplicateEXT | Op::ConstantCompositeReplicateEXT => {
                let count = usize::try_from(types.parts(inst.ty)?).unwrap_or(usize::MAX);
                if count > MAX_SCALARS as usize
                    || types.part(inst.ty, 0)?.0 != self.ty(inst.word(0)?)?
                {
                    return Err(SpirvErrorKind::malformed("a constant does not fit its type"));
                }
                Value::Parts(vec![inst.word(0)?; count].into())
            }
            // Samplers have no scalars, and no instruction here takes one.
            Op::ConstantNull | Op::ConstantSampler => {
                types.get(inst.ty)?;
                Value::Zero
            }
            Op::Undef => {
                types.get(inst.ty)?;
                Value::Undefined
            }
            op => {
                return Err(SpirvErrorKind::unsupported(crate::reader::op_name(op)));
            }
        };
        self.insert(inst, value)
    }

    /// Defines a constant with these scalars, or one that cannot be used.
    pub(crate) fn define_result(
        &mut self,
        inst: Instruction<'_>,
        types: &Types,
        scalars: Result<Vec<Scalar>>,
    ) -> Result<()> {
        let leaves = types.get(inst.ty)?.leaves;
        let value = match scalars {
            Ok(scalars) if scalars.len() as u64 != leaves => {
                return Err(SpirvErrorKind::malformed("a constant does not fit its type"));
            }
            Ok(scalars) => Value::Scalars(scalars.into()),
            Err(error) => Value::Refused(Box::new(error)),
        };
        self.insert(inst, value)
    }

    fn insert(&mut self, inst: Instruction<'_>, value: Value) -> Result<()> {
        let has_addresses = match &value {
            Value::Scalars(scalars) => {
                scalars.iter().any(|scalar| matches!(scalar, Scalar::Address { .. }))
            }
            Value::Parts(parts) => parts.iter().any(|part| self.by_id[part].has_addresses),
            Value::Zero | Value::Undefined | Value::Refused(_) => false,
        };
        let is_undefined = match &value {
            Value::Undefined => true,
            Value::Parts(parts) => parts.iter().all(|part| self.by_id[part].is_undefined),
            _ => false,
        };
        let constant = Constant { ty: inst.ty, value, has_addresses, is_undefined };
        if self.by_id.insert(inst.id, constant).is_some() {
            return Err(SpirvErrorKind::malformed("this id is defined twice"));
        }
        Ok(())
    }

    /// Defines the address of a variable of the module.
    pub(crate) fn define_variable(&mut self, variable: Id, ty: Id) {
        let value = Value::Scalars([Scalar::Address { variable, offset: 0 }].into());
        self.by_id
            .insert(variable, Constant { ty, value, has_addresses: true, is_undefined: false });
    }

    /// The variables whose addresses are in a constant; none if the id is no constant.
    pub(crate) fn addresses(&self, id: Id, types: &Types) -> Vec<Id> {
        if !self.by_id.get(&id).is_some_and(|constant| constant.has_addresses) {
            return Vec::new();
        }
        let scalars = self.scalars(id, types).unwrap_or_default().into_iter();
        let addresses = scalars.filter_map(|scalar| match scalar {
            Scalar::Address { variable, .. } => Some(variable),
            Scalar::Bits(_) => None,
        });
        addresses.collect()
    }

    fn check_parts(&self, inst: Instruction<'_>, types: &Types) -> Result<()> {
        let (parts, given) = (types.parts(inst.ty)?, inst.operands.len() as u64);
        if parts != given {
            let what = format!("a constant of {given} parts, its type has {parts}");
            return Err(SpirvErrorKind::malformed(what));
        }
        for (&part, index) in inst.operands.iter().zip(0..) {
            let (expected, _) = types.part(inst.ty, index)?;
            let given = self.ty(part)?;
            // Translators do not always keep signs apart, or what pointers are to, and take an integer for a null pointer.
            let is_null = || {
                matches!(types.kind(expected), Ok(Kind::Pointer { .. }))
                    && self.scalar(part, types) == Ok(Scalar::Bits(0))
            };
            if !types.are_alike(given, expected) && !is_null() {
                return Err(SpirvErrorKind::Mismatch {
                    id: part,
                    given: types.describe(given),
                    expected: types.describe(expected),
                });
            }
        }
        Ok(())
    }

    fn get(&self, id: Id) -> Result<&Constant> {
        let undefined = || SpirvErrorKind::Undefined { id, role: "a constant" };
        self.by_id.get(&id).ok_or_else(undefined)
    }

    /// Whether a constant is null.
    pub(crate) fn is_null(&self, id: Id) -> bool {
        matches!(self.by_id.get(&id), Some(Constant { value: Value::Zero, .. }))
    }

    /// Whether all of a constant may have any value.
    pub(crate) fn is_undefined(&self, id: Id) -> bool {
        self.by_id.get(&id).is_some_and(|constant| constant.is_undefined)
    }

    /// Whether nothing in a constant is an address; none is in what is no constant.
    pub(crate) fn is_of_numbers(&self, id: Id) -> bool {
        self.by_id.get(&id).is_some_and(|constant| !constant.has_addresses)
    }

    /// Whether an id is a constant.
    pub(crate) fn contains(&self, id: Id) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The type of a constant.
    pub(crate) fn ty(&self, id: Id) -> Result<Id> {
        Ok(self.get(id)?.ty)
    }

    /// All scalars of a constant.
    pub(crate) fn scalars(&self, id: Id, types: &Types) -> Result<Scalars> {
        let (given, limit) = (types.get(self.ty(id)?)?.leaves, MAX_SCALARS);
        if given > limit {
            let what = "scalars of a constant";
            return Err(SpirvErrorKind::TooMany { what, given, limit });
        }
        let mut scalars = Scalars::with_capacity(given as usize);
        self.append(id, types, &mut scalars)?;
        Ok(scalars)
    }

    fn append(&self, id: Id, types: &Types, scalars: &mut Scalars) -> Result<()> {
        let Constant { ty, value, .. } = self.get(id)?;
        match value {
            Value::Scalars(own) => scalars.extend_from_slice(own),
            Value::Parts(parts) => {
                for &part in parts {
                    self.append(part, types, scalars)?;
                }
            }
            Value::Zero | Value::Undefined => {
                let count = types.get(*ty)?.leaves as usize;
                scalars.resize(scalars.len() + count, Scalar::Bits(0));
            }
            Value::Refused(error) => return Err(SpirvErrorKind::clone(error)),
        }
        Ok(())
    }

    /// The only scalar of a constant.
    pub(crate) fn scalar(&self, id: Id, types: &Types) -> Result<Scalar> {
        match self.scalars(id, types)?[..] {
            [scalar] => Ok(scalar),
            _ => {
                let (given, expected) = (types.describe(self.ty(id)?), "a scalar".to_owned());
                Err(SpirvErrorKind::Mismatch { id, given, expected })
            }
        }
    }

    /// The value of an integer constant, with the sign that its type gives it.
    pub(crate) fn integer(&self, id: Id, types: &Types) -> Result<i64> {
        let (bits, signed, value) = self.sized(id, types)?;
        Ok(if signed { with_sign(value, bits) } else { value.cast_signed() })
    }

    /// The value of an index of an access chain, which has a sign whatever its type says.
    pub(crate) fn index(&self, id: Id, types: &Types) -> Result<i64> {
        let (bits, _, value) = self.sized(id, types)?;
        Ok(with_sign(value, bits))
    }

    /// The bits of an integer constant, behind their number and whether the type has a sign.
    fn sized(&self, id: Id, types: &Types) -> Result<(u32, bool, u64)> {
        match (types.kind(self.ty(id)?)?, self.scalar(id, types)?) {
            (&Kind::Int { bits, signed }, Scalar::Bits(value)) => Ok((bits, signed, value)),
            _ => {
                let given = types.describe(self.ty(id)?);
                let expected = "an integer constant".to_owned();
                Err(SpirvErrorKind::Mismatch { id, given, expected })
            }
        }
    }

    /// The value of an integer constant that is not negative, such as an array's length.
    pub(crate) fn length(&self, id: Id, types: &Types) -> Result<u64> {
        let value = self.integer(id, types)?;
        u64::try_from(value)
            .map_err(|_| SpirvErrorKind::malformed(format!("%{id} is {value}, which is negative")))
    }
}

/// An integer of so many bits as one with a sign.
fn with_sign(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)).cast_signed() >> (64 - bits)
}

/// The bits of a number's type.
fn width(types: &Types, ty: Id) -> Result<u32> {
    match *types.kind(ty)? {
        Kind::Int { bits, .. } | Kind::Float { bits } => Ok(bits),
        _ => Err(SpirvErrorKind::Mismatch {
            id: ty,
            given: types.describe(ty),
            expected: "an integer or a float".to_owned(),
        }),
    }
}

/// The value that is written in a constant, as its type's bits.
fn literal(inst: Instruction<'_>, types: &Types) -> Result<u64> {
    let bits = width(types, inst.ty)?;
    let high = if bits == 64 { inst.word(1)? } else { 0 };
    Ok(u64::from(high) << 32 | u64::from(inst.word(0)?))
}
