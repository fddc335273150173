// SPDX-License-Identifier: GPL-2.0-only
#include "base/zstd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/late.h"
#include "base/memory.h"

/* The part of libzstd's interface that is used here, which is stable since 1.4: zstd.h is not needed to build
 * the program. */
typedef struct ZSTD_CCtx_s ZSTD_CCtx;
typedef struct ZSTD_DCtx_s ZSTD_DCtx;
typedef struct {
	const void *src;
	size_t size, pos;
} ZSTD_inBuffer;
typedef struct {
	void *dst;
	size_t size, pos;
} ZSTD_outBuffer;
#define ZSTD_c_compressionLevel 100
#define ZSTD_c_checksumFlag	201
ZSTD_CCtx *ZSTD_createCCtx(void);
size_t ZSTD_freeCCtx(ZSTD_CCtx *context);
size_t ZSTD_CCtx_setParameter(ZSTD_CCtx *context, int parameter, int value);
size_t ZSTD_compressBound(size_t size);
size_t ZSTD_compress2(ZSTD_CCtx *context, void *to, size_t room, const void *from, size_t size);
ZSTD_DCtx *ZSTD_createDCtx(void);
size_t ZSTD_freeDCtx(ZSTD_DCtx *context);
size_t ZSTD_decompressStream(ZSTD_DCtx *context, ZSTD_outBuffer *to, ZSTD_inBuffer *from);
unsigned int ZSTD_isError(size_t result);
const char *ZSTD_versionString(void);

#define FUNCTIONS(X)                                                                                         \
	X(ZSTD_createCCtx)                                                                                   \
	X(ZSTD_freeCCtx)                                                                                     \
	X(ZSTD_CCtx_setParameter)                                                                            \
	X(ZSTD_compressBound)                                                                                \
	X(ZSTD_compress2)                                                                                    \
	X(ZSTD_createDCtx)                                                                                   \
	X(ZSTD_freeDCtx)                                                                                     \
	X(ZSTD_decompressStream)                                                                             \
	X(ZSTD_isError)                                                                                      \
	X(ZSTD_versionString)
static const char *zstd_version(void)
{
	return ZSTD_versionString();
}
DEFINE_LATE(libzstd, "libzstd.so.1", "libzstd1", FUNCTIONS, zstd_version);

#define SUFFIX ".zst"

bool zstd_is_name(const char *path)
{
	size_t length = path ? strlen(path) : 0;

	return length > strlen(SUFFIX) && !strcmp(path + length - strlen(SUFFIX), SUFFIX);
}

int zstd_need(const char *option, const char *path, struct refusal *refusal)
{
	return late_need(&libzstd, option, path, refusal);
}

char *zstd_frame(const char *bytes, size_t size, size_t *frame_size)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t room = ZSTD_compressBound(size);
	char *frame = xmalloc(room);

	if (!context)
		memory_is_out();
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	*frame_size = ZSTD_compress2(context, frame, room, bytes, size);
	if (ZSTD_isError(*frame_size)) /* with room for all of it, only for want of memory */
		memory_is_out();
	ZSTD_freeCCtx(context);
	return frame;
}

/* --- reading ---------------------------------------------------------------------------------- */

#define PASS_BYTES (1 << 17)

struct passing {
	int to;
	char *text; /* that is not written yet: the begin of a line */
	size_t used, room;
};

/* Returns false if nobody reads the pipe any more. */
static bool write_all(int to, const char *text, size_t size)
{
	for (ssize_t n; size; text += n, size -= n)
		if ((n = write(to, text, size)) <= 0)
			return false;
	return true;
}

static bool pass_lines(struct passing *passing, const char *text, size_t size)
{
	const char *last = memrchr(text, '\n', size);
	size_t whole = last ? last + 1 - text : 0;

	if (whole &&
	    (!write_all(passing->to, passing->text, passing->used) || !write_all(passing->to, text, whole)))
		return false;
	passing->used = whole ? 0 : passing->used;
	passing->text = xfit(passing->text, passing->used + size - whole, &passing->room, 1);
	memcpy(passing->text + passing->used, text + whole, size - whole);
	passing->used += size - whole;
	return true;
}

/* Passes what a piece of the file brings. *left: 0 if it ended with a whole frame. */
static int pass_piece(struct passing *passing, ZSTD_DCtx *context, ZSTD_inBuffer *in, size_t *left)
{
	static char text[PASS_BYTES];
	bool full = false;

	while (in->pos < in->size || full) {
		ZSTD_outBuffer out = {text, sizeof(text), 0};

		*left = ZSTD_decompressStream(context, &out, in);
		if (ZSTD_isError(*left))
			return EBADMSG;
		if (!pass_lines(passing, text, out.pos))
			return EPIPE;
		full = out.pos == out.size;
	}
	return 0;
}

int zstd_pass(int from, int to)
{
	static char bytes[PASS_BYTES];
	struct passing passing = {.to = to, .text = xmalloc(1), .room = 1};
	ZSTD_DCtx *context;
	size_t left = 0;
	ssize_t got;
	int err = 0;

	if (late_load(&libzstd))
		return ELIBACC;
	context = ZSTD_createDCtx();
	if (!context)
		memory_is_out();
	while (!err && (got = read(from, bytes, sizeof(bytes))) > 0)
		err = pass_piece(&passing, context, &(ZSTD_inBuffer){bytes, got, 0}, &left);
	if (!err && got < 0)
		err = errno;
	if (!err && !left)
		write_all(to, passing.text, passing.used);
	ZSTD_freeDCtx(context);
	free(passing.text);
	return err == EPIPE ? 0 : err;
}
