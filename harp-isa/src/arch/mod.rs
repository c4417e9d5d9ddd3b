//! Architecture ids: which member of the HARP family a program is for.

mod error;
#[cfg(feature = "serde")]
mod saved;
mod shared;
mod text;
mod triple;

pub use error::{ArchIdError, Field};
pub use triple::TripleError;

/// Register and address width of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WordSize {
    /// 4 bytes, floats are binary32.
    Four,
    /// 8 bytes, floats are binary64.
    Eight,
}

impl WordSize {
    /// The width in bytes.
    pub const fn bytes(self) -> u8 {
        match self {
            WordSize::Four => 4,
            WordSize::Eight => 8,
        }
    }

    /// The width in bits.
    pub const fn bits(self) -> u8 {
        8 * self.bytes()
    }

    /// A word of ones.
    pub const fn mask(self) -> u64 {
        match self {
            WordSize::Four => u32::MAX as u64,
            WordSize::Eight => u64::MAX,
        }
    }

    /// `value` truncated to the word and sign-extended to 64 bits.
    pub const fn sign_extend(self, value: u64) -> i64 {
        match self {
            WordSize::Four => (value as u32).cast_signed() as i64,
            WordSize::Eight => value.cast_signed(),
        }
    }
}

/// The binary form of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encoding {
    /// One word per instruction, with bit fields.
    Word,
    /// A stream of bytes.
    Byte,
}

impl Encoding {
    const fn letter(self) -> char {
        match self {
            Encoding::Word => 'w',
            Encoding::Byte => 'b',
        }
    }
}

/// One member of the HARP family.
///
/// The text form is `<word bytes><encoding><GPRs>/<predicates>[/<lanes>[/<warps>]][+x][+s<GPRs>[/<predicates>]]`;
/// lanes and warps that are left out are 1. `+x` is the extension, `+s` the numbers of
/// registers that the lanes of a warp share ([below](#shared-registers)). The presets `harp32` (`4w8/8/16/16`) and `harp64`
/// (`8w32/32/16/16`) are the evaluated machines of Gupta (2016, table 1).
///
/// ```
/// use harp_isa::ArchId;
///
/// let arch: ArchId = "harp64+x".parse()?;
/// assert_eq!(arch.to_string(), "8w32/32/16/16+x");
/// assert_eq!((arch.gprs(), arch.lanes(), arch.has_extension()), (32, 16, true));
/// assert_eq!("4w8/8/65".parse::<ArchId>().unwrap_err().to_string(), "65 lanes: the limits are 1 and 64");
/// # Ok::<(), harp_isa::ArchIdError>(())
/// ```
///
/// # Shared registers
///
/// A machine `+s8/4` has 8 general registers and 4 predicates that exist once in a warp, beside those
/// of each lane (Lee et al., CGO 2013, section 5.1). In instructions their numbers follow those of the lanes'
/// registers; in text they are `%s0` to `%s7` and `@s0` to `@s3`. No instruction is added.
///
/// ```
/// use harp_isa::{ArchId, Gpr};
///
/// let arch: ArchId = "4w24/12/32/16+x+s8/4".parse()?;
/// assert_eq!((arch.shared_gprs(), arch.shared_preds()), (8, 4));
/// assert_eq!(arch.shared_gpr(3), Some(Gpr::new(27)));
/// assert_eq!(arch.gpr_name(Gpr::new(27)).to_string(), "%s3");
/// # Ok::<(), harp_isa::ArchIdError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArchId {
    word: WordSize,
    encoding: Encoding,
    gprs: u8,
    preds: u8,
    lanes: u8,
    warps: u8,
    extension: bool,
    /// 0 on machines without shared registers.
    shared_gprs: u8,
    shared_preds: u8,
}

/// The most registers of a kind that an instruction can name.
const MAX_REGISTERS: u8 = 64;

const PRESETS: [(&str, ArchId); 2] = [("harp32", ArchId::HARP32), ("harp64", ArchId::HARP64)];

impl ArchId {
    /// `4w8/8/16/16`, the 32-bit machine of the thesis.
    pub const HARP32: ArchId = ArchId {
        word: WordSize::Four,
        encoding: Encoding::Word,
        gprs: 8,
        preds: 8,
        lanes: 16,
        warps: 16,
        extension: false,
        shared_gprs: 0,
        shared_preds: 0,
    };

    /// `8w32/32/16/16`, the 64-bit machine of the thesis.
    pub const HARP64: ArchId =
        ArchId { word: WordSize::Eight, gprs: 32, preds: 32, ..ArchId::HARP32 };

    /// A machine with one lane, one warp and no extension.
    ///
    /// # Errors
    ///
    /// If a count is out of range, or an instruction does not fit a word.
    pub fn new(
        word: WordSize,
        encoding: Encoding,
        gprs: u8,
        preds: u8,
    ) -> Result<ArchId, ArchIdError> {
        ArchId { word, encoding, gprs, preds, lanes: 1, warps: 1, ..ArchId::HARP32 }.validated()
    }

    /// The same machine with `lanes` lanes a warp.
    ///
    /// # Errors
    ///
    /// If `lanes` is out of range.
    pub fn with_lanes(self, lanes: u8) -> Result<ArchId, ArchIdError> {
        ArchId { lanes, ..self }.validated()
    }

    /// The same machine with `warps` hardware warps a core.
    ///
    /// # Errors
    ///
    /// If `warps` is out of range.
    pub fn with_warps(self, warps: u8) -> Result<ArchId, ArchIdError> {
        ArchId { warps, ..self }.validated()
    }

    /// The same machine with or without the extension.
    ///
    /// # Errors
    ///
    /// If the instructions of the extension do not fit a word.
    pub fn with_extension(self, extension: bool) -> Result<ArchId, ArchIdError> {
        ArchId { extension, ..self }.validated()
    }

    /// Register and address width.
    pub const fn word(self) -> WordSize {
        self.word
    }

    /// The binary form of instructions.
    pub const fn encoding(self) -> Encoding {
        self.encoding
    }

    /// General registers of a lane, without those that the lanes share.
    pub const fn gprs(self) -> u8 {
        self.gprs
    }

    /// Predicate registers of a lane, without those that the lanes share.
    pub const fn preds(self) -> u8 {
        self.preds
    }

    /// Lanes of a warp.
    pub const fn lanes(self) -> u8 {
        self.lanes
    }

    /// Hardware warps of a core.
    pub const fn warps(self) -> u8 {
        self.warps
    }

    /// Whether the machine has extension X.
    pub const fn has_extension(self) -> bool {
        self.extension
    }

    /// Whether code for `other` runs on this machine: all but the numbers of lanes and warps agree.
    pub fn is_object_compatible(self, other: ArchId) -> bool {
        ArchId { lanes: 1, warps: 1, ..self } == ArchId { lanes: 1, warps: 1, ..other }
    }

    /// Bits of a register operand in the word encoding: ceil(log2 of all general registers).
    pub(crate) const fn gpr_bits(self) -> u8 {
        ceil_log2(self.all_gprs())
    }

    /// Bits of the guard in the word encoding: ceil(log2 of all predicates).
    pub(crate) const fn pred_bits(self) -> u8 {
        ceil_log2(self.all_preds())
    }

    fn validated(self) -> Result<ArchId, ArchIdError> {
        for (field, given) in [
            (Field::Gprs, self.gprs),
            (Field::Preds, self.preds),
            (Field::Lanes, self.lanes),
            (Field::Warps, self.warps),
        ] {
            if !field.range().contains(&given) {
                return Err(ArchIdError::OutOfRange { field, given: given.into() });
            }
        }
        self.check_shared()?;
        if self.encoding == Encoding::Byte {
            return Ok(self);
        }
        let (gpr_bits, pred_bits, limit) = (self.gpr_bits(), self.pred_bits(), self.word.bits());
        if pred_bits > gpr_bits {
            let (preds, gprs) = (self.all_preds(), self.all_gprs());
            return Err(ArchIdError::PredicatesWiderThanRegisters {
                preds,
                pred_bits,
                gprs,
                gpr_bits,
            });
        }
        // Predicated bit, guard, opcode and two registers precede the longest immediate.
        let needed = 1 + pred_bits + 6 + 2 * gpr_bits;
        if needed >= limit {
            return Err(ArchIdError::NoImmediateBits { needed, limit });
        }
        let needed = 1 + pred_bits + 6 + 3 * gpr_bits + 6;
        if self.extension && needed > limit {
            return Err(ArchIdError::ExtensionTooWide { needed, limit });
        }
        Ok(self)
    }
}

const fn ceil_log2(n: u8) -> u8 {
    (u8::BITS - (n - 1).leading_zeros()) as u8
}
