# SPDX-License-Identifier: GPL-2.0-only
# Calls with frame pointers. The number of instructions that retire below each caller is known.
#
# A round goes from main to left, which calls work once, and to right, which calls it twice; work is a loop
# of LOOPS times two instructions. `calls kernel` asks for the parent's pid in each round instead, by ask.
#
#: ROUNDS = 2000
#: LOOPS = 100
#: left.instructions = ROUNDS * 2 * LOOPS
#: right.instructions = 2 * ROUNDS * 2 * LOOPS
	.equ ROUNDS, 2000
	.equ LOOPS, 100
	.equ SYS_getppid, 110
	.equ SYS_exit, 60

	.macro begin name
	.type \name, @function
	.globl \name
\name:
	push %rbp
	mov %rsp, %rbp
	.endm
	.macro end name
	pop %rbp
	ret
	.size \name, . - \name
	.endm

	.type _start, @function
	.globl _start
_start:
	mov (%rsp), %r13		# arguments
	xor %ebp, %ebp
	call main
	xor %edi, %edi
	mov $SYS_exit, %eax
	syscall
	.size _start, . - _start

begin main
	mov $ROUNDS, %ebx
1:	cmp $1, %r13
	jne 2f
	call left
	call right
	jmp 3f
2:	call ask
3:	dec %ebx
	jnz 1b
end main

begin left
	call work
end left

begin right
	call work
	call work
end right

begin work
	mov $LOOPS, %ecx
1:	dec %ecx
	jnz 1b
end work

begin ask
	mov $SYS_getppid, %eax
	syscall
end ask
