// SPDX-License-Identifier: GPL-2.0-only
#include "output/protobuf_json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/memory.h"

typedef ProtobufCFieldDescriptor field_t;

#define NAME_MAX_BYTES 64 /* names of fields in the .proto files here are shorter */

/* string_value as stringValue. */
static const char *json_name(const field_t *field, char name[NAME_MAX_BYTES])
{
	size_t used = 0;
	bool upper = false;

	for (const char *at = field->name; *at && used < NAME_MAX_BYTES - 1; at++) {
		if (*at != '_')
			name[used++] = upper ? toupper(*at) : *at;
		upper = *at == '_';
	}
	name[used] = '\0';
	return name;
}

static void put_name(struct compact *out, const field_t *field)
{
	char name[NAME_MAX_BYTES];

	compact_add(out, "\"", 1);
	compact_add_text(out, json_name(field, name));
	compact_add(out, "\":", 2);
}

static void put_string(struct compact *out, const char *text)
{
	json_t *value = json_string(text);

	compact_add_value(out, value);
	json_decref(value);
}

static bool is_hex(const field_t *field)
{
	return !strcmp(field->name, "trace_id") || !strcmp(field->name, "span_id");
}

static void put_bytes(struct compact *out, const field_t *field, const ProtobufCBinaryData *bytes)
{
	bool hex = is_hex(field);
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
		put_name(out, field);
		if (list)
			put_list(out, field, *(char *const *)at, *(const size_t *)quantifier);
		else
			put_value(out, field, at);
		separator = ",";
	}
	compact_add(out, "}", 1);
}

/* --- reading ---------------------------------------------------------------------------------- */

static unsigned char *hex_bytes(const char *text, size_t *size)
{
	unsigned char *bytes = xcalloc(1, strlen(text) / 2 + 1);

	for (*size = 0; sscanf(text + 2 * *size, "%2hhx", &bytes[*size]) == 1;)
		++*size;
	return bytes;
}

static ProtobufCBinaryData bytes_of(const field_t *field, const char *text)
{
	ProtobufCBinaryData bytes;

	bytes.data = is_hex(field) ? hex_bytes(text, &bytes.len) : base64_bytes(text, &bytes.len);
	return bytes;
}

static void read_value(const field_t *field, void *at, const json_t *value)
{
	const char *text = json_is_string(value) ? json_string_value(value) : "";

	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		*(ProtobufCMessage **)at = protobuf_of_json(field->descriptor, value);
		break;
	case PROTOBUF_C_TYPE_STRING:
		*(char **)at = xstrdup(text);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		*(ProtobufCBinaryData *)at = bytes_of(field, text);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)at = json_is_true(value);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		*(double *)at = json_number_value(value);
		break;
	case PROTOBUF_C_TYPE_INT32:
		*(int32_t *)at = json_integer_value(value);
		break;
	case PROTOBUF_C_TYPE_INT64:
		*(int64_t *)at = strtoll(text, NULL, 10);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		*(uint64_t *)at = strtoull(text, NULL, 10);
		break;
	default:
		abort(); /* as in put_value() */
	}
}

static void read_list(const field_t *field, char *base, const json_t *list)
{
	size_t nr = json_array_size(list), size = size_of(field);
	char *items = nr ? xcalloc(nr, size) : NULL;

	for (size_t i = 0; i < nr; i++)
		read_value(field, items + i * size, json_array_get(list, i));
	*(char **)(base + field->offset) = items;
	*(size_t *)(base + field->quantifier_offset) = nr;
}

ProtobufCMessage *protobuf_of_json(const ProtobufCMessageDescriptor *descriptor, const json_t *object)
{
	ProtobufCMessage *message = xcalloc(1, descriptor->sizeof_message);

	descriptor->message_init(message);
	for (unsigned int i = 0; i < descriptor->n_fields; i++) {
		const field_t *field = &descriptor->fields[i];
		char name[NAME_MAX_BYTES], *base = (char *)message;
		const json_t *value = json_object_get(object, json_name(field, name));

		if (!value)
			continue;
		if (field->label == PROTOBUF_C_LABEL_REPEATED)
			read_list(field, base, value);
		else
			read_value(field, base + field->offset, value);
		if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
			*(int *)(base + field->quantifier_offset) = (int)field->id;
	}
	return message;
}
