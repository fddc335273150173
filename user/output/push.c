// SPDX-License-Identifier: GPL-2.0-only
#include "output/push.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <curl/curl.h>
#include <jansson.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/late.h"
#include "base/memory.h"
#include "base/visible.h"
#include "output/gzip.h"
#include "output/varint.h"

#define FUNCTIONS(X)                                                                                         \
	X(curl_easy_cleanup)                                                                                 \
	X(curl_easy_getinfo)                                                                                 \
	X(curl_easy_init)                                                                                    \
	X(curl_easy_reset)                                                                                   \
	X(curl_easy_setopt)                                                                                  \
	X(curl_easy_strerror)                                                                                \
	X(curl_free)                                                                                         \
	X(curl_global_init)                                                                                  \
	X(curl_mime_addpart)                                                                                 \
	X(curl_mime_data)                                                                                    \
	X(curl_mime_filename)                                                                                \
	X(curl_mime_free)                                                                                    \
	X(curl_mime_init)                                                                                    \
	X(curl_mime_name)                                                                                    \
	X(curl_multi_add_handle)                                                                             \
	X(curl_multi_cleanup)                                                                                \
	X(curl_multi_info_read)                                                                              \
	X(curl_multi_init)                                                                                   \
	X(curl_multi_remove_handle)                                                                          \
	X(curl_multi_setopt)                                                                                 \
	X(curl_multi_socket_action)                                                                          \
	X(curl_slist_append)                                                                                 \
	X(curl_slist_free_all)                                                                               \
	X(curl_url)                                                                                          \
	X(curl_url_cleanup)                                                                                  \
	X(curl_url_get)                                                                                      \
	X(curl_url_set)                                                                                      \
	X(curl_url_strerror)                                                                                 \
	X(curl_version_info)

static const char *libcurl_version(void)
{
	return curl_version_info(CURLVERSION_NOW)->version;
}

DEFINE_LATE(libcurl, LIBCURL_SONAME, "libcurl3-gnutls", FUNCTIONS, libcurl_version);

#define PAUSE_LEAST_NS 1000000000ULL
#define PAUSE_MOST_NS  60000000000ULL
#define LOOK_NS	       10000000ULL
#define CONNECT_MS     5000L
#define ANSWER_MS      20000L

/* How long the rest of an answer may take whose status is known. The request is over by then: a server that
 * sends a byte now and then would hold up all others, and the end of the run. */
#define REST_S 1

/* The longest pause that a server may ask for (Retry-After). A longer one is a mistake, or would lose more
 * than trying in vain costs. */
#define ASKED_MOST_S 300

/* The most bytes that are read of an answer, and of its head. */
#define ANSWER_MOST 65536

struct push {
	const char *url;
	struct document_kind kind;
	const struct push_form *form;
	struct credentials credentials;
	bool unverified; /* the server's certificate is not verified */
	bool renewed;	 /* the credentials are new: connections that were made with others are not used */
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	curl_mime *mime;
	int epoll, timer, rest; /* curl's sockets, its timer and that of the rest are in the epoll set */
	bool busy;
	bool decided; /* the answer's status is known */
	bool late;    /* the time for the rest of the answer is over */
	bool broken;  /* the answer has ended before its end */
	unsigned long long tries;
	struct buffer {
		char *bytes;
		size_t size;
	} body; /* the request's body, where it is not the document's own bytes */
	unsigned long long pause_ns, again_ns, looked_ns;
	int stopped;   /* errno of the failure after which it pauses; 0: it does not pause */
	char why[240]; /* the same in words */
	char error[CURL_ERROR_SIZE];
	char answer[ANSWER_MOST];
	size_t answered, head; /* bytes of the answer, and of its head */
	bool ages;	       /* the server asks for a pause of more than 10^9 s */
	struct push_rejected rejected, refusals;
	unsigned long long refusals_ns; /* when refusals may be taken next */
	bool told, warned;		/* what was rejected, and a mere warning, were told on stderr */
	bool halves;			/* that requests are sent in parts was told */
	unsigned int too_large;		/* parts of a document in a row that were too large */
	long refused;			/* the HTTP status that was reported last */
};

#define TOO_LARGE 413 /* RFC 9110, 15.5.14 */

/* After so many requests of a document in a row that are too large, its other parts would be as well: a
 * server that takes nothing would be asked for each sample. Halving reaches one of a thousand million by 30.
 */
#define TOO_LARGE_MOST 40

#define OTLP	      "otlp"
#define OTLP_PROFILES "otlp-profiles"

static bool of_otlp(const struct push *push)
{
	return !strncmp(push->kind.format, OTLP, strlen(OTLP));
}

