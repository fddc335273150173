/* SPDX-License-Identifier: GPL-2.0-only */
/* nhmtap's exit status, unless it returns that of a command. */
#pragma once

enum status {
	STATUS_DONE = 0,
	STATUS_USAGE = 1,      /* the request is wrong: options, event names, values */
	STATUS_REFUSED = 2,    /* the request is right, but this machine or its permissions refuse it */
	STATUS_PARTIAL = 3,    /* records are missing, or an expectation can't be decided from the counts */
	STATUS_UNEXPECTED = 4, /* an expectation, or a test of doctor --selftest, has failed */
	/* As in a shell, for a COMMAND that never ran. */
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL = 128, /* + the signal's number */
};
