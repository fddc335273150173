# Stores at known addresses. usage: stores KIND
#
# p  16 passes over 4096 lines with a store each (plain_store), then one with
#    lock incl (locked_store)
#: plain.stores = 17 * 4096
#: plain.loads = 4096
#: plain.locked = 4096
#: plain.instructions = 16 * (2 + 4 * 4096) + 2 + 4 * 4096
# t  5 circles over 4096 small pages with a store each (page_store): no page is in the
#    second-level TLB when its turn comes, as in stride
#: tlb.stores = 5 * 4096
#: tlb.missed = 5 * 4096
# f  1000 x (clflush, mfence, store): flushed_store finds nothing in the L1 cache
#: flushed.stores = 1 + 1000
# z  1000 x stores of 1, 2, 4, 8 and 16 bytes and rep stosb of 4 (size_1 to size_16, size_rep)
#: sizes.stores = 6 * 1000
# s  1000 x a store and a load across the end of a line (split_store, split_load)
#: split.stores = 1000
#: split.loads = 1000

#include "pages.inc"

	.globl	_start, plain_store, locked_store, page_store, flushed_store, split_store, split_load
	.globl	size_1, size_2, size_4, size_8, size_16, size_rep, store_lines
	.text
_start:	mov	16(%rsp), %rsi		# argv[1]
	movzbl	(%rsi), %eax
	cmp	$'t', %al
	je	tlb
	cmp	$'f', %al
	je	flushed
	cmp	$'z', %al
	je	sizes
	cmp	$'s', %al
	je	split

	mov	$16, %r13d
1:	mov	$4096, %ecx
	mov	$store_lines, %ebx
2:
plain_store:
	mov	%rcx, (%rbx)
	add	$64, %rbx
	dec	%ecx
	jnz	2b
	dec	%r13d
	jnz	1b
	mov	$4096, %ecx
	mov	$store_lines, %ebx
2:
locked_store:
	lock incl (%rbx)
	add	$64, %rbx
	dec	%ecx
	jnz	2b
quit:	mov	$60, %eax
	xor	%edi, %edi
	syscall

tlb:	small_pages
	mov	$5, %r13d		# the first circle gives each page its frame
1:	mov	$4096, %ecx
	mov	%rbx, %rdx
2:
page_store:
	mov	%rcx, (%rdx)
	add	$4096, %rdx
	dec	%ecx
	jnz	2b
	dec	%r13d
	jnz	1b
	jmp	quit

flushed: mov	$store_lines, %ebx
	movb	$1, (%rbx)
	mov	$1000, %ecx
1:	clflush	(%rbx)
	mfence
flushed_store:
	mov	%rcx, (%rbx)
	dec	%ecx
	jnz	1b
	jmp	quit

sizes:	mov	$store_lines, %ebx
	mov	$1000, %r13d
1:
size_1:	mov	%al, (%rbx)
size_2:	mov	%ax, 16(%rbx)
size_4:	mov	%eax, 32(%rbx)
size_8:	mov	%rax, 56(%rbx)		# as far as the line goes
size_16: movaps	%xmm0, 64(%rbx)
	mov	$4, %ecx
	lea	128(%rbx), %edi
size_rep: rep stosb
	dec	%r13d
	jnz	1b
	jmp	quit

split:	mov	$store_lines, %ebx
	mov	$1000, %ecx
1:
split_store:
	mov	%rcx, 60(%rbx)
split_load:
	mov	124(%rbx), %rax
	dec	%ecx
	jnz	1b
	jmp	quit

	.bss
	.balign	4096
store_lines: .skip 64 * 4096
