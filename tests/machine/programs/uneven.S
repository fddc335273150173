# Two functions, one after the other, of which the first is much denser in loads and branches: with a frequency, a
# sample in it stands for many times as many of them as one in the second.
#
# usage: uneven
#
#: thick = 2000000
#: thin = 400000
# Loads, and taken branches but the last, of each: one every 3 instructions, and one every 60.
#
# All loads find their data in L1. Those of thin go round 128 pages, twice as many as the first-level TLB
# has entries for, so each of them waits for the second-level TLB as well.
#: thick.cycles = 4
#: thin.cycles = 4 + 7

	.globl	_start, thick, thin
	.type	thick, @function
	.type	thin, @function
	.text
_start:	lea	buffer(%rip), %rbx
	movb	$1, (%rbx)
	call	thick
	call	thin
	mov	$60, %eax
	xor	%edi, %edi
	syscall

thick:	mov	$2000000, %ecx
1:	mov	(%rbx), %rax
	dec	%ecx
	jnz	1b
	ret
	.size	thick, . - thick

thin:	mov	$400000, %ecx
1:	mov	%ecx, %edx
	and	$127, %edx
	imul	$4096 + 64, %edx, %edx	# a page, and another line of it
	mov	(%rbx,%rdx), %rax
	.rept	54
	inc	%esi
	.endr
	dec	%ecx
	jnz	1b
	ret
	.size	thin, . - thin

	.bss
	.balign	4096
buffer:	.skip	131 * 4096
