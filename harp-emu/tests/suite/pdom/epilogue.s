/* %r4 to the word of the lane and the warp. */
        csr %r5, #1
        shli %r5, %r5, #4
        shli %r6, %r0, #2
        add %r5, %r5, %r6
        st %r4, %r5, #0x200
        halt
