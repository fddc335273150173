# One loop with every kind of instruction that the counters distinguish.
#
# The numbers follow from the text below; known.py reads the lines with "#:".
# Before the loop 3 instructions, after it 3 with a system call, which is a far
# branch, and so none for BR_INST_EXEC. A turn is 16 instructions and, every second
# time, one more. Of these
#   loads     mov, mov, add, pop and the two returns
#   stores    mov, add, push and the two calls
#   branches  two calls, two returns, jz, jmp and jnz
# jz is taken for every second value of the loop counter, jnz in all turns but
# the last one.
#
#: N = 20000
#: INST_RETIRED.ANY_P = 3 + 16*N + N//2 + 3
#: MEM_INST_RETIRED.LOADS = 6*N
#: MEM_INST_RETIRED.STORES = 5*N
#: BR_INST_RETIRED.ALL_BRANCHES = 7*N + 1
#: BR_INST_RETIRED.CONDITIONAL = 2*N
#: BR_INST_RETIRED.NEAR_CALL = 2*N
#: BR_INST_EXEC.ANY = 7*N
#: BR_INST_EXEC.COND = 2*N
#: BR_INST_EXEC.DIRECT = N
#: BR_INST_EXEC.RETURN_NEAR = 2*N
#: BR_INST_EXEC.DIRECT_NEAR_CALL = N
#: BR_INST_EXEC.INDIRECT_NEAR_CALL = N
#: BR_INST_EXEC.NEAR_CALLS = 2*N
#: BR_INST_EXEC.TAKEN = 2*N + 2*N + N//2 + N + (N - 1)

	.globl	_start
	.text
_start:	mov	$20000, %ecx
	lea	buffer(%rip), %rbx
	lea	indirect(%rip), %rsi
1:	mov	(%rbx), %rax
	mov	64(%rbx), %rdx
	mov	%rax, 128(%rbx)
	add	%rdx, 192(%rbx)
	push	%rax
	pop	%rax
	call	direct
	call	*%rsi
	test	$1, %cl
	jz	2f
	nop
2:	jmp	3f
3:	dec	%ecx
	jnz	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall

	.balign	64
direct:	ret
	.balign	64
indirect:
	nop
	ret

	.bss
	.balign	4096
buffer:	.skip	4096
