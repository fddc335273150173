# Known numbers of off-core requests of each kind.
#
# usage: offcore data | rfo | code | writeback | ahead | store-ahead | long-ahead
#
#   data         20 times: 1024 lines flushed, then loaded
#   rfo          20 times: 1024 lines flushed, then stored to
#   code         20 times: 256 lines of code flushed, then called
#   writeback    256 pages touched, so that each has its frame, which Linux clears:
#                16384 modified lines, 32 for each set of the L2 with 8 ways. Then
#                two passes of stores to all lines, in the same order: no line is in
#                the L2 when its turn comes, all are in the LLC, and each store
#                evicts a modified line from the L2.
#   ahead        4096 lines of 64 pages flushed and loaded in order. A prefetcher
#                that brings two lines after two steps leaves the first 3 of each
#                page to the loads. The third load makes it request two lines, and
#                each later load two lines of which the L2 already has the first.
#                Of the 61 lines that it brings from a page, all but the first (60)
#                are requested twice.
#   store-ahead  the same with stores
#   long-ahead   ahead 1500 times, long enough to multiplex several values on the
#                one off-core register
#
#: data.requests = 20 * 1024
#: rfo.requests = 20 * 1024
#: code.requests = 20 * 256
#: writeback.stores = 2 * 16384
#: writeback.cleared = 16384
#: ahead.requests = 4096
#: ahead.left = 64 * 3
#: ahead.again = 64 * 60

	.globl	_start, data_site, rfo_site
	.text
_start:	mov	16(%rsp), %rsi
	movzbl	(%rsi), %eax
	movzbl	1(%rsi), %edx
	lea	buffer(%rip), %rbx
	mov	$64, %ecx		# a page frame for each of the first 64 pages
	mov	%rbx, %rdi
1:	movb	$1, (%rdi)
	add	$4096, %rdi
	dec	%ecx
	jnz	1b
	mov	$20, %r13d
	cmp	$'d', %al
	je	data
	cmp	$'r', %al
	je	rfo
	cmp	$'c', %al
	je	code
	cmp	$'w', %al
	je	writeback
	mov	$4096, %r12d
	mov	$1500, %r13d
	cmp	$'l', %al
	je	ahead
	mov	$1, %r13d
	cmp	$'s', %al
	jne	ahead
	call	flush
	mov	%rbx, %rdi
	mov	%r12d, %ecx
	jmp	3f
ahead:	call	flush
	mov	%rbx, %rdi
	mov	%r12d, %ecx
2:	mov	(%rdi), %rax
	add	$64, %rdi
	dec	%ecx
	jnz	2b
	dec	%r13d
	jnz	ahead
	jmp	quit
3:	mov	%rax, (%rdi)
	add	$64, %rdi
	dec	%ecx
	jnz	3b
quit:	mov	$60, %eax
	xor	%edi, %edi
	syscall

flush:	mov	%rbx, %rdi		# %r12d lines from %rbx on
	mov	%r12d, %ecx
1:	clflush	(%rdi)
	add	$64, %rdi
	dec	%ecx
	jnz	1b
	mfence
	ret

data:	mov	$1024, %r12d
	call	flush
	mov	%rbx, %rdi
	mov	%r12d, %ecx
1:
data_site:
	mov	(%rdi), %rax
	add	$64, %rdi
	dec	%ecx
	jnz	1b
	dec	%r13d
	jnz	data
	jmp	quit

rfo:	mov	$1024, %r12d
	call	flush
	mov	%rbx, %rdi
	mov	%r12d, %ecx
1:
rfo_site:
	mov	%rax, (%rdi)
	add	$64, %rdi
	dec	%ecx
	jnz	1b
	dec	%r13d
	jnz	rfo
	jmp	quit

code:	lea	lines(%rip), %rbx
	mov	$256, %r12d
	call	flush
	mov	%rbx, %rdi
	mov	%r12d, %ecx
1:	call	*%rdi
	add	$64, %rdi
	dec	%ecx
	jnz	1b
	dec	%r13d
	jnz	code
	jmp	quit

writeback:
	mov	$256, %ecx
	mov	%rbx, %rdi
1:	movb	$1, (%rdi)
	add	$4096, %rdi
	dec	%ecx
	jnz	1b
	mov	$2, %r13d
1:	mov	%rbx, %rdi
	mov	$16384, %ecx
2:	mov	%rax, (%rdi)
	add	$64, %rdi
	dec	%ecx
	jnz	2b
	dec	%r13d
	jnz	1b
	jmp	quit

	.balign	4096
lines:	.rept	256
	ret
	.balign	64
	.endr

	.bss
	.balign	4096
buffer:	.skip	4096 * 256
