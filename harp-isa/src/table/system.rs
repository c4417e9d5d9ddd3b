//! Privileged instructions: interrupts and address translation.
//!
//! The row format is explained in [`super`].

macro_rules! system {
    ($next:ident; $callback:ident; [$($rows:tt)*] $($rest:ident)*) => { $next! { $callback; [$($rows)*
    /// Disables interrupts.
    base 0x01 Di di "di" () [PRIVILEGED];
    /// Enables interrupts.
    base 0x02 Ei ei "ei" () [PRIVILEGED];
    /// Maps the page of `virt` to the page of `phys`.
    base 0x03 Tlbadd tlbadd "tlbadd" (virt: Use Gpr, phys: Use Gpr, flags: Use Gpr) [PRIVILEGED];
    /// Forgets all mappings.
    base 0x04 Tlbflush tlbflush "tlbflush" () [PRIVILEGED];
    /// Jumps to `target` in user mode.
    base 0x2f Jmpru jmpru "jmpru" (target: Use Gpr) [PRIVILEGED];
    /// Sets the entry point of interrupt handlers.
    base 0x30 Skep skep "skep" (entry: Use Gpr) [PRIVILEGED];
    /// Returns from an interrupt.
    base 0x31 Reti reti "reti" () [PRIVILEGED CONTROL];
    /// Forgets the mapping of the page of `virt`.
    base 0x32 Tlbrm tlbrm "tlbrm" (virt: Use Gpr) [PRIVILEGED];
    ] $($rest)* } };
}
pub(super) use system;
