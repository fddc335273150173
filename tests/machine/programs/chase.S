# A circular chain of pointers: every load waits for the one before it, and the
# level where it finds its line follows from the chain's length.
#
# usage: chase l1 | l2 | llc | memory
#
# The chain's links are lines of 64 bytes in whole pages from `ring` on; link k
# leads to link k + 175, modulo their number (175 has no factor in common with
# 256, 576, 4096 or 16384, so that all are visited). It is written in the same
# order in which it is read afterwards.
#   l1      4 pages: half of the 32 KiB with 8 ways
#   l2      9 pages: one more line in each set of the L1D than it has ways. Read
#           in a circle under LRU, each line has been evicted when its turn comes;
#           in the L2 with 8 ways and 8 page colours 9 pages fit unless all 9 have
#           one colour.
#   llc     256 pages: 32 for each of the 8 page colours of the L2, which has 8
#           ways; an eighth of the LLC
#   memory  64 pages, whose lines are all flushed before each turn
#
#: l1.loads = 100000
#: l2.loads = 100 * 576
#: llc.loads = 4 * 16384
#: memory.loads = 8 * 4096
# The loads outside of the chain: the two that read the argument.
#: other_loads = 2
#: l1.lines = 256
#: l2.lines = 576
#: llc.lines = 16384
#: memory.lines = 4096

	.globl	_start, chase_site, chase_next, ring
	.text
_start:	mov	16(%rsp), %rsi		# argv[1]
	movzbl	1(%rsi), %eax		# its second letter
	xor	%ebp, %ebp		# lines to flush before a turn
	mov	$256, %r12d		# links
	mov	$1, %r13d		# turns
	mov	$100000, %r14d		# loads of a turn
	cmp	$'1', %al
	je	build
	mov	$576, %r12d
	mov	$57600, %r14d
	cmp	$'2', %al
	je	build
	mov	$16384, %r12d
	mov	$65536, %r14d
	cmp	$'l', %al
	je	build
	mov	$4096, %r12d
	mov	$8, %r13d
	mov	$4096, %r14d
	mov	$4096, %ebp

build:	lea	ring(%rip), %rbx
	xor	%r8d, %r8d
	mov	%r12d, %ecx
1:	lea	175(%r8), %r9d
	cmp	%r12d, %r9d
	jb	2f
	sub	%r12d, %r9d
2:	mov	%r8d, %eax
	shl	$6, %eax
	mov	%r9d, %edx
	shl	$6, %edx
	add	%rbx, %rdx
	mov	%rdx, (%rbx, %rax)
	mov	%r9d, %r8d
	dec	%ecx
	jnz	1b

turn:	mov	%rbx, %rdx
	mov	%ebp, %ecx
	test	%ecx, %ecx
	jz	4f
3:	clflush	(%rdx)
	add	$64, %rdx
	dec	%ecx
	jnz	3b
	mfence
4:	mov	%rbx, %rax
	mov	%r14d, %ecx
5:
chase_site:
	mov	(%rax), %rax
chase_next:
	dec	%ecx
	jnz	5b
	dec	%r13d
	jnz	turn
	mov	$60, %eax
	xor	%edi, %edi
	syscall

	.bss
	.balign	4096
ring:	.skip	4096 * 256
