# Lines that leave the caches. usage: evict KIND
#
# First 256 pages get a store in each of their 64 lines. That is four times the second-level cache: read or
# written in a circle under LRU, no line is there when its turn comes, and each that comes in replaces one.
# The kernel has just cleared the page of a first store, so that this line is in the first-level cache.
#: lines = 256 * 64
#: circles = 4
# l  then come four circles of loads: they replace what the stores left in the second-level cache, which
#    is modified, and after that each other's clean lines
#: left = 4096
# s  or four circles of stores: each line is modified when it goes
# k  or four circles of additions with a LOCK prefix
# r  or 100 circles over the lines of 9 pages: one more line in each set of the first-level cache than it
#    has ways. The second level has them all, modified since they were written back for the first time.
# m  or as many circles of loads over these
#: few.lines = 9 * 64
#: few.circles = 100

	.globl	_start
	.text
_start:	mov	16(%rsp), %rsi		# argv[1]
	movzbl	(%rsi), %eax
	mov	$16384, %r12d
	mov	$4, %r13d
	mov	$16384, %ecx
	cmp	$'r', %al
	je	few
	cmp	$'m', %al
	jne	1f
few:	mov	$576, %r12d
	mov	$100, %r13d
	mov	$576, %ecx
1:	mov	$buffer, %ebx
2:	mov	%rcx, (%rbx)
	add	$64, %rbx
	dec	%ecx
	jnz	2b

circle:	mov	%r12d, %ecx
	mov	$buffer, %ebx
	cmp	$'l', %al
	je	loads
	cmp	$'m', %al
	je	loads
	cmp	$'k', %al
	je	locks
3:	mov	%rcx, (%rbx)
	add	$64, %rbx
	dec	%ecx
	jnz	3b
next:	dec	%r13d
	jnz	circle
	mov	$60, %eax
	xor	%edi, %edi
	syscall

loads:	mov	(%rbx), %rdx
	add	$64, %rbx
	dec	%ecx
	jnz	loads
	jmp	next

locks:	lock incl (%rbx)
	add	$64, %rbx
	dec	%ecx
	jnz	locks
	jmp	next

	.bss
	.balign	4096
buffer:	.skip	64 * 16384
