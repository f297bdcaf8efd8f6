/* SPDX-License-Identifier: Apache-2.0 */
#include "client/thread_request.h"

#include "client/connection.h"
#include "client/error.h"
#include "proto/feature.h"

int hccld_thread_request_new(const struct hccld_thread_wish *wish, struct hccld_thread_part *ret_part, uint32_t *ret_place)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CreateThread create = HCCLD__CONTROL__CREATE_THREAD__INIT;
	const Hccld__Control__CreateThreadReply *reply;
	struct hccld_session *session;
	struct hccld_call call;
	int r;

	r = hccld_session_need(HCCLD_FEATURE_RESOURCES, "threads", &session);
	if (r < 0)
		return r;
	create.context = wish->context;
	create.rank = wish->rank;
	create.engine = wish->engine;
	create.notify_count = wish->notify_count;
	create.stream = wish->stream;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_THREAD;
	request.create_thread = &create;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_CREATE_THREAD)
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer to creating a thread is malformed");
	if (r == 0) {
		reply = call.reply->create_thread;
		*ret_part = (struct hccld_thread_part){ .id = reply->thread,
							.segment = reply->notify_segment,
							.first = reply->first_notify,
							.count = wish->notify_count };
		*ret_place = reply->stream;
	}
	hccld_call_end(&call);
	return r;
}

void hccld_thread_request_end(uint64_t id)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__DestroyThread destroy = HCCLD__CONTROL__DESTROY_THREAD__INIT;
	struct hccld_session *session;

	destroy.thread = id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESTROY_THREAD;
	request.destroy_thread = &destroy;
	hccld_error_mute(true);
	if (hccld_session_get(&session) == 0)
		(void)hccld_call_simple(session->connection, &request);
	hccld_error_mute(false);
}
