// SPDX-License-Identifier: GPL-2.0-only
#include "output/texts.h"

#include <string.h>

#include "record/record.h"

void numbered_texts_init(struct numbered_texts *texts)
{
	*texts = (struct numbered_texts){json_array(), json_object()};
}

void numbered_texts_release(struct numbered_texts *texts)
{
	json_decref(texts->list);
	json_decref(texts->numbers);
}

__u32 text_number(struct numbered_texts *texts, const char *text)
{
	json_t *value = value_text(text, strlen(text));
	json_t *known = json_object_get(texts->numbers, json_string_value(value));

	if (!known) {
		known = json_integer(json_array_size(texts->list));
		json_object_set_new(texts->numbers, json_string_value(value), known);
		json_array_append(texts->list, value);
	}
	json_decref(value);
	return json_integer_value(known);
}

const char *text_of_number(const struct numbered_texts *texts, __u32 number)
{
	return json_string_value(json_array_get(texts->list, number));
}
