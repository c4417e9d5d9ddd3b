//! A map that keeps what was used last.

use std::collections::HashMap;
use std::hash::Hash;

/// A map of at most `capacity` entries.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    capacity: usize,
    /// The values, each with the time at which it was used last.
    entries: HashMap<K, (V, u64)>,
    /// Counts uses.
    time: u64,
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    pub(super) fn new(capacity: usize) -> Recent<K, V> {
        Recent { capacity, entries: HashMap::new(), time: 0 }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&V> {
        let (value, used) = self.entries.get_mut(key)?;
        self.time += 1;
        *used = self.time;
        Some(value)
    }

    /// Returns how many entries had to go.
    pub(super) fn insert(&mut self, key: K, value: V) -> u64 {
        self.time += 1;
        self.entries.insert(key, (value, self.time));
        self.shrink()
    }

    /// Returns how many entries had to go.
    pub(super) fn set_capacity(&mut self, capacity: usize) -> u64 {
        self.capacity = capacity;
        self.shrink()
    }

    fn shrink(&mut self) -> u64 {
        let mut gone = 0;
        while self.entries.len() > self.capacity {
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            self.entries.remove(&key);
            gone += 1;
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut map = Recent::new(2);
        assert_eq!((map.insert('a', 1), map.insert('b', 2)), (0, 0));
        assert_eq!(map.get(&'a'), Some(&1));
        assert_eq!(map.insert('c', 3), 1);
        assert_eq!(map.get(&'a').copied(), Some(1));
        assert_eq!(map.get(&'b'), None);
        // The same key takes no more place.
        assert_eq!((map.insert('a', 4), map.get(&'a')), (0, Some(&4)));
        assert_eq!((map.set_capacity(1), map.get(&'a')), (1, Some(&4)));
        assert_eq!((map.set_capacity(0), map.insert('d', 5), map.get(&'d')), (1, 1, None));
    }
}
