# A call graph with known edges, and branches that follow a known pseudo-random
# sequence, which no predictor can predict.
#
#     main ── main_a ──▶ a ── a_b ──▶ b
#          ── main_x ──▶ c or d, by one bit of a pseudo-random sequence
#          ── coin jumps or not, by another bit of it
#
# The sequence is x = x * 1103515245 + 12345 modulo 2^32 from x = 305419896; bit
# 30 chooses between c and d, bit 29 between jumping and not. A predictor that
# remembers the last target is wrong when bit 30 changes.
#
#: N = 20000
#: BR_INST_RETIRED.NEAR_CALL = 3*N
#: BR_INST_EXEC.RETURN_NEAR = 3*N
#: BR_INST_EXEC.INDIRECT_NEAR_CALL = N
#: BR_INST_RETIRED.CONDITIONAL = 2*N

	.globl	_start, main_a, main_x, a_b, a, b, c, d, coin, coin_to
	.text
_start:	mov	$20000, %ecx
	mov	$305419896, %eax
	lea	table(%rip), %rbx
1:	imul	$1103515245, %eax, %eax
	add	$12345, %eax
main_a:	call	a
	mov	%eax, %edx
	shr	$30, %edx
	and	$1, %edx
main_x:	call	*(%rbx, %rdx, 8)
	bt	$29, %eax
coin:	jc	coin_to
	nop
coin_to:
	dec	%ecx
	jnz	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.balign	64
a:	nop
a_b:	call	b
	ret
	.balign	64
b:	ret
	.balign	64
c:	nop
	ret
	.balign	64
d:	nop
	nop
	ret

	.data
	.balign	64
table:	.quad	c, d
