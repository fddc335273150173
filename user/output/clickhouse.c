// SPDX-License-Identifier: GPL-2.0-only
/* The rows of the format flat as blocks of columns, in ClickHouse's format Native. A column has one type in
 * all blocks of all runs, since old servers convert none. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/same.h"
#include "output/flatten.h"
#include "output/native.h"
#include "output/output.h"
#include "record/record.h"

/* A block is written when it has so many bytes, or when its first row has waited for so long. Its columns,
 * its text and what the queue keeps stay in a core's cache: a row of blocks of 1 MiB costs twice as much. A
 * request of a server has several. */
#define BLOCK_BYTES   (256 << 10)
#define REQUEST_BYTES (4 << 20)
#define WAIT_NS	      200000000ULL
#define REQUEST_NS    1000000000ULL

#define HEADS_BYTES (4 << 10) /* about: names and types of the columns */

#define LOOK_EVERY 64 /* rows, after which the bytes are added up */

/* --- columns ---------------------------------------------------------------------------------- */

/* If a column of a group is needed, all of the group are: readers that take the columns of the first block
 * for those of all find them there. */
enum group { ALONE, ALWAYS, OF_SAMPLE, OF_DATA, OF_CODE, OF_LINE, OF_STACK, OF_OWNER };

/* Columns that every row has. They come first, in the order of `kinds`. */
enum { RUN_ID, SEQ, ACTIVITY, TIME_NS, TIME_MS, HOST };

/* All columns that are no texts, or are in a group. The types of others follow from that. */
static const struct column_kind {
	const char *name;
	enum native_type type;
	enum group group;
} kinds[] = {
	[RUN_ID] = {"run_id", NATIVE_STRING, ALWAYS},
	[SEQ] = {"seq", NATIVE_UINT64, ALWAYS},
	[ACTIVITY] = {"activity", NATIVE_STRING, ALWAYS},
	[TIME_NS] = {"time_unix_ns", NATIVE_UINT64, ALWAYS},
	[TIME_MS] = {"time_unix_ms", NATIVE_UINT64, ALWAYS},
	[HOST] = {"host.name", NATIVE_STRING, ALWAYS},
	{"event", NATIVE_STRING, ALWAYS},
	{"nth", NATIVE_UINT32, ALWAYS},
	{"value", NATIVE_FLOAT64, ALWAYS},
	{"lost", NATIVE_STRING, ALWAYS},
	{"missed", NATIVE_UINT64, ALWAYS},
	{"period", NATIVE_UINT64, OF_SAMPLE},
	{"every", NATIVE_UINT32, OF_SAMPLE},
	{"address", NATIVE_UINT64, OF_DATA},
	{"latency", NATIVE_UINT64, OF_DATA},
	{"symbol", NATIVE_STRING, OF_CODE},
	{"module", NATIVE_STRING, OF_CODE},
	{"code_offset", NATIVE_UINT64, OF_CODE},
	{"code_address", NATIVE_UINT64, OF_CODE},
	{"code_build_id", NATIVE_STRING, OF_CODE},
	{"code_file", NATIVE_STRING, OF_LINE},
	{"code_line", NATIVE_UINT32, OF_LINE},
	{"stack", NATIVE_STRING, OF_STACK},
	{"stack_lost", NATIVE_STRING, OF_STACK},
	{"truncated", NATIVE_UINT8, OF_STACK},
	{"incomplete", NATIVE_STRING, OF_STACK},
	{"cgroup", NATIVE_STRING, OF_OWNER},
	{"container.id", NATIVE_STRING, OF_OWNER},
	{"container.runtime", NATIVE_STRING, OF_OWNER},
	{"k8s.pod.uid", NATIVE_STRING, OF_OWNER},
	{"systemd.unit", NATIVE_STRING, OF_OWNER},
	{"interval_ms", NATIVE_FLOAT64, ALONE},
	{"value_in_unit", NATIVE_FLOAT64, ALONE},
	{"running_share", NATIVE_FLOAT64, ALONE},
	{"low", NATIVE_FLOAT64, ALONE},
	{"high", NATIVE_FLOAT64, ALONE},
	{"min", NATIVE_FLOAT64, ALONE},
	{"max", NATIVE_FLOAT64, ALONE},
	{"stddev", NATIVE_FLOAT64, ALONE},
	{"remote_share", NATIVE_FLOAT64, ALONE},
	{"hitm_share", NATIVE_FLOAT64, ALONE},
	{"prefetch_share", NATIVE_FLOAT64, ALONE},
	{"cpu", NATIVE_UINT32, ALONE},
	{"core", NATIVE_UINT32, ALONE},
	{"socket", NATIVE_UINT32, ALONE},
	{"pid", NATIVE_UINT32, ALONE},
	{"tid", NATIVE_UINT32, ALONE},
	{"ip", NATIVE_UINT64, ALONE},
	{"physical_address", NATIVE_UINT64, ALONE},
	{"cacheline", NATIVE_UINT64, ALONE},
	{"page", NATIVE_UINT64, ALONE},
	{"phys_page", NATIVE_UINT64, ALONE},
	{"offset", NATIVE_UINT64, ALONE},
	{"from_offset", NATIVE_UINT64, ALONE},
	{"from_address", NATIVE_UINT64, ALONE},
	{"from_line", NATIVE_UINT32, ALONE},
	{"to_offset", NATIVE_UINT64, ALONE},
	{"to_address", NATIVE_UINT64, ALONE},
	{"to_line", NATIVE_UINT32, ALONE},
	{"variable_offset", NATIVE_UINT64, ALONE},
	{"offcore_rsp", NATIVE_UINT64, ALONE},
	{"samples", NATIVE_UINT64, ALONE},
	{"count", NATIVE_UINT64, ALONE},
	{"mispredicted", NATIVE_UINT64, ALONE},
	{"mispredicted_period", NATIVE_UINT64, ALONE},
	{"latency_sum", NATIVE_UINT64, ALONE},
	{"latency_sum_period", NATIVE_UINT64, ALONE},
	{"latency_max", NATIVE_UINT64, ALONE},
	{"enabled_ns", NATIVE_UINT64, ALONE},
	{"running_ns", NATIVE_UINT64, ALONE},
	{"scaled", NATIVE_UINT64, ALONE},
	{"bytes", NATIVE_UINT64, ALONE},
	{"entries", NATIVE_UINT64, ALONE},
	{"executions", NATIVE_UINT64, ALONE},
	{"repeat", NATIVE_UINT64, ALONE},
	{"merged", NATIVE_UINT64, ALONE},
	{"missing", NATIVE_UINT64, ALONE},
	{"part", NATIVE_UINT64, ALONE},
	{"parts", NATIVE_UINT64, ALONE},
	{"rest", NATIVE_UINT8, ALONE},
	{"together", NATIVE_UINT8, ALONE},
	{"changed", NATIVE_UINT8, ALONE},
	{"cores_shared", NATIVE_UINT8, ALONE},
	{"serial", NATIVE_UINT8, ALONE},
};

