//! What a function's external names mean.

use cranelift_codegen::ir::{ExternalName, FuncRef, Function};
use harp_isa::ArchId;

use crate::abi::{CallLayout, WordPlace};
use crate::analysis::{Callees, FunctionFacts, ResultFact, Uniformity, Width};
use crate::library;

/// The surroundings of a function that is compiled.
pub(crate) trait Symbols {
    /// The linker's name of `name`, which `func` refers to.
    fn name(&self, func: &Function, name: &ExternalName) -> String;

    /// Bytes of stack that the function with this linker's name may use without a look at the
    /// stack's limit; none if it does look, or nothing is known about it.
    fn unchecked_stack(&self, name: &str) -> Option<u64>;

    /// What is known about arguments and results of the function with this linker's name.
    fn facts(&self, name: &str) -> Option<&FunctionFacts>;
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

    fn facts(&self, _: &str) -> Option<&FunctionFacts> {
        None
    }
}

/// What functions return that others call by their names.
#[derive(Clone, Copy)]
pub(crate) struct Called<'a> {
    pub(crate) symbols: &'a dyn Symbols,
    pub(crate) arch: ArchId,
}

impl Called<'_> {
    /// Whether `func`, of which `facts` are known, passes to functions what is known of their arguments.
    ///
    /// # Errors
    ///
    /// What it does that was not known.
    pub(crate) fn check(&self, func: &Function, facts: &Uniformity) -> Result<(), String> {
        let name = |callee| self.symbols.name(func, &func.dfg.ext_funcs[callee].name);
        let contradiction = |what: &str, callee: &str| {
            Err(format!("{what} `{callee}`, which was analysed without this caller"))
        };
        for call in &facts.linkages().calls {
            let callee = name(call.callee);
            let known = self.symbols.facts(&callee).map_or(&[][..], |known| &known.params);
            if call.args.iter().zip(known).any(|(given, wanted)| given < wanted) {
                return contradiction("passes an argument that lanes disagree on to", &callee);
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
        let fact = match self.symbols.facts(&name) {
            Some(facts) => *facts.results.get(index)?,
            None => library::result_fact(&name)?,
        };
        // What goes over the stack is memory to those who check the code.
        let layout = CallLayout::new(&func.dfg.signatures[data.signature], self.arch);
        let in_register = |place: &WordPlace| matches!(place, WordPlace::Register(_));
        let mut asked =
            layout.params().iter().enumerate().filter(|&(arg, _)| fact.depends.contains(arg));
        let known = layout.returns().get(index).is_some_and(in_register)
            && asked.all(|(_, place)| in_register(place));
        known.then_some(fact)
    }
}
