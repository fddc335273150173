# Loads a page apart over 16 MiB of small pages, four times.
#
# usage: stride [apart]
#
# 4096 pages are 32 for each of the 128 sets of the second-level TLB, which have
# 4 ways: read in a circle under LRU, no page is there when its turn comes.
#
#: loads = 4 * 4096
#
# The page-table entries take 512 lines of 8 entries each. Loads from the first line of each page
# leave these in the second-level cache: the loaded lines are in 8 of its 512 sets. With an argument
# each load is from another line of its page. Then each set gets as many loaded lines as it has
# ways, and one line of entries: under LRU this one has been evicted when its turn comes, and is
# found in the LLC.
#: entries.lines = 512

#include "pages.inc"

	.globl	_start, stride_site
	.text
_start:	xor	%r12d, %r12d
	cmpl	$2, (%rsp)		# argc
	jb	begin
	mov	$63, %r12d
begin:	small_pages
	mov	$4096, %ecx		# a page frame for each
	mov	%rbx, %rdx
1:	movb	$1, (%rdx)
	add	$4096, %rdx
	dec	%ecx
	jnz	1b

	mov	$4, %r13d
2:	mov	$4096, %ecx
	mov	%rbx, %rdx
3:	mov	%ecx, %esi
	and	%r12d, %esi
	shl	$6, %esi
stride_site:
	mov	(%rdx,%rsi), %rax
	add	$4096, %rdx
	dec	%ecx
	jnz	3b
	dec	%r13d
	jnz	2b
	mov	$60, %eax
	xor	%edi, %edi
	syscall
