# SPDX-License-Identifier: GPL-2.0-only
#
# variants: a store to a page that is touched for the first time in each of some functions, with debug information
# that compilers of C do not write: a type that is one of several variants, as enums of Rust are, and a variable at the
# begin of the frame, as Go keeps arguments that calls would overwrite. And some that no compiler writes: the largest
# of sizes, and an empty name.
#
#     enum Choice { None, Some(Leaf) }        the number that tells them apart is in the first 8 bytes
#     struct Leaf { weight, count }
#     struct Endless { weight }               of 2^64 - 1 bytes

	.text
	.globl	main
begin:

# Choice *to is in rdi.
	.type	in_variant, @function
in_variant:
	.cfi_startproc
	movq	$1, 16(%rdi)
	ret
	.cfi_endproc
	.size	in_variant, . - in_variant
in_variant_end:

	.type	which_variant, @function
which_variant:
	.cfi_startproc
	movq	$1, (%rdi)
	ret
	.cfi_endproc
	.size	which_variant, . - which_variant
which_variant_end:

# Leaf *to is on the stack, above the return address.
	.type	from_frame, @function
from_frame:
	.cfi_startproc
	mov	8(%rsp), %rax
	movq	$1, 8(%rax)
	ret
	.cfi_endproc
	.size	from_frame, . - from_frame
from_frame_end:

# Endless *to and another one, half of all addresses away, are known by rdi.
	.type	apart, @function
apart:
	.cfi_startproc
	movq	$1, (%rdi)
	ret
	.cfi_endproc
	.size	apart, . - apart
apart_end:

# A pointer to a number whose type has an empty name is in rdi.
	.type	nameless, @function
nameless:
	.cfi_startproc
	movq	$1, (%rdi)
	ret
	.cfi_endproc
	.size	nameless, . - nameless
nameless_end:

	.type	main, @function
main:	mov	$9, %eax		# mmap
	xor	%edi, %edi
	mov	$5 * 4096, %esi
	mov	$3, %edx		# PROT_READ | PROT_WRITE
	mov	$0x22, %r10d		# MAP_PRIVATE | MAP_ANONYMOUS
	mov	$-1, %r8
	xor	%r9d, %r9d
	syscall
	push	%rax
	mov	%rax, %rdi
	call	in_variant
	lea	4096(%rdi), %rdi
	call	which_variant
	addq	$8192, (%rsp)
	call	from_frame
	pop	%rdi
	lea	4096(%rdi), %rdi
	call	apart
	lea	4096(%rdi), %rdi
	call	nameless
	xor	%eax, %eax
	ret
	.size	main, . - main
end:
	.section .note.GNU-stack, "", @progbits

	.section .debug_abbrev, "", @progbits
# A tag, whether it has children, and pairs of attribute and form.
	.macro	abbreviation code, tag, children, pairs:vararg
	.uleb128 \code, \tag
	.byte	\children
	.uleb128 \pairs, 0, 0
	.endm
	abbreviation 1, 0x11, 1, 0x11, 0x01, 0x12, 0x01		# compile_unit: low_pc, high_pc
	abbreviation 2, 0x24, 0, 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b	# base_type: name, byte_size, encoding
	abbreviation 3, 0x13, 1, 0x03, 0x08, 0x0b, 0x0b		# structure_type: name, byte_size
	abbreviation 4, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x0b	# member: name, type, data_member_location
	abbreviation 5, 0x0f, 0, 0x49, 0x13			# pointer_type: type
	abbreviation 6, 0x33, 1, 0x15, 0x13			# variant_part: discr
	abbreviation 7, 0x0d, 0, 0x49, 0x13, 0x38, 0x0b, 0x34, 0x19	# member: type, data_member_location, artificial
	abbreviation 8, 0x19, 1, 0x16, 0x0b			# variant: discr_value
	abbreviation 9, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x01	# subprogram: name, low_pc, high_pc
	abbreviation 10, 0x05, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x0a	# formal_parameter: name, type, location (as Go has it, block1)
	abbreviation 11, 0x13, 0, 0x03, 0x08, 0x0b, 0x0b	# structure_type without members
	abbreviation 12, 0x13, 1, 0x03, 0x08, 0x0b, 0x07	# structure_type: name, byte_size of 8 bytes
	.byte	0

	.section .debug_info, "", @progbits
unit:	.long	unit_end - unit_begin
unit_begin:
	.value	4
	.long	.debug_abbrev
	.byte	8
	.uleb128 1
	.quad	begin, end
number:	.uleb128 2
	.string	"u64"
	.byte	8, 7
leaf:	.uleb128 3
	.string	"Leaf"
	.byte	16
	.macro	member name, type, at
	.uleb128 4
	.string	"\name"
	.long	\type - unit
	.byte	\at
	.endm
	member	weight, number, 0
	member	count, number, 8
	.byte	0
none:	.uleb128 11
	.string	"None"
	.byte	24
some:	.uleb128 3
	.string	"Some"
	.byte	24
	member	__0, leaf, 8
	.byte	0
choice:	.uleb128 3
	.string	"Choice"
	.byte	24
	.uleb128 6
	.long	which - unit
which:	.uleb128 7
	.long	number - unit
	.byte	0
	.uleb128 8
	.byte	0
	member	None, none, 0
	.byte	0
	.uleb128 8
	.byte	1
	member	Some, some, 0
	.byte	0
	.byte	0			# of the variant_part
	.byte	0			# of Choice
endless: .uleb128 12
	.string	"Endless"
	.quad	-1
	member	weight, number, 0
	.byte	0
unnamed: .uleb128 2
	.string	""
	.byte	8, 7
to_choice: .uleb128 5
	.long	choice - unit
to_leaf: .uleb128 5
	.long	leaf - unit
to_endless: .uleb128 5
	.long	endless - unit
to_unnamed: .uleb128 5
	.long	unnamed - unit
	.macro	begin_function name
	.uleb128 9
	.string	"\name"
	.quad	\name, \name\()_end
	.endm
	.macro	parameter name, type, location:vararg
	.uleb128 10
	.string	"\name"
	.long	\type - unit
	.uleb128 2f - 1f
1:	\location
2:
	.endm
	.macro	function name, type, location
	begin_function \name
	parameter to, \type, .byte \location
	.byte	0
	.endm
	function in_variant, to_choice, 0x55	# DW_OP_reg5
	function which_variant, to_choice, 0x55
	function from_frame, to_leaf, 0x9c	# DW_OP_call_frame_cfa
	begin_function apart
	parameter to, to_endless, .byte 0x75, 0, 0x9f			# DW_OP_breg5 0, DW_OP_stack_value
	parameter other, to_endless, .byte 0x75, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, 0x9f	# -2^63
	.byte	0
	function nameless, to_unnamed, 0x55
	.byte	0
unit_end:
