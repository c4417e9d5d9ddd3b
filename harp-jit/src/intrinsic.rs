//! Operations of the machine that CLIF has no opcode for, as calls to functions with known names.
//!
//! A call stays in the mid-end's side-effect skeleton: it is neither merged, duplicated nor moved to
//! another block. The price is that two equal calls stay two, so the builder makes one call in the
//! entry block. In CLIF text an intrinsic is declared as `fn0 = %harp_lane_id() -> i32`.

use std::fmt;

use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, Inst, InstructionData, Signature, Type,
};
use cranelift_codegen::isa::CallConv;

/// An operation of the machine, written as a call in CLIF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Intrinsic {
    /// The lane's number in its warp.
    LaneId,
    /// The warp's number in its core.
    WarpId,
    /// The core's number.
    CoreId,
    /// The work-item's position in the grid in one dimension.
    GlobalId(Dimension),
    /// Its operand, of any type, which the user promises to be equal in all executing lanes.
    AssumeUniform,
}

/// A dimension of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dimension {
    X,
    Y,
    Z,
}

impl Dimension {
    /// The dimension with this number, 0 to 2.
    pub(crate) fn new(number: u8) -> Option<Dimension> {
        [Dimension::X, Dimension::Y, Dimension::Z].get(usize::from(number)).copied()
    }
}

/// How the result of an intrinsic varies over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Variation {
    /// Differs from lane to lane.
    Divergent,
    /// Equal in all lanes of a warp.
    UniformInWarp,
    /// Equal in all executing lanes whatever the operands are, at the user's word.
    AssumedUniform,
}

/// Every intrinsic with its name in CLIF and the variation of its result.
const TABLE: [(Intrinsic, &str, Variation); 7] = [
    (Intrinsic::LaneId, "harp_lane_id", Variation::Divergent),
    (Intrinsic::WarpId, "harp_warp_id", Variation::UniformInWarp),
    (Intrinsic::CoreId, "harp_core_id", Variation::UniformInWarp),
    (Intrinsic::GlobalId(Dimension::X), "harp_global_id_x", Variation::Divergent),
    (Intrinsic::GlobalId(Dimension::Y), "harp_global_id_y", Variation::Divergent),
    (Intrinsic::GlobalId(Dimension::Z), "harp_global_id_z", Variation::Divergent),
    (Intrinsic::AssumeUniform, "harp_assume_uniform", Variation::AssumedUniform),
];

impl Intrinsic {
    /// The position in the grid in dimension `dim`; none if there is no such dimension.
    pub(crate) fn global_id(dim: u8) -> Option<Intrinsic> {
        Dimension::new(dim).map(Intrinsic::GlobalId)
    }

    /// The intrinsic with this name.
    pub(crate) fn from_name(name: &[u8]) -> Option<Intrinsic> {
        TABLE.iter().find(|row| row.1.as_bytes() == name).map(|row| row.0)
    }

    /// The name of the called function.
    pub(crate) fn name(self) -> &'static str {
        self.row().1
    }

    /// How the result varies over the lanes of a warp.
    pub(crate) fn variation(self) -> Variation {
        self.row().2
    }

    /// The signature for results of type `ty`: the machine's word, and for
    /// [`AssumeUniform`](Intrinsic::AssumeUniform) the type of its operand.
    pub(crate) fn signature(self, ty: Type) -> Signature {
        let mut signature = Signature::new(CallConv::Fast);
        if self == Intrinsic::AssumeUniform {
            signature.params.push(AbiParam::new(ty));
        }
        signature.returns.push(AbiParam::new(ty));
        signature
    }

    /// Declares the intrinsic in `func` with results of type `ty`.
    pub(crate) fn declare(self, func: &mut Function, ty: Type) -> FuncRef {
        let signature = func.import_signature(self.signature(ty));
        func.import_function(ExtFuncData {
            name: ExternalName::testcase(self.name()),
            signature,
            colocated: true,
            patchable: false,
        })
    }

    /// The intrinsic that `inst` calls. None if `inst` is no call, calls something else, or calls
    /// the name with other parameters and results than [`signature`](Intrinsic::signature) gives.
    pub(crate) fn of_call(func: &Function, inst: Inst) -> Option<Intrinsic> {
        let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else { return None };
        let callee = &func.dfg.ext_funcs[func_ref];
        let ExternalName::TestCase(name) = &callee.name else { return None };
        let intrinsic = Intrinsic::from_name(name.raw())?;
        let given = &func.dfg.signatures[callee.signature];
        let wanted = intrinsic.signature(given.returns.first()?.value_type);
        let agree = given.params == wanted.params && given.returns == wanted.returns;
        agree.then_some(intrinsic)
    }

    /// Whether it concerns the lane that executes it alone, whichever others do.
    pub(crate) fn is_private(self) -> bool {
        match self {
            Intrinsic::LaneId
            | Intrinsic::WarpId
            | Intrinsic::CoreId
            | Intrinsic::GlobalId(_)
            | Intrinsic::AssumeUniform => true,
        }
    }

    fn row(self) -> &'static (Intrinsic, &'static str, Variation) {
        TABLE.iter().find(|row| row.0 == self).expect("every intrinsic has a row")
    }
}

impl fmt::Display for Intrinsic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types::I32;

    #[test]
    fn names_lead_back_to_their_intrinsic() {
        for (intrinsic, name, _) in TABLE {
            assert_eq!(Intrinsic::from_name(name.as_bytes()), Some(intrinsic));
            assert_eq!(intrinsic.name(), name);
        }
        assert_eq!(Intrinsic::from_name(b"harp_lane"), None);
        assert_eq!(Intrinsic::global_id(2).map(Intrinsic::name), Some("harp_global_id_z"));
        assert_eq!(Intrinsic::global_id(3), None);
    }

    #[test]
    fn calls_are_recognized_by_name_and_signature() {
        let text = "function %f(i32) {
            fn0 = %harp_lane_id() -> i32
            fn1 = %harp_lane_id(i32) -> i32
            fn2 = %harp_assume_uniform(i8) -> i8
            fn3 = %printf() -> i32
        block0(v0: i32):
            v1 = call fn0()
            v2 = call fn1(v0)
            v3 = ireduce.i8 v0
            v4 = call fn2(v3)
            v5 = call fn3()
            return
        }";
        let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        let block = func.layout.entry_block().unwrap();
        let found: Vec<_> =
            func.layout.block_insts(block).map(|inst| Intrinsic::of_call(&func, inst)).collect();
        let (lane, assume) = (Some(Intrinsic::LaneId), Some(Intrinsic::AssumeUniform));
        assert_eq!(found, [lane, None, None, assume, None, None]);
    }

    #[test]
    fn declarations_are_recognized() {
        let mut func = Function::new();
        for (intrinsic, name, _) in TABLE {
            let callee = intrinsic.declare(&mut func, I32);
            let data = &func.dfg.ext_funcs[callee];
            assert_eq!(data.name.display(None).to_string(), format!("%{name}"));
        }
    }
}
