// SPDX-License-Identifier: GPL-2.0-only
#include "run/run.h"

#include <stdlib.h>

#include "option/option.h"

void asked_release(struct asked *asked)
{
	if (!asked)
		return;
	options_release(&asked->options);
	json_decref(asked->value);
	free(asked->name);
	free(asked);
}

void request_release(struct request *request)
{
	for (size_t i = 0; i < request->nr_entries; i++)
		asked_release(request->entries[i]);
	free(request->entries);
	free(request->outputs);
	json_decref(request->document);
	*request = (struct request){0};
}
