// SPDX-License-Identifier: GPL-2.0-only
#include "run/parts.h"

#include <stdlib.h>
#include <string.h>

#include "activity/life.h"
#include "base/clock.h"
#include "base/memory.h"
#include "host/priority.h"
#include "option/command.h"
#include "record/record.h"

static void on_try_again(void *context);

void read_streams_first(const struct run *run)
{
	size_t i = 0;

	while (i < run->nr && !activity_asked_to_stream(&run->members[i]->asked->options))
		i++;
	if (i < run->nr)
		priority_raise();
	else
		priority_lower();
}

bool any_left(const struct run *run)
{
	for (size_t i = 0; i < run->nr; i++)
		if (!run->members[i]->over)
			return true;
	return false;
}

static bool any_other_left(const struct run *run, const struct running *member)
{
	for (size_t i = 0; i < run->nr; i++)
		if (run->members[i] != member && !run->members[i]->over)
			return true;
	return false;
}

/* Limits the waiting for slow files so that all other activities together make no interval late by more than
 * a tenth. */
void share_time(struct run *run)
{
	__u64 shortest = 0;
	size_t going = 0;

	for (size_t i = 0; i < run->nr; i++) {
		const struct running *member = run->members[i];
		__u64 interval_ms = member->asked->options.interval_ms;

		if (!member->going)
			continue;
		going++;
		if (!shortest || interval_ms < shortest)
			shortest = interval_ms;
	}
	names_wait_at_most(run->session.names, going > 1 ? shortest * 1000000 / 10 / (going - 1) : 0);
}

static void close_member(struct running *member)
{
	activity_close(&member->activity);
	activity_release(&member->activity);
	member->going = false;
	share_time(member->run);
}

/* The activity could not start, or can't continue. */
void give_up(struct running *member, const struct refusal *refusal)
{
	struct run *run = member->run;

	close_member(member);
	session_write(&run->session, record_error(refusal), member->activity.name);
	member->over = member->refused = !member->asked->retry;
	if (member->over)
		return;
	member->pause_ns = pause_after(member->pause_ns);
	member->again = loop_at(run->session.loop, clock_ns(CLOCK_MONOTONIC) + member->pause_ns, on_try_again,
				member);
}

/* `held`: counters that it can't have. */
static int plan_without(struct running *member, unsigned long long held, struct refusal *refusal)
{
	struct host *host = &member->run->session.host;
	struct party parties[TOGETHER_MOST];
	struct asked *asked = member->asked;
	size_t which = 0, nr;

	member->activity = (struct activity){
		.name = asked->name,
		.command = asked->options.command->name,
		.options = &asked->options,
		.session = &member->run->session,
	};
	host->counters_ahead = held;
	if (activity_plan(&member->activity, refusal))
		return -1;
	if (sum_memory(member->run, refusal))
		return -1;
	nr = gather_parties(member->run, member, parties, &which);
	return together_check(parties, nr, which, host, refusal);
}

int plan_member(struct running *member, struct refusal *refusal)
{
	return plan_without(member, 0, refusal);
}

int plan_beside(struct running *member, struct refusal *refusal)
{
	struct party parties[TOGETHER_MOST];
	unsigned long long held;
	size_t which = 0, nr;

	nr = gather_parties(member->run, member, parties, &which);
	held = together_held(parties, nr, which, &member->run->session.host);
	if (!held)
		return 0;
	activity_release(&member->activity);
	return plan_without(member, held, refusal);
}

int start_member(struct running *member, struct refusal *refusal)
{
	struct activity *activity = &member->activity;

	if (activity_open(activity, refusal) || activity_begin(activity, true, refusal))
		return -1;
	member->going = true;
	member->pause_ns = 0;
	share_time(member->run);
	write_start(member);
	activity_wait(activity);
	return 0;
}

static void on_try_again(void *context)
{
	struct running *member = context;
	struct refusal refusal = {0};

	member->again = NULL;
	host_see_again(&member->run->session.host);
	if (plan_member(member, &refusal) || plan_beside(member, &refusal) || start_member(member, &refusal))
		give_up(member, &refusal);
	flush(member->run);
}

/* Writes the last report and the end record of one of several activities. */
static void finish_member(struct running *member)
{
	struct activity *activity = &member->activity;

	activity_wait_no_more(activity);
	counters_disable(activity->counters);
	activity_report(activity, true);
	write_activity_end(member);
	close_member(member);
}

static struct running *member_of(struct activity *activity)
{
	return (struct running *)activity;
}

/* An activity has reached its end. The session ends with the last one. */
void on_enough(struct session *session, struct activity *activity, const char *reason)
{
	struct run *run = (struct run *)session;
	struct running *member = member_of(activity);
	bool again = member->asked->retry && !strcmp(reason, "exited");

	activity->reason = activity->reason ? activity->reason : reason;
	if (session->alone || (!again && !any_other_left(run, member))) {
		if (!session->reason || !session->child.pid)
			end_session(run, reason, SIGTERM);
		return;
	}
	finish_member(member);
	member->over = !again;
	if (again)
		member->again = loop_at(session->loop, clock_ns(CLOCK_MONOTONIC) + pause_after(0),
					on_try_again, member);
	flush(run);
}

void try_no_more(struct running *member)
{
	loop_remove(member->run->session.loop, &member->again);
	member->over = true;
	if (!any_left(member->run))
		end_session(member->run, "stopped", SIGTERM);
}

struct running *add_member(struct run *run, struct asked *asked)
{
	struct running *member = xcalloc(1, sizeof(*member));

	member->run = run;
	member->asked = asked;
	member->activity.session = &run->session;
	return *xappend(run->members, run->nr) = member;
}

void remove_member(struct run *run, struct running *member)
{
	size_t i = 0;

	while (run->members[i] != member)
		i++;
	memmove(&run->members[i], &run->members[i + 1], (--run->nr - i) * sizeof(*run->members));
	loop_remove(run->session.loop, &member->again);
	if (member->going)
		finish_member(member);
	asked_release(member->asked);
	free(member);
}
