/* SPDX-License-Identifier: Apache-2.0 */
/* Root infos, and joining communicators. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/comm_settings.h"
#include "client/comm_table.h"
#include "client/drive.h"
#include "client/environment.h"
#include "client/error.h"
#include "client/mapping.h"
#include "proto/cleanup.h"
#include "proto/control.pb-c.h"
#include "proto/feature.h"

/* ---- root info ---- */

int hccld_root_info_new(HcclRootInfo *ret_root)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__GetRootInfo body = HCCLD__CONTROL__GET_ROOT_INFO__INIT;
	CLEANUP(hccld_call_end) struct hccld_call call = { 0 };
	struct hccld_root_info info = { .magic = HCCLD_ROOT_INFO_MAGIC, .version = HCCLD_ROOT_INFO_VERSION, .size = sizeof(info) };
	const Hccld__Control__GetRootInfoReply *reply;
	struct hccld_session *session;
	int r;

	r = hccld_environment_check();
	if (r < 0)
		return r;
	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GET_ROOT_INFO;
	request.get_root_info = &body;
	r = hccld_call_make(session->connection, &request, &call);
	if (r < 0)
		return r;
	reply = call.reply->body_case == HCCLD__CONTROL__REPLY__BODY_GET_ROOT_INFO ? call.reply->get_root_info : NULL;
	if (!reply || reply->secret.len > sizeof(info.secret) || strlen(reply->name) >= sizeof(info.name))
		return hccld_error(CAUSE_PROTOCOL, "the daemon's answer to HcclGetRootInfo is malformed");
	info.key = reply->key;
	info.secret_size = (uint32_t)reply->secret.len;
	memcpy(info.secret, reply->secret.data, reply->secret.len);
	info.name_size = (uint32_t)strlen(reply->name);
	memcpy(info.name, reply->name, info.name_size);
	memset(ret_root, 0, sizeof(*ret_root));
	memcpy(ret_root, &info, sizeof(info));
	return 0;
}

static int root_info_read(const HcclRootInfo *root, struct hccld_root_info *ret_info)
{
	struct hccld_root_info info;
	bool good;

	memcpy(&info, root, sizeof(info));
	good = info.magic == HCCLD_ROOT_INFO_MAGIC && info.size >= sizeof(info) && info.size <= sizeof(*root) &&
	       info.secret_size <= sizeof(info.secret) && info.name_size < sizeof(info.name) &&
	       strnlen(info.name, sizeof(info.name)) == info.name_size;
	if (!good)
		return hccld_error(CAUSE_ARGUMENT, "rootInfo is not what HcclGetRootInfo of hccld wrote: expected all %u bytes of it, unchanged",
				   HCCL_ROOT_INFO_BYTES);
	if (info.version != HCCLD_ROOT_INFO_VERSION)
		return hccld_error(CAUSE_ARGUMENT, "rootInfo has version %u, expected %u: the root uses another release of hccld",
				   info.version, HCCLD_ROOT_INFO_VERSION);
	*ret_info = info;
	return 0;
}

/* ---- joining ---- */

struct join {
	struct hccld_comm_join *wish;
	struct hccld_root_info info;
	struct hccld_comm *comm;	/* taken place, not ALIVE */
	void *handle_before;		/* what *wish->ret_handle held */
	struct hccld_call call;
	bool started, joined;
};

/* What ranks of one communicator have in common. */
static void join_identify(const struct join *join, unsigned char ret_meeting[DIGEST_BYTES])
{
	const struct hccld_meeting *meeting = join->wish->meeting;
	struct digest digest = digest_new();

	if (!meeting) {
		digest_add_number(&digest, join->info.key);
	} else {
		digest_add(&digest, meeting->digest, sizeof(meeting->digest));
		digest_add_number(&digest, meeting->part);
		for (uint32_t i = 0; meeting->parent && i < join->wish->size; i++)
			digest_add_number(&digest, meeting->members[i]);
	}
	digest_write(&digest, ret_meeting);
}

static const char *join_name(const struct join *join)
{
	const struct hccld_comm_join *wish = join->wish;

	return *wish->config.name ? wish->config.name : wish->name ? wish->name : "";
}

/* What can fail here must not fail between the joins of one call: those sent already would wait for the others until their deadline. */
static int join_prepare(struct join *join, struct hccld_comm_join *wish, const struct hccld_session *session)
{
	unsigned char meeting[DIGEST_BYTES];
	int r = 0;

	join->wish = wish;
	if (wish->root)
		r = root_info_read(wish->root, &join->info);
	else if (!(session->features & HCCLD_FEATURE_COMM))
		r = hccld_error(CAUSE_UNBUILT, "hccld %s makes communicators of root infos only, this needs 0.2 or newer; update hccld",
				session->daemon_version);
	if (r < 0)
		return r;
	join_identify(join, meeting);
	return hccld_comm_place_take(join_name(join), wish->context->logical, meeting, wish->meeting && !wish->meeting->parent,
				     &join->comm);
}