/* Where a field of a sample goes. */
struct field_slot {
	enum { TO_NOTHING, TO_COLUMN, TO_TIME, TO_CODE, TO_STACK } to;
	size_t column;
	char name[32]; /* that of the field that was last at this place of the list */
	size_t length;
};

/* The columns of a code. The value is held, so that its address stays its own. */
#define KNOWN_CODES  512
#define CODE_MEMBERS 10
struct known_code {
	json_t *code;
	size_t nr;
	struct {
		size_t column;
		const json_t *value;
	} members[CODE_MEMBERS];
};

struct clickhouse {
	struct native_block block;
	struct field_slot slots[FIELDS_MOST];
	size_t nr_slots;
	__u64 shape, version;	 /* of the list that the slots are for; shape 0: not known */
	bool stack;		 /* there is one among them */
	bool kept;		 /* the block keeps the values of that version */
	__u64 time_ns;		 /* the same */
	struct known_code *code; /* the same; NULL: there is none */
	struct known_code codes[KNOWN_CODES];
	struct flattened_run run;
	char *activity; /* of the rows that are being put; NULL: of none */
	__u64 since_ns; /* when the block's first row was put, CLOCK_MONOTONIC */
	bool any;	/* a block was written */
};

static void add_group(struct native_block *block, enum group group)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].group == group)
			native_add_column(block, kinds[i].name, strlen(kinds[i].name), kinds[i].type);
}

static size_t column_of(struct native_block *block, const char *name, size_t length)
{
	int found = native_find(block, name, length);
	size_t i = 0;

	if (found >= 0)
		return found;
	while (i < ARRAY_SIZE(kinds) && (strncmp(kinds[i].name, name, length) || kinds[i].name[length]))
		i++;
	if (i == ARRAY_SIZE(kinds) || kinds[i].group == ALONE)
		return native_add_column(block, name, length,
					 i < ARRAY_SIZE(kinds) ? kinds[i].type : NATIVE_STRING);
	add_group(block, kinds[i].group);
	return native_find(block, name, length);
}

