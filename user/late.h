/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Libraries that few runs need, and that bring thirty others with them: they are loaded when they are wanted
 * for the first time, so that all other runs start without. Their functions are called by their own names,
 * once the library has been loaded. On the main thread.
 */
#ifndef NHMTAP_LATE_H
#define NHMTAP_LATE_H

/* Load the library; again does nothing. Return NULL, or the reason why it is not there, in the words of
 * dlerror(3), which are valid up to its next call. */
const char *late_libcurl(void);
const char *late_libmicrohttpd(void);
const char *late_libseccomp(void);

#endif
