8w32/32/16/16+x
/* an error of each kind, and what follows from them */
a: nop
a: frob %r1
	add %r1, @p0, %r2 ; .frob 漢字
.def N 08
.space N ; .word (1 / 0) (`0) (1 / N)
.space 0x3ffffff
.space 0xffffffffffffffff
.ref "a" "r" 0 0 65 0
.chunk "é" "q" 0
.word 99999999999999999999 1e400f ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1
ldi %r99 #0xffffffffffffffff $
.string "never closed
nop /* never closed
