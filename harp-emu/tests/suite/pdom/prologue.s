/* Two warps of four lanes. Warp 0 works on 2, warp 1 on 5, in %r3; then to `body` in all lanes. */
.perm x
start:  ldi %r3, #2
        ldi %r1, go
        ldi %r2, #5
        wspawn %r3, %r1, %r2
go:     ldi %r1, #1
        clone %r1
        ldi %r1, #2
        clone %r1
        ldi %r1, #3
        clone %r1
        ldi %r1, #4
        jalis %r2, %r1, body