static Hccld__Control__CommSettings settings_message(const struct comm_settings *settings, const char *soc_name)
{
	Hccld__Control__CommSettings message = HCCLD__CONTROL__COMM_SETTINGS__INIT;

	message.op_expansion_mode = settings->op_expansion_mode;
	message.deterministic = settings->deterministic;
	message.buffer_mb = settings->buffer_mb;
	message.retry_levels = settings->retry_levels;
	message.retry_count = settings->retry_count;
	message.retry_hold_ms = settings->retry_hold_ms;
	message.retry_interval_ms = settings->retry_interval_ms;
	message.qos = settings->qos ? settings->qos : 1u + hccld_qos_default(soc_name);
	return message;
}

static int join_start(struct join *join, struct hccld_session *session, uint32_t deadline_ms)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__JoinComm body = HCCLD__CONTROL__JOIN_COMM__INIT;
	Hccld__Control__JoinTable table = HCCLD__CONTROL__JOIN_TABLE__INIT;
	Hccld__Control__JoinSub sub = HCCLD__CONTROL__JOIN_SUB__INIT;
	const struct hccld_meeting *meeting = join->wish->meeting;
	const struct hccld_comm_config *config = &join->wish->config;
	Hccld__Control__CommSettings settings = settings_message(&config->settings, session->soc_name);
	int r;

	if (!meeting) {
		body.key = join->info.key;
		body.secret.data = join->info.secret;
		body.secret.len = join->info.secret_size;
	} else if (meeting->parent) {
		sub.parent = meeting->parent;
		sub.id = meeting->part;
		sub.members = (uint32_t *)meeting->members;
		sub.n_members = join->wish->size;
		body.sub = &sub;
	} else {
		table.digest.data = (uint8_t *)meeting->digest;
		table.digest.len = sizeof(meeting->digest);
		body.table = &table;
	}
	body.rank = join->wish->rank;
	body.size = join->wish->size;
	body.context = join->wish->context_id;
	body.name = (char *)join_name(join);
	body.udi = (char *)config->udi;
	body.settings = &settings;
	request.deadline_ms = deadline_ms;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_JOIN_COMM;
	request.join_comm = &body;
	r = hccld_call_start(session->connection, &request, &join->call);
	join->started = r == 0;
	if (r < 0)
		return r;
	hccld_comm_place_joining(join->comm, join->call.id);
	join->handle_before = *join->wish->ret_handle;
	*join->wish->ret_handle = join->comm->handle;
	return 0;
}

/* NULL: there is none, or it is of another kind. */
static const Hccld__Control__JoinCommReply *join_reply(const struct join *join)
{
	const Hccld__Control__Reply *reply = join->call.reply;

	return reply && reply->body_case == HCCLD__CONTROL__REPLY__BODY_JOIN_COMM ? reply->join_comm : NULL;
}

static int region_map(struct hccld_comm *comm, int fd)
{
	const uint64_t size = comm_region_size(comm->size);
	const struct comm_region *region = hccld_mapping_new(fd, 0, size, PROT_READ);

	if (!region)
		return hccld_error(CAUSE_SYSTEM_CALL, "cannot map the region of communicator %s: %s", comm->name, strerror(errno));
	comm->region = region;
	comm->region_size = size;
	if (region->magic != COMM_REGION_MAGIC || region->version != COMM_REGION_VERSION || region->size != comm->size)
		return hccld_error(CAUSE_PROTOCOL, "the region of communicator %s is malformed", comm->name);
	return 0;
}

