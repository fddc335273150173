/* SPDX-License-Identifier: GPL-2.0-only */
/* Prints versions, for bug reports. */
#pragma once

/* Prints on stdout, one per line, the build id, the versions of the libraries in use, and features of this
 * kernel. */
void versions_print(void);

/* Prints the same, and nhmtap's version, as a `version` record. */
void versions_print_json(void);
