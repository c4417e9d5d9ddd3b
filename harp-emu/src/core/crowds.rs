//! The warps of a core that wait at barriers: to look at all warps takes long.

/// The barriers at which warps wait, or waited.
#[derive(Default)]
pub(super) struct Crowds {
    all: Vec<Crowd>,
    /// The place among these at which the last warp came.
    last: usize,
}

/// The warps that wait at a barrier.
struct Crowd {
    /// The barrier's number.
    id: u64,
    count: u64,
    /// Which these are, as bits.
    warps: u64,
}

impl Crowds {
    /// Whether no warp waits at any barrier.
    pub(super) fn none_waits(&self) -> bool {
        self.all.iter().all(|crowd| crowd.count == 0)
    }

    /// No warp waits any more.
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Warp `number` comes to barrier `id`, at which it waits until `wanted` warps do. If they do now, returns the others,
    /// as bits.
    #[inline(always)]
    pub(super) fn come(&mut self, number: usize, id: u64, wanted: u64) -> Option<u64> {
        // Mostly these are the warps to which the last one came.
        let is_last = self.all.get(self.last).is_some_and(|crowd| crowd.id == id);
        if !is_last {
            self.find(id);
        }
        let crowd = &mut self.all[self.last];
        crowd.count += 1;
        if crowd.count != wanted {
            crowd.warps |= 1 << number;
            return None;
        }
        crowd.count = 0;
        Some(std::mem::take(&mut crowd.warps))
    }

    /// Finds the warps at a barrier, of which the next one will come; one at which nobody waits makes room.
    #[inline(never)]
    fn find(&mut self, id: u64) {
        let here = self.all.iter().position(|crowd| crowd.id == id);
        self.last = here.unwrap_or_else(|| {
            let crowd = Crowd { id, count: 0, warps: 0 };
            match self.all.iter().position(|crowd| crowd.count == 0) {
                Some(free) => {
                    self.all[free] = crowd;
                    free
                }
                None => {
                    self.all.push(crowd);
                    self.all.len() - 1
                }
            }
        });
    }
}
