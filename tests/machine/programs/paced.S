# Sleeps until the observer is ready, and then takes more branches than a trace's buffer holds at
# once. Between two branches there are more instructions than it takes to read one.
#
#: N = 250000
# A turn is 64 instructions: 62 nops, dec, jnz.
#: TURN = 64
# The last turn's jnz is not taken.
#: TAKEN = N - 1

	.globl	_start, turn, loop_jcc
	.text
_start:	mov	$35, %eax		# nanosleep
	lea	time(%rip), %rdi
	xor	%esi, %esi
	syscall
	mov	$250000, %ecx
turn:	.rept	62
	nop
	.endr
	dec	%ecx
loop_jcc:
	jnz	turn
	mov	$60, %eax
	xor	%edi, %edi
	syscall

	.data
	.balign	16
time:	.quad	3, 0
