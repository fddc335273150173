# Two kinds of off-core requests, one of each in a turn, at a steady pace and for
# long enough to multiplex many values on the one off-core register.
#
# usage: steady [short]
#
# A turn flushes two lines, loads from one and stores to the other: a data
# read and a read for ownership that memory answers. The two pages are touched
# before, so that each has its frame.
#
#: turns = 12000000
# With an argument there are a quarter of these: enough for few values.

	.globl	_start, steady_load, steady_store
	.text
_start:	mov	$12000000, %ecx
	cmpl	$2, (%rsp)		# argc
	jb	start
	shr	$2, %ecx
start:	lea	buffer(%rip), %rbx
	movb	$1, (%rbx)
	movb	$1, 4096(%rbx)
1:	clflush	(%rbx)
	clflush	4096(%rbx)
	mfence
steady_load:
	mov	(%rbx), %rax
steady_store:
	mov	%rax, 4096(%rbx)
	dec	%ecx
	jnz	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall

	.bss
	.balign	4096
buffer:	.skip	8192
