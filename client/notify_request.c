/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about notifies. */
#include "client/notify_request.h"

#include "client/error.h"
#include "client/segment.h"
#include "proto/limits.h"
#include "proto/notify.h"

int hccld_notify_request_new(struct hccld_context *context, bool is_counting, uint64_t *ret_segment, uint32_t *ret_id)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CreateNotifies create = HCCLD__CONTROL__CREATE_NOTIFIES__INIT;
	struct hccld_session *session;
	struct hccld_call call;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	create.context = context->id;
	create.count = 1;
	create.purpose = is_counting ? HCCLD__CONTROL__CREATE_NOTIFIES__PURPOSE__COUNTING
				     : HCCLD__CONTROL__CREATE_NOTIFIES__PURPOSE__PLAIN;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_NOTIFIES;
	request.create_notifies = &create;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_CREATE_NOTIFIES)
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer to a request for notifies is malformed");
	if (r == 0) {
		*ret_segment = call.reply->create_notifies->segment;
		*ret_id = call.reply->create_notifies->first;
	}
	hccld_call_end(&call);
	return r;
}

int hccld_notify_request_free(uint64_t context, uint32_t id)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__FreeNotifies free_notifies = HCCLD__CONTROL__FREE_NOTIFIES__INIT;
	struct hccld_session *session;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	free_notifies.context = context;
	free_notifies.first = id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_FREE_NOTIFIES;
	request.free_notifies = &free_notifies;
	return hccld_call_simple(session->connection, &request);
}

int hccld_notify_request_reset(uint64_t context, const uint32_t *ids, size_t count)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__ResetNotifies reset = HCCLD__CONTROL__RESET_NOTIFIES__INIT;
	struct hccld_session *session;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	reset.context = context;
	reset.ids = (uint32_t *)(uintptr_t)ids;
	reset.n_ids = count;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_RESET_NOTIFIES;
	request.reset_notifies = &reset;
	return hccld_call_simple(session->connection, &request);
}

void hccld_notify_request_give_back(uint64_t segment)
{
	struct hccld_segment import = { .id = segment };

	hccld_segment_free(&import);
}

int hccld_notify_request_import(struct hccld_context *context, const uint8_t *key, struct hccld_notify_import *ret_import)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__ImportMemory import = HCCLD__CONTROL__IMPORT_MEMORY__INIT;
	const Hccld__Control__ImportMemoryReply *reply;
	struct hccld_session *session;
	struct hccld_call call;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	import.key.data = (uint8_t *)(uintptr_t)key;
	import.key.len = HCCLD_KEY_BYTES_MAX;
	import.context = context->id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_IMPORT_MEMORY;
	request.import_memory = &import;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_IMPORT_MEMORY)
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer to an import is malformed");
	reply = r == 0 ? call.reply->import_memory : NULL;
	if (reply && (reply->kind != NOTIFY_SEGMENT_KIND || reply->bytes != sizeof(struct notify_slot))) {
		hccld_notify_request_give_back(reply->segment);
		r = hccld_error(CAUSE_ARGUMENT, "the key is one of memory, which aclrtIpcMemImportByKey takes");
	} else if (reply) {
		*ret_import = (struct hccld_notify_import){ reply->segment, reply->offset, reply->pid, reply->device };
	}
	hccld_call_end(&call);
	return r;
}
