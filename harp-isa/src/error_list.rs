//! Lists of the errors in one input.
//!
//! The assembler and the linker go on after an error, so that they can report all errors. The list is
//! limited, because a file of another format would otherwise give an error for every line.

use std::error::Error;
use std::fmt;
use std::slice;

/// At least one error, in the order of the input, and how many more there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorList<E> {
    errors: Vec<E>,
    omitted: usize,
}

impl<E> ErrorList<E> {
    /// How many errors are kept.
    pub const LIMIT: usize = 100;

    /// The first error. There always is one.
    pub fn first(&self) -> &E {
        self.errors.first().expect("a list of errors is made of one at least")
    }

    /// The errors that are kept, in the order of the input.
    pub fn iter(&self) -> slice::Iter<'_, E> {
        self.errors.iter()
    }

    /// How many errors there were beyond [`LIMIT`](Self::LIMIT).
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

impl<E> From<E> for ErrorList<E> {
    fn from(error: E) -> Self {
        ErrorList { errors: vec![error], omitted: 0 }
    }
}

impl<'a, E> IntoIterator for &'a ErrorList<E> {
    type Item = &'a E;
    type IntoIter = slice::Iter<'a, E>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One error per line.
impl<E: fmt::Display> fmt::Display for ErrorList<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            f.write_str(if index > 0 { "\n" } else { "" })?;
            error.fmt(f)?;
        }
        match self.omitted {
            0 => Ok(()),
            omitted => write!(f, "\nand {omitted} more errors"),
        }
    }
}

impl<E: Error> Error for ErrorList<E> {}

/// Collects errors as they are found.
#[derive(Debug)]
pub(crate) struct Gathered<E> {
    errors: Vec<E>,
    omitted: usize,
}

impl<E> Gathered<E> {
    pub(crate) fn new() -> Self {
        Gathered { errors: Vec::new(), omitted: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds an error. `error` is called only if the error is kept.
    pub(crate) fn push_with(&mut self, error: impl FnOnce() -> E) {
        if self.errors.len() < ErrorList::<E>::LIMIT {
            self.errors.push(error());
        } else {
            self.omitted += 1;
        }
    }

    /// The list, if there was an error.
    pub(crate) fn finish(self) -> Result<(), ErrorList<E>> {
        let Gathered { errors, omitted } = self;
        if errors.is_empty() { Ok(()) } else { Err(ErrorList { errors, omitted }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded_and_count_the_rest() {
        let mut gathered = Gathered::new();
        (0..ErrorList::<usize>::LIMIT + 3).for_each(|error| gathered.push_with(|| error));
        let list = gathered.finish().unwrap_err();
        assert_eq!((*list.first(), list.iter().count(), list.omitted()), (0, 100, 3));
        assert!(list.to_string().starts_with("0\n1\n"), "{list}");
        assert!(list.to_string().ends_with("\n99\nand 3 more errors"), "{list}");
        assert_eq!(ErrorList::from(7).to_string(), "7");
        assert_eq!(Gathered::<usize>::new().finish(), Ok(()));
    }
}
