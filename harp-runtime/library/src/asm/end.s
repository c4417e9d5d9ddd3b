/* The end of a warp's work. */
finish: ldi %r0, stop
        jmprt %r0
stop:   halt
