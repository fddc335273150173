# More branches than a table has slots; each branch is taken once in a turn.
#
#: EDGES = 40000
#: TURNS = 10
# The loop's own jump is not taken the last time.
#: TAKEN = EDGES * TURNS + TURNS - 1

	.globl	_start, turn, first_jmp, loop_jcc
	.text
_start:	mov	$10, %ecx
turn:
first_jmp:
	.rept	40000
	jmp	1f
1:
	.endr
	dec	%ecx
loop_jcc:
	jnz	turn
	mov	$60, %eax
	xor	%edi, %edi
	syscall
