# Code of more pages than half of the code TLB has entries for, and fewer than all of it: one jump in each, in a loop.
# The pages follow each other, so that each of the TLB's sets has as many of them.
#
#: PAGES = 96
#: TURNS = 100

	.globl	_start
	.text
_start:	mov	$100, %ecx
	.balign	4096
turn:
	.rept	95
	jmp	1f
	.balign	4096
1:
	.endr
	dec	%ecx
	jnz	turn
	mov	$60, %eax
	xor	%edi, %edi
	syscall