static struct clickhouse *own_of(struct stream *stream)
{
	struct clickhouse *own = stream->own;

	if (own)
		return own;
	own = stream->own = xcalloc(1, sizeof(*own));
	add_group(&own->block, ALWAYS);
	native_set_usual(&own->block, RUN_ID, stream->run_id, sizeof(stream->run_id) - 1);
	return own;
}

/* --- values ----------------------------------------------------------------------------------- */

static bool of_texts(const struct native_block *block, size_t column)
{
	return block->list[column].type == NATIVE_STRING;
}

static void put_integer(struct native_block *block, size_t column, json_int_t number)
{
	char text[24];

	if (of_texts(block, column))
		native_put_text(block, column, text, snprintf(text, sizeof(text), "%lld", (long long)number));
	else
		native_put_number(block, column, number);
}

static void put_real(struct native_block *block, size_t column, double number)
{
	char text[32];

	if (of_texts(block, column))
		native_put_text(block, column, text, snprintf(text, sizeof(text), "%.17g", number));
	else
		native_put_real(block, column, number);
}

/* What is text in a column of numbers is an address, "0x1c0". */
static void put_string(struct native_block *block, size_t column, const char *text, size_t length)
{
	if (of_texts(block, column))
		native_put_text(block, column, text, length);
	else
		native_put_number(block, column, strtoull(text, NULL, 0));
}

static void put_value(struct native_block *block, size_t column, const json_t *value)
{
	if (json_is_string(value))
		put_string(block, column, json_string_value(value), json_string_length(value));
	else if (json_is_integer(value))
		put_integer(block, column, json_integer_value(value));
	else if (json_is_real(value))
		put_real(block, column, json_real_value(value));
	else if (json_is_boolean(value))
		put_integer(block, column, json_boolean_value(value));
}

static void put_member(struct native_block *block, const char *name, const json_t *value)
{
	if (value)
		put_value(block, column_of(block, name, strlen(name)), value);
}

/* --- rows ------------------------------------------------------------------------------------- */

static int write_block(struct stream *stream)
{
	struct clickhouse *own = stream->own;
	struct compact lent = sink_lend(&stream->sink, native_bytes(&own->block) + HEADS_BYTES);
	int err;

	native_write(&own->block, &lent);
	own->any = true;
	err = sink_take(&stream->sink, &lent);
	if (stream->sink.push && queue_waiting(&stream->sink.queue) >= REQUEST_BYTES)
		stream_finish(stream, false);
	return err;
}

/* Columns that have no value get the run's. */
static void keep_of_run(struct native_block *block, const char *name, const json_t *value)
{
	int found = native_find(block, name, strlen(name));

	if (found >= 0)
		native_forget_usual(block, found);
	block->keeps = true;
	put_member(block, name, value);
	block->keeps = false;
}

static void forget_code(struct clickhouse *own)
{
	for (size_t i = 0; own->code && i < own->code->nr; i++)
		native_forget_usual(&own->block, own->code->members[i].column);
	own->code = NULL;
}

/* What comes next is no sample, or one with other fields. */
static void forget_sample(struct clickhouse *own)
{
	if (!own->kept)
		return;
	for (size_t i = 0; i < own->nr_slots; i++)
		if (own->slots[i].to == TO_COLUMN)
			native_forget_usual(&own->block, own->slots[i].column);
	forget_code(own);
	own->kept = false;
	if (own->run.container) /* the sample may have had another one */
		keep_of_run(&own->block, "container.id", own->run.container);
}

/* Most rows are of the same run and activity as the one before. */
static struct clickhouse *begin_row(struct stream *stream)
{
	struct clickhouse *own = own_of(stream);

	if (own->run.start == stream->start)
		return own;
	forget_sample(own);
	flatten_run(&own->run, stream->start);
	keep_of_run(&own->block, "host.name", own->run.host);
	keep_of_run(&own->block, "host.emulated.model", own->run.model);
	keep_of_run(&own->block, "container.id", own->run.container);
	return own;
}

static void see_activity(struct clickhouse *own, const struct stream *stream)
{
	const char *activity = stream->activity ?: "";

	if (own->activity && !strcmp(own->activity, activity))
		return;
	free(own->activity);
	own->activity = xstrdup(activity);
	native_set_usual(&own->block, ACTIVITY, activity, strlen(activity));
}

