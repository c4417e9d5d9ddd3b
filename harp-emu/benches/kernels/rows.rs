//! The operations of the kernels: `opcode destination, sources`, given to a macro. The names of the
//! registers are the caller's, because they become its variables.

/// [`Kernel::Alu`](super::Kernel::Alu)
macro_rules! alu {
    ($with:ident, $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {
        $with! {
            shli $g, $a, #13; xor $a, $a, $g; shri $h, $b, #7; add $c, $c, $h;
            shri $g, $a, #17; xor $a, $a, $g; muli $h, $b, #77; sub $d, $d, $h;
            shli $g, $a, #5; xor $a, $a, $g; and $h, $c, $d; or $e, $e, $h;
            add $f, $f, $a; xor $b, $b, $c; addi $c, $c, #99; mul $h, $d, $e;
            shri $g, $f, #3; xor $f, $f, $g; sub $e, $e, $h; addi $b, $b, #55;
            xor $d, $d, $f; add $c, $c, $e; andi $g, $a, #255; or $g, $g, $d;
            shli $h, $c, #9; xor $c, $c, $h; add $e, $e, $g; shri $h, $d, #11;
            add $b, $b, $h; xor $e, $e, $b; subi $d, $d, #17; sub $f, $f, $c;
        }
    };
}

/// [`Kernel::UnitStride`](super::Kernel::UnitStride), between the loads of `a` and `b` and the store
/// of `a`.
macro_rules! unit_stride {
    ($with:ident, $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {
        $with! { muli $a, $a, #3; add $a, $a, $b; addi $a, $a, #1; }
    };
}

/// [`Kernel::Scattered`](super::Kernel::Scattered), before the load of `a`: `c` is the index.
macro_rules! scattered_index {
    ($with:ident, $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {
        $with! { muli $c, $c, #5; addi $c, $c, #17; }
    };
}

/// [`Kernel::Scattered`](super::Kernel::Scattered), between the load of `a` and its store.
macro_rules! scattered {
    ($with:ident, $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {
        $with! { add $b, $b, $a; xor $a, $b, $c; }
    };
}
