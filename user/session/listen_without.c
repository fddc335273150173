// SPDX-License-Identifier: GPL-2.0-only
/* Takes the place of listen.c in a program that is built without libmicrohttpd. */
#include "base/late.h"
#include "session/listen.h"

DEFINE_LATE_WITHOUT(libmicrohttpd);

int listen_check(const char *option, const char *value, struct refusal *refusal)
{
	return late_need(&libmicrohttpd, option, value, refusal);
}

int listen_open(struct listen **listen, const char *place, struct session *session, struct refusal *refusal)
{
	return place ? listen_check(LISTEN_OPTION, place, refusal) : 0;
}

void listen_close(struct listen *listen)
{
}