static int end_row(struct stream *stream, struct clickhouse *own, __u64 time_ns)
{
	struct native_block *block = &own->block;

	native_put_number(block, SEQ, stream->records++);
	native_put_number(block, TIME_NS, time_ns);
	native_put_number(block, TIME_MS, time_ns / 1000000);
	if (!block->rows)
		own->since_ns = clock_ns(CLOCK_MONOTONIC);
	native_end_row(block);
	return block->rows % LOOK_EVERY || native_bytes(block) < BLOCK_BYTES ? 0 : write_block(stream);
}

struct rows_taking {
	struct stream *stream;
	struct flattened_time time;
};

static int take_row(void *context, const struct row *row)
{
	const struct rows_taking *taking = context;
	struct clickhouse *own = begin_row(taking->stream);
	struct native_block *block = &own->block;
	const char *name;
	json_t *value;

	forget_sample(own);
	see_activity(own, taking->stream);
	json_object_foreach(row->keys, name, value)
		put_member(block, name, value);
	put_member(block, "value", row->value);
	json_object_foreach(row->values, name, value)
		put_member(block, name, value);
	if (taking->time.interval)
		put_real(block, column_of(block, "interval_ms", strlen("interval_ms")),
			 taking->time.interval_ms);
	return end_row(taking->stream, own, taking->time.at.tv_sec * 1000000000ULL + taking->time.at.tv_nsec);
}

static int write_record(struct stream *stream, const json_t *record)
{
	struct rows_taking taking = {stream, flatten_time(record)};

	return flatten(record, &stream->calls, true, take_row, &taking)
		       ?: flatten_losses(record, take_row, &taking);
}

/* --- samples ---------------------------------------------------------------------------------- */

static struct field_slot slot_for(struct native_block *block, const struct field *field)
{
	static const struct {
		const char *name;
		int to;
	} others[] = {
		{"sample_time", TO_TIME}, {"code", TO_CODE},	     {"stack", TO_STACK},
		{"branches", TO_NOTHING}, {"registers", TO_NOTHING},
	};
	struct field_slot slot = {.to = TO_COLUMN, .length = field->name_length};

	if (slot.length < sizeof(slot.name))
		memcpy(slot.name, field->name, slot.length);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(others[i].name, field->name))
			slot.to = others[i].to;
	if (slot.to == TO_COLUMN)
		slot.column = column_of(block, field->name, field->name_length);
	return slot;
}

static void choose_slots(struct clickhouse *own, const struct fields *fields)
{
	own->shape = fields->shape;
	own->stack = false;
	own->nr_slots = fields->nr;
	for (size_t i = 0; i < fields->nr; i++) {
		const struct field *field = &fields->list[i];
		struct field_slot *slot = &own->slots[i];

		if (slot->length != field->name_length || !is_same(slot->name, field->name, slot->length))
			*slot = slot_for(&own->block, field);
		own->stack |= slot->to == TO_STACK;
	}
}

static void learn_code(struct native_block *block, struct known_code *known, json_t *code)
{
	char full[CODE_MEMBER_ROOM];
	const char *name;
	json_t *value;

	json_decref(known->code);
	*known = (struct known_code){.code = json_incref(code)};
	json_object_foreach(code, name, value) {
		const char *column = flatten_code_member("code", name, full);

		if (json_is_array(value) || json_is_object(value) || known->nr == CODE_MEMBERS)
			continue;
		known->members[known->nr].column = column_of(block, column, strlen(column));
		known->members[known->nr++].value = value;
	}
}

static bool has_columns(const struct known_code *one, const struct known_code *other)
{
	for (size_t i = 0; i < one->nr && i < other->nr; i++)
		if (one->members[i].column != other->members[i].column)
			return false;
	return one->nr == other->nr;
}

static void keep_code(struct clickhouse *own, json_t *code)
{
	struct known_code *known = &own->codes[((size_t)code >> 4) % KNOWN_CODES];

	if (known->code != code) {
		if (own->code == known)
			forget_code(own);
		learn_code(&own->block, known, code);
	}
	if (own->code && !has_columns(own->code, known))
		forget_code(own);
	own->code = known;
	for (size_t i = 0; i < known->nr; i++)
		put_value(&own->block, known->members[i].column, known->members[i].value);
}

