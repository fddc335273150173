# Instructions of which an emulator executes more than retires: repeated ones, which page faults and the clock
# interrupt, and others that fault and begin anew.
#
# Each repeated instruction is one, even with no iteration. The pages are mapped by 13 instructions each time, and
# 14 are neither there nor in the loop, whose store faults in every turn.
#
#: N = 4096
#: INST_RETIRED.ANY_P = 13 + 13 + 14 + 4*N

#include "pages.inc"
	.globl	_start
	.text
_start:	small_pages
	mov	%rbx, %rdi
	mov	$(16 << 20) / 8, %ecx
	xor	%eax, %eax
	rep stosq
	xor	%ecx, %ecx
	rep stosb
	mov	%rbx, %rdi
	mov	$1 << 20, %ecx
	inc	%eax
	repne scasb
	small_pages
	mov	$4096, %ecx
1:	movb	$1, (%rbx)
	add	$4096, %rbx
	dec	%ecx
	jnz	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall
