/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program that nhmtap doctor --selftest measures. Its counts follow from its instructions.
 * tests.h has the numbers, and selftest.c refers to addresses by their symbols.
 *
 *     nhmtap-known count                a loop of all kinds of instructions that counters distinguish
 *     nhmtap-known loads PAGES TURNS    a chain of loads, each of which waits for the one before
 *     nhmtap-known loads PAGES TURNS f  the same, its lines flushed from all caches before each turn
 *     nhmtap-known loads PAGES TURNS p  the same, in pages of 4 KiB
 *     nhmtap-known stores               stores and locked increments, in each line of four pages
 *     nhmtap-known random               branches that cannot be predicted
 *     nhmtap-known handed CPU CPU m     one CPU modifies lines, then the other reads them
 *     nhmtap-known handed CPU CPU r     the same, but the first CPU only reads them
 *
 * count: 6 instructions before the loop, of which two load, and 3 after it, including a system
 * call, which is a far branch. A turn is 19 instructions and, every second time, one more. Of these
 *     loads     mov, mov, add, pop and the three returns
 *     stores    mov, add, push and the three calls
 *     branches  three calls, three returns, jz, jmp and jnz
 *     split     the second load: half of it is in the next line; the first ends at its line's end
 *     doubles   addsd, and every second time addpd
 * jz is taken for every even value of the counter, jnz in all turns but the last.
 *
 * loads: each line is a link. Link k points to link k + 175 modulo the number of links, which is 64
 * per page. 175 is 5 * 5 * 7, so PAGES must be divisible by neither 5 nor 7. The chain is written
 * in the order in which it is read. At each link, the load of the next address is followed by a
 * second load from the same line.
 *
 * random: bits of a generator (xorshift64, with a period of 2^64 - 1) decide whether a turn's
 * conditional branch is taken, and which of two functions its indirect call goes to.
 *
 * handed: the first CPU writes a chain of 16 pages, and in mode r flushes it from all caches and
 * reads it. Then the second CPU reads it. They take turns.
 */
	.globl	_start, loop, branch_dispatch, branch_direct, after_direct, branch_indirect, after_indirect
	.globl	branch_jz, branch_jmp, branch_jnz, behind_jmp, direct, indirect, branch_return, branch_end
	.globl	branch_nested, after_nested, branch_back, nested, branch_nested_return
	.globl	chance, branch_chance, behind_chance, branch_either, after_either, either, other, branch_other
	.globl	branch_chance_end, load_site, same_line_site, store_site, lock_site, buffer

	.text
_start:	mov	16(%rsp), %rsi		# argv[1]
	cmpb	$'c', (%rsi)
branch_dispatch:
	jne	memory
	mov	$100000, %ecx		# TURNS of tests.h
	lea	buffer(%rip), %rbx
	lea	indirect(%rip), %rdi
loop:	mov	56(%rbx), %rax
	mov	316(%rbx), %rdx
	addsd	%xmm0, %xmm1
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
	addpd	%xmm2, %xmm3
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
direct:
branch_nested:
	call	nested
after_nested:
branch_back:
	ret
	.balign	64
nested:
branch_nested_return:
	ret
	.balign	64
indirect:
	nop
branch_return:
	ret

memory:	lea	buffer(%rip), %rbx
	cmpb	$'s', (%rsi)
	je	stores
	cmpb	$'r', (%rsi)
	je	random
	cmpb	$'h', (%rsi)
	je	handed
	mov	24(%rsp), %rsi		# PAGES
	call	number
	mov	%rax, %r12
	shl	$6, %r12		# links
	mov	32(%rsp), %rsi		# TURNS
	call	number
	mov	%rax, %r13
	xor	%r14d, %r14d
	mov	40(%rsp), %rsi		# f, p or nothing
	test	%rsi, %rsi
	jz	1f
	movb	(%rsi), %r14b
1:	cmpb	$'p', %r14b
	jne	1f
	mov	$157, %eax		# prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
	mov	$41, %edi
	mov	$1, %esi
	xor	%edx, %edx
	xor	%r10d, %r10d
	xor	%r8d, %r8d
	syscall
1:	call	write_chain
turn:	cmpb	$'f', %r14b
	jne	1f
	call	flush
1:	call	read_chain
	dec	%r13
	jnz	turn
	jmp	exit

/* Writes a chain of r12 links at rbx. */
write_chain:
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
	ret

