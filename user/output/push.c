// SPDX-License-Identifier: GPL-2.0-only
#include "output/push.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <curl/curl.h>

#include "clock.h"
#include "late.h"
#include "memory.h"
#include "output/gzip.h"
#include "visible.h"

#define PAUSE_LEAST_NS 1000000000ULL
#define PAUSE_MOST_NS  60000000000ULL
#define LOOK_NS	       10000000ULL
#define CONNECT_MS     5000L
#define ANSWER_MS      20000L

struct push {
	const char *url;
	const char *format, *media;
	const struct form *form;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	curl_mime *mime;
	int epoll, timer; /* curl's sockets and the timer are in the epoll set */
	bool busy;
	unsigned long long tries;
	struct buffer {
		char *bytes;
		size_t size;
	} body; /* the request's body, where it is not the document's own bytes */
	unsigned long long pause_ns, again_ns, looked_ns;
	int stopped;  /* errno of the failure after which it pauses; 0: it does not pause */
	long refused; /* the HTTP status that was reported last */
};

bool push_is(const char *place)
{
	return place && (!strncmp(place, "http://", 7) || !strncmp(place, "https://", 8));
}

int push_fd(const struct push *push)
{
	return push->epoll;
}

bool push_is_busy(const struct push *push)
{
	return push->busy;
}

unsigned long long push_tries(const struct push *push)
{
	return push->tries;
}

/* --- forms ------------------------------------------------------------------------------------ */

/* Makes the request for a document. The form is selected by the path of the URL. */
struct form {
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
	add_header(push, "Content-Type", push->media);
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
		(long long)document->until.tv_sec, push->format);
	xclose_memstream(out);
	curl_easy_setopt(push->easy, CURLOPT_URL, url);
	free(url);
	if (!strcmp(push->format, "pprof")) {
		curl_mimepart *part;

		push->mime = curl_mime_init(push->easy);
		part = curl_mime_addpart(push->mime);
		curl_mime_name(part, "profile");
		curl_mime_filename(part, "profile.pprof");
		curl_mime_data(part, document->bytes, document->size);
		curl_easy_setopt(push->easy, CURLOPT_MIMEPOST, push->mime);
		return;
	}
	add_header(push, "Content-Type", push->media);
	set_body(push, document->bytes, document->size);
}

static void put_base64(FILE *out, const char *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		unsigned int three = (unsigned char)bytes[i] << 16 |
				     (left > 1 ? (unsigned char)bytes[i + 1] << 8 : 0) |
				     (left > 2 ? (unsigned char)bytes[i + 2] : 0);

		fputc(digits[three >> 18], out);
		fputc(digits[three >> 12 & 63], out);
		fputc(left > 1 ? digits[three >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[three & 63] : '=', out);
	}
}

/* Parca, WriteRawRequest of parca.profilestore.v1alpha1 as JSON. */
static void make_raw(struct push *push, const struct document *document)
{
	FILE *out = xopen_memstream(&push->body.bytes, &push->body.size);

	fputs("{\"series\":[{\"labels\":{\"labels\":[{\"name\":\"__name__\",\"value\":\"nhmtap\"}]},"
	      "\"samples\":[{"
	      "\"rawProfile\":\"",
	      out);
	put_base64(out, document->bytes, document->size);
	fputs("\"}]}]}", out);
	xclose_memstream(out);
	add_header(push, "Content-Type", "application/json");
	set_body(push, push->body.bytes, push->body.size);
}

static const struct form forms[] = {
	{"/ingest", make_ingest},
	{"/profiles/writeraw", make_raw},
	{NULL, make_plain},
};

