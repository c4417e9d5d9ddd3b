//! Source places of the user, and their numbers in CLIF.
//!
//! Every instruction carries a 32-bit [`SourceLoc`]; here it is the index of a place in the
//! kernel's [`SourceMap`]. The numbers survive the mid-end, so traps and messages about an
//! instruction can name the line that made it. A trap with a message has a number of its own, so the message
//! survives, too.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::panic::Location;
use std::sync::Arc;

use cranelift_codegen::ir::{SourceLoc, StackSlotKey};
use hashbrown::{DefaultHashBuilder, HashTable};
use serde::{Deserialize, Serialize};

/// A place in the source code that a kernel was built from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourcePlace {
    /// The file name as given to the compiler.
    pub file: Cow<'static, str>,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

impl From<&Location<'static>> for SourcePlace {
    fn from(location: &Location<'static>) -> SourcePlace {
        SourcePlace {
            file: Cow::Borrowed(location.file()),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The source places of a kernel's instructions, each with a number, and the names of its variables in memory.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    places: Vec<(SourcePlace, Option<Arc<str>>)>,
    /// The numbers, found by what they stand for, with its hash: it is long to compute, and needed again when the table
    /// grows.
    numbers: HashTable<(u64, u32)>,
    hasher: DefaultHashBuilder,
    /// By the keys of their stack slots.
    variables: Vec<Arc<str>>,
}

impl SourceMap {
    /// An empty table.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// The number of `place`, the same for equal places.
    ///
    /// After 2^32 - 1 different places it gives the default location, which stands for no place.
    pub fn intern(&mut self, place: SourcePlace) -> SourceLoc {
        self.number((place, None))
    }

    /// The number of `place` together with the message of a trap there: another one than that of the place
    /// alone, or with another message.
    pub fn intern_with_message(&mut self, place: SourcePlace, message: &str) -> SourceLoc {
        self.number((place, Some(message.into())))
    }

    /// A key for the stack slot of a variable, by which messages about accesses to it know its name.
    pub fn variable(&mut self, name: &str) -> StackSlotKey {
        self.variables.push(name.into());
        StackSlotKey::new(self.variables.len() as u64 - 1)
    }

    fn number(&mut self, entry: (SourcePlace, Option<Arc<str>>)) -> SourceLoc {
        let SourceMap { places, numbers, hasher, .. } = self;
        let hash = hasher.hash_one(&entry);
        let known = numbers.find(hash, |&(_, number)| places[number as usize] == entry);
        if let Some(&(_, number)) = known {
            return SourceLoc::new(number);
        }
        let next = u32::try_from(places.len()).map_or(SourceLoc::default(), SourceLoc::new);
        if !next.is_default() {
            places.push(entry);
            numbers.insert_unique(hash, (hash, next.bits()), |&(hash, _)| hash);
        }
        next
    }

    /// The place with this number; none for the default location or a number of another table.
    pub fn place(&self, number: SourceLoc) -> Option<&SourcePlace> {
        self.entry(number).map(|(place, _)| place)
    }

    /// The message with this number, if it has one.
    pub fn message(&self, number: SourceLoc) -> Option<&Arc<str>> {
        self.entry(number)?.1.as_ref()
    }

    /// The name of the variable whose stack slot has this key.
    pub fn variable_name(&self, key: StackSlotKey) -> Option<&str> {
        self.variables.get(usize::try_from(key.bits()).ok()?).map(|name| &**name)
    }

    /// Feeds a hasher with the places and messages, in the order of their numbers, and the names.
    pub(crate) fn hash_contents(&self, state: &mut impl Hasher) {
        (&self.places, &self.variables).hash(state);
    }

    fn entry(&self, number: SourceLoc) -> Option<&(SourcePlace, Option<Arc<str>>)> {
        self.places.get(usize::try_from(number.bits()).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_places_have_one_number() {
        let mut map = SourceMap::new();
        let here = SourcePlace::from(Location::caller());
        let there = SourcePlace { line: here.line + 1, ..here.clone() };
        let numbers =
            [map.intern(here.clone()), map.intern(there.clone()), map.intern(here.clone())];
        assert_eq!(numbers[0], numbers[2]);
        assert_ne!(numbers[0], numbers[1]);
        assert_eq!(map.place(numbers[0]), Some(&here));
        assert_eq!(map.place(numbers[1]), Some(&there));
        assert_eq!(map.place(SourceLoc::default()), None);
        assert_eq!(map.place(SourceLoc::new(7)), None);
    }

    #[test]
    fn a_place_reads_like_a_compiler_message() {
        let place = SourcePlace { file: "src/main.rs".into(), line: 42, column: 9 };
        assert_eq!(place.to_string(), "src/main.rs:42:9");
    }

    #[test]
    fn a_message_is_kept_with_its_place() {
        let mut map = SourceMap::new();
        let here = SourcePlace::from(Location::caller());
        let plain = map.intern(here.clone());
        let numbers = ["a", "b", "a"].map(|text| map.intern_with_message(here.clone(), text));
        assert_eq!(numbers[0], numbers[2]);
        assert!(numbers[0] != numbers[1] && !numbers.contains(&plain));
        assert_eq!(map.message(numbers[1]).map(|text| &**text), Some("b"));
        assert_eq!((map.place(numbers[1]), map.message(plain)), (Some(&here), None));
    }
}
