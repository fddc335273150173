/* SPDX-License-Identifier: GPL-2.0-only */
/* Demangles C++ and Rust symbols. */
#pragma once

#include <stddef.h>

/*
 * The length of an ELF symbol without its version ("realpath@@GLIBC_2.3", "realpath@GLIBC_2.2.5"), which ld
 * appends in .symtab. Both parts must look like what they are, because names of other languages contain "@":
 * Crystal's "*Array(Int32)@Array(T)#each". Nor is "puts@plt" a version.
 */
size_t unversioned(const char *symbol);

/*
 * Writes the symbol in readable form: demangled if it is a mangled name of C++ (Itanium ABI) or Rust (both
 * manglings), otherwise unchanged. If it is longer than size - 1 bytes, it is cut and ends with "…". Bytes
 * that are not UTF-8 are kept. Returns the length.
 */
size_t demangle(const char *symbol, char *text, size_t size);
