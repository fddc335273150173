/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by both ends of the stream: a connection that reconnects, and the stream itself. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nats/nats.h>

#define STREAM	"nhmtap"
#define SUBJECT STREAM ".>"

#define WAIT_MS 250

static inline void stop_on(natsStatus status, const char *what)
{
	if (status == NATS_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, natsStatus_GetText(status));
	exit(1);
}

/* urls: "nats://HOST:PORT,nats://…". One of them that answers is enough, also after a reconnect. */
static inline jsCtx *stream_connect(char *urls)
{
	const char *servers[16];
	natsConnection *connection;
	natsOptions *options;
	jsCtx *stream;
	int nr = 0;

	for (char *url; nr < 16 && (url = strsep(&urls, ","));)
		servers[nr++] = url;
	stop_on(natsOptions_Create(&options), "options");
	stop_on(natsOptions_SetServers(options, servers, nr), "servers");
	natsOptions_SetMaxReconnect(options, -1);
	natsOptions_SetReconnectWait(options, WAIT_MS);
	natsOptions_SetTimeout(options, 2000);
	natsOptions_SetPingInterval(options, 2000);
	while (natsConnection_Connect(&connection, options) != NATS_OK)
		nats_Sleep(WAIT_MS);
	stop_on(natsConnection_JetStream(&stream, connection, NULL), "JetStream");
	return stream;
}

/* Whichever program comes first makes the stream, on the disks of three servers. */
static inline void stream_make(jsCtx *stream)
{
	const char *subjects[] = {SUBJECT};
	jsStreamConfig config;

	jsStreamConfig_Init(&config);
	config.Name = STREAM;
	config.Subjects = subjects;
	config.SubjectsLen = 1;
	config.Storage = js_FileStorage;
	config.Replicas = 3;
	config.Retention = js_WorkQueuePolicy; /* keeps messages until they are acknowledged */
	while (js_AddStream(NULL, stream, &config, NULL, NULL) != NATS_OK)
		nats_Sleep(WAIT_MS);
}
