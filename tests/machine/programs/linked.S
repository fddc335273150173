# A loop through 16 pages, one line in each. The pages lie 2 MiB apart, and in memory they don't: the emulator knows where
# a jump leads once it has taken it, and has to know then, too, of which page a line is fetched. So each is fetched once,
# however often the loop turns. What asks the kernel to move the pages ends its line: what the kernel displaces is not
# needed again.
#
#: PAGES = 16
#: TURNS = 100
#: INST_RETIRED.ANY_P = 47 + 37*PAGES + 3 + TURNS*(PAGES + 1) + 3
#: L1I.MISSES = 1 + PAGES + 1 + PAGES

	.set	BASE, 0x10000000
	.set	APART, 0x200000 + 128

	.globl	_start
	.text
	.balign	64
_start:	.skip	64 - 22, 0x90
	mov	$28, %eax		# madvise
	mov	$pages, %edi
	mov	$16 * 4096, %esi
	mov	$22, %edx		# MADV_POPULATE_READ
	syscall
	.set	page, 0
	.rept	16
	.skip	64 - 34, 0x90
	mov	$25, %eax		# mremap
	mov	$pages + page * 4096, %edi
	mov	$4096, %esi
	mov	$4096, %edx
	mov	$3, %r10d		# MREMAP_MAYMOVE | MREMAP_FIXED
	mov	$BASE + page * 0x200000, %r8d
	syscall
	.set	page, page + 1
	.endr
	mov	$100, %ecx
	mov	$BASE + 64, %eax
	jmp	*%rax

	.balign	4096
pages:	.set	page, 0
	.rept	15
	.skip	64 + page * 128
	jmp	. + APART
	.balign	4096
	.set	page, page + 1
	.endr
	.skip	64 + page * 128
	dec	%ecx
	jnz	. - 2 - 15 * APART
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.balign	4096
