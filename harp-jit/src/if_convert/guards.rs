//! The predicates of a region: which are in registers, and how others are computed from them.

use harp_isa::{Opcode, RegClass};
use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::functions::{Function, Functions};
use crate::vcode::{MInst, MOperand, Reg, VCode};

/// The number of latest predicates in registers that are tried as operands of another one. It bounds compile
/// time, and favours recent predicates.
const LOOK_BACK: usize = 10;

/// The operands of a predicate's computation.
type Parts = SmallVec<[Function; 2]>;

/// The operation that a function was made by.
#[derive(Clone, Copy, Debug)]
enum Recipe {
    Not(Function),
    And(Function, Function),
    Or(Function, Function),
}

/// The functions of a region's conditions, and the registers that hold some of them.
pub(super) struct Guards {
    functions: Functions,
    recipes: HashMap<Function, Recipe>,
    registers: HashMap<Function, Reg>,
    /// The functions in registers, in the order in which they were computed.
    known: Vec<Function>,
}

impl Guards {
    pub(super) fn new() -> Guards {
        Guards {
            functions: Functions::new(),
            recipes: HashMap::new(),
            registers: HashMap::new(),
            known: Vec::new(),
        }
    }

    /// The condition of a branch, which is in `register`.
    ///
    /// Each branch has its own variable, though branches may share a register. So every path through the
    /// region counts as possible and no guard as impossible.
    pub(super) fn condition(&mut self, register: Reg) -> Function {
        let condition = self.functions.variable();
        self.put(condition, register);
        condition
    }

    pub(super) fn not(&mut self, f: Function) -> Function {
        let result = self.functions.not(f);
        self.made(result, Recipe::Not(f))
    }

    pub(super) fn and(&mut self, f: Function, g: Function) -> Function {
        let result = self.functions.and(f, g);
        self.made(result, Recipe::And(f, g))
    }

    pub(super) fn or(&mut self, f: Function, g: Function) -> Function {
        let result = self.functions.or(f, g);
        self.made(result, Recipe::Or(f, g))
    }

    /// Whether two functions are known to be equal where `care` is true.
    pub(super) fn agree(&mut self, f: Function, g: Function, care: Function) -> bool {
        self.functions.agree(f, g, care)
    }

    /// A register whose function equals `f` where `care` is true.
    pub(super) fn agreeing(&mut self, f: Function, care: Function) -> Option<Reg> {
        if let Some(&register) = self.registers.get(&f) {
            return Some(register);
        }
        let functions = &mut self.functions;
        let found = lately(&self.known).find(|&&known| functions.agree(known, f, care))?;
        Some(self.registers[found])
    }

    /// A register with `f`, which must not be constant. Instructions that compute it are passed to `emit`.
    pub(super) fn register(
        &mut self,
        f: Function,
        vcode: &mut VCode,
        mut emit: impl FnMut(MInst),
    ) -> Reg {
        let mut wanted = vec![f];
        while let Some(&next) = wanted.last() {
            if self.registers.contains_key(&next) {
                wanted.pop();
                continue;
            }
            let (opcode, parts) = self.cheapest(next);
            let missing = |part: &&Function| !self.registers.contains_key(*part);
            if parts.iter().any(|part| missing(&part)) {
                wanted.extend(parts.iter().filter(missing));
                continue;
            }
            let register = vcode.new_reg(RegClass::Pred);
            let sources = parts.iter().map(|part| MOperand::Use(self.registers[part]));
            let operands = std::iter::once(MOperand::Def(register)).chain(sources).collect();
            emit(MInst::Op { opcode, guard: None, operands });
            self.put(next, register);
        }
        self.registers[&f]
    }

    /// The last instruction of a short sequence that computes `f`. Its operands may still have to be
    /// computed.
    fn cheapest(&mut self, f: Function) -> (Opcode, Parts) {
        if let Some(found) = self.one_instruction(f) {
            return found;
        }
        let recipe = self.recipe(f);
        let missing = recipe.1.iter().filter(|part| !self.registers.contains_key(*part)).count();
        if missing > 1
            && let Some(complement) = self.functions.not(f)
            && self.one_instruction(complement).is_some()
        {
            return (Opcode::Notp, smallvec![complement]);
        }
        recipe
    }

    /// The instruction that computes `f` from predicates in registers, if one suffices.
    fn one_instruction(&mut self, f: Function) -> Option<(Opcode, Parts)> {
        let Guards { functions, known, .. } = self;
        for (at, &g) in lately(known).enumerate() {
            if functions.not(g) == Some(f) {
                return Some((Opcode::Notp, smallvec![g]));
            }
            for &h in lately(known).take(at) {
                let results = [
                    (Opcode::Andp, functions.and(g, h)),
                    (Opcode::Orp, functions.or(g, h)),
                    (Opcode::Xorp, functions.xor(g, h)),
                ];
                if let Some(&(opcode, _)) = results.iter().find(|(_, result)| *result == Some(f)) {
                    return Some((opcode, smallvec![g, h]));
                }
            }
        }
        None
    }

    /// The operation that `f` was made by.
    fn recipe(&self, f: Function) -> (Opcode, Parts) {
        match self.recipes[&f] {
            Recipe::Not(g) => (Opcode::Notp, smallvec![g]),
            Recipe::And(g, h) => (Opcode::Andp, smallvec![g, h]),
            Recipe::Or(g, h) => (Opcode::Orp, smallvec![g, h]),
        }
    }

    fn put(&mut self, f: Function, register: Reg) {
        self.registers.insert(f, register);
        self.known.push(f);
    }

    /// The result of an operation; a new variable if the result is unknown.
    fn made(&mut self, result: Option<Function>, recipe: Recipe) -> Function {
        let result = result.unwrap_or_else(|| self.functions.variable());
        // A recipe with its own result as an operand would never end.
        let parts = match recipe {
            Recipe::Not(f) => [f, f],
            Recipe::And(f, g) | Recipe::Or(f, g) => [f, g],
        };
        if !parts.contains(&result) && !self.registers.contains_key(&result) {
            self.recipes.entry(result).or_insert(recipe);
        }
        result
    }
}

/// The latest functions in registers, the most recent first.
fn lately(known: &[Function]) -> impl Iterator<Item = &Function> {
    known.iter().rev().take(LOOK_BACK)
}
