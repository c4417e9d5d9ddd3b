//! The constructs that file tests may skip.
//!
//! Not every machine supports all of CLIF. But a test that is silently skipped tests nothing, so the reasons
//! are listed here. On machines with the extension a function of scalar integers is skipped only for a
//! [construct](LISTED) of the list; if it does not compile for another reason, its tests fail.

use harp_isa::ArchId;
use harp_jit::ir::{Function, GlobalValueData, InstructionData, Opcode, Type};

/// A construct of CLIF that no HARP machine supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Construct {
    /// Thread-local storage: the machine has lanes and stacks, but no storage that code finds by thread.
    ThreadLocal,
    /// Calls that catch exceptions: there is no unwinder.
    TryCall,
    /// Switching between stacks: a lane's control block is found through its stack.
    StackSwitch,
    /// Addresses of less than a word: it is not defined how they are extended.
    NarrowAddress,
    /// The pinned register, a setting of Cranelift's targets: here all registers are allocated.
    PinnedRegister,
}

/// The constructs for which tests may be skipped on every machine.
pub(super) const LISTED: [Construct; 5] = [
    Construct::ThreadLocal,
    Construct::TryCall,
    Construct::StackSwitch,
    Construct::NarrowAddress,
    Construct::PinnedRegister,
];

/// Instructions whose result is an address.
const MAKES_ADDRESS: [Opcode; 6] = [
    Opcode::StackAddr,
    Opcode::FuncAddr,
    Opcode::SymbolValue,
    Opcode::GetFramePointer,
    Opcode::GetStackPointer,
    Opcode::GetReturnAddress,
];

impl Construct {
    /// Whether a function has the construct.
    fn is_in(self, func: &Function, arch: ArchId) -> bool {
        let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
        insts.any(|inst| self.is(func, &func.dfg.insts[inst], func.dfg.ctrl_typevar(inst), arch))
    }

    fn is(self, func: &Function, data: &InstructionData, ty: Type, arch: ArchId) -> bool {
        let opcode = data.opcode();
        match self {
            Construct::ThreadLocal => match *data {
                InstructionData::UnaryGlobalValue { global_value, .. } => {
                    opcode == Opcode::TlsValue
                        || matches!(
                            func.global_values[global_value],
                            GlobalValueData::Symbol { tls: true, .. }
                        )
                }
                _ => false,
            },
            Construct::TryCall => matches!(
                opcode,
                Opcode::TryCall | Opcode::TryCallIndirect | Opcode::GetExceptionHandlerAddress
            ),
            Construct::StackSwitch => opcode == Opcode::StackSwitch,
            Construct::NarrowAddress if MAKES_ADDRESS.contains(&opcode) => {
                ty.bits() < u32::from(arch.word().bits())
            }
            Construct::NarrowAddress => {
                let address = match *data {
                    InstructionData::Load { arg, .. } => arg,
                    InstructionData::LoadNoOffset { opcode: Opcode::AtomicLoad, arg, .. } => arg,
                    InstructionData::Store { args, .. }
                    | InstructionData::StoreNoOffset { args, .. } => args[1],
                    InstructionData::AtomicRmw { args, .. } => args[0],
                    InstructionData::AtomicCas { args, .. } => args[0],
                    _ => return false,
                };
                func.dfg.value_type(address).bits() < u32::from(arch.word().bits())
            }
            Construct::PinnedRegister => {
                matches!(opcode, Opcode::GetPinnedReg | Opcode::SetPinnedReg)
            }
        }
    }
}

/// Whether tests may be skipped because this function does not compile: always, unless it must compile on
/// this machine.
pub(super) fn may_skip(func: &Function, arch: ArchId) -> bool {
    !arch.has_extension()
        || !is_scalar_integer(func)
        || LISTED.iter().any(|construct| construct.is_in(func, arch))
}

/// Whether all values, parameters and results, those of declared functions too, are integers of at most 64
/// bits.
fn is_scalar_integer(func: &Function) -> bool {
    let fits = |ty: Type| ty.is_int() && ty.bits() <= 64;
    let dfg = &func.dfg;
    let signatures = dfg.signatures.values().chain([&func.signature]);
    let mut declared = signatures.flat_map(|s| s.params.iter().chain(&s.returns));
    let mut values = func.layout.blocks().flat_map(|block| {
        let results = func.layout.block_insts(block).flat_map(|inst| dfg.inst_results(inst));
        dfg.block_params(block).iter().chain(results)
    });
    declared.all(|param| fits(param.value_type)) && values.all(|&value| fits(dfg.value_type(value)))
}
