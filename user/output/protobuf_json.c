// SPDX-License-Identifier: GPL-2.0-only
#include "output/protobuf_json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/memory.h"

typedef ProtobufCFieldDescriptor field_t;

/* string_value as "stringValue": */
static void put_name(struct compact *out, const char *name)
{
	compact_add(out, "\"", 1);
	for (bool upper = false; *name; name++) {
		char letter = upper ? toupper(*name) : *name;

		upper = *name == '_';
		if (!upper)
			compact_add(out, &letter, 1);
	}
	compact_add(out, "\":", 2);
}

static void put_string(struct compact *out, const char *text)
{
	json_t *value = json_string(text);

	compact_add_value(out, value);
	json_decref(value);
}

static void put_bytes(struct compact *out, const field_t *field, const ProtobufCBinaryData *bytes)
{
	bool hex = !strcmp(field->name, "trace_id") || !strcmp(field->name, "span_id");
	char *text = hex ? xcalloc(2, bytes->len + 1) : base64_text(bytes->data, bytes->len);

	if (hex)
		hex_text(text, bytes->data, bytes->len);
	put_string(out, text);
	free(text);
}

/* Integers of 64 bits are strings, since JavaScript's numbers can't hold them. */
static void put_wide(struct compact *out, uint64_t number, bool negative)
{
	char text[32];

	snprintf(text, sizeof(text), negative ? "\"%lld\"" : "\"%llu\"", (unsigned long long)number);
	compact_add_text(out, text);
}

static void put_real(struct compact *out, double number)
{
	json_t *value = json_real(number);

	compact_add_value(out, value);
	json_decref(value);
}

static void put_value(struct compact *out, const field_t *field, const void *at)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		protobuf_json(out, *(ProtobufCMessage *const *)at);
		break;
	case PROTOBUF_C_TYPE_STRING:
		put_string(out, *(char *const *)at);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		put_bytes(out, field, at);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		compact_add_text(out, *(const protobuf_c_boolean *)at ? "true" : "false");
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		put_real(out, *(const double *)at);
		break;
	case PROTOBUF_C_TYPE_INT32:
		compact_add_integer(out, *(const int32_t *)at);
		break;
	case PROTOBUF_C_TYPE_INT64:
		put_wide(out, *(const uint64_t *)at, true);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		put_wide(out, *(const uint64_t *)at, false);
		break;
	default:
		abort(); /* a .proto file has a type that nothing here writes */
	}
}

static size_t size_of(const field_t *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_INT32:
		return sizeof(int32_t);
	default:
		return 8;
	}
}

static void put_list(struct compact *out, const field_t *field, const char *items, size_t nr)
{
	compact_add(out, "[", 1);
	for (size_t i = 0; i < nr; i++) {
		if (i)
			compact_add(out, ",", 1);
		put_value(out, field, items + i * size_of(field));
	}
	compact_add(out, "]", 1);
}

/* Whether a field that is no list has its default, and is left out. */
static bool is_default(const field_t *field, const void *at, const void *quantifier)
{
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const int *)quantifier != (int)field->id;
	if (field->type == PROTOBUF_C_TYPE_STRING)
		return !**(char *const *)at;
	if (field->type == PROTOBUF_C_TYPE_BYTES)
		return !((const ProtobufCBinaryData *)at)->len;
	return size_of(field) == 8 ? !*(const uint64_t *)at : !*(const int32_t *)at;
}

void protobuf_json(struct compact *out, const ProtobufCMessage *message)
{
	const char *base = (const char *)message, *separator = "";

	compact_add(out, "{", 1);
	for (unsigned int i = 0; i < message->descriptor->n_fields; i++) {
		const field_t *field = &message->descriptor->fields[i];
		const char *at = base + field->offset, *quantifier = base + field->quantifier_offset;
		bool list = field->label == PROTOBUF_C_LABEL_REPEATED;

		if (list ? !*(const size_t *)quantifier : is_default(field, at, quantifier))
			continue;
		compact_add_text(out, separator);
		put_name(out, field->name);
		if (list)
			put_list(out, field, *(char *const *)at, *(const size_t *)quantifier);
		else
			put_value(out, field, at);
		separator = ",";
	}
	compact_add(out, "}", 1);
}
