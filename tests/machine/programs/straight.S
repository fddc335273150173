# Code without a branch, of one instruction a byte. Each of its lines is fetched once, and none was there before: a
# fetch is an instruction's, wherever the emulator divides the code to decode it. The last line ends the program.
#
#: LINES = 128
#: INST_RETIRED.ANY_P = 64*(LINES - 1) + 3
#: L1I.MISSES = LINES

	.globl	_start
	.text
	.balign	4096
_start:	.rept	64 * 127
	nop
	.endr
	mov	$60, %eax
	xor	%edi, %edi
	syscall