/* Fills the place; it is not ALIVE yet. */
static int join_finish(struct join *join, struct hccld_session *session)
{
	const struct hccld_comm_config *config = &join->wish->config;
	struct hccld_comm *comm = join->comm;
	const Hccld__Control__JoinCommReply *reply = join_reply(join);
	size_t words = (join->wish->size + 63) / 64;
	int r;

	if (!reply || join->call.fd_count != 1 || strlen(reply->name) >= sizeof(comm->name))
		return hccld_error(CAUSE_PROTOCOL, "the daemon's answer to a join is malformed");
	comm->rank = join->wish->rank;
	comm->size = join->wish->size;
	comm->timeout_ms = config->timeout_ms;
	comm->allow_duplicate_items = session->allow_duplicate_items || hccld_environment_allow_duplicate_items();
	atomic_init(&comm->async_reported, false);
	atomic_init(&comm->is_acquired, false);
	atomic_init(&comm->call_failed, CAUSE_NONE);
	comm->task_rank = reply->rank;
	comm->context = join->wish->context_id;
	comm->comm = reply->comm;
	comm->on = join->wish->context;
	comm->held = NULL;
	comm->channels = NULL;
	comm->channels_ended = false;
	comm->settings = config->settings;
	hccld_comm_place_name(comm, reply->name);
	pthread_mutex_init(&comm->opening, NULL);
	pthread_mutex_init(&comm->making, NULL);
	comm->open[0] = calloc(words, sizeof(*comm->open[0]));
	comm->open[1] = calloc(words, sizeof(*comm->open[1]));
	comm->dead_known = calloc(words, sizeof(*comm->dead_known));
	if (!comm->open[0] || !comm->open[1] || !comm->dead_known)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for a communicator of %u ranks", comm->size);
	r = region_map(comm, join->call.fds[0]);
	return r < 0 ? r : hccld_drive_add_rank(comm);
}

static void join_undo(struct join *join)
{
	if (join->joined && join_reply(join))
		hccld_comm_leave_request(join_reply(join)->rank);
	if (join->started)
		*join->wish->ret_handle = join->handle_before;
	if (join->comm)
		hccld_comm_place_free(join->comm);
}

/* The rank is in: the handle becomes good. */
static void join_publish(struct join *join)
{
	struct hccld_comm *comm = join->comm;

	if (join->wish->hold_context)
		comm->held = join->wish->context;
	hccld_comm_name_add(comm->comm, comm->name);
	hccld_comm_place_alive(comm);
	*join->wish->ret_handle = comm->handle;
}

/*
 * A root info that the daemon does not know, or whose secret is wrong, is a bad argument like one that is garbage. Which variable has set
 * the limit is known here alone (a daemon of release 0.1.0 names one nevertheless).
 */
static int join_wait(struct join *join, struct hccld_session *session)
{
	int r = hccld_call_wait(session->connection, &join->call);
	enum cause cause = status_cause(r);

	if (join->wish->root && (cause == CAUSE_NOT_FOUND || cause == CAUSE_PERMISSION) && join->call.reply)
		return hccld_error(CAUSE_ARGUMENT, "rootInfo: %s", join->call.reply->text);
	if (cause == CAUSE_INIT_TIMEOUT && join->call.reply && !strstr(join->call.reply->text, "sets the limit"))
		return hccld_error(cause, "%s; %s sets the limit", join->call.reply->text,
				   hccld_environment_connect_is_ms() ? "HCCLD_CONNECT_TIMEOUT_MS" : "HCCL_CONNECT_TIMEOUT");
	return r;
}

/* Waits for all that were sent. One that fails ends the others; the first error counts, and its text stays. */
static int joins_wait(struct join *joins, uint32_t count, struct hccld_session *session, int error)
{
	bool ended = false;

	for (uint32_t i = 0; i < count; i++) {
		int r;

		if (error < 0 && !ended) {
			ended = true;
			hccld_error_mute(true);
			for (uint32_t k = i; k < count && session->features & HCCLD_FEATURE_COMM; k++)
				if (joins[k].started)
					hccld_comm_cancel_request(joins[k].call.id);
		}
		if (!joins[i].started)
			continue;
		r = join_wait(&joins[i], session);
		joins[i].joined = join_reply(&joins[i]) != NULL;
		if (r == 0 && error == 0)
			r = join_finish(&joins[i], session);
		if (r < 0 && error == 0)
			error = r;
	}
	hccld_error_mute(false);
	return error;
}

int hccld_comm_join(struct hccld_comm_join *wishes, uint32_t count)
{
	CLEANUP(freep) struct join *joins = calloc(count, sizeof(*joins));
	struct hccld_session *session;
	int error;

	if (!joins)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to join %u ranks", count);
	error = hccld_session_get(&session);
	if (error < 0)
		return error;
	for (uint32_t i = 0; i < count && error == 0; i++)
		error = join_prepare(&joins[i], &wishes[i], session);
	for (uint32_t i = 0; i < count && error == 0; i++)
		error = join_start(&joins[i], session, hccld_environment_connect_timeout_ms());
	error = joins_wait(joins, count, session, error);
	hccld_error_mute(error < 0);
	for (uint32_t i = 0; i < count; i++) {
		if (error < 0)
			join_undo(&joins[i]);
		else
			join_publish(&joins[i]);
		if (joins[i].started)
			hccld_call_end(&joins[i].call);
	}
	hccld_error_mute(false);
	return error;
}