static const struct form *form_of(const char *url)
{
	const struct form *form = forms;
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

/* Sockets are opened close-on-exec, so that COMMAND does not inherit them. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t ignore(char *bytes, size_t size, size_t nr, void *context)
{
	return size * nr;
}

static void set_options(struct push *push)
{
	CURL *easy = push->easy;

	curl_easy_setopt(easy, CURLOPT_URL, push->url);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, ANSWER_MS);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "nhmtap/" NHMTAP_VERSION);
}

static int refuse_url(struct refusal *refusal, const char *url, const char *why)
{
	refuse(refusal, STATUS_USAGE, "option --output '%.300s'", url);
	because(refusal, "%s", why);
	return instead(refusal, "write FORMAT=http://HOST:PORT/PATH");
}

static bool is_url(const char *url, struct refusal *refusal)
{
	CURLU *parts = curl_url();
	CURLUcode code = curl_url_set(parts, CURLUPART_URL, url, 0);

	curl_url_cleanup(parts);
	if (code)
		refuse_url(refusal, url, curl_url_strerror(code));
	return !code;
}

struct push *push_open(const char *url, const char *format, const char *media, struct refusal *refusal)
{
	struct epoll_event event = {.events = EPOLLIN};
	const char *why;
	struct push *push;

	if (!media) {
		refuse_url(refusal, url, "this format is a stream and makes no requests");
		return NULL;
	}
	why = late_libcurl();
	if (why) {
		refuse(refusal, STATUS_REFUSED, "option --output '%.300s'", url);
		because(refusal, "%s", why);
		instead(refusal, "install libcurl: apt-get install libcurl3-gnutls");
		return NULL;
	}
	if (!is_url(url, refusal))
		return NULL;
	push = xcalloc(1, sizeof(*push));
	*push = (struct push){.url = url, .format = format, .media = media, .form = form_of(url)};
	curl_global_init(CURL_GLOBAL_DEFAULT);
	push->multi = curl_multi_init();
	push->easy = curl_easy_init();
	push->epoll = epoll_create1(EPOLL_CLOEXEC);
	push->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	event.data.fd = push->timer;
	if (!push->multi || !push->easy || push->epoll < 0 || push->timer < 0 ||
	    epoll_ctl(push->epoll, EPOLL_CTL_ADD, push->timer, &event)) {
		refuse(refusal, STATUS_REFUSED, "option --output '%.300s'", url);
		because(refusal, "waiting for the server's answers is refused: %s", strerror(errno));
		push_close(push);
		return NULL;
	}
	curl_multi_setopt(push->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(push->multi, CURLMOPT_SOCKETDATA, push);
	curl_multi_setopt(push->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(push->multi, CURLMOPT_TIMERDATA, push);
	return push;
}

/* --- one request ------------------------------------------------------------------------------ */

static void forget_request(struct push *push)
{
	curl_slist_free_all(push->headers);
	curl_mime_free(push->mime);
	free(push->body.bytes);
	push->headers = NULL;
	push->mime = NULL;
	push->body = (struct buffer){0};
}

/* Starts the request. The connection is reused by later requests. */
static void begin(struct push *push, const struct document *document)
{
	curl_easy_reset(push->easy);
	set_options(push);
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

static void wait_before_again(struct push *push, int error)
{
	curl_off_t asked = 0;

	push->stopped = error;
	push->pause_ns = !push->pause_ns		      ? PAUSE_LEAST_NS
			 : 2 * push->pause_ns < PAUSE_MOST_NS ? 2 * push->pause_ns
							      : PAUSE_MOST_NS;
	curl_easy_getinfo(push->easy, CURLINFO_RETRY_AFTER, &asked);
	push->again_ns = clock_ns(CLOCK_MONOTONIC) + (asked > 0 ? asked * 1000000000ULL : push->pause_ns);
}

static void take_outcome(struct push *push, struct documents *documents, CURLcode code)
{
	long status = 0;

	curl_easy_getinfo(push->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK || passes(status)) {
		wait_before_again(push, code == CURLE_OK		   ? EAGAIN
					: code == CURLE_OPERATION_TIMEDOUT ? ETIMEDOUT
									   : ECONNREFUSED);
		return;
	}
	push->stopped = 0;
	push->pause_ns = 0;
	if (status < 200 || status > 299) {
		if (status != push->refused)
			say("nhmtap: %s refuses what it is sent: status %ld of HTTP; it is dropped, and "
			    "counted",
			    push->url, status);
		documents->dropped += documents->first->records;
	}
	push->refused = status;
	documents_pop(documents);
}

static void take_outcomes(struct push *push, struct documents *documents)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(push->multi, &left))) {
		CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_multi_remove_handle(push->multi, push->easy);
		push->busy = false;
		take_outcome(push, documents, code);
		forget_request(push);
	}
}

/* Lets curl handle the ready sockets and the timer. Returns whether there were any. */
static bool act(struct push *push)
{
	struct epoll_event events[4];
	int nr = epoll_wait(push->epoll, events, 4, 0), running;

	for (int i = 0; i < nr; i++) {
		__u64 times;
		int fd = events[i].data.fd, what = 0;

		if (fd == push->timer) {
			if (read(fd, &times, sizeof(times)) < 0)
				continue;
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

int push_step(struct push *push, struct documents *documents)
{
	int running;

	if (is_pausing(push))
		return push->stopped;
	do {
		take_outcomes(push, documents);
		if (push->busy || !documents->first ||
		    (push->stopped && clock_ns(CLOCK_MONOTONIC) < push->again_ns))
			continue;
		begin(push, documents->first);
		curl_multi_socket_action(push->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	} while (act(push));
	take_outcomes(push, documents);
	return push->stopped;
}

void push_close(struct push *push)
{
	if (!push)
		return;
	if (push->busy)
		curl_multi_remove_handle(push->multi, push->easy);
	forget_request(push);
	curl_easy_cleanup(push->easy);
	curl_multi_cleanup(push->multi);
	if (push->timer >= 0)
		close(push->timer);
	if (push->epoll >= 0)
		close(push->epoll);
	free(push);
}
