// SPDX-License-Identifier: GPL-2.0-only
/* /metrics: the page for scraping, made by the openmetrics output. */
#include "base/clock.h"
#include "output/text.h"
#include "session/listen.h"
#include "session/session.h"

/* At the end of a session, it has its last page until all else is written. */
static struct stream *scraped(const struct session *session)
{
	for (size_t i = 0; i < session->nr_streams; i++)
		if (session->streams[i].scraped && !timespec_is_set(&session->streams[i].leaving.since))
			return &session->streams[i];
	return NULL;
}

static unsigned int answer_metrics(struct session *session, struct text *body, const char **type)
{
	struct stream *stream = scraped(session);

	if (!stream) {
		text_add(body, "no output goes here: -o openmetrics=" LISTEN "\n");
		return PAGE_NONE;
	}
	stream->format->page(stream, body);
	*type = stream->format->media;
	return PAGE_OK;
}

static const struct page metrics = {"/metrics", answer_metrics};
REGISTER_PAGE(metrics);
