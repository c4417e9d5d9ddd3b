//! Calls of functions, and addresses of data, that the kernel has a reference to.

use cranelift_codegen::ir::{FuncRef, Function, GlobalValue, InstBuilder, Value};

use super::{Caller, KernelBuilder};
use crate::error::BuildErrorKind;

impl KernelBuilder<'_> {
    /// Calls the function named `function` that `import` gives a reference to. The error is an id that is not
    /// declared.
    pub(crate) fn call_imported<const N: usize>(
        &mut self,
        function: &str,
        import: impl FnOnce(&mut Function) -> Result<FuncRef, String>,
        args: &[Value],
        place: Caller,
    ) -> [Value; N] {
        self.enter(place);
        let callee = match import(self.inner.func) {
            Ok(callee) => callee,
            Err(id) => {
                self.fail(BuildErrorKind::Undeclared { id }, place);
                return self.no_results();
            }
        };
        let func = &*self.inner.func;
        let signature = &func.dfg.signatures[func.dfg.ext_funcs[callee].signature];
        let params: Vec<_> = signature.params.iter().map(|param| param.value_type).collect();
        let counts =
            [("arguments", params.len(), args.len()), ("results", signature.returns.len(), N)];
        for (what, expected, given) in counts {
            if expected != given {
                let function = function.to_owned();
                self.fail(BuildErrorKind::FunctionCall { function, what, expected, given }, place);
                return self.no_results();
            }
        }
        let args = args.iter().zip(params);
        let args: Vec<Value> = args
            .map(|(&value, ty)| self.checked(value, ty, "argument of a function", place))
            .collect();
        let call = self.inner.ins().call(callee, &args);
        let results = self.inner.inst_results(call);
        results.try_into().expect("there are as many as in the signature")
    }

    /// The address of the datum that `import` gives a reference to. The error is an id that is not declared.
    pub(crate) fn address_imported(
        &mut self,
        import: impl FnOnce(&mut Function) -> Result<GlobalValue, String>,
        place: Caller,
    ) -> Value {
        self.enter(place);
        let word = self.word_int();
        match import(self.inner.func) {
            Ok(datum) => self.inner.ins().symbol_value(word, datum),
            Err(id) => {
                self.fail(BuildErrorKind::Undeclared { id }, place);
                self.placeholder(word)
            }
        }
    }

    fn no_results<const N: usize>(&mut self) -> [Value; N] {
        std::array::from_fn(|_| self.placeholder(self.word_int()))
    }
}
