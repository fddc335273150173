/* SPDX-License-Identifier: GPL-2.0-only */
/* C++ and Rust names as they are in the source. */
#ifndef NHMTAP_DEMANGLE_H
#define NHMTAP_DEMANGLE_H

#include <stddef.h>

/*
 * Writes the symbol as people know it: demangled if it is a mangled name of C++ (Itanium ABI) or Rust
 * (both of its manglings), else itself, without a version ("@@GLIBC_2.34"). What is longer than size - 1
 * bytes is cut and ends with "…"; what is no UTF-8 stays as it is. Returns the length.
 */
size_t demangle(const char *symbol, char *text, size_t size);

#endif
