//! The external names of a function.

use cranelift_codegen::ir::{ExternalName, FuncRef, Function, Signature};
use harp_isa::{ArchId, Gpr};
use smallvec::SmallVec;

use crate::abi::CallLayout;
use crate::analysis::{Callees, FunctionFacts, ResultFact, Uniformity};
use crate::vcode::Contract;
use crate::width::Width;
use crate::{lock, routine};

/// Resolves the external names of a function.
pub(crate) trait Symbols {
    /// The linker's name of `name`, which `func` refers to.
    fn name(&self, func: &Function, name: &ExternalName) -> String;

    /// Bytes of stack that the function with this linker's name may use without checking the stack's limit;
    /// none if it checks it itself, or if nothing is known about it.
    fn unchecked_stack(&self, name: &str) -> Option<u64>;

    /// Known facts about arguments and results of the function with this linker's name.
    fn facts(&self, name: &str) -> Option<&FunctionFacts>;

    /// Whether lanes may wait for others, or look at what these have, in the function with this linker's name.
    fn may_gather(&self, name: &str) -> bool;

    /// Whether it is known that work-groups mean nothing to the function or datum with this linker's name, nor to what it
    /// needs.
    fn is_free_of_groups(&self, name: &str) -> bool;
}

/// Names as written in CLIF text: `%f` is `f`, `u0:1` is `u0:1`. Nothing is known about them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainNames;

impl Symbols for PlainNames {
    fn name(&self, func: &Function, name: &ExternalName) -> String {
        // What is printed below, without the printing: most names are these, and are asked for at each call.
        if let ExternalName::TestCase(name) = name
            && let Ok(name) = str::from_utf8(name.raw())
        {
            return name.to_owned();
        }
        let mut text = name.display(Some(&func.params)).to_string();
        if text.starts_with('%') {
            text.remove(0);
        }
        text
    }

    fn unchecked_stack(&self, _: &str) -> Option<u64> {
        None
    }

    fn facts(&self, _: &str) -> Option<&FunctionFacts> {
        None
    }

    fn may_gather(&self, _: &str) -> bool {
        true
    }

    fn is_free_of_groups(&self, _: &str) -> bool {
        false
    }
}

/// Facts about callees, which are resolved by their names.
#[derive(Clone, Copy)]
pub(crate) struct Called<'a> {
    pub(crate) symbols: &'a dyn Symbols,
    pub(crate) arch: ArchId,
}

impl Called<'_> {
    /// The contract between the function with this name and its callers.
    pub(crate) fn contract(&self, name: &str, signature: &Signature) -> Contract {
        let layout = CallLayout::new(signature, self.arch);
        let widths = self.symbols.facts(name).map_or(&[][..], |facts| &facts.params);
        let passed = layout.params().iter().zip(widths);
        let uniform = passed.filter(|(_, width)| **width > Width::Thread);
        let results = (0..layout.returns().len()).filter_map(|index| {
            let (fact, result, asked) = self.result_fact(name, &layout, index)?;
            (fact.width > Width::Thread).then_some((result, asked))
        });
        Contract {
            arguments: uniform.filter_map(|(place, _)| place.register()).collect(),
            results: results.collect(),
        }
    }

    /// The fact about a result of the function with this name, the register in which it is returned, and the
    /// registers of the arguments on which it depends.
    fn result_fact(
        &self,
        name: &str,
        layout: &CallLayout,
        index: usize,
    ) -> Option<(ResultFact, Gpr, SmallVec<[Gpr; 4]>)> {
        let fact = match self.symbols.facts(name) {
            Some(facts) => *facts.results.get(index)?,
            None => routine::result_fact(name)?,
        };
        // The checker of the finished code sees values on the stack as plain memory.
        let result = layout.returns().get(index)?.register()?;
        let asked = layout.params().iter().enumerate();
        let asked = asked.filter(|&(arg, _)| fact.depends.contains(arg));
        Some((fact, result, asked.map(|(_, place)| place.register()).collect::<Option<_>>()?))
    }

    /// Checks that the calls in `func` keep to what is known about the arguments of its callees; `facts` are
    /// the facts about `func`.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub(crate) fn check(&self, func: &Function, facts: &Uniformity) -> Result<(), String> {
        let name = |callee| self.symbols.name(func, &func.dfg.ext_funcs[callee].name);
        let contradiction = |what: &str, callee: &str| {
            Err(format!("{what} `{callee}`, which was analysed without this caller"))
        };
        for call in &facts.linkages().calls {
            let callee = name(call.callee);
            let known = self.symbols.facts(&callee).map_or(&[][..], |known| &known.params);
            if call.args.iter().zip(known).any(|(given, wanted)| given < wanted) {
                return contradiction("passes a less uniform argument than assumed to", &callee);
            }
        }
        for &callee in &facts.linkages().addresses {
            let callee = name(callee);
            let known = self.symbols.facts(&callee).map_or(&[][..], |known| &known.params);
            if known.iter().any(|&width| width > Width::Thread) {
                return contradiction("takes the address of", &callee);
            }
        }
        Ok(())
    }
}

impl Callees for Called<'_> {
    fn result(&self, func: &Function, callee: FuncRef, index: usize) -> Option<ResultFact> {
        let data = &func.dfg.ext_funcs[callee];
        let name = self.symbols.name(func, &data.name);
        let layout = CallLayout::new(&func.dfg.signatures[data.signature], self.arch);
        self.result_fact(&name, &layout, index).map(|(fact, ..)| fact)
    }

    fn may_gather(&self, func: &Function, callee: FuncRef) -> bool {
        let name = self.symbols.name(func, &func.dfg.ext_funcs[callee].name);
        let is_ours = routine::is_routine(&name) || lock::is_of_lock(&name);
        !is_ours && self.symbols.may_gather(&name)
    }
}

#[cfg(test)]
mod tests {
    use cranelift_codegen::entity::EntityRef;
    use cranelift_codegen::ir::Value;

    use super::*;
    use crate::analysis::{Cause, Known, Params};

    #[test]
    fn routines_of_the_library_are_functions_of_their_operands() {
        let text = "function %f(i32) {
                fn0 = %harp_lane_id() -> i32
                fn4 = %add(i64, i64) -> i64
                fn5 = %unknown(i64) -> i64
            block0(v0: i32):
                v1 = call fn0()
                v3 = iconst.i64 1
                v4 = uextend.i64 v1
                v5 = call fn4(v3, v3)
                v6 = call fn4(v3, v4)
                v7 = call fn5(v3)
                return
            }";
        let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        // A name that CLIF text cannot have.
        func.dfg.ext_funcs[FuncRef::new(4)].name = ExternalName::testcase("runtime.f64.add");
        let arch = "harp64".parse().unwrap();
        let callees = Called { symbols: &PlainNames, arch };
        let facts =
            Uniformity::compute(&func, Known { params: Params::Uniform, callees: &callees });
        let width = |number| facts.width(&func, Value::new(number));
        assert_eq!([5, 6, 7].map(width), [Width::Grid, Width::Thread, Width::Thread]);
        assert_eq!(facts.divergence(&func, Value::new(6)), Some(Cause::Operand(Value::new(4))));
        assert_eq!(facts.divergence(&func, Value::new(7)), Some(Cause::Operation));
    }
}
