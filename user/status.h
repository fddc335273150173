/* SPDX-License-Identifier: GPL-2.0-only */
/* What nhmtap's exit status says when there is no command whose own status it passes on. */
#ifndef NHMTAP_STATUS_H
#define NHMTAP_STATUS_H

enum status {
	STATUS_DONE = 0,
	STATUS_USAGE = 1,      /* the request is wrong: options, event names, values */
	STATUS_REFUSED = 2,    /* the request is right; this machine or its permissions refuse it */
	STATUS_PARTIAL = 3,    /* there are records, but not all that should be there; or an expectation of
				* which the counts can't tell */
	STATUS_UNEXPECTED = 4, /* an expectation, or a test of doctor --selftest, has failed */
	/* As the shell has it, for a COMMAND that never ran. */
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL = 128, /* + the signal's number */
};

#endif
