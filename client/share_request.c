/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about shared memory, and mapping what comes with an import. */
#include "client/share_request.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "client/error.h"
#include "client/mapping.h"
#include "client/share.h"
#include "client/strict.h"
#include "proto/notify.h"

#define PAGE 4096u

int hccld_share_request_export(uint64_t segment, uint64_t offset, uint64_t bytes, bool any_process,
			  uint8_t *ret_key, uint32_t key_bytes)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__ExportMemory export = HCCLD__CONTROL__EXPORT_MEMORY__INIT;
	struct hccld_session *session;
	struct hccld_call call;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	export.segment = segment;
	export.offset = offset;
	export.bytes = bytes;
	export.key_bytes = key_bytes;
	export.any_process = any_process;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_EXPORT_MEMORY;
	request.export_memory = &export;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && (call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_EXPORT_MEMORY ||
		       call.reply->export_memory->key.len != key_bytes))
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer to an export is malformed");
	if (r == 0)
		memcpy(ret_key, call.reply->export_memory->key.data, key_bytes);
	hccld_call_end(&call);
	return r;
}

/* Maps the pages that hold [offset, offset + bytes) of @fd. */
static int imported_map(const Hccld__Control__ImportMemoryReply *reply, int fd,
			struct imported *imported)
{
	const uint64_t lead = reply->offset % PAGE;
	const uint64_t size = (lead + reply->bytes + PAGE - 1) / PAGE * PAGE;
	void *base = hccld_mapping_new(fd, reply->offset - lead, size, PROT_READ | PROT_WRITE);
	int r;

	if (!base)
		return hccld_error(CAUSE_HOST_MEMORY,
				   "cannot map %llu bytes of another process: %s",
				   (unsigned long long)size, strerror(errno));
	r = reply->kind ? 0 : hccld_strict_protect(base, size);
	if (r < 0) {
		hccld_mapping_free(base, size);
		return r;
	}
	imported->segment.base = base;
	imported->segment.size = size;
	imported->start = (char *)base + lead;
	imported->bytes = reply->bytes;
	imported->memory = reply->kind ? HCCLD_MEMORY_HOST : HCCLD_MEMORY_DEVICE;
	imported->pid = reply->pid;
	return 0;
}

int hccld_share_request_import(const uint8_t *key, uint32_t key_bytes, struct hccld_context *context,
			  struct imported *ret_imported)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__ImportMemory import = HCCLD__CONTROL__IMPORT_MEMORY__INIT;
	struct imported imported = { 0 };
	struct hccld_session *session;
	struct hccld_call call;
	bool granted;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	import.key.data = (uint8_t *)(uintptr_t)key;
	import.key.len = key_bytes;
	import.context = context->id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_IMPORT_MEMORY;
	request.import_memory = &import;
	r = hccld_call_make(session->connection, &request, &call);
	granted = call.reply && call.reply->body_case == HCCLD__CONTROL__REPLY__BODY_IMPORT_MEMORY;
	if (granted)
		imported.segment.id = call.reply->import_memory->segment;
	if (r == 0 && granted && call.reply->import_memory->kind == NOTIFY_SEGMENT_KIND)
		r = hccld_error(CAUSE_ARGUMENT, "the key is one of a notify, which aclrtNotifyImportByKey takes");
	if (r == 0 && (!granted || call.fd_count != 1 || call.reply->import_memory->bytes == 0))
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer to an import is malformed");
	if (r == 0)
		r = imported_map(call.reply->import_memory, call.fds[0], &imported);
	if (r < 0 && granted)
		hccld_segment_free(&imported.segment);
	hccld_call_end(&call);
	if (r == 0)
		*ret_imported = imported;
	return r;
}

int hccld_share_request_end(const uint8_t *key, bool lose)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__EndExport end = HCCLD__CONTROL__END_EXPORT__INIT;
	struct hccld_session *session;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	end.key.data = (uint8_t *)(uintptr_t)key;
	end.key.len = HCCLD_KEY_BYTES_MAX;
	end.lose = lose;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_END_EXPORT;
	request.end_export = &end;
	return hccld_call_simple(session->connection, &request);
}

int hccld_share_allow_key(const uint8_t *key, uint32_t key_bytes, const int32_t *pids,
			  size_t count)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__AllowImport allow = HCCLD__CONTROL__ALLOW_IMPORT__INIT;
	struct hccld_session *session;
	int r;

	if (count > HCCLD_EXPORT_PIDS_MAX)
		return hccld_error(CAUSE_LIMIT,
				   "%zu processes for one key, at most %u; export without a check of pids instead",
				   count, HCCLD_EXPORT_PIDS_MAX);
	for (size_t i = 0; i < count; i++)
		if (pids[i] <= 0)
			return hccld_error(CAUSE_ARGUMENT, "pid[%zu] is %d, which no process has",
					   i, pids[i]);
	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	allow.key.data = (uint8_t *)(uintptr_t)key;
	allow.key.len = key_bytes;
	allow.pids = (int32_t *)(uintptr_t)pids;
	allow.n_pids = count;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOW_IMPORT;
	request.allow_import = &allow;
	return hccld_call_simple(session->connection, &request);
}
