//! What a function's external names mean.

use cranelift_codegen::ir::{ExternalName, Function};

/// The surroundings of a function that is compiled.
pub(crate) trait Symbols {
    /// The linker's name of `name`, which `func` refers to.
    fn name(&self, func: &Function, name: &ExternalName) -> String;

    /// Bytes of stack that the function with this linker's name may use without a look at the
    /// stack's limit; none if it does look, or nothing is known about it.
    fn unchecked_stack(&self, name: &str) -> Option<u64>;
}

/// Names as they stand in CLIF text: `%f` is `f`, `u0:1` is `u0:1`. Nothing is known about them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainNames;

impl Symbols for PlainNames {
    fn name(&self, func: &Function, name: &ExternalName) -> String {
        let text = name.display(Some(&func.params)).to_string();
        text.strip_prefix('%').map_or(text.clone(), str::to_owned)
    }

    fn unchecked_stack(&self, _: &str) -> Option<u64> {
        None
    }
}
