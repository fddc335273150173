// SPDX-License-Identifier: GPL-2.0-only
/* Takes the place of push.c in a program that is built without libcurl. */
#include "base/late.h"
#include "output/push.h"

DEFINE_LATE_WITHOUT(libcurl);

static struct push *refuse_push(const char *url, struct document_kind kind, const struct push_access *access,
				struct refusal *refusal)
{
	late_need(&libcurl, PUSH_OPTION, url, refusal);
	return NULL;
}

const struct pusher pusher = {.open = refuse_push};
