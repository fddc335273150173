/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a server of HTTP is shown, and what it has to show: certificates and headers, such as Authorization.
 * They come from files or the environment, never from the command line, and are in no record.
 */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "base/refusal.h"

/* Files in PEM form, and one with a header a line. */
enum access_file { ACCESS_CA, ACCESS_CERT, ACCESS_KEY, ACCESS_HEADERS, ACCESS_FILES };

/* What is asked for. */
struct push_access {
	const char *files[ACCESS_FILES]; /* borrowed paths; NULL: none */
	bool unverified;		 /* the server's certificate is not verified */
};

/* What the files hold. All zero: nothing yet. */
struct credentials {
	int fds[ACCESS_FILES - 1];	  /* copies of the files in PEM form; -1: none */
	char paths[ACCESS_FILES - 1][32]; /* by which libraries read these; "": none */
	json_t *headers;		  /* list of texts "Name: value" */
};

bool access_is_same(const struct push_access *one, const struct push_access *other);

/*
 * Reads the files, with the calling thread's rights. For formats of OpenTelemetry (`otlp`) the environment's
 * OTEL_EXPORTER_OTLP_HEADERS, _CERTIFICATE, _CLIENT_CERTIFICATE and _CLIENT_KEY take the place of what is not
 * asked for. `url` is where they are for. Returns 0, or -1 with the refusal. The caller calls
 * credentials_release() if it was 0.
 */
int credentials_read(struct credentials *credentials, const struct push_access *access, const char *url,
		     bool otlp, struct refusal *refusal);
void credentials_release(struct credentials *credentials);
