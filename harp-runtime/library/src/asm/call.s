/* Calls one function on one lane. The host fills in the words after `runtime.call`, except for the
   function's address, which the linker resolves. It replaces the lines ARGUMENTS and RESULTS by loads of
   register arguments and stores of register results. Base instructions only.

   The first register of the upper half is %base, which the function preserves. */

.perm x
.entry
runtime.boot:
        ldi %base, runtime.call
        ld %sp, %base, C_STACK
        ld %r0, %base, C_LIMIT
        st %r0, %sp, L_STACK_LIMIT
        addi %r0, %sp, L_SCRATCH
        st %r0, %sp, L_SCRATCH_ADDRESS
        ldi %r0, #0
        st %r0, %sp, L_LANE
        st %r0, %sp, L_WARP
        st %r0, %sp, L_CORE
        st %r0, %sp, L_Y
        st %r0, %sp, L_Z
        ldi %r0, #1
        st %r0, %sp, L_LANES
        ld %sp, %base, C_TOP
        ld %r0, %base, C_ARGUMENTS      /* stack arguments */
        ori %r1, %sp, #0
        ld %r2, %base, C_ARGUMENT_COUNT
        jali %ra, runtime.copy
        ld %ra, %base, C_REGISTERS
ARGUMENTS
        ld %base, %base, C_FUNCTION
        jalr %ra, %base
        ldi %base, runtime.call
        ld %ra, %base, C_RESULTS
RESULTS
        ori %r1, %ra, #0
        ld %r0, %base, C_STACK_RESULTS
        ld %r2, %base, C_RESULT_COUNT
        jali %ra, runtime.copy
        halt

/* Copies %r2 words from %r0 to %r1; leaves %r0 and %r1 behind the last word. */
runtime.copy:
        iszero @p0, %r2
  @p0 ? jmpr %ra
        ld %r3, %r0, #0
        st %r3, %r1, #0
        addi %r0, %r0, __WORD
        addi %r1, %r1, __WORD
        subi %r2, %r2, #1
        jmpi runtime.copy

.perm rw
runtime.call:
        .space C_WORDS
