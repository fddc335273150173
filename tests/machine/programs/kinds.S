# One branch of each kind in a turn, for tests of the LBR's filter.
#
#: N = 30000
# In a turn: jz (taken), jnz (never), call, its ret, call *, its ret, jmp *, jmp, the loop's jnz.
#: BRANCHES = 9*N
#: TAKEN = 8*N - 1
# In a turn, outside of the leaves: cmp, jz, cmp, jnz, call, call *, jmp *, jmp, dec, jnz; in
# them: ret and nop, ret. Before the loop: mov, lea, lea. After it: mov, xor, syscall.
# Behind the loop the system call is a far branch.
#: BR_INST_RETIRED.ALL_BRANCHES = BRANCHES + 1
#: BR_INST_RETIRED.CONDITIONAL = 3*N
#: BR_INST_RETIRED.NEAR_CALL = 2*N
#: BR_INST_EXEC.ANY = BRANCHES
#: BR_INST_EXEC.TAKEN = TAKEN
#: BR_INST_EXEC.COND = 3*N
#: BR_INST_EXEC.DIRECT = N
#: BR_INST_EXEC.INDIRECT_NON_CALL = N
#: BR_INST_EXEC.NON_CALLS = 5*N
#: BR_INST_EXEC.RETURN_NEAR = 2*N
#: BR_INST_EXEC.DIRECT_NEAR_CALL = N
#: BR_INST_EXEC.INDIRECT_NEAR_CALL = N
#: INST_RETIRED.ANY_P = 13*N + 6

	.globl	_start, turn, jcc_taken, after_jcc, jcc_not, rel_call, ind_call, ind_jmp, rel_jmp
	.globl	after_ind_jmp, after_rel_jmp, loop_jcc, leaf, leaf_ret, other, other_ret
	.text
_start:	mov	$30000, %ecx
	lea	other(%rip), %rbx
	lea	after_ind_jmp(%rip), %r12
turn:	cmp	%eax, %eax
jcc_taken:
	jz	after_jcc
	ud2
after_jcc:
	cmp	%eax, %eax
jcc_not:
	jnz	turn
rel_call:
	call	leaf
ind_call:
	call	*%rbx
ind_jmp:
	jmp	*%r12
	ud2
after_ind_jmp:
rel_jmp:
	jmp	after_rel_jmp
	ud2
after_rel_jmp:
	dec	%ecx
loop_jcc:
	jnz	turn
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.balign	64
leaf:
leaf_ret:
	ret
	.balign	64
other:	nop
other_ret:
	ret
