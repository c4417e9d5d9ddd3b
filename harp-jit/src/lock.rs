//! Calls of the [runtime library's lock](harp_isa::abi::Lock).
//!
//! Legalization makes them, see `legalize/memory`. The linker finds the functions, as it does all that a
//! module does not define.

use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, Signature, Type,
};
use cranelift_codegen::isa::CallConv;
use harp_isa::abi::Lock;

/// Declares a function of the lock in `func`, for a machine with words of type `word`.
pub(crate) fn declare(func: &mut Function, name: &str, word: Type) -> FuncRef {
    let mut signature = Signature::new(CallConv::Fast);
    signature.params = vec![AbiParam::new(word); 2];
    let signature = func.import_signature(signature);
    func.import_function(ExtFuncData {
        name: ExternalName::testcase(name),
        signature,
        colocated: true,
        patchable: false,
    })
}

/// Whether a function with this linker's name is one of the lock. It uses no stack, and waits for other warps, but not
/// for lanes of its own.
pub(crate) fn is_of_lock(name: &str) -> bool {
    [Lock::TAKE, Lock::RELEASE].contains(&name)
}
