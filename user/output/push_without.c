// SPDX-License-Identifier: GPL-2.0-only
/* Takes the place of push.c in a program that is built without libcurl. */
#include "base/late.h"
#include "output/push.h"

DEFINE_LATE_WITHOUT(libcurl);

static int refuse_url(const char *url, struct document_kind kind, struct refusal *refusal)
{
	return late_need(&libcurl, PUSH_OPTION, url, refusal);
}

static struct push *refuse_push(const char *url, struct document_kind kind, const struct push_access *access,
				struct refusal *refusal)
{
	late_need(&libcurl, PUSH_OPTION, url, refusal);
	return NULL;
}

const struct pusher pusher = {.check = refuse_url, .open = refuse_push};
