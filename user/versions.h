/* SPDX-License-Identifier: GPL-2.0-only */
/* Versions, for the head of a bug report. */
#ifndef NHMTAP_VERSIONS_H
#define NHMTAP_VERSIONS_H

/* Prints the build id, the versions of the libraries that run, and what this kernel has, a line each, on
 * stdout. */
void versions_print(void);

/* Prints the same, and nhmtap's version, as a version record. */
void versions_print_json(void);

#endif
