/* SPDX-License-Identifier: GPL-2.0-only */
/* Demangles C++ and Rust symbols. */
#ifndef NHMTAP_DEMANGLE_H
#define NHMTAP_DEMANGLE_H

#include <stddef.h>

/*
 * Writes the symbol in readable form: demangled if it is a mangled name of C++ (Itanium ABI) or Rust (both
 * manglings), otherwise unchanged, but without its version ("@@GLIBC_2.34"). If it is longer than size - 1
 * bytes, it is cut and ends with "…". Bytes that are not UTF-8 are kept. Returns the length.
 */
size_t demangle(const char *symbol, char *text, size_t size);

#endif
