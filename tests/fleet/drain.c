// SPDX-License-Identifier: GPL-2.0-only
/*
 * Passes the messages of the stream to a command as lines on its stdin, several messages at a time.
 * They are acknowledged when the command has succeeded. If it fails, or if this program dies before
 * that, they are delivered again. A table may therefore get a line twice, and has to recognise it
 * by (run_id, seq).
 *
 *   drain nats://n1:4222,nats://n2:4222,nats://n3:4222 'clickhouse-client … --query "INSERT INTO nhmtap
 * FORMAT JSONEachRow"'
 */
#define _GNU_SOURCE
#include <signal.h>

#include "stream.h"

#define CONSUMER    "database"
#define MESSAGES    256
#define FETCH_MS    1000
#define ACK_WAIT_NS 5000000000LL

static int give(const natsMsgList *list, const char *command)
{
	FILE *out = popen(command, "w");

	for (int i = 0; out && i < list->Count; i++)
		fwrite(natsMsg_GetData(list->Msgs[i]), 1, natsMsg_GetDataLength(list->Msgs[i]), out);
	return out ? pclose(out) : -1;
}

/* Returns when a new subscription is needed. */
static void drain(natsSubscription *subscription, const char *command)
{
	natsStatus status = NATS_OK;

	while (status == NATS_OK || status == NATS_TIMEOUT) {
		natsMsgList list = {0};

		status = natsSubscription_Fetch(&list, subscription, MESSAGES, FETCH_MS, NULL);
		if (status == NATS_OK && give(&list, command)) {
			fprintf(stderr, "the command has failed; its lines come again\n");
			nats_Sleep(WAIT_MS);
		} else if (status == NATS_OK) {
			for (int i = 0; i < list.Count; i++)
				natsMsg_AckSync(list.Msgs[i], NULL, NULL);
		}
		natsMsgList_Destroy(&list);
	}
}

int main(int argc, char **argv)
{
	natsSubscription *subscription;
	jsSubOptions how;
	jsCtx *stream;

	if (argc != 3) {
		fprintf(stderr, "usage: drain URL,URL,URL COMMAND\n");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	stream = stream_connect(argv[1]);
	stream_make(stream);
	jsSubOptions_Init(&how);
	how.Config.AckWait = ACK_WAIT_NS;
	for (;; nats_Sleep(WAIT_MS)) {
		if (js_PullSubscribe(&subscription, stream, SUBJECT, CONSUMER, NULL, &how, NULL) != NATS_OK)
			continue;
		drain(subscription, argv[2]);
		natsSubscription_Destroy(subscription);
	}
}
