/* SPDX-License-Identifier: GPL-2.0-only */
/* Why data has no type: words as they are in records. */
#pragma once

#define TYPE_NO_DWARF	 "no_dwarf"    /* the file has no debug information */
#define TYPE_UNDESCRIBED "undescribed" /* debug information does not say what is there */
#define TYPE_INCOMPLETE	 "incomplete"  /* it does, but not with a complete type */
/* Through the instruction: it has no code that can be read, or followed in a moment; accesses no memory by
 * one operand alone; pushes, pops, calls or returns, or keeps a register of the caller's, which data of the
 * source takes no part in; accesses the stack where no variable is known; no variable is known to be in its
 * register, or it points to nothing that has a known type there. */
#define TYPE_NO_CODE	 "no_code"
#define TYPE_NO_OPERAND	 "no_operand"
#define TYPE_OF_STACK	 "stack_operation"
#define TYPE_STACK	 "stack"
#define TYPE_NO_REGISTER "no_register"
#define TYPE_NO_POINTER	 "no_pointer"
/* Without a look at a file: it is memory without a variable, the kernel's, not known, or there was no time.
 */
#define TYPE_NO_VARIABLE "no_variable"
#define TYPE_KERNEL	 "kernel"
#define TYPE_UNKNOWN	 "unknown"
#define TYPE_NO_TIME	 "no_time"