static bool is_ascii(const char *text, size_t length)
{
	__u64 any = 0, word;
	size_t i = 0;

	for (; i + sizeof(word) <= length; i += sizeof(word)) {
		memcpy(&word, text + i, sizeof(word));
		any |= word;
	}
	for (; i < length; i++)
		any |= (unsigned char)text[i];
	return !(any & 0x8080808080808080ULL);
}

static void keep_field(struct native_block *block, size_t column, const struct field *field)
{
	json_t *text;

	switch (field->kind) {
	case FIELD_NUMBER:
	case FIELD_HEX:
		put_integer(block, column, field->number);
		break;
	case FIELD_TEXT:
		if (is_ascii(field->text, field->length)) {
			put_string(block, column, field->text, field->length);
			break;
		}
		text = field_json(field);
		put_value(block, column, text);
		json_decref(text);
		break;
	case FIELD_VALUE:
		native_forget_usual(block, column); /* not every value is one of a row */
		put_value(block, column, field->value);
		break;
	default:
		break;
	}
}

static void keep_at(struct clickhouse *own, const struct fields *fields, size_t i)
{
	const struct field_slot *slot = &own->slots[i];
	const struct field *field = &fields->list[i];

	if (slot->to == TO_COLUMN)
		keep_field(&own->block, slot->column, field);
	else if (slot->to == TO_TIME)
		own->time_ns = field->number;
	else if (slot->to == TO_CODE)
		keep_code(own, field->value);
}

/* What has not changed since the sample before is in the columns' usual values. */
static void keep_sample(struct clickhouse *own, const struct fields *fields)
{
	__u64 left =
		own->kept && own->version + 1 == fields->version ? fields->changed : (1ULL << fields->nr) - 1;

	own->block.keeps = true;
	for (; left; left &= left - 1)
		keep_at(own, fields, __builtin_ctzll(left));
	own->block.keeps = false;
	own->kept = true;
	own->version = fields->version;
}

/* Samples of a stream have mostly the same fields at the same places. Returns false, and puts nothing, if it
 * is no sample, or has a stack. */
static bool put_sample(struct stream *stream, struct clickhouse *own, const char *type,
		       const struct fields *fields)
{
	if (!fields->shape || own->shape != fields->shape) {
		if (strcmp(type, "sample"))
			return false;
		forget_sample(own);
		choose_slots(own, fields);
	}
	if (own->stack)
		return false;
	if (!own->kept)
		see_activity(own, stream);
	keep_sample(own, fields);
	return true;
}

static int write_fields(struct stream *stream, const char *type, const struct fields *fields)
{
	struct clickhouse *own = begin_row(stream);
	json_t *record;
	int err;

	if (put_sample(stream, own, type, fields))
		return end_row(stream, own, own->time_ns);
	record = json_pack("{s:s}", "type", type);
	fields_put(fields, record);
	err = write_record(stream, record);
	json_decref(record);
	return err;
}

/* --- the format ------------------------------------------------------------------------------- */

/* A run without rows leaves a block without rows: ClickHouse refuses an input that has none. */
static int finish(struct stream *stream)
{
	struct clickhouse *own = own_of(stream);
	bool empty = stream->ending && !own->any && !stream->sink.documents;

	return own->block.rows || empty ? write_block(stream) : 0;
}

static int settle_block(struct stream *stream)
{
	struct clickhouse *own = stream->own;
	bool push = stream->sink.push;

	if (!own || !own->block.rows ||
	    clock_ns(CLOCK_MONOTONIC) < own->since_ns + (push ? REQUEST_NS : WAIT_NS))
		return 0;
	if (!push)
		return write_block(stream);
	stream_finish(stream, false);
	return 0;
}

static void release(struct stream *stream)
{
	struct clickhouse *own = stream->own;

	if (!own)
		return;
	for (size_t i = 0; i < KNOWN_CODES; i++)
		json_decref(own->codes[i].code);
	flatten_run(&own->run, NULL);
	free(own->activity);
	native_release(&own->block);
	free(own);
}

static const struct format clickhouse = {
	.name = "clickhouse",
	.help = "the rows of flat as blocks of columns: ClickHouse's format Native",
	.measured = true,
	.numbered = true,
	.bytes = true,
	.texts = true,
	.write = write_record,
	.write_fields = write_fields,
	.finish = finish,
	.settle = settle_block,
	.rows = native_rows,
	.media = "application/octet-stream",
	.halve = native_halve,
	.release = release,
};
REGISTER_FORMAT(clickhouse);
