# Divisions, square roots and multiplications of every width, each with its latency.
#
# A turn is, of unsigned and signed integers, 1 division of 8 bits, 2 of 16, 3 of 32 and 4 of 64;
# 2 scalar and 1 packed single, 3 scalar and 1 packed double, and a square root of each; of the x87 2 by
# registers, 4 by numbers in memory and a square root; 2 multiplications of integers, one each of the x87, of
# SSE and of MMX registers.
# The divider is busy until the cycle in which a division retires: for one cycle less than its latency.
#
#: N = 1000
#: integers = (1*15 + 2*19 + 3*22 + 4*58) + (1*15 + 2*20 + 3*22 + 4*68)
#: singles = (2 + 1)*13 + 2*17
#: doubles = (3 + 1)*21 + 2*31
#: divisions = (10 + 10 + 5 + 6 + 7) * N
#: ARITH.CYCLES_DIV_BUSY = (integers + singles + doubles + 7*26)*N
#: ARITH.MUL = 5*N
#: SSEX_UOPS_RETIRED.SCALAR_DOUBLE = 4*N

	.globl	_start
	.text
	.macro	widths what
	mov	$100, %eax
	\what	%bl
	.irp	register, %bx, %bx, %ebx, %ebx, %ebx, %rbx, %rbx, %rbx, %rbx
	xor	%edx, %edx
	mov	$100, %eax
	\what	\register
	.endr
	.endm

_start:	mov	$1000, %ecx
	mov	$7, %ebx
	lea	ones(%rip), %rsi
	movaps	(%rsi), %xmm0
	movapd	16(%rsi), %xmm1
1:	widths	div
	widths	idiv
	divss	%xmm0, %xmm0
	divss	(%rsi), %xmm0
	divps	%xmm0, %xmm0
	sqrtss	%xmm0, %xmm0
	sqrtps	(%rsi), %xmm0
	divsd	%xmm1, %xmm1
	divsd	%xmm1, %xmm1
	divsd	16(%rsi), %xmm1
	divpd	%xmm1, %xmm1
	sqrtsd	%xmm1, %xmm1
	sqrtpd	16(%rsi), %xmm1
	fld1
	fld1
	fdiv	%st(1), %st
	fdivs	(%rsi)
	fdivrl	16(%rsi)
	fidivl	32(%rsi)
	fidivrs	32(%rsi)
	fsqrt
	fmul	%st(1), %st
	fdivrp
	fstp	%st(0)
	imul	%ebx, %eax
	mul	%ebx
	mulps	(%rsi), %xmm0
	pmullw	%mm0, %mm1
	emms
	dec	%ecx
	jnz	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall

	.data
	.balign	64
ones:	.float	1, 1, 1, 1
	.double	1, 1
	.long	1
