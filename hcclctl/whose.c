/* SPDX-License-Identifier: Apache-2.0 */
#include "hcclctl/whose.h"

#include <inttypes.h>

#include "hcclctl/command.h"
#include "hcclctl/text.h"

static const char *only_session, *only_pid;

const struct extra_option whose_options[WHOSE_OPTIONS] = {
	{ "session", OPTION_VALUE, NULL, &only_session },
	{ "pid", OPTION_VALUE, NULL, &only_pid },
};

bool whose_filter(Hccld__Control__List *list)
{
	uint32_t pid;

	if (only_session && text_id(only_session, &list->session) < 0) {
		complain("--session %s: not the number of a session ('hcclctl ps' shows them)", only_session);
		return false;
	}
	if (!only_pid)
		return true;
	if (text_number(only_pid, 1, INT32_MAX, &pid) < 0) {
		complain("--pid %s: not a process id", only_pid);
		return false;
	}
	list->pid = pid;
	return true;
}

/* Whose streams are asked for. */
struct wanted {
	uint64_t session;
	uint32_t pid;
	bool has_session, has_pid; /* it exists, as far as this user sees */
};

static int find_wanted(const Hccld__Control__ListReply *page, void *arg)
{
	struct wanted *wanted = arg;

	for (size_t i = 0; i < page->n_sessions; i++) {
		wanted->has_session |= page->sessions[i]->session == wanted->session;
		wanted->has_pid |= page->sessions[i]->pid == wanted->pid;
	}
	return 0;
}

/* Who is not there has not just no streams. */
int whose_check(struct query *query)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	struct wanted wanted = { 0 };
	int r;

	if (!only_session && !only_pid)
		return STATUS_OK;
	whose_filter(&list);
	wanted.session = list.session;
	wanted.pid = list.pid;
	r = query_list(query, HCCLD__CONTROL__LIST__KIND__SESSIONS, find_wanted, &wanted);
	if (r < 0)
		return query_complain(r);
	if (only_session && !wanted.has_session) {
		complain("there is no session %" PRIu64 " ('hcclctl ps' shows those that you see)", wanted.session);
		return STATUS_STUCK;
	}
	if (only_pid && !wanted.has_pid) {
		complain("process %" PRIu32 " has no session ('hcclctl ps' shows those that you see)", wanted.pid);
		return STATUS_STUCK;
	}
	return STATUS_OK;
}
