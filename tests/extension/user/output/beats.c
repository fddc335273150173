// SPDX-License-Identifier: GPL-2.0-only
/* A format that the program does not have. This file is all that it needs. */
#include "output/member.h"
#include "output/output.h"
#include "output/text.h"

static int check_beats(const struct stream *stream, const struct options *options, size_t nr_events,
		       struct refusal *refusal)
{
	if (nr_events < 2)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --format beats with several events");
	return because(refusal, "a beat is of one");
}

static int write_beats(struct stream *stream, const json_t *record)
{
	struct text text = {0};
	int err;

	text_add(&text, "%s of %s\n", string(record, "type"), string(record, "activity"));
	err = sink_put(&stream->sink, text.bytes, text.used);
	free(text.bytes);
	return err;
}

static const struct format beats = {
	.name = "beats",
	.help = "a format of a test",
	.commands = "pulse",
	.check = check_beats,
	.write = write_beats,
};
REGISTER_FORMAT(beats);
