//! The instruction table against a list that was typed from the description of the instruction set.

use harp_isa::{ArchId, Opcode, OpcodeFlags, OperandKind, Role, Sharing, Space, assemble, decode};

/// Number, mnemonic, `*` for privileged and `c` for control flow, class.
const BASE: &str = "
00 nop NONE|01 di * NONE|02 ei * NONE|03 tlbadd * 3REGSRC|04 tlbflush * NONE|05 neg 2REG|06 not 2REG
07 and 3REG|08 or 3REG|09 xor 3REG|0a add 3REG|0b sub 3REG|0c mul 3REG|0d div 3REG|0e mod 3REG
0f shl 3REG|10 shr 3REG|11 andi 3IMM|12 ori 3IMM|13 xori 3IMM|14 addi 3IMM|15 subi 3IMM|16 muli 3IMM
17 divi 3IMM|18 modi 3IMM|19 shli 3IMM|1a shri 3IMM|1b jali c 2IMM|1c jalr c 2REG|1d jmpi c 1IMM
1e jmpr c 1REG|1f clone c 1REG|20 jalis c 3IMM|21 jalrs c 3REG|22 jmprt c 1REG|23 ld 3IMM
24 st 3IMMSRC|25 ldi 2IMM|26 rtop PREG_REG|27 andp 3PREG|28 orp 3PREG|29 xorp 3PREG|2a notp 2PREG
2b isneg PREG_REG|2c iszero PREG_REG|2d halt NONE|2e trap c NONE|2f jmpru * 1REG|30 skep * 1REG
31 reti c* NONE|32 tlbrm * 1REG|33 itof 2REG|34 ftoi 2REG|35 fadd 3REG|36 fsub 3REG|37 fmul 3REG
38 fdiv 3REG|39 fneg 2REG|3a wspawn 3REG|3b split NONE|3c join NONE|3d bar 2REGSRC";

/// Number of the first, mnemonics in the order of their numbers, operands: `d` and `s` general
/// registers written and read, `m` both, `D` and `S` predicates, `i` an immediate.
const EXTENSION: &str = "
00 csr di
01 ldb ldbs ldh ldhs ldw ldws dsi
07 stb sth stw ssi
0a sra srl divs mods mulh mulhu dss
10 eqp ltp ltup Dss
13 feqp fltp flep Dss
16 fmin fmax dss
18 fsqrt fabs ftrunc ds
1b ffma mss
1c ballot dSi
1d anyp allp DS
1f shfl dss
20 amoadd amoand amoor amoxor amomin amomax amominu amomaxu amoswap dss
29 cas mss
2a fcvtsd fcvtds utof ftou ds
2e amoaddw amoandw amoorw amoxorw amominw amomaxw amominuw amomaxuw amoswapw dss
37 casw mss
38 fadds fsubs fmuls fdivs dss
3c fsqrts ds
3d ffmas mss
3e ptor dS";

fn number(text: &str) -> u8 {
    u8::from_str_radix(text, 16).unwrap()
}

/// The original's name of the operands' shape.
fn class_name(shape: &str) -> &'static str {
    match shape {
        "" => "NONE",
        "s" => "1REG",
        "ds" => "2REG",
        "dss" => "3REG",
        "sss" => "3REGSRC",
        "ss" => "2REGSRC",
        "i" | "r" => "1IMM",
        "di" | "dr" => "2IMM",
        "dsi" | "dsr" => "3IMM",
        "ssi" => "3IMMSRC",
        "Ds" => "PREG_REG",
        "DS" => "2PREG",
        "DSS" => "3PREG",
        _ => "none of the original's",
    }
}

fn shape(opcode: Opcode) -> String {
    let letter = |kind: OperandKind| match kind {
        OperandKind::Gpr(Role::Def) => 'd',
        OperandKind::Gpr(Role::Use) => 's',
        OperandKind::Gpr(Role::Mod) => 'm',
        OperandKind::Pred(Role::Def) => 'D',
        OperandKind::Pred(Role::Use) => 'S',
        OperandKind::Pred(Role::Mod) => 'M',
        OperandKind::Imm => 'i',
        OperandKind::Rel => 'r',
    };
    opcode.operands().iter().map(|operand| letter(operand.kind)).collect()
}

#[test]
fn base_instructions() {
    let mut seen = 0;
    for row in BASE.split(['\n', '|']).filter(|row| !row.is_empty()) {
        let columns: Vec<&str> = row.split(' ').collect();
        let [hex, mnemonic, marks @ .., class] = columns.as_slice() else { panic!("{row}") };
        let opcode = Opcode::from_mnemonic(mnemonic).unwrap_or_else(|| panic!("{row}"));
        assert_eq!(opcode.space(), Space::Base(number(hex)), "{row}");
        assert_eq!(class_name(&shape(opcode)), *class, "{row}");
        let marks = marks.concat();
        let flags = opcode.flags();
        assert_eq!(flags.contains(OpcodeFlags::PRIVILEGED), marks.contains('*'), "{row}");
        assert_eq!(flags.contains(OpcodeFlags::CONTROL), marks.contains('c'), "{row}");
        let once = matches!(*mnemonic, "split" | "join" | "wspawn" | "bar");
        assert_eq!(flags.contains(OpcodeFlags::ONCE_PER_WARP), once, "{row}");
        let divides = matches!(*mnemonic, "div" | "divi" | "mod" | "modi");
        assert_eq!(flags.contains(OpcodeFlags::DIVIDES), divides, "{row}");
        let relative = matches!(*mnemonic, "jmpi" | "jali" | "jalis");
        assert_eq!(shape(opcode).contains('r'), relative, "{row}");
        assert!(!opcode.is_extension(), "{row}");
        seen += 1;
    }
    let tid = Opcode::from_mnemonic("tid").unwrap();
    assert_eq!((tid.space(), shape(tid).as_str()), (Space::Base(0x3e), "d"));
    assert!(tid.is_extension());
    let base = Opcode::ALL.iter().filter(|opcode| matches!(opcode.space(), Space::Base(_)));
    assert_eq!(base.count(), seen + 1);
    assert_eq!(seen, 0x3e);
}

