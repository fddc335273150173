# Instructions with two accesses, which retire once. One of them loads from a line that is there and then stores to a
# page that is not: it faults, and begins anew. The other one loads twice.
#
# Mapping the pages takes 13 instructions, and 4 are neither there nor in the loop of 9. A store is a micro-operation
# of its own, and so is the load of an instruction that stores, too.
#
#: N = 4096
#: INST_RETIRED.ANY_P = 13 + 4 + 9*N
#: MEM_INST_RETIRED.LOADS = 2*N
#: MEM_INST_RETIRED.STORES = N
#: UOPS_RETIRED.ANY = 13 + 4 + 9*N + 2*N

#include "pages.inc"
	.globl	_start
	.text
_start:	small_pages
	mov	$4096, %ecx
1:	lea	source(%rip), %rsi
	mov	%rbx, %rdi
	movsq
	lea	source(%rip), %rsi
	mov	%rsi, %rdi
	cmpsq
	add	$4096, %rbx
	dec	%ecx
	jnz	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall

	.data
	.balign	64
source:	.quad	0
