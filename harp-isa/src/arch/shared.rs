//! Registers that the lanes of a warp share, after Lee et al. (CGO 2013, section 5.1).

use std::fmt;

use super::error::{ArchIdError, Field};
use super::{ArchId, MAX_REGISTERS};
use crate::reg::{Gpr, Pred};

impl ArchId {
    /// The same machine with `gprs` general registers and `preds` predicates that the lanes of a warp share; with
    /// 0 and 0, the machine without such registers.
    ///
    /// # Errors
    ///
    /// If there are predicates only, if a lane's registers and the shared ones are more than 64
    /// together, or if an instruction no longer fits a word.
    pub fn with_shared(self, gprs: u8, preds: u8) -> Result<ArchId, ArchIdError> {
        ArchId { shared_gprs: gprs, shared_preds: preds, ..self }.validated()
    }

    /// Whether lanes share registers.
    pub const fn has_shared(self) -> bool {
        self.shared_gprs > 0
    }

    /// General registers that the lanes of a warp share.
    pub const fn shared_gprs(self) -> u8 {
        self.shared_gprs
    }

    /// Predicates that the lanes of a warp share.
    pub const fn shared_preds(self) -> u8 {
        self.shared_preds
    }

    /// General registers that an instruction can name: a lane's own, then the shared ones.
    pub const fn all_gprs(self) -> u8 {
        self.gprs + self.shared_gprs
    }

    /// Predicates that an instruction can name: a lane's own, then the shared ones.
    pub const fn all_preds(self) -> u8 {
        self.preds + self.shared_preds
    }

    /// Whether lanes share the register. Registers that the machine lacks are not shared.
    pub const fn is_shared_gpr(self, reg: Gpr) -> bool {
        self.gprs <= reg.index() && reg.index() < self.all_gprs()
    }

    /// Whether lanes share the predicate. Predicates that the machine lacks are not shared.
    pub const fn is_shared_pred(self, reg: Pred) -> bool {
        self.preds <= reg.index() && reg.index() < self.all_preds()
    }

    /// `%s<number>`, if the machine has it.
    pub const fn shared_gpr(self, number: u8) -> Option<Gpr> {
        if number < self.shared_gprs { Some(Gpr::new(self.gprs + number)) } else { None }
    }

    /// `@s<number>`, if the machine has it.
    pub const fn shared_pred(self, number: u8) -> Option<Pred> {
        if number < self.shared_preds { Some(Pred::new(self.preds + number)) } else { None }
    }

    /// The register as this machine's assembler writes it: `%r3`, or `%s0` if lanes share it.
    pub fn gpr_name(self, reg: Gpr) -> impl fmt::Display {
        Name {
            sign: '%',
            own: 'r',
            own_count: self.gprs,
            index: reg.index(),
            shared: self.is_shared_gpr(reg),
        }
    }

    /// The predicate as this machine's assembler writes it: `@p3`, or `@s0` if lanes share it.
    pub fn pred_name(self, reg: Pred) -> impl fmt::Display {
        Name {
            sign: '@',
            own: 'p',
            own_count: self.preds,
            index: reg.index(),
            shared: self.is_shared_pred(reg),
        }
    }

    /// Checks the numbers of shared registers, after those of a lane's registers.
    pub(super) fn check_shared(self) -> Result<(), ArchIdError> {
        if !self.has_shared() && self.shared_preds > 0 {
            return Err(ArchIdError::OutOfRange { field: Field::SharedGprs, given: 0 });
        }
        for (field, own, shared) in [
            (Field::Gprs, self.gprs, self.shared_gprs),
            (Field::Preds, self.preds, self.shared_preds),
        ] {
            // Both may be 255.
            if u16::from(own) + u16::from(shared) > MAX_REGISTERS.into() {
                return Err(ArchIdError::TooManyRegisters {
                    field,
                    own,
                    shared,
                    limit: MAX_REGISTERS,
                });
            }
        }
        Ok(())
    }
}

/// A register's name.
struct Name {
    sign: char,
    own: char,
    own_count: u8,
    index: u8,
    shared: bool,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Name { sign, own, own_count, index, shared } = *self;
        match shared {
            true => write!(f, "{sign}s{}", index - own_count),
            false => write!(f, "{sign}{own}{index}"),
        }
    }
}
