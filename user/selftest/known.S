/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program that nhmtap doctor --selftest measures. What it does follows from its text; selftest.c has the
 * numbers, and finds the places by their symbols.
 *
 *     nhmtap-known count                a loop with every kind of instruction that counters tell apart
 *     nhmtap-known loads PAGES TURNS    a chain of loads, each of which waits for the one before
 *     nhmtap-known loads PAGES TURNS f  the same, its lines flushed from all caches before each turn
 *     nhmtap-known stores               stores to a line each of four pages, from one place
 *
 * count: 6 instructions before the loop, of which two load, and 3 behind it, with a system call, which is a
 * far branch. A turn is 16 instructions and, every second time, one more. Of these
 *     loads     mov, mov, add, pop and the two returns
 *     stores    mov, add, push and the two calls
 *     branches  two calls, two returns, jz, jmp and jnz
 * jz is taken for every even value of the counter, jnz in all turns but the last.
 *
 * loads: link k, a line, leads to link k + 175, modulo their number, which is 64 a page; as 175 has only the
 * factors 5 and 7, PAGES must have neither. The chain is written in the order in which it is read.
 */
	.globl	_start, loop, branch_dispatch, branch_direct, after_direct, branch_indirect, after_indirect
	.globl	branch_jz, branch_jmp, branch_jnz, behind_jmp, direct, indirect, branch_return, branch_end
	.globl	load_site, store_site, buffer

	.text
_start:	mov	16(%rsp), %rsi		# argv[1]
	cmpb	$'c', (%rsi)
branch_dispatch:
	jne	memory
	mov	$100000, %ecx		# TURNS of selftest.c
	lea	buffer(%rip), %rbx
	lea	indirect(%rip), %rdi
loop:	mov	(%rbx), %rax
	mov	64(%rbx), %rdx
	mov	%rax, 128(%rbx)
	add	%rdx, 192(%rbx)
	push	%rax
	pop	%rax
branch_direct:
	call	direct
after_direct:
branch_indirect:
	call	*%rdi
after_indirect:
	test	$1, %cl
branch_jz:
	jz	branch_jmp
	nop
branch_jmp:
	jmp	behind_jmp
behind_jmp:
	dec	%ecx
branch_jnz:
	jnz	loop
exit:	mov	$60, %eax
	xor	%edi, %edi
branch_end:
	syscall

	.balign	64
direct:	ret
	.balign	64
indirect:
	nop
branch_return:
	ret

memory:	lea	buffer(%rip), %rbx
	cmpb	$'s', (%rsi)
	je	stores
	mov	24(%rsp), %rsi		# PAGES
	call	number
	mov	%rax, %r12
	shl	$6, %r12		# links
	mov	32(%rsp), %rsi		# TURNS
	call	number
	mov	%rax, %r13
	xor	%r8, %r8
	mov	%r12, %rcx
1:	lea	175(%r8), %r9
	cmp	%r12, %r9
	jb	2f
	sub	%r12, %r9
2:	mov	%r8, %rax
	shl	$6, %rax
	mov	%r9, %rdx
	shl	$6, %rdx
	add	%rbx, %rdx
	mov	%rdx, (%rbx, %rax)
	mov	%r9, %r8
	dec	%rcx
	jnz	1b

turn:	cmpq	$0, 40(%rsp)		# flush?
	je	2f
	mov	%rbx, %rdx
	mov	%r12, %rcx
1:	clflush	(%rdx)
	add	$64, %rdx
	dec	%rcx
	jnz	1b
	mfence
2:	mov	%rbx, %rax
	mov	%r12, %rcx
3:
load_site:
	mov	(%rax), %rax
	dec	%rcx
	jnz	3b
	dec	%r13
	jnz	turn
	jmp	exit

/* The number that the text at rsi is, in rax. */
number:	xor	%eax, %eax
1:	movzbl	(%rsi), %edx
	sub	$'0', %edx
	jb	2f
	imul	$10, %rax
	add	%rdx, %rax
	inc	%rsi
	jmp	1b
2:	ret

stores:	mov	$100000, %ecx
	xor	%edx, %edx
1:
store_site:
	mov	%rax, (%rbx, %rdx)
	add	$64, %edx
	and	$16383, %edx
	dec	%ecx
	jnz	1b
	jmp	exit

	.bss
	.balign	4096
buffer:	.skip	64 << 20

	.section .note.GNU-stack, "", @progbits
