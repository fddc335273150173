// SPDX-License-Identifier: GPL-2.0-only
#include "activity/life.h"
#include "run/parts.h"

#include "base/visible.h"
#include "host/privileges.h"
#include "option/command.h"
#include "output/address.h"
#include "record/record.h"
#include "record/type.h"

static size_t place_of_same(const struct request *request, const struct asked *asked)
{
	size_t i = 0;

	while (i < request->nr_entries &&
	       (!request->entries[i] || !json_equal(request->entries[i]->value, asked->value)))
		i++;
	return i;
}

/* Begins the activities that are new. Returns how many could not start, and will not be tried again. */
static size_t begin_new(struct run *run, const struct request *request)
{
	size_t first = run->nr, refused = 0;

	for (size_t i = 0; i < request->nr_entries; i++) {
		struct refusal refusal = {0};

		if (request->entries[i] && plan_member(add_member(run, request->entries[i]), &refusal))
			give_up(run->members[run->nr - 1], &refusal);
	}
	read_streams_first(run);
	for (size_t i = first; i < run->nr; i++) {
		struct running *member = run->members[i];
		struct refusal refusal = {0};

		if (!member->over && !member->again &&
		    (plan_beside(member, &refusal) || start_member(member, &refusal)))
			give_up(member, &refusal);
		refused += member->over;
	}
	return refused;
}

/* Ends activities that were removed or changed. Entries of those that continue are removed from
 * the request. One that could not start is begun again: the machine may have changed. Returns the number of
 * those that end. */
static size_t end_members(struct run *run, struct request *request)
{
	size_t ended = 0;

	for (size_t m = run->nr; m--;) {
		struct running *member = run->members[m];
		size_t same = place_of_same(request, member->asked);

		if (member->refused) {
			remove_member(run, member);
			continue;
		}
		if (same < request->nr_entries) {
			asked_release(request->entries[same]);
			request->entries[same] = NULL;
			continue;
		}
		member->activity.reason = "reloaded";
		remove_member(run, member);
		ended++;
	}
	return ended;
}

static bool is_there(const struct run *run, const struct asked *asked)
{
	for (size_t m = 0; m < run->nr; m++)
		if (json_equal(run->members[m]->asked->value, asked->value))
			return true;
	return false;
}

/* Checks new activities before anything ends. Mistakes in the request are reported here. What this machine
 * lacks is reported by the activity when it can't start, unless nothing else would be left: then what is
 * measured now goes on. */
static int check_others(struct run *run, const struct request *request, struct refusal *refusal)
{
	struct refusal first = {0};
	size_t refused = 0;

	for (size_t i = 0; i < request->nr_entries; i++) {
		struct asked *asked = request->entries[i];
		struct activity trial = {
			.name = asked->name,
			.command = asked->options.command->name,
			.options = &asked->options,
			.session = &run->session,
		};
		struct refusal own = {0};
		int err = is_there(run, asked) ? 0 : activity_plan(&trial, &own);

		activity_release(&trial);
		if (err && own.status == STATUS_USAGE) {
			*refusal = own;
			return refused_at(run, refusal, "/activities/%zu", i);
		}
		if (!err || asked->retry)
			continue;
		if (!refused++) {
			first = own;
			refused_at(run, &first, "/activities/%zu", i);
		}
	}
	if (refused < request->nr_entries)
		return 0;
	*refusal = first;
	return -1;
}

static void write_reload(struct run *run, const struct request *request, size_t ended)
{
	size_t begun = 0;

	for (size_t i = 0; i < request->nr_entries; i++)
		begun += request->entries[i] != NULL;
	write_own(run, json_pack("{s:s, s:s, s:I, s:I}", "type", "reload", "outcome", "taken", "begun",
				 (json_int_t)begun, "ended", (json_int_t)ended));
}

static const struct record_type reload_record = {.name = "reload"};
REGISTER_RECORD(reload_record);

static void read_again(struct run *run)
{
	struct request request = {0};
	struct refusal refusal = {0};
	struct other_outputs others;
	size_t refused, ended;

	if (run->session.reason)
		return;
	host_see_again(&run->session.host);
	if (run->again(&request, run->request, &refusal) || check_others(run, &request, &refusal) ||
	    open_other_outputs(run, &request, &others, &refusal)) {
		/* The files may have been renamed all the same: what renames them knows nothing of CONFIG. */
		reopen_outputs(run);
		write_own(run, record_error(&refusal));
		write_own(run, json_pack("{s:s, s:s}", "type", "reload", "outcome", "refused"));
		say_refusal(&refusal);
		say("nhmtap: the new CONFIG is not taken; the session goes on with the old one");
		request_release(&request);
		flush(run);
		return;
	}
	ended = end_members(run, &request);
	take_other_outputs(run, &request, &others);
	write_reload(run, &request, ended);
	privileges_raise(); /* the files that the caller names are open now */
	refused = begin_new(run, &request);
	request.nr_entries = 0;
	request_release(run->request);
	*run->request = request;
	end_contexts(run);
	begin_contexts(run);
	flush(run);
	run->refused = refused && !any_left(run);
	if (run->refused)
		say("nhmtap: nothing that CONFIG asks for can be measured; SIGHUP reads it again");
	else if (!any_left(run))
		end_session(run, "exited", SIGTERM);
}

void reload(struct run *run)
{
	service_reloads();
	address_hurry();
	read_again(run);
	service_is_ready();
}