static bool of_profiles(const struct push *push)
{
	return !strncmp(push->kind.format, OTLP_PROFILES, strlen(OTLP_PROFILES));
}

static int fd_of(const struct push *push)
{
	return push->epoll;
}

static bool is_busy(const struct push *push)
{
	return push->busy;
}

static unsigned long long tries_of(const struct push *push)
{
	return push->tries;
}

/* --- forms ------------------------------------------------------------------------------------ */

/* Makes the request for a document. The form is selected by the path of the URL. */
struct push_form {
	const char *path; /* the path ends with this; NULL: any path */
	void (*make)(struct push *push, const struct document *document);
};

static void add_header(struct push *push, const char *name, const char *value)
{
	char line[200];

	snprintf(line, sizeof(line), "%s: %s", name, value);
	push->headers = curl_slist_append(push->headers, line);
}

static void set_body(struct push *push, const char *bytes, size_t size)
{
	curl_easy_setopt(push->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	curl_easy_setopt(push->easy, CURLOPT_POSTFIELDS, bytes);
}

/* Sends the document as it is. It is gzipped for the transport unless it is gzipped already. */
static void make_plain(struct push *push, const struct document *document)
{
	add_header(push, "Content-Type", push->kind.media);
	if (gzip_is(document->bytes, document->size)) {
		set_body(push, document->bytes, document->size);
		return;
	}
	push->body.bytes = gzip(document->bytes, document->size, &push->body.size);
	add_header(push, "Content-Encoding", "gzip");
	set_body(push, push->body.bytes, push->body.size);
}

/* Pyroscope, POST /ingest: time and format are URL parameters, and a pprof profile is a part of a multipart
 * form. The user's URL already has the application's name (name=…). */
static void make_ingest(struct push *push, const struct document *document)
{
	char *url = NULL;
	size_t size;
	FILE *out = xopen_memstream(&url, &size);

	fprintf(out, "%s%cfrom=%lld&until=%lld&format=%s&spyName=nhmtap", push->url,
		strchr(push->url, '?') ? '&' : '?', (long long)document->since.tv_sec,
		(long long)document->until.tv_sec, push->kind.format);
	xclose_memstream(out);
	curl_easy_setopt(push->easy, CURLOPT_URL, url);
	free(url);
	if (!strcmp(push->kind.format, "pprof")) {
		curl_mimepart *part;

		push->mime = curl_mime_init(push->easy);
		part = curl_mime_addpart(push->mime);
		curl_mime_name(part, "profile");
		curl_mime_filename(part, "profile.pprof");
		curl_mime_data(part, document->bytes, document->size);
		curl_easy_setopt(push->easy, CURLOPT_MIMEPOST, push->mime);
		return;
	}
	add_header(push, "Content-Type", push->kind.media);
	set_body(push, document->bytes, document->size);
}

/* Parca, WriteRawRequest of parca.profilestore.v1alpha1 as JSON. */
static void make_raw(struct push *push, const struct document *document)
{
	char *profile = base64_text(document->bytes, document->size);
	FILE *out = xopen_memstream(&push->body.bytes, &push->body.size);

	fputs("{\"series\":[{\"labels\":{\"labels\":[{\"name\":\"__name__\",\"value\":\"nhmtap\"}]},"
	      "\"samples\":[{\"rawProfile\":\"",
	      out);
	fputs(profile, out);
	free(profile);
	fputs("\"}]}]}", out);
	xclose_memstream(out);
	add_header(push, "Content-Type", "application/json");
	set_body(push, push->body.bytes, push->body.size);
}

static const struct push_form forms[] = {
	{"/ingest", make_ingest},
	{"/profiles/writeraw", make_raw},
	{NULL, make_plain},
};

static const struct push_form *form_of(const char *url)
{
	const struct push_form *form = forms;
	size_t length = strcspn(url, "?#");

	while (form->path && (length < strlen(form->path) ||
			      strncmp(url + length - strlen(form->path), form->path, strlen(form->path))))
		form++;
	return form;
}

/* --- curl ------------------------------------------------------------------------------------- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
	struct push *push = context;
	struct epoll_event event = {
		.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0),
		.data.fd = fd,
	};

	if (what == CURL_POLL_REMOVE)
		epoll_ctl(push->epoll, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(push->epoll, EPOLL_CTL_ADD, fd, &event) && errno == EEXIST)
		epoll_ctl(push->epoll, EPOLL_CTL_MOD, fd, &event);
	return 0;
}

/* Arms the timer for curl; ms is -1 to disarm it. */
static int on_timer(CURLM *multi, long ms, void *context)
{
	struct push *push = context;
	struct itimerspec at = {0};

	if (ms >= 0)
		at.it_value = (struct timespec){ms / 1000, ms % 1000 * 1000000 + (ms ? 0 : 1)};
	timerfd_settime(push->timer, 0, &at, NULL);
	return 0;
}

/* Gives the rest of the answer its time. It has no limit where `on` is false. */
static void limit_rest(struct push *push, bool on)
{
	const struct itimerspec after = {.it_value.tv_sec = on ? REST_S : 0};

	timerfd_settime(push->rest, 0, &after, NULL);
}

/* Sockets are opened close-on-exec, so that COMMAND does not inherit them. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Keeps the beginning of the answer. One that does not end is broken off: curl takes less than all for a
 * failure. */
static size_t on_answer(char *bytes, size_t size, size_t nr, void *context)
{
	struct push *push = context;
	size_t room = sizeof(push->answer) - push->answered, kept = size * nr < room ? size * nr : room;

	memcpy(push->answer + push->answered, bytes, kept);
	push->answered += kept;
	return kept;
}

static bool is_cut(const struct push *push)
{
	return push->answered == sizeof(push->answer);
}

#define RETRY_AFTER "retry-after:"

/* Whether a line of the head asks for more seconds than curl can tell: it takes such a number for none. */
static bool asks_for_ages(const char *line, size_t size)
{
	size_t digits = 0, at = strlen(RETRY_AFTER);

	if (size <= at || strncasecmp(line, RETRY_AFTER, at))
		return false;
	while (at < size && (line[at] == ' ' || line[at] == '\t' || line[at] == '0'))
		at++;
	while (at + digits < size && line[at + digits] >= '0' && line[at + digits] <= '9')
		digits++;
	return digits > 9;
}

static size_t on_head(char *bytes, size_t size, size_t nr, void *context)
{
	struct push *push = context;
	long status = 0;

	curl_easy_getinfo(push->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && !push->decided)
		limit_rest(push, push->decided = true);
	push->ages = push->ages || asks_for_ages(bytes, size * nr);
	push->head += size * nr;
	return push->head > ANSWER_MOST ? 0 : size * nr;
}

static void set_options(struct push *push)
{
	CURL *easy = push->easy;

	curl_easy_setopt(easy, CURLOPT_URL, push->url);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Names are looked up in a thread, which is not waited for if it takes too long. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, ANSWER_MS);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, push);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, push);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, push->error);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "nhmtap/" NHMTAP_VERSION);
	/* Some servers compress as the request was compressed. on_answer() gets what was unpacked, so that a
	 * small answer which unpacks to a large one is broken off, too. */
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
}

