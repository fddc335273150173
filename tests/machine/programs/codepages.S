# Code of more pages than half of the code TLB has entries, and of fewer than all of it: one jump in
# each page, in a loop. The pages are contiguous, so each set of the TLB gets the same number of
# them.
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
