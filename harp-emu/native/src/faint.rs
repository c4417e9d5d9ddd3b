//! Guarded instructions of which nobody reads what the other lanes' registers hold: code of both sides of a branch without a
//! branch is full of them, as each side computes in all lanes what it stores in its own. Such registers are called faint
//! (Giegerich et al., 1981).

use crate::body::{Body, Inst, divides};

/// Marks those of a block that need not keep what their register held before in the lanes in which the guard fails. At each of
/// the addresses `returns` nobody reads the registers of `caller_saved`, as bits, any more.
pub(crate) fn mark_faint(insts: &mut [Inst], returns: &[Option<u64>], caller_saved: u64) {
    for at in 0..insts.len() {
        let (before, rest) = insts.split_at_mut(at + 1);
        let Some(inst) = before.last_mut() else { return };
        if let (Some(guard), (_, Some(dst))) = (inst.guard, inst.registers()) {
            inst.is_faint = is_unread(guard, dst, rest, returns, caller_saved);
        }
    }
}

/// Whether nobody reads `dst`, or what comes of it, in lanes in which `guard` fails.
fn is_unread(
    guard: u8,
    dst: u8,
    rest: &[Inst],
    returns: &[Option<u64>],
    caller_saved: u64,
) -> bool {
    // The registers that depend on it.
    let mut reached = 1u64 << dst;
    for inst in rest {
        if returns.contains(&Some(inst.pc)) {
            reached &= !caller_saved;
        }
        if reached == 0 {
            return true;
        }
        if inst.pred_written() == Some(guard) {
            return false;
        }
        let (read, written) = inst.registers();
        let is_read = read.iter().any(|&r| reached >> r & 1 != 0);
        if inst.guard == Some(guard) && !inst.is_once() {
            continue;
        }
        match (is_read, inst.body) {
            (true, Body::Map { opcode, dst, .. }) if !divides(opcode) && !inst.is_once() => {
                reached |= 1 << dst;
            }
            (true, _) => return false,
            (false, _) if inst.guard.is_none() && !inst.is_once() => {
                reached &= !written.map_or(0, |dst| 1 << dst);
            }
            (false, _) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::function;

    /// Whether the first of these instructions is marked, where `%r4` and `%r5` are dead from the last one on.
    fn is_first_faint(text: &str) -> bool {
        let (_, _, mut fetch) = function(text);
        let mut insts: Vec<Inst> = (0..).map_while(|number| fetch(4 * number)).collect();
        let returns = [insts.last().map(|inst| inst.pc)];
        mark_faint(&mut insts, &returns, 1 << 4 | 1 << 5);
        insts[0].is_faint
    }

    #[test]
    fn what_guarded_instructions_use_alone_is_faint() {
        let both_sides = "
            @p0 ? ld %r4, %r1, #0
            shli %r5, %r4, #2
            @p0 ? st %r5, %r1, #0
            nop";
        assert!(is_first_faint(both_sides));
        // Behind the return nobody reads it, and before it is written.
        assert!(is_first_faint("@p0 ? ld %r4, %r1, #0\n ldi %r4, #1\n st %r4, %r1, #0\n nop"));
    }

    #[test]
    fn what_others_read_is_not() {
        for reader in [
            "st %r5, %r1, #0",
            "@p1 ? st %r5, %r1, #0",
            "rtop @p0, %r2\n @p0 ? st %r5, %r1, #0",
            "div %r5, %r1, %r5",
            "rtop @p1, %r5",
            "ld %r5, %r5, #0",
            "add %r6, %r5, %r5",
        ] {
            let text = format!("@p0 ? ld %r4, %r1, #0\n shli %r5, %r4, #2\n {reader}\n nop");
            assert!(!is_first_faint(&text), "{reader}");
        }
    }
}
