# Loads a page apart over 16 MiB of small pages, four times.
#
# 4096 pages are 32 for each of the 128 sets of the second-level TLB, which have
# 4 ways: read in a circle under LRU none is there when its turn comes.
#
#: loads = 4 * 4096

#include "pages.inc"

	.globl	_start, stride_site
	.text
_start:	small_pages
	mov	$4096, %ecx		# a page frame for each
	mov	%rbx, %rdx
1:	movb	$1, (%rdx)
	add	$4096, %rdx
	dec	%ecx
	jnz	1b

	mov	$4, %r13d
2:	mov	$4096, %ecx
	mov	%rbx, %rdx
3:
stride_site:
	mov	(%rdx), %rax
	add	$4096, %rdx
	dec	%ecx
	jnz	3b
	dec	%r13d
	jnz	2b
	mov	$60, %eax
	xor	%edi, %edi
	syscall
