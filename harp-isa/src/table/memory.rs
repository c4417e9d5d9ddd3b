//! Loads and stores.
//!
//! The row format is explained in [`super`].

macro_rules! memory {
    ($next:ident; $callback:ident; [$($rows:tt)*] $($rest:ident)*) => { $next! { $callback; [$($rows)*
    /// Loads a word; at a misaligned address only the bytes up to the end of the word, zero-extended.
    base 0x23 Ld ld "ld" (dst: Def Gpr, base: Use Gpr, offset: Imm Imm) [LOAD];
    /// Stores a word; at a misaligned address only the bytes up to the end of the word.
    base 0x24 St st "st" (value: Use Gpr, base: Use Gpr, offset: Imm Imm) [STORE];
    /// Loads 1 byte, zero-extended, at any alignment.
    ext 0x01 Ldb ldb "ldb" (dst: Def Gpr, base: Use Gpr, offset: Imm Imm) [LOAD];
    /// Loads 1 byte, sign-extended, at any alignment.
    ext 0x02 Ldbs ldbs "ldbs" (dst: Def Gpr, base: Use Gpr, offset: Imm Imm) [LOAD];
    /// Loads 2 bytes, zero-extended, at any alignment.
    ext 0x03 Ldh ldh "ldh" (dst: Def Gpr, base: Use Gpr, offset: Imm Imm) [LOAD];
    /// Loads 2 bytes, sign-extended, at any alignment.
    ext 0x04 Ldhs ldhs "ldhs" (dst: Def Gpr, base: Use Gpr, offset: Imm Imm) [LOAD];
    /// Loads 4 bytes, zero-extended, at any alignment.
    ext 0x05 Ldw ldw "ldw" (dst: Def Gpr, base: Use Gpr, offset: Imm Imm) [LOAD];
    /// Loads 4 bytes, sign-extended, at any alignment.
    ext 0x06 Ldws ldws "ldws" (dst: Def Gpr, base: Use Gpr, offset: Imm Imm) [LOAD];
    /// Stores the low 1 byte, at any alignment.
    ext 0x07 Stb stb "stb" (value: Use Gpr, base: Use Gpr, offset: Imm Imm) [STORE];
    /// Stores the low 2 bytes, at any alignment.
    ext 0x08 Sth sth "sth" (value: Use Gpr, base: Use Gpr, offset: Imm Imm) [STORE];
    /// Stores the low 4 bytes, at any alignment.
    ext 0x09 Stw stw "stw" (value: Use Gpr, base: Use Gpr, offset: Imm Imm) [STORE];
    ] $($rest)* } };
}
pub(super) use memory;
