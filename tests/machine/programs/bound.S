# Programs that wait for one thing which is neither data nor a division.
#
# usage: bound walks | code | branches | retire
#
#   walks  640 pages are read in a circle, 2000 times. Nothing was written there, so all are the
#          kernel's page of zeros: each load finds its line in the first level. They are 5 for each
#          of the 128 sets of the second-level TLB, which have 4 ways: read in a circle under LRU, no
#          page is there when its turn comes. Their page-table entries are 80 lines, which the second
#          level holds.
#: walks = 2000 * 640
#   code   16 pages of code with one jump in each line, 1000 times. The first level has 4 ways and two
#          page colours, so that each set has as many lines as it has ways if four pages share a
#          colour, and more of them otherwise; the second level has room for all.
#: code.fetches = 1000 * 16 * 64
#   branches  eight jumps by bits 31 to 24 of a pseudo-random sequence, which no predictor can foretell, of
#          each of 20000 of its numbers. The sequence is that of graph.
#: branches.numbers = 20000
#   retire  64 instructions that add to memory, of three micro-operations each, 40000 times.
#: retire.uops = 40000 * (64 * 3 + 2)

#include "pages.inc"

	.globl	_start, walks_site
	.text
_start:	mov	16(%rsp), %rsi		# argv[1]
	cmpb	$'c', (%rsi)
	je	code
	cmpb	$'b', (%rsi)
	je	branches
	cmpb	$'r', (%rsi)
	je	retire

	small_pages
	mov	$2000, %r13d
1:	mov	$640, %ecx
	mov	%rbx, %rdx
2:
walks_site:
	mov	(%rdx), %rax
	add	$4096, %rdx
	dec	%ecx
	jnz	2b
	dec	%r13d
	jnz	1b
	jmp	quit

code:	mov	$1000, %ecx
	jmp	turn
quit:	mov	$60, %eax
	xor	%edi, %edi
	syscall

retire:	sub	$64, %rsp
	mov	$40000, %ecx
1:
	.rept	64
	incq	(%rsp)
	.endr
	dec	%ecx
	jnz	1b
	jmp	quit

branches:
	mov	$20000, %ecx
	mov	$305419896, %eax
1:	imul	$1103515245, %eax, %eax
	add	$12345, %eax
	.irp	bit, 31, 30, 29, 28, 27, 26, 25, 24
	bt	$\bit, %eax
	jc	2f
2:
	.endr
	dec	%ecx
	jnz	1b
	jmp	quit

	.balign	4096
turn:
	.rept	16 * 64 - 1
	jmp	1f
	.balign	64
1:
	.endr
	dec	%ecx
	jz	quit
	jmp	turn
