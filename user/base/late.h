/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Libraries that few runs need, and that depend on thirty others. They are loaded when they are first needed,
 * so that other runs start without them. Once a library is loaded, its functions are called by their own
 * names. To be used on the main thread only.
 */
#ifndef NHMTAP_LATE_H
#define NHMTAP_LATE_H

/* Load the library, unless it is already loaded. Return NULL, or why it can't be loaded, as from dlerror(3),
 * valid until the next call of that. */
const char *late_libcurl(void);
const char *late_libmicrohttpd(void);
const char *late_libseccomp(void);

#endif
