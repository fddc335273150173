# Phases of loads, of stores and of neither. Their order and lengths differ in each process: the
# totals are known, their distribution over time is not.
#
# usage: phases
#
# Each kind has 5000 units of 100 turns of four instructions. A random number generator (Numerical
# Recipes' constants) that is seeded with the process id chooses the next kind and its number of
# units, at most 512. Nothing else loads or stores.
#
#: units = 5000
#: MEM_INST_RETIRED.LOADS = 100*units
#: MEM_INST_RETIRED.STORES = 100*units

	.globl	_start
	.text
_start:	mov	$39, %eax		# getpid
	syscall
	mov	%eax, %r12d
	lea	buffer(%rip), %rbx
	mov	$5000, %r13d		# units left: of loads, of stores, of neither
	mov	$5000, %r14d
	mov	$5000, %r15d
pick:	mov	%r13d, %eax
	or	%r14d, %eax
	or	%r15d, %eax
	jz	quit
	imul	$1664525, %r12d, %r12d
	add	$1013904223, %r12d
	mov	%r12d, %eax
	shr	$16, %eax
	mov	%eax, %ecx
	shr	$2, %ecx
	and	$511, %ecx
	inc	%ecx
	and	$3, %eax
	jz	loads
	dec	%eax
	jz	stores
	dec	%eax
	jnz	pick

	cmp	%r15d, %ecx
	cmova	%r15d, %ecx
	sub	%ecx, %r15d
	imul	$100, %ecx, %ecx
	test	%ecx, %ecx
	jz	pick
1:	nop
	inc	%edx
	dec	%ecx
	jnz	1b
	jmp	pick

loads:	cmp	%r13d, %ecx
	cmova	%r13d, %ecx
	sub	%ecx, %r13d
	imul	$100, %ecx, %ecx
	test	%ecx, %ecx
	jz	pick
1:	mov	(%rbx), %rax
	inc	%edx
	dec	%ecx
	jnz	1b
	jmp	pick

stores:	cmp	%r14d, %ecx
	cmova	%r14d, %ecx
	sub	%ecx, %r14d
	imul	$100, %ecx, %ecx
	test	%ecx, %ecx
	jz	pick
1:	mov	%rax, (%rbx)
	inc	%edx
	dec	%ecx
	jnz	1b
	jmp	pick

quit:	mov	$60, %eax
	xor	%edi, %edi
	syscall

	.bss
	.balign	4096
buffer:	.skip	4096
