// SPDX-License-Identifier: GPL-2.0-only
#include "output/access.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/baggage.h"
#include "base/copied.h"
#include "base/guarded.h"
#include "base/memory.h"
#include "base/visible.h"

#define FILE_MOST    (1 << 20)
#define FILE_WAIT_NS 1000000000ULL

#define HEADERS "OTEL_EXPORTER_OTLP_HEADERS"

static const struct {
	const char *option, *variable;
} named[ACCESS_FILES] = {
	[ACCESS_CA] = {"tls-ca-file", "OTEL_EXPORTER_OTLP_CERTIFICATE"},
	[ACCESS_CERT] = {"tls-cert-file", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"},
	[ACCESS_KEY] = {"tls-key-file", "OTEL_EXPORTER_OTLP_CLIENT_KEY"},
	[ACCESS_HEADERS] = {"headers-file", NULL},
};

static bool is_same(const char *one, const char *other)
{
	return one && other ? !strcmp(one, other) : one == other;
}

bool access_is_same(const struct push_access *one, const struct push_access *other)
{
	for (size_t i = 0; i < ACCESS_FILES; i++)
		if (!is_same(one->files[i], other->files[i]))
			return false;
	return one->unverified == other->unverified;
}

/* A variable of the environment that is set and not empty; otherwise NULL. */
static const char *variable(const char *name)
{
	const char *value = name ? getenv(name) : NULL;

	return value && *value ? value : NULL;
}

/* Puts variables of the environment where nothing is asked for. A key belongs to its certificate. */
static void complete_from_environment(struct push_access *access)
{
	bool own = access->files[ACCESS_CERT] || access->files[ACCESS_KEY];

	for (size_t i = 0; i < ACCESS_FILES; i++)
		if (!access->files[i] && !(own && (i == ACCESS_CERT || i == ACCESS_KEY)))
			access->files[i] = variable(named[i].variable);
}

/* --- files ------------------------------------------------------------------------------------ */

static int refuse_because(struct refusal *refusal, enum access_file which, const char *path, const char *why)
{
	refuse(refusal, STATUS_USAGE, "option --%s '%.300s'", named[which].option, path);
	return because(refusal, "%s", why);
}

static int refuse_file(struct refusal *refusal, enum access_file which, const char *path, const char *why)
{
	refuse_because(refusal, which, path, why);
	return instead(refusal,
		       which == ACCESS_HEADERS
			       ? "name a readable file with lines such as 'Authorization: Bearer ...'"
			       : "name a readable file in PEM form");
}

/* Reads a whole file. Returns its text, or NULL with errno. The caller frees it. */
static char *text_of_file(const char *path, size_t *size)
{
	int fd = copied_open(path, FILE_MOST, FILE_WAIT_NS);
	char *text;
	ssize_t got;

	if (fd < 0)
		return NULL;
	text = xmalloc(FILE_MOST + 1);
	*size = 0;
	while ((got = read(fd, text + *size, FILE_MOST - *size)) > 0)
		*size += got;
	close(fd);
	text[*size] = '\0';
	if (!got)
		return text;
	free(text);
	return NULL;
}

/* What a file of a kind holds, and its labels in PEM form (RFC 7468). */
static const struct {
	const char *holds;
	const char *labels[4]; /* behind "-----BEGIN " */
} in_pem[ACCESS_HEADERS] = {
	[ACCESS_CA] = {"certificate in PEM form", {"CERTIFICATE", "X509 CERTIFICATE"}},
	[ACCESS_CERT] = {"certificate in PEM form", {"CERTIFICATE", "X509 CERTIFICATE"}},
	[ACCESS_KEY] = {"private key in PEM form without a passphrase",
			{"PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "DSA PRIVATE KEY"}},
};

#define DER_SEQUENCE  0x30
#define DER_LENGTH_OF 3 /* bytes at most of a length, which is below 16 MiB */

/* Whether bytes are one DER sequence, neither shorter nor longer than it says. What is in it, TLS's library
 * knows. */
static bool is_sequence(const unsigned char *bytes, size_t size)
{
	size_t more = size > 1 && bytes[1] & 0x80 ? bytes[1] & 0x7f : 0, length;

	if (size < 2 + more || bytes[0] != DER_SEQUENCE || more > DER_LENGTH_OF)
		return false;
	length = more ? 0 : bytes[1];
	for (size_t i = 0; i < more; i++)
		length = length << 8 | bytes[2 + i];
	return size == 2 + more + length;
}

/* Whether base64 in lines is such a sequence. */
static bool holds_sequence(const char *text, const char *end)
{
	char *letters = xmalloc(end - text + 1), *to = letters;
	unsigned char *bytes;
	size_t size;
	bool whole;

	for (; text < end; text++)
		if (!isspace((unsigned char)*text) && *text != '=')
			*to++ = *text;
	*to = '\0';
	bytes = base64_bytes(letters, &size);
	/* They end at the first letter that is none of base64's; one letter behind fours is no byte. */
	whole = (to - letters) % 4 != 1 && size == (size_t)(to - letters) * 6 / 8 && is_sequence(bytes, size);
	explicit_bzero(letters, to - letters); /* as all that may be a key */
	explicit_bzero(bytes, size);
	free(letters);
	free(bytes);
	return whole;
}

/* Whether a whole block of this label is in the text. */
static bool has_block(const char *text, const char *label)
{
	char *begin = xasprintf("-----BEGIN %s-----", label), *end = xasprintf("-----END %s-----", label);
	const char *at = strstr(text, begin), *last = at ? strstr(at, end) : NULL;
	bool has = last && holds_sequence(at + strlen(begin), last);

	free(begin);
	free(end);
	return has;
}

static bool holds_what_it_should(enum access_file which, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(in_pem[which].labels); i++)
		if (in_pem[which].labels[i] && has_block(text, in_pem[which].labels[i]))
			return true;
	return false;
}

/* Keeps a copy in memory, since libraries read certificates at each connection: the file may have been
 * replaced by half, or its file system may not answer. Returns 0 or an errno. */
static int keep_in_memory(struct credentials *credentials, enum access_file which, const char *text,
			  size_t size)
{
	int fd = memfd_create("nhmtap-tls", MFD_CLOEXEC);

	if (fd < 0)
		return errno;
	credentials->fds[which] = fd;
	snprintf(credentials->paths[which], sizeof(credentials->paths[which]), "/proc/self/fd/%d", fd);
	return write(fd, text, size) == (ssize_t)size ? 0 : ENOSPC;
}

/* --- headers ---------------------------------------------------------------------------------- */

/* Characters of a header's name: RFC 9110, section 5.6.2. */
static bool is_name(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("!#$%&'*+-.^_`|~", text[i]))
			return false;
	return length;
}

/* Whether a header says how the body is to be read: another value would have the server take it for something
 * else, and the rest of it for the next request. */
static bool is_of_body(const char *name)
{
	static const char *const names[] = {"Content-Length", "Content-Type", "Content-Encoding",
					    "Transfer-Encoding"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return false;
}

/* Adds a header. Returns what is wrong with it, without its value, which may be secret; NULL: nothing. */
static const char *add_header_of(void *headers, const char *name, const char *value)
{
	char *line;
	int err;

	if (!is_name(name, strlen(name)))
		return "has a name with characters that headers can't have";
	if (is_of_body(name))
		return "has a header that belongs to the body, which nhmtap makes";
	if (!*value)
		return "has no value";
	for (const char *at = value; *at; at++)
		if (iscntrl((unsigned char)*at) && *at != '\t')
			return "has a control character";
	line = xasprintf("%s: %s", name, value);
	err = json_array_append_new(headers, json_string(line));
	explicit_bzero(line, strlen(line));
	free(line);
	return err ? "is not UTF-8" : NULL;
}

/* Takes a line "Name: value". */
static const char *take_line(json_t *headers, char *line)
{
	size_t length = strcspn(line, ":"), size = strlen(line);
	char *value = line + length;

	if (size && line[size - 1] == '\r')
		line[size - 1] = '\0';
	if (!*line || *line == '#')
		return NULL;
	if (!*value)
		return "has no ':'";
	*value++ = '\0';
	return add_header_of(headers, line, value + strspn(value, " \t"));
}

static int read_headers(struct credentials *credentials, char *text, const char *path,
			struct refusal *refusal)
{
	char *rest = text, *line, why[128];
	size_t number = 0;

	while ((line = strsep(&rest, "\n"))) {
		const char *wrong = take_line(credentials->headers, line);

		number++;
		if (!wrong)
			continue;
		snprintf(why, sizeof(why), "line %zu %s", number, wrong);
		return refuse_file(refusal, ACCESS_HEADERS, path, why);
	}
	return 0;
}

static void take_variable(struct credentials *credentials)
{
	const char *text = variable(HEADERS), *wrong;
	char member[8];

	if (!text)
		return;
	wrong = baggage_read(text, add_header_of, credentials->headers, member, sizeof(member));
	if (!wrong)
		return;
	json_array_clear(credentials->headers);
	say("nhmtap: " HEADERS " is left out as a whole: a member %s; write NAME=VALUE,NAME=VALUE, with %%2C "
	    "for a comma and %%25 for '%%'",
	    wrong);
}

/* --- the whole -------------------------------------------------------------------------------- */

static int take_file(struct credentials *credentials, enum access_file which, const char *path,
		     struct refusal *refusal)
{
	size_t size;
	char *text = text_of_file(path, &size), why[64];
	int err;

	if (!text)
		return refuse_file(refusal, which, path, guarded_why(errno));
	if (which == ACCESS_HEADERS && memchr(text, '\0', size)) {
		err = refuse_file(refusal, which, path, "it has a byte of zero");
	} else if (which == ACCESS_HEADERS) {
		err = read_headers(credentials, text, path, refusal);
	} else if (!holds_what_it_should(which, text)) {
		snprintf(why, sizeof(why), "it holds no %s", in_pem[which].holds);
		err = refuse_file(refusal, which, path, why);
	} else {
		err = keep_in_memory(credentials, which, text, size);
		if (err)
			err = refuse_file(refusal, which, path, strerror(err));
	}
	explicit_bzero(text, size);
	free(text);
	return err;
}

/* A file that is not asked for is named by its variable. */
static int name_variable(struct refusal *refusal, enum access_file which, const char *path)
{
	snprintf(refusal->asked, sizeof(refusal->asked), "variable %s '%.300s'", named[which].variable, path);
	return -1;
}

/* Refuses a certificate without its key, or a key alone. Options are checked before, so these are variables.
 */
static int check_pair(const struct push_access *access, struct refusal *refusal)
{
	enum access_file which = access->files[ACCESS_CERT] ? ACCESS_CERT : ACCESS_KEY;

	if (!access->files[ACCESS_CERT] == !access->files[ACCESS_KEY])
		return 0;
	refuse_because(refusal, which, access->files[which],
		       which == ACCESS_CERT ? "its private key is missing"
					    : "the certificate that it belongs to is missing");
	instead(refusal, "name both, or neither");
	return name_variable(refusal, which, access->files[which]);
}

int credentials_read(struct credentials *credentials, const struct push_access *asked, const char *url,
		     bool otlp, struct refusal *refusal)
{
	struct push_access access = *asked;
	bool tls = !strncmp(url, "https:", 6);
	int err = 0;

	*credentials = (struct credentials){.fds = {-1, -1, -1}, .headers = json_array()};
	/* Variables are for all outputs of OpenTelemetry, of which some may do without TLS. */
	if (otlp)
		complete_from_environment(&access);
	if (tls)
		err = check_pair(&access, refusal);
	for (size_t i = 0; i < ACCESS_FILES && !err; i++) {
		if (access.files[i] && (i == ACCESS_HEADERS || tls))
			err = take_file(credentials, i, access.files[i], refusal);
		if (err && !asked->files[i])
			name_variable(refusal, i, access.files[i]);
	}
	if (err) {
		credentials_release(credentials);
		return -1;
	}
	if (otlp && !access.files[ACCESS_HEADERS])
		take_variable(credentials);
	return 0;
}

void credentials_release(struct credentials *credentials)
{
	for (size_t i = 0; credentials->headers && i < ARRAY_SIZE(credentials->fds); i++)
		if (credentials->fds[i] >= 0)
			close(credentials->fds[i]);
	json_decref(credentials->headers);
	*credentials = (struct credentials){0};
}
