4b16/16/2/1+x
.chunk "two words" "rwxge" 3 0x1000
	jali %ra "\"\\\n" ; .byte 1
	.word "two words" 0xa5
	.ref "__WORD" "r" 0xffffffff 0xffffffff 32 255
	.space 40
.chunk "two words" "" 0
.chunk "" "" 0xffffffff
x: .word x y "x"
