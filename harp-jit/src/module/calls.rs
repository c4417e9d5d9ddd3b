//! Facts across the calls of a module: which arguments are uniform at all call sites, and which results are
//! uniform if the arguments are.
//!
//! Both are optimistic fixpoints over the call graph, cycles included: everything counts as uniform until a
//! call site or a callee shows otherwise. First the results are computed in terms of the arguments, which
//! holds for any caller; then the arguments, as far as all callers are known (after Timofeev, "Scalarization
//! across threads", 2016, who walks the call graph bottom up and again where a caller passes a narrower
//! argument).
//!
//! A fact about arguments depends on the callers that were analysed. Callers compiled later are checked
//! against it.

use std::collections::BTreeMap;

use cranelift_codegen::ir::Function;
use harp_isa::ArchId;
use hashbrown::HashSet;

use crate::abi::{CallLayout, WordPlace};
use crate::analysis::{Arguments, FunctionFacts, Known, Params, ResultFact, Uniformity};
use crate::symbols::{Called, Symbols};
use crate::width::Width;

/// A function that takes part in the analysis.
pub(super) struct Member {
    /// The linker's name; none for a kernel, which no function calls.
    pub(super) name: Option<String>,
    /// The function as the user gave it.
    pub(super) given: Function,
    /// The function in canonical form.
    pub(super) canonical: Function,
    /// Whether all its callers take part, too.
    pub(super) private: bool,
}

/// What is known about the functions of a module.
#[derive(Debug, Default)]
pub(super) struct CallFacts {
    functions: BTreeMap<String, (Function, FunctionFacts)>,
}

impl CallFacts {
    pub(super) fn facts(&self, name: &str) -> Option<&FunctionFacts> {
        self.functions.get(name).map(|(_, facts)| facts)
    }

    /// Whether the facts about the function with this name were derived from a different body.
    pub(super) fn contradicts(&self, name: &str, body: &Function) -> bool {
        self.functions.get(name).is_some_and(|(given, _)| given != body)
    }

    /// Whether only the analysed functions may call the function with this name.
    pub(super) fn is_closed(&self, name: &str) -> bool {
        let facts = self.facts(name);
        facts.is_some_and(|facts| facts.params.iter().any(|&width| width > Width::Thread))
    }
}

/// Analyses functions that call each other; `symbols` resolves their names.
pub(super) fn analyse(members: Vec<Member>, symbols: &dyn Symbols, arch: ArchId) -> CallFacts {
    let mut analysis = Analysis { members: &members, symbols, arch, facts: BTreeMap::new() };
    analysis.begin();
    while analysis.results() {}
    while analysis.params() {}
    let facts = analysis.facts;
    let mut functions = BTreeMap::new();
    for member in members {
        let facts = member.name.as_ref().and_then(|name| facts.get_key_value(name));
        if let Some((name, facts)) = facts {
            functions.insert(name.clone(), (member.given, facts.clone()));
        }
    }
    CallFacts { functions }
}

struct Analysis<'a> {
    members: &'a [Member],
    symbols: &'a dyn Symbols,
    arch: ArchId,
    facts: BTreeMap<String, FunctionFacts>,
}

/// Symbols with the names of `symbols` and the facts found so far.
struct SoFar<'a> {
    symbols: &'a dyn Symbols,
    facts: &'a BTreeMap<String, FunctionFacts>,
}

impl Symbols for SoFar<'_> {
    fn name(&self, func: &Function, name: &cranelift_codegen::ir::ExternalName) -> String {
        self.symbols.name(func, name)
    }

    fn unchecked_stack(&self, name: &str) -> Option<u64> {
        self.symbols.unchecked_stack(name)
    }

    fn facts(&self, name: &str) -> Option<&FunctionFacts> {
        self.facts.get(name)
    }

    fn may_gather(&self, name: &str) -> bool {
        self.symbols.may_gather(name)
    }

    fn is_free_of_groups(&self, name: &str) -> bool {
        self.symbols.is_free_of_groups(name)
    }
}

impl Analysis<'_> {
    /// Starts from the most optimistic facts.
    fn begin(&mut self) {
        let mut escaping = HashSet::new();
        for member in self.members {
            let func = &member.canonical;
            let facts = Uniformity::compute(func, Known::FUNCTION);
            let names = facts.linkages().addresses.iter();
            escaping.extend(names.map(|&f| self.symbols.name(func, &func.dfg.ext_funcs[f].name)));
        }
        for member in self.members {
            let Some(name) = &member.name else { continue };
            let signature = &member.canonical.signature;
            let layout = CallLayout::new(signature, self.arch);
            let closed = member.private && !escaping.contains(name);
            let width = |place: &WordPlace| match place {
                // Checkers of the code see arguments on the stack as plain memory.
                WordPlace::Register(_) if closed => Width::Grid,
                _ => Width::Thread,
            };
            let fact = ResultFact { width: Width::Grid, depends: Arguments::default() };
            let facts = FunctionFacts {
                params: layout.params().iter().map(width).collect(),
                results: vec![fact; signature.returns.len()],
            };
            self.facts.insert(name.clone(), facts);
        }
    }

    fn compute(&self, member: &Member, params: Params<'_>) -> Uniformity {
        let symbols = SoFar { symbols: self.symbols, facts: &self.facts };
        let callees = Called { symbols: &symbols, arch: self.arch };
        Uniformity::compute(&member.canonical, Known { params, callees: &callees })
    }

    /// Computes all results anew; returns whether anything has changed.
    ///
    /// Each divergent value has a single cause, so the effect of several arguments is the union of their
    /// single effects.
    fn results(&mut self) -> bool {
        let mut changed = false;
        for member in self.members {
            let Some(name) = &member.name else { continue };
            let count = member.canonical.signature.params.len();
            let all = self.compute(member, Params::Uniform).linkages().results.clone();
            let mut results: Vec<ResultFact> = (all.iter())
                .map(|&width| ResultFact { width, depends: Arguments::default() })
                .collect();
            let mut params = vec![Width::Grid; count];
            for index in 0..count {
                params[index] = Width::Thread;
                let facts = self.compute(member, Params::Widths(&params));
                params[index] = Width::Grid;
                for (result, &width) in results.iter_mut().zip(&facts.linkages().results) {
                    if width < result.width {
                        result.depends.insert(index);
                    }
                }
            }
            let facts = self.facts.get_mut(name).expect("every function has facts");
            changed |= facts.results != results;
            facts.results = results;
        }
        changed
    }

    /// Narrows parameters to what all callers pass; returns whether anything has changed.
    fn params(&mut self) -> bool {
        let mut changed = false;
        for member in self.members {
            let func = &member.canonical;
            let params = member.name.as_ref().and_then(|name| self.facts.get(name));
            let params = params.map_or(Params::Uniform, |facts| Params::Widths(&facts.params));
            let computed = self.compute(member, params);
            for call in &computed.linkages().calls {
                let callee = self.symbols.name(func, &func.dfg.ext_funcs[call.callee].name);
                let Some(facts) = self.facts.get_mut(&callee) else { continue };
                for (param, &given) in facts.params.iter_mut().zip(&call.args) {
                    changed |= given < *param;
                    *param = given.min(*param);
                }
            }
        }
        changed
    }
}