/* libcurl is given the paths of descriptors, from which it reads at each connection. */
static void set_access(struct push *push)
{
	const struct credentials *credentials = &push->credentials;
	const struct {
		CURLoption option;
		enum access_file file;
	} files[] = {
		{CURLOPT_CAINFO, ACCESS_CA}, {CURLOPT_SSLCERT, ACCESS_CERT}, {CURLOPT_SSLKEY, ACCESS_KEY}};
	json_t *header;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (*credentials->paths[files[i].file])
			curl_easy_setopt(push->easy, files[i].option, credentials->paths[files[i].file]);
	/* Earlier versions are deprecated: RFC 8996. */
	curl_easy_setopt(push->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (push->unverified) {
		curl_easy_setopt(push->easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(push->easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	curl_easy_setopt(push->easy, CURLOPT_FRESH_CONNECT, (long)push->renewed);
	curl_easy_setopt(push->easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	push->renewed = false;
	json_array_foreach(credentials->headers, i, header)
		push->headers = curl_slist_append(push->headers, json_string_value(header));
}

static int refuse_url(struct refusal *refusal, const char *url, const char *why, const char *next)
{
	refuse(refusal, STATUS_USAGE, PUSH_OPTION " '%.300s'", url);
	because(refusal, "%s", why);
	return instead(refusal, "%s", next);
}

/* A URL is on the command line, which all users see, and in records. */
static int refuse_password(struct refusal *refusal, const char *url)
{
	refuse(refusal, STATUS_USAGE, PUSH_OPTION " '%.*s...'", (int)(strstr(url, "//") + 2 - url), url);
	because(refusal, "there is a user or a password in the URL, which others would see");
	return instead(refusal,
		       "write 'Authorization: Basic ...' into a file, and name it with --headers-file");
}

static bool has_user(CURLU *parts)
{
	char *user = NULL, *password = NULL;
	bool has;

	curl_url_get(parts, CURLUPART_USER, &user, 0);
	curl_url_get(parts, CURLUPART_PASSWORD, &password, 0);
	has = user || password;
	curl_free(user);
	curl_free(password);
	return has;
}

static bool is_url(const char *url, struct refusal *refusal)
{
	CURLU *parts = curl_url();
	CURLUcode code = curl_url_set(parts, CURLUPART_URL, url, 0);
	bool user = !code && has_user(parts);

	curl_url_cleanup(parts);
	if (code)
		refuse_url(refusal, url, curl_url_strerror(code), "write FORMAT=http://HOST:PORT/PATH");
	else if (user)
		refuse_password(refusal, url);
	return !code && !user;
}

static void forget_request(struct push *push)
{
	curl_slist_free_all(push->headers);
	curl_mime_free(push->mime);
	free(push->body.bytes);
	push->headers = NULL;
	push->mime = NULL;
	push->body = (struct buffer){0};
}

static void close_push(struct push *push)
{
	if (!push)
		return;
	if (push->busy)
		curl_multi_remove_handle(push->multi, push->easy);
	forget_request(push);
	credentials_release(&push->credentials);
	curl_easy_cleanup(push->easy);
	curl_multi_cleanup(push->multi);
	if (push->timer >= 0)
		close(push->timer);
	if (push->rest >= 0)
		close(push->rest);
	if (push->epoll >= 0)
		close(push->epoll);
	free(push);
}

static int check_push(const char *url, struct document_kind kind, struct refusal *refusal)
{
	if (!kind.media)
		return refuse_url(refusal, url, "this format is a stream and makes no requests",
				  "choose a format that does, such as otlp, pprof or clickhouse");
	return late_need(&libcurl, PUSH_OPTION, url, refusal) || !is_url(url, refusal) ? -1 : 0;
}

/* Makes a timer that is in the epoll set. Returns it, or -1 with errno. */
static int add_timer(int epoll)
{
	int timer = epoll < 0 ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = timer};
	int err;

	if (timer < 0 || !epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event))
		return timer;
	err = errno;
	close(timer);
	errno = err;
	return -1;
}

static struct push *open_push(const char *url, struct document_kind kind, const struct push_access *access,
			      struct refusal *refusal)
{
	struct push *push;

	if (check_push(url, kind, refusal))
		return NULL;
	push = xcalloc(1, sizeof(*push));
	*push = (struct push){.url = url,
			      .kind = kind,
			      .form = form_of(url),
			      .unverified = access->unverified,
			      .epoll = -1,
			      .timer = -1,
			      .rest = -1};
	if (credentials_read(&push->credentials, access, url, of_otlp(push), refusal)) {
		close_push(push);
		return NULL;
	}
	curl_global_init(CURL_GLOBAL_DEFAULT);
	push->multi = curl_multi_init();
	push->easy = curl_easy_init();
	push->epoll = epoll_create1(EPOLL_CLOEXEC);
	push->timer = add_timer(push->epoll);
	push->rest = push->timer < 0 ? -1 : add_timer(push->epoll);
	if (!push->multi || !push->easy || push->rest < 0) {
		refuse(refusal, STATUS_REFUSED, PUSH_OPTION " '%.300s'", url);
		because(refusal, "waiting for the server's answers is refused: %s", strerror(errno));
		close_push(push);
		return NULL;
	}
	curl_multi_setopt(push->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(push->multi, CURLMOPT_SOCKETDATA, push);
	curl_multi_setopt(push->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(push->multi, CURLMOPT_TIMERDATA, push);
	return push;
}

static void renew_credentials(struct push *push, const struct push_access *access)
{
	struct credentials credentials;
	struct refusal refusal;

	push->unverified = access->unverified;
	push->renewed = true;
	if (credentials_read(&credentials, access, push->url, of_otlp(push), &refusal)) {
		say("nhmtap: %s: %s; what it was before is used", refusal.asked, refusal.why);
		return;
	}
	credentials_release(&push->credentials);
	push->credentials = credentials;
}

/* --- one request ------------------------------------------------------------------------------ */

/* Starts the request. The connection is reused by later requests. */
static void begin_request(struct push *push, const struct document *document)
{
	curl_easy_reset(push->easy);
	push->answered = push->head = 0;
	push->ages = push->decided = push->late = false;
	push->error[0] = '\0';
	set_options(push);
	set_access(push);
	push->form->make(push, document);
	/* With this header curl would wait up to a second for the server's "100 Continue". */
	add_header(push, "Expect", "");
	curl_easy_setopt(push->easy, CURLOPT_HTTPHEADER, push->headers);
	curl_multi_add_handle(push->multi, push->easy);
	push->busy = true;
	push->tries++;
}

/* Statuses after which the same request is to be repeated, by OTLP's table and RFC 9110. */
static bool passes(long status)
{
	return status == 429 || (status >= 502 && status <= 504);
}

/* The number of the error that an answer of ClickHouse begins with; 0: it is none. */
static int clickhouse_error(const struct push *push)
{
	char text[32];
	int number = 0;

	if (strcmp(push->kind.format, "clickhouse"))
		return 0;
	snprintf(text, sizeof(text), "%.*s", (int)push->answered, push->answer);
	return sscanf(text, "Code: %d", &number) == 1 ? number : 0;
}

/* The same for ClickHouse, which has status 500 for most of its errors: those of a busy server, by
 * src/Common/ErrorCodes.cpp. */
static bool clickhouse_passes(const struct push *push)
{
	static const int passing[] = {
		159, /* TIMEOUT_EXCEEDED */
		202, /* TOO_MANY_SIMULTANEOUS_QUERIES */
		209, /* SOCKET_TIMEOUT */
		210, /* NETWORK_ERROR */
		241, /* MEMORY_LIMIT_EXCEEDED */
		242, /* TABLE_IS_READ_ONLY */
		243, /* NOT_ENOUGH_SPACE */
		252, /* TOO_MANY_PARTS */
	};
	int error = clickhouse_error(push);

	for (size_t i = 0; i < ARRAY_SIZE(passing); i++)
		if (passing[i] == error)
			return true;
	return false;
}

/* What libcurl says if no alternative name of a certificate is the host's. It shows the name of the subject,
 * which does not count, and may well be the host's: RFC 9525, section 2. */
#define MISMATCH   "does not match target host name"
#define OTHER_HOST "it is of another host: it needs that of the URL as an alternative name (subjectAltName)"

/* What GnuTLS finds wrong with a certificate: gnutls_certificate_status_t, gnutls/gnutls.h. */
static const char *wrong_with_certificate(long status)
{
	static const struct {
		long bit;
		const char *words;
	} wrong[] = {
		{1 << 10, "it has expired"},
		{1 << 9, "it is not valid yet"},
		{1 << 5, "it was revoked"},
		{1 << 6, "no CA that is known here has signed it; name its CA with --tls-ca-file"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (status & wrong[i].bit)
			return wrong[i].words;
	return NULL;
}

/* Whether the library has not taken the client's certificate. Each file holds what it should: see access.c.
 */
static bool is_unpaired(CURLcode code, const char *said)
{
	return code == CURLE_SSL_CERTPROBLEM || strstr(said, "X.509 key or certificate");
}

/* A server that wants a client's certificate, or another one, ends the connection, with TLS 1.3 only after
 * the handshake. Its alert, which says so, may be lost with what was sent to it. */
static bool is_ended_by_server(const struct push *push, CURLcode code)
{
	return !strncmp(push->url, "https:", 6) &&
	       (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
		(code == CURLE_SSL_CONNECT_ERROR && !strstr(push->error, "version")));
}

/* What a failure of TLS may come from, to be said before what curl says; "": nothing is known. */
static const char *doubt_tls(const struct push *push, CURLcode code, const char *said)
{
	bool given = *push->credentials.paths[ACCESS_CERT];

	if (strstr(said, "unexpected TLS packet"))
		return "what answers there may speak no TLS (http://): ";
	if (given && is_unpaired(code, said))
		return "the client's certificate (--tls-cert-file) and key (--tls-key-file) do not fit: ";
	if (!is_ended_by_server(push, code))
		return "";
	return given ? "the server ended the connection; it may refuse the certificate (--tls-cert-file): "
		     : "the server ended the connection; it may want a certificate (--tls-cert-file): ";
}

#define LONG_HEAD "the head of its answer is longer than the 64 KiB that are read of it"

/* Says why there is no answer, or which one. */
static void explain_failure(struct push *push, CURLcode code, long status)
{
	const char *said = push->head > ANSWER_MOST ? LONG_HEAD
			   : push->error[0]	    ? push->error
						    : curl_easy_strerror(code);
	long error = 0;

	if (status >= 200) {
		snprintf(push->why, sizeof(push->why), "the server answers with status %ld of HTTP", status);
		return;
	}
	if (code == CURLE_PEER_FAILED_VERIFICATION) {
		const char *wrong;

		curl_easy_getinfo(push->easy, CURLINFO_SSL_VERIFYRESULT, &error);
		wrong = strstr(said, MISMATCH) ? OTHER_HOST : wrong_with_certificate(error);
		snprintf(push->why, sizeof(push->why), "the server's certificate is refused: %.110s",
			 wrong ? wrong : said);
		return;
	}
	curl_easy_getinfo(push->easy, CURLINFO_OS_ERRNO, &error);
	snprintf(push->why, sizeof(push->why), "%s%.100s%s%s", doubt_tls(push, code, said), said,
		 error && !strstr(said, strerror(error)) ? ": " : "",
		 error && !strstr(said, strerror(error)) ? strerror(error) : "");
}

static void wait_before_again(struct push *push, int error)
{
	curl_off_t asked = 0;

	push->stopped = error;
	push->pause_ns = !push->pause_ns		      ? PAUSE_LEAST_NS
			 : 2 * push->pause_ns < PAUSE_MOST_NS ? 2 * push->pause_ns
							      : PAUSE_MOST_NS;
	curl_easy_getinfo(push->easy, CURLINFO_RETRY_AFTER, &asked);
	if (asked > ASKED_MOST_S || push->ages)
		asked = ASKED_MOST_S;
	push->again_ns = clock_ns(CLOCK_MONOTONIC) + (asked > 0 ? asked * 1000000000ULL : push->pause_ns);
}

/* The answer's first line, to be shown. */
static const char *first_line(struct push *push, char *buffer, size_t size)
{
	snprintf(buffer, size, "%.*s", (int)push->answered, push->answer);
	buffer[strcspn(buffer, "\r\n")] = '\0';
	return buffer;
}

/* --- what a server of OTLP takes of a request ------------------------------------------------- */

static void add_rejected(struct push_rejected *rejected, const struct document *document, long long points,
			 const char *message, size_t length)
{
	if (!rejected->answers++)
		rejected->since = document->since;
	rejected->until = document->until;
	if (timespec_ns(&rejected->since) > timespec_ns(&rejected->until)) /* the clock was set back */
		rejected->since = rejected->until;
	/* More than this would be no integer for some readers of JSON. */
	rejected->points += points < 0 ? 0 : points < 1LL << 52 ? points : 1LL << 52;
	rejected->points = rejected->points < 1LL << 52 ? rejected->points : 1LL << 52;
	if (length > 300)
		length = whole_characters(message, 300);
	snprintf(rejected->message, sizeof(rejected->message), "%.*s", (int)length, message);
}

static void note_rejected(struct push *push, const struct document *document, long long points,
			  const char *message, size_t length)
{
	if (points <= 0 && !length)
		return;
	add_rejected(&push->rejected, document, points, message, length);
	if (points > 0 && !push->told)
		say("nhmtap: %s takes only a part of what it is sent: %lld %s are rejected: %s", push->url,
		    points, of_profiles(push) ? "profiles" : "data points",
		    length ? push->rejected.message : "it does not say why");
	else if (points <= 0 && !push->warned)
		say("nhmtap: %s takes what it is sent, with a warning: %s", push->url,
		    push->rejected.message);
	push->told = push->told || points > 0;
	push->warned = push->warned || points <= 0;
}

static const json_t *either(const json_t *object, const char *name, const char *other)
{
	const json_t *value = json_object_get(object, name);

	return value ? value : json_object_get(object, other);
}

/* The JSON encoding has 64-bit integers as texts; readers have to take numbers as well, even 3.0. */
static long long integer_of(const json_t *value)
{
	double number = json_number_value(value);

	if (json_is_string(value))
		return strtoll(json_string_value(value), NULL, 10);
	return json_is_real(value) && number > 0 && number < 1e15 ? (long long)number
								  : json_integer_value(value);
}

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* Loads the answer; what only its texts may have wrong shall not hide what they say. */
static json_t *load_answer(const struct push *push)
{
	size_t mark = push->answered >= 3 && !memcmp(push->answer, BYTE_ORDER_MARK, 3) ? 3 : 0;
	size_t size = push->answered - mark;
	json_t *answer = json_loadb(push->answer + mark, size, JSON_ALLOW_NUL, NULL);
	char *copy;

	if (answer)
		return answer;
	copy = xmalloc(size + 1);
	for (size_t i = 0; i < size; i++) /* it may be no valid UTF-8 */
		copy[i] = push->answer[mark + i] & 0x80 ? '?' : push->answer[mark + i];
	answer = json_loadb(copy, size, JSON_ALLOW_NUL, NULL);
	free(copy);
	return answer;
}

/* Whether the answer begins as an object of JSON does. */
static bool is_object(const struct push *push)
{
	size_t at = 0;

	while (at < push->answered && isspace((unsigned char)push->answer[at]))
		at++;
	return at < push->answered && push->answer[at] == '{';
}

#define LONG_ANSWER  "its answer is longer than the 64 KiB that are read of it"
#define SHORT_ANSWER "its answer breaks off before its end"

/* Returns false if the answer is no JSON. */
static bool read_json(struct push *push, const struct document *document)
{
	json_t *answer = load_answer(push);
	const json_t *part = either(answer, "partialSuccess", "partial_success");
	const json_t *points = of_profiles(push) ? either(part, "rejectedProfiles", "rejected_profiles")
						 : either(part, "rejectedDataPoints", "rejected_data_points");
	const json_t *message = either(part, "errorMessage", "error_message");
	bool is_json = answer != NULL;

	if (!is_json && is_cut(push) && is_object(push))
		note_rejected(push, document, 0, LONG_ANSWER, strlen(LONG_ANSWER));
	else
		note_rejected(push, document, integer_of(points), json_string_value(message),
			      json_string_length(message));
	json_decref(answer);
	return is_json;
}

/* What is left of a message in protobuf's encoding. */
struct wire {
	const char *at, *end;
	bool cut; /* more followed, or should have */
};

/* Reads a field: an integer, the piece that is a text or a message, or a number of fixed size, which the
 * messages do not have. Of a piece that was cut, the beginning. */
static bool read_field(struct wire *wire, __u64 *key, __u64 *number, struct wire *piece)
{
	static const unsigned char fixed[8] = {[1] = 8, [5] = 4}; /* bytes, by the kind of field */
	__u64 left;

	if (!varint_read(&wire->at, wire->end, key))
		return false;
	*number = fixed[*key & 7];
	if (!*number && !varint_read(&wire->at, wire->end, number))
		return false;
	if ((*key & 7) == 0)
		return true;
	left = wire->end - wire->at;
	if (((*key & 7) != 2 && !fixed[*key & 7]) || (*number > left && !wire->cut))
		return false;
	*piece = (struct wire){wire->at, wire->at + (*number < left ? *number : left), wire->cut};
	wire->at = piece->end;
	return true;
}

/* ExportMetricsServiceResponse: partial_success = 1, with rejected_data_points = 1 and error_message = 2.
 * ExportProfilesServiceResponse has rejected_profiles = 1 instead. */
static void read_protobuf(struct push *push, const struct document *document)
{
	struct wire whole = {push->answer, push->answer + push->answered, is_cut(push) || push->broken},
		    part = {0}, text = {0}, piece;
	__u64 key, number, points = 0;

	while (read_field(&whole, &key, &number, &piece))
		if (key == (1 << 3 | 2))
			part = piece;
	while (read_field(&part, &key, &number, &piece)) {
		if (key == (1 << 3 | 0))
			points = number;
		if (key == (2 << 3 | 2))
			text = piece;
	}
	note_rejected(push, document, (long long)points, text.at, text.end - text.at);
}

static void read_answer(struct push *push, const struct document *document)
{
	unsigned long long told = push->rejected.answers;
	bool is_json = false;
	char *type = NULL;

	if (!of_otlp(push))
		return;
	curl_easy_getinfo(push->easy, CURLINFO_CONTENT_TYPE, &type);
	if (!type || !strcasestr(type, "protobuf"))
		is_json = read_json(push, document);
	if (!is_json && (!type || !strcasestr(type, "json")))
		read_protobuf(push, document);
	if (push->broken && !is_json && push->rejected.answers == told)
		note_rejected(push, document, 0, SHORT_ANSWER, strlen(SHORT_ANSWER));
}

#define REFUSALS_NS 1000000000ULL

static bool take_rejected(struct push *push, struct push_rejected *rejected, bool last)
{
	unsigned long long now;

	*rejected = push->rejected;
	push->rejected = (struct push_rejected){0};
	if (rejected->answers || !push->refusals.answers)
		return rejected->answers;
	now = clock_ns(CLOCK_MONOTONIC);
	if (now < push->refusals_ns && !last)
		return false;
	push->refusals_ns = now + REFUSALS_NS;
	*rejected = push->refusals;
	push->refusals = (struct push_rejected){0};
	return true;
}

static const char *why_of(const struct push *push)
{
	return push->why;
}

/* --- the outcome ------------------------------------------------------------------------------ */

/* Puts two smaller requests in the place of one that is too large for the server. Returns whether it can. */
static bool halve_first(struct push *push, struct documents *documents)
{
	const struct document *first = documents->first;
	struct half halves[2];

	if (!push->kind.halve || !push->kind.halve(first->bytes, first->size, halves))
		return false;
	if (!push->halves)
		say("nhmtap: %s takes no request of %zu bytes: status %d of HTTP; larger ones are sent in "
		    "parts",
		    push->url, first->size, TOO_LARGE);
	push->halves = true;
	documents_split(documents, halves);
	return true;
}

/* Drops the request, which the server refuses: with the other parts of its document if they would be refused
 * as well. */
static void drop_refused(struct push *push, struct documents *documents)
{
	bool goes_on;

	do {
		goes_on = documents->first->goes_on;
		documents->dropped += documents->first->records;
		documents_pop(documents);
	} while (goes_on && push->too_large >= TOO_LARGE_MOST);
	if (!goes_on)
		push->too_large = 0;
}

/* Once the status has come, the request was taken or refused, however the rest of the answer is: to send it
 * again would count it twice. */
static void take_outcome(struct push *push, struct documents *documents, CURLcode code)
{
	long status = 0;

	curl_easy_getinfo(push->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200 || passes(status) || (status > 299 && clickhouse_passes(push))) {
		explain_failure(push, code, status);
		wait_before_again(push, status >= 200			   ? EAGAIN
					: code == CURLE_OPERATION_TIMEDOUT ? ETIMEDOUT
									   : ECONNREFUSED);
		return;
	}
	push->stopped = 0;
	push->pause_ns = 0;
	push->too_large = status == TOO_LARGE ? push->too_large + 1 : 0;
	if (status == TOO_LARGE && push->too_large < TOO_LARGE_MOST && halve_first(push, documents))
		return;
	if (status <= 299) {
		push->broken = code == CURLE_OPERATION_TIMEDOUT || code == CURLE_PARTIAL_FILE ||
			       code == CURLE_RECV_ERROR;
		read_answer(push, documents->first);
		documents_taken(documents);
	} else {
		const struct document *first = documents->first;
		char line[160], why[200];

		snprintf(why, sizeof(why), "status %ld of HTTP%s%s", status, push->answered ? ": " : "",
			 first_line(push, line, sizeof(line)));
		/* What its gaps tell of was lost, and told, before. */
		add_rejected(&push->refusals, first, first->records - first->missed, why, strlen(why));
		push->refusals.whole = true;
		if (status != push->refused)
			say("nhmtap: %s refuses what it is sent: %s; it is dropped, and counted%s", push->url,
			    why,
			    status == TOO_LARGE ? ". Next: a shorter interval (-I), or fewer entries "
						  "(--top), make smaller requests"
						: "");
		drop_refused(push, documents);
		push->refused = status;
	}
}

static void end_request(struct push *push, struct documents *documents, CURLcode code)
{
	curl_multi_remove_handle(push->multi, push->easy);
	limit_rest(push, false);
	push->busy = false;
	take_outcome(push, documents, code);
	forget_request(push);
}

static void take_outcomes(struct push *push, struct documents *documents)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(push->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			end_request(push, documents, message->data.result);
	if (push->busy && push->late)
		end_request(push, documents, CURLE_OPERATION_TIMEDOUT);
}

/* Lets curl handle the ready sockets and the timer. Returns whether there were any. */
static bool act(struct push *push)
{
	struct epoll_event events[4];
	int nr = epoll_wait(push->epoll, events, 4, 0), running;

	for (int i = 0; i < nr; i++) {
		__u64 times;
		int fd = events[i].data.fd, what = 0;

		if (fd == push->timer || fd == push->rest) {
			if (read(fd, &times, sizeof(times)) < 0)
				continue;
			push->late = push->late || fd == push->rest;
			curl_multi_socket_action(push->multi, CURL_SOCKET_TIMEOUT, 0, &running);
			continue;
		}
		what |= events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0;
		what |= events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
		what |= events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0;
		curl_multi_socket_action(push->multi, fd, what, &running);
	}
	return nr > 0;
}

/* Whether it pauses between two tries. Once in LOOK_NS it returns false, so that curl can close connections
 * that the server has closed. */
static bool is_pausing(struct push *push)
{
	unsigned long long now;

	if (push->busy || !push->stopped)
		return false;
	now = clock_ns(CLOCK_MONOTONIC);
	if (now < push->again_ns && now < push->looked_ns + LOOK_NS)
		return true;
	push->looked_ns = now;
	return false;
}

static int step_requests(struct push *push, struct documents *documents)
{
	int running;

	if (is_pausing(push))
		return push->stopped;
	do {
		take_outcomes(push, documents);
		if (push->busy || !documents->first ||
		    (push->stopped && clock_ns(CLOCK_MONOTONIC) < push->again_ns))
			continue;
		begin_request(push, documents->first);
		curl_multi_socket_action(push->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	} while (act(push));
	take_outcomes(push, documents);
	return push->stopped;
}

const struct pusher pusher = {check_push, open_push,	 close_push, renew_credentials, fd_of, is_busy,
			      tries_of,	  step_requests, why_of,     take_rejected};
