# Floating point and vector operations, a different number of each kind.
#
# A turn is 2 packed single, 3 scalar single, 4 packed double, 5 scalar double,
# 6 integer operations on XMM registers and 7 on MMX registers; fld1, fld1, 2
# times fadd and faddp, fstp; one imul. Moves, logic and emms are not operations,
# but fld and fstp are x87 instructions and emms is an MMX one.
# "FP_COMP_OPS_EXE.X87" also counts integer multiplications, by Intel's description.
#
#: N = 1000
#: SSEX_UOPS_RETIRED.PACKED_SINGLE = 2*N
#: SSEX_UOPS_RETIRED.SCALAR_SINGLE = 3*N
#: SSEX_UOPS_RETIRED.PACKED_DOUBLE = 4*N
#: SSEX_UOPS_RETIRED.SCALAR_DOUBLE = 5*N
#: SSEX_UOPS_RETIRED.VECTOR_INTEGER = 6*N
#: FP_COMP_OPS_EXE.SSE_FP = (2 + 3 + 4 + 5)*N
#: FP_COMP_OPS_EXE.SSE_FP_PACKED = (2 + 4)*N
#: FP_COMP_OPS_EXE.SSE_FP_SCALAR = (3 + 5)*N
#: FP_COMP_OPS_EXE.SSE_SINGLE_PRECISION = (2 + 3)*N
#: FP_COMP_OPS_EXE.SSE_DOUBLE_PRECISION = (4 + 5)*N
#: FP_COMP_OPS_EXE.SSE2_INTEGER = 6*N
#: FP_COMP_OPS_EXE.MMX = 7*N
#: FP_COMP_OPS_EXE.X87 = (3 + 1)*N
#: ARITH.MUL = (3 + 2 + 1)*N
#: INST_RETIRED.X87 = (2 + 3 + 1)*N
#: INST_RETIRED.MMX = (7 + 1)*N

	.globl	_start
	.text
_start:	mov	$1000, %ecx
	lea	ones(%rip), %rbx
1:	addps	%xmm0, %xmm1
	mulps	%xmm0, %xmm1
	movaps	(%rbx), %xmm0
	xorps	%xmm2, %xmm2
	addss	%xmm2, %xmm3
	mulss	(%rbx), %xmm3
	ucomiss	%xmm2, %xmm3
	movss	(%rbx), %xmm4
	addpd	%xmm4, %xmm5
	subpd	%xmm4, %xmm5
	maxpd	(%rbx), %xmm5
	sqrtpd	%xmm5, %xmm6
	movsd	(%rbx), %xmm6
	addsd	%xmm6, %xmm7
	subsd	%xmm6, %xmm7
	mulsd	(%rbx), %xmm7
	divsd	%xmm0, %xmm7
	cvtsi2sd %ecx, %xmm7
	paddd	%xmm0, %xmm1
	psubb	%xmm0, %xmm1
	pmullw	%xmm0, %xmm1
	pcmpeqb	%xmm0, %xmm1
	punpcklbw %xmm0, %xmm1
	pshufd	$0, %xmm0, %xmm1
	paddb	%mm0, %mm1
	paddw	%mm0, %mm1
	psubd	%mm0, %mm1
	pmullw	%mm0, %mm1
	pand	%mm0, %mm1
	por	%mm0, %mm1
	pxor	%mm1, %mm1
	emms
	fld1
	fld1
	fadd	%st(1), %st
	fadd	%st(1), %st
	faddp
	fstp	%st(0)
	imul	%ecx, %edx
	dec	%ecx
	jnz	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall

	.data
	.balign	64
ones:	.float	1, 1, 1, 1