flush:	mov	%rbx, %rdx
	mov	%r12, %rcx
1:	clflush	(%rdx)
	add	$64, %rdx
	dec	%rcx
	jnz	1b
	mfence
	ret

read_chain:
	mov	%rbx, %rax
	mov	%r12, %rcx
1:
load_site:
	mov	(%rax), %rdx
same_line_site:
	mov	8(%rax), %r8
	mov	%rdx, %rax
	dec	%rcx
	jnz	1b
	ret

/* Converts the decimal number at rsi; the result is in rax. */
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
lock_site:
	lock incq 8(%rbx, %rdx)
	add	$64, %edx
	and	$16383, %edx
	dec	%ecx
	jnz	1b
	jmp	exit

random:	mov	$20000, %ecx		# CHANCES of tests.h
	movabs	$0x9e3779b97f4a7c15, %rax
	lea	either(%rip), %rdi
	lea	other(%rip), %rsi
chance:	mov	%rax, %rdx
	shl	$13, %rdx
	xor	%rdx, %rax
	mov	%rax, %rdx
	shr	$7, %rdx
	xor	%rdx, %rax
	mov	%rax, %rdx
	shl	$17, %rdx
	xor	%rdx, %rax
	mov	%rdi, %rdx
	test	$0x10000, %eax
	cmovz	%rsi, %rdx
	test	$0x100, %eax
branch_chance:
	jz	behind_chance
	nop
behind_chance:
branch_either:
	call	*%rdx
after_either:
	dec	%ecx
branch_chance_end:
	jnz	chance
	jmp	exit
	.balign	64
either:	ret
	.balign	64
other:	nop
branch_other:
	ret

/* A second thread runs on the first CPU. It has its turn while `whose` is even, the other thread
 * while odd. */
#define ROUNDS 40
handed:	mov	$1024, %r12d		# links: 16 pages
	mov	24(%rsp), %rsi
	call	number
	mov	%rax, %r13
	mov	32(%rsp), %rsi
	call	number
	mov	%rax, %r15
	mov	40(%rsp), %rsi
	movb	(%rsi), %r14b
	mov	$56, %eax		# clone
	mov	$0x50f00, %edi		# a thread: VM, FS, FILES, SIGHAND, THREAD, SYSVSEM
	lea	stack_end(%rip), %rsi
	xor	%edx, %edx
	xor	%r10d, %r10d
	xor	%r8d, %r8d
	syscall
	test	%rax, %rax
	js	fail
	jz	first

	mov	%r15, %rcx
	call	pin
	xor	%ebp, %ebp
1:	inc	%ebp			# odd: the second one's turn
	call	await
	call	read_chain
	inc	%ebp
	mov	%ebp, whose(%rip)
	cmp	$2 * ROUNDS, %ebp
	jb	1b
	xor	%edi, %edi
end_all:
	mov	$231, %eax		# exit_group
	syscall
fail:	mov	$1, %edi
	jmp	end_all

first:	mov	%r13, %rcx
	call	pin
	xor	%ebp, %ebp
1:	call	await
	call	write_chain
	cmpb	$'r', %r14b
	jne	3f
	call	flush
	mov	%rbx, %rdx
	mov	%r12, %rcx
2:	mov	(%rdx), %rax
	add	$64, %rdx
	dec	%rcx
	jnz	2b
3:	inc	%ebp
	mov	%ebp, whose(%rip)
	inc	%ebp
	cmp	$2 * ROUNDS, %ebp
	jb	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall

/* Waits until `whose` is ebp. */
await:	cmp	%ebp, whose(%rip)
	je	1f
	pause
	jmp	await
1:	ret

/* Keeps the thread on CPU rcx, which is below 1024. */
pin:	sub	$128, %rsp
	mov	%rsp, %rdi
	mov	%rcx, %r9
	mov	$16, %ecx
	xor	%eax, %eax
	rep stosq
	bts	%r9, (%rsp)
	mov	$203, %eax		# sched_setaffinity
	xor	%edi, %edi
	mov	$128, %esi
	mov	%rsp, %rdx
	syscall
	add	$128, %rsp
	test	%rax, %rax
	js	fail
	ret

	.bss
	.balign	4096
buffer:	.skip	64 << 20
whose:	.skip	64
	.skip	4096
stack_end:

	.section .note.GNU-stack, "", @progbits