#[test]
fn extension_instructions() {
    let mut seen = 0;
    for row in EXTENSION.trim().lines() {
        let columns: Vec<&str> = row.split(' ').collect();
        let [first, mnemonics @ .., operands] = columns.as_slice() else { panic!("{row}") };
        for (mnemonic, funct) in mnemonics.iter().zip(number(first)..) {
            let opcode = Opcode::from_mnemonic(mnemonic).unwrap_or_else(|| panic!("{mnemonic}"));
            assert_eq!(opcode.space(), Space::Extension(funct), "{mnemonic}");
            assert_eq!(shape(opcode), *operands, "{mnemonic}");
            let atomic = mnemonic.starts_with("amo") || mnemonic.starts_with("cas");
            assert_eq!(opcode.flags().contains(OpcodeFlags::ATOMIC), atomic, "{mnemonic}");
            assert!(opcode.is_extension(), "{mnemonic}");
            seen += 1;
        }
    }
    assert_eq!(seen, 0x3f, "every number but the second escape");
    let extension =
        Opcode::ALL.iter().filter(|opcode| matches!(opcode.space(), Space::Extension(_)));
    assert_eq!(extension.count(), seen);
}

#[test]
fn mnemonics_are_unique() {
    for &opcode in Opcode::ALL {
        assert_eq!(Opcode::from_mnemonic(opcode.mnemonic()), Some(opcode));
    }
    assert_eq!(Opcode::from_mnemonic("frobnicate"), None);
}

/// Which operand decides how often an instruction is carried out, in words: its destination if it has one, else all of
/// them; and addresses, for loads and stores that are not atomic.
#[test]
fn what_is_done_once_and_what_is_a_row() {
    let arch: ArchId = "8w24/12/32/16+x+s8/4".parse().unwrap();
    let without = arch.with_shared(0, 0).unwrap();
    let sharing = |text: &str| {
        let object = assemble(text, arch, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
        let op = decode(&object.chunks[0].data, arch).unwrap().0.op;
        assert_eq!(op.sharing(without), Sharing::Each, "{text}");
        op.sharing(arch)
    };
    for text in [
        "add %s0 %r1 %r2",
        "ldi %s0 #1",
        "ori %s0 %r1 #0",
        "ffma %s0 %r1 %s1",
        "rtop @s0 %r1",
        "notp @s0 @p1",
        "ptor %s0 @p1",
        "anyp @s0 @p1",
        "ballot %s0 @p1 #0",
        "shfl %s0 %r1 %r2",
        "csr %s0 #3",
        "tid %s0",
        "ld %s0 %r1 #0",
        "ld %s0 %s1 #0",
        "st %s0 %s1 #0",
        "ldb %s0 %s1 #0",
        "amoadd %s0 %r1 %r2",
        "cas %s0 %r1 %r2",
        "jali %s0 #8",
        "jalr %s0 %r1",
        "jmpr %s0",
        "jalis %s0 %r1 #8",
        "bar %s0 %s1",
        "clone %s0",
        "skep %s0",
        "tlbadd %s0 %s1 %s2",
        "wspawn %s0 %r1 %r2",
        "@p0 ? add %s0 %s0 %s0",
    ] {
        assert_eq!(sharing(text), Sharing::Once, "{text}");
    }
    for text in [
        "ld %r0 %s1 #0",
        "st %r0 %s1 #0",
        "ldb %r0 %s1 #0",
        "ldbs %r0 %s1 #0",
        "ldh %r0 %s1 #0",
        "ldhs %r0 %s1 #0",
        "ldw %r0 %s1 #0",
        "ldws %r0 %s1 #0",
        "stb %r0 %s1 #0",
        "sth %r0 %s1 #0",
        "stw %r0 %s1 #0",
    ] {
        assert_eq!(sharing(text), Sharing::Row, "{text}");
    }
    for text in [
        "add %r0 %s1 %s2",
        "rtop @p0 %s1",
        "ld %r0 %r1 #0",
        "st %s0 %r1 #0",
        "st %r0 %r1 #0",
        "amoadd %r0 %s1 %s2",
        "cas %r0 %s1 %s2",
        "jalr %r0 %s1",
        "bar %s0 %r1",
        "clone %r0",
        "wspawn %r0 %s1 %s2",
        "nop",
        "halt",
        "@s0 ? split",
        "join",
        "@s0 ? jmpi #8",
        "trap",
        "reti",
        "ballot %r0 @s1 #0",
        "ptor %r0 @s1",
        "shfl %r0 %s1 %s2",
    ] {
        assert_eq!(sharing(text), Sharing::Each, "{text}");
    }
}
