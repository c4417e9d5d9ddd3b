//! Truth functions of branch conditions, as reduced ordered binary decision diagrams (Bryant, "Graph-based
//! algorithms for Boolean function manipulation", 1986): two guards are the same function if and only if they
//! have the same number.
//!
//! Diagrams can grow exponentially, so there is a limit. An operation that would exceed it has no result; the
//! caller then treats the result as an unknown function.

use hashbrown::HashMap;

/// A function of the variables made so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Function(u32);

impl Function {
    pub(super) const FALSE: Function = Function(0);
    pub(super) const TRUE: Function = Function(1);
}

/// `high` where the variable is true, `low` where it is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    variable: u32,
    low: Function,
    high: Function,
}

/// The limit of nodes, beyond which no operation creates another one. It bounds the depth of recursion, too.
const MAX_NODES: usize = 2048;

/// The functions of one region.
#[derive(Debug)]
pub(super) struct Functions {
    nodes: Vec<Node>,
    numbers: HashMap<Node, Function>,
    chosen: HashMap<[Function; 3], Function>,
    variables: u32,
}

impl Functions {
    pub(super) fn new() -> Functions {
        // In the order of variables, the constants come after all variables.
        let constant = |function| Node { variable: u32::MAX, low: function, high: function };
        Functions {
            nodes: vec![constant(Function::FALSE), constant(Function::TRUE)],
            numbers: HashMap::new(),
            chosen: HashMap::new(),
            variables: 0,
        }
    }

    /// Creates a variable, which comes after all others in the order.
    pub(super) fn variable(&mut self) -> Function {
        let variable = self.variables;
        self.variables += 1;
        self.add(Node { variable, low: Function::FALSE, high: Function::TRUE })
    }

    pub(super) fn not(&mut self, f: Function) -> Option<Function> {
        self.choose(f, Function::FALSE, Function::TRUE)
    }

    pub(super) fn and(&mut self, f: Function, g: Function) -> Option<Function> {
        self.choose(f, g, Function::FALSE)
    }

    pub(super) fn or(&mut self, f: Function, g: Function) -> Option<Function> {
        self.choose(f, Function::TRUE, g)
    }

    pub(super) fn xor(&mut self, f: Function, g: Function) -> Option<Function> {
        let not_g = self.not(g)?;
        self.choose(f, not_g, g)
    }

    /// Whether `f` and `g` are known to be equal wherever `care` is true.
    pub(super) fn agree(&mut self, f: Function, g: Function, care: Function) -> bool {
        f == g || self.xor(f, g).and_then(|differ| self.and(differ, care)) == Some(Function::FALSE)
    }

    /// `g` where `f` is true, `h` elsewhere.
    fn choose(&mut self, f: Function, g: Function, h: Function) -> Option<Function> {
        match (f, g, h) {
            (Function::TRUE, _, _) => return Some(g),
            (Function::FALSE, _, _) => return Some(h),
            (_, Function::TRUE, Function::FALSE) => return Some(f),
            _ if g == h => return Some(g),
            _ => {}
        }
        if let Some(&known) = self.chosen.get(&[f, g, h]) {
            return Some(known);
        }
        let variable = [f, g, h].map(|f| self.node(f).variable).into_iter().min()?;
        let [low, high] = [false, true].map(|value| {
            let parts = [f, g, h].map(|f| self.part(f, variable, value));
            self.choose(parts[0], parts[1], parts[2])
        });
        let (low, high) = (low?, high?);
        let result = if low == high {
            low
        } else {
            let node = Node { variable, low, high };
            if self.nodes.len() >= MAX_NODES && !self.numbers.contains_key(&node) {
                return None;
            }
            self.add(node)
        };
        self.chosen.insert([f, g, h], result);
        Some(result)
    }

    fn add(&mut self, node: Node) -> Function {
        let next = u32::try_from(self.nodes.len()).expect("nodes are limited, and so are branches");
        *self.numbers.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            Function(next)
        })
    }

    fn node(&self, f: Function) -> Node {
        self.nodes[f.0 as usize]
    }

    /// `f` where `variable`, its first variable or one before it, has `value`.
    fn part(&self, f: Function, variable: u32, value: bool) -> Function {
        let node = self.node(f);
        match (node.variable == variable, value) {
            (false, _) => f,
            (true, false) => node.low,
            (true, true) => node.high,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_functions_have_one_number() {
        let mut all = Functions::new();
        let [a, b] = [(); 2].map(|()| all.variable());
        let not_a = all.not(a).unwrap();
        let short_circuit = all.and(not_a, b).unwrap();
        assert_eq!(all.or(a, short_circuit), all.or(a, b));
        assert_eq!(all.or(a, not_a), Some(Function::TRUE));
        assert_eq!(all.and(a, not_a), Some(Function::FALSE));
        assert_eq!(all.not(not_a), Some(a));
        let both = all.and(a, b).unwrap();
        let only_a = all.xor(a, both).unwrap();
        let not_b = all.not(b).unwrap();
        assert_eq!(all.and(a, not_b), Some(only_a));
        assert!(all.agree(only_a, not_b, a) && !all.agree(only_a, a, b));
    }

    #[test]
    fn what_grows_too_large_has_no_result() {
        // With this order of variables, the sum of products has 2^n nodes.
        let mut all = Functions::new();
        let first: Vec<_> = (0..20).map(|_| all.variable()).collect();
        let second: Vec<_> = (0..20).map(|_| all.variable()).collect();
        let sum = first.iter().zip(&second).try_fold(Function::FALSE, |sum, (&a, &b)| {
            let product = all.and(a, b)?;
            all.or(sum, product)
        });
        assert_eq!(sum, None);
        assert!(all.nodes.len() <= MAX_NODES);
        assert_ne!(all.variable(), all.variable());
    }
}
