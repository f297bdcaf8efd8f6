/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about memory that processes of a tenant share, and about what a device is. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "control/connection.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/request.h"
#include "control/teardown.h"
#include "proto/cleanup.h"
#include "proto/feature.h"
#include "registry/context.h"
#include "registry/lazy.h"
#include "registry/notify.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/share.h"

#define LOST_PAGE 1024u
#define UUID_BYTES 16u

/* ---- exports ---- */

static int export_reply(struct request *request, const struct export *export)
{
	Hccld__Control__ExportMemoryReply *reply = &request->body.export_memory;

	hccld__control__export_memory_reply__init(reply);
	reply->key.data = request_alloc(request, export->key_bytes);
	if (!reply->key.data)
		return -ENOMEM;
	memcpy(reply->key.data, export->key, export->key_bytes);
	reply->key.len = export->key_bytes;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_EXPORT_MEMORY;
	request->reply.export_memory = reply;
	return 0;
}

/* The key that this request has got already, before the daemon was restarted; or NULL. */
static struct export *export_again(const struct request *request, struct segment *segment)
{
	if (!request_session(request)->is_restored)
		return NULL;
	list_for_each(struct export, export, &segment->exports, link)
		if (export->request == request->message->id)
			return export;
	return NULL;
}

static int export_check(struct request *request, const struct segment *segment)
{
	const Hccld__Control__ExportMemory *message = request->message->export_memory;

	if (!segment)
		return request_fail(request, CAUSE_BAD_HANDLE,
				    "this process has no such memory segment");
	if (segment->is_import)
		return request_fail(
			request, CAUSE_PERMISSION,
			"memory that was imported from another process can be exported only by that process");
	if (segment->kind == SEGMENT_NOTIFY) {
		if (!notifies_are_at(segment->context, message->offset, message->bytes))
			return request_fail(request, CAUSE_BAD_HANDLE,
					    "this process has no such notifies, or has given them back");
	} else if (segment->kind > SEGMENT_HOST || message->bytes == 0 ||
		   message->bytes > segment->memory.bytes ||
		   message->offset > segment->memory.bytes - message->bytes)
		return request_fail(request, CAUSE_ARGUMENT,
				    "%" PRIu64 " bytes at %" PRIu64
				    " are not a part of a segment of %" PRIu64 " bytes",
				    message->bytes, message->offset, segment->memory.bytes);
	if (message->key_bytes != sizeof(uint64_t) && message->key_bytes != HCCLD_KEY_BYTES_MAX)
		return request_fail(request, CAUSE_ARGUMENT, "keys have 8 or %u bytes, not %" PRIu32,
				    HCCLD_KEY_BYTES_MAX, message->key_bytes);
	return 0;
}

int handle_export_memory(struct request *request)
{
	const Hccld__Control__ExportMemory *message = request->message->export_memory;
	struct session *session = request_session(request);
	struct segment *segment = session_segment(session, message->segment);
	struct export *export;
	int r;

	r = export_check(request, segment);
	if (r < 0)
		return r;
	export = export_again(request, segment);
	if (!export) {
		r = export_new(segment, message->offset, message->bytes, message->key_bytes,
			       message->any_process, request->message->id, &export);
		if (r == -EDQUOT)
			return request_fail(
				request, CAUSE_LIMIT,
				"this process has exported memory under %" PRIu32
				" keys; a process has at most %u: close keys that are not needed",
				session->export_count, HCCLD_EXPORTS_PER_SESSION);
		if (r == -EUSERS)
			return request_fail(
				request, CAUSE_LIMIT,
				"the processes of uid %" PRIu32
				" have exported memory under %u keys, which is the most that one user may: close keys that are not needed",
				session->uid, HCCLD_EXPORTS_PER_USER);
		if (r < 0)
			return r;
	}
	return export_reply(request, export);
}

/* The export of that key; NULL if there is none in the tenant: of another's memory nothing is said. */
static struct export *export_of_tenant(const struct request *request, ProtobufCBinaryData key)
{
	struct session *session = request_session(request);
	struct export *export = export_find(session->registry, key.data, key.len);

	return export && export->segment->context->session->tenant == session->tenant ? export :
											 NULL;
}

/* The export of that key if it is the session's own, or NULL. */
static struct export *export_own(const struct request *request, ProtobufCBinaryData key)
{
	struct export *export = export_of_tenant(request, key);

	return export && export->segment->context->session == request_session(request) ? export :
											  NULL;
}

static int key_unknown(struct request *request)
{
	return request_fail(
		request, CAUSE_NOT_FOUND,
		"nothing is exported under this key: it is mistyped, or the exporter has closed the key, freed the memory, destroyed the notify or ended");
}

int handle_allow_import(struct request *request)
{
	const Hccld__Control__AllowImport *message = request->message->allow_import;
	struct export *export = export_own(request, message->key);

	if (!export)
		return request_fail(request, CAUSE_NOT_FOUND,
				    "this process has exported nothing under this key");
	if (export_allow(export, message->pids, message->n_pids) < 0)
		return request_fail(
			request, CAUSE_LIMIT,
			"more than %u processes for one key; export without a check of pids instead",
			HCCLD_EXPORT_PIDS_MAX);
	return 0;
}

int handle_end_export(struct request *request)
{
	const Hccld__Control__EndExport *message = request->message->end_export;
	struct session *session = request_session(request);
	struct export *export = export_own(request, message->key);
	struct segment *segment;
	uint64_t offset, bytes;

	if (!export)
		return session->is_restored ? 0 :
					      request_fail(request, CAUSE_NOT_FOUND,
							   "this process has exported nothing under this key");
	segment = export->segment;
	offset = export->offset;
	bytes = export->bytes;
	if (message->lose)
		share_lose(export);
	export_end(export);
	/* its process has freed it before, and these were the last imports */
	if (segment->is_orphan && list_is_empty(&segment->imports))
		return teardown_segment(request, segment);
	/* the memory is used for something else then: no copy may still be about it */
	return message->lose ? teardown_settle(request, segment, offset, bytes) : 0;
}

/* ---- imports ---- */

static int import_reply(struct request *request, const struct segment *import)
{
	Hccld__Control__ImportMemoryReply *reply = &request->body.import_memory;
	const struct segment *origin = import->origin;

	hccld__control__import_memory_reply__init(reply);
	reply->segment = import->id;
	reply->offset = import->offset;
	reply->bytes = import->memory.bytes;
	reply->kind = import->kind;
	reply->pid = (uint32_t)origin->context->session->view.pid;
	reply->device = origin->context->device;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_IMPORT_MEMORY;
	request->reply.import_memory = reply;
	/* nobody maps notifies */
	return import->kind == SEGMENT_NOTIFY ? 0 : request_add_fd(request, origin->memory.fd);
}

/* The import that this request has made already, before the daemon was restarted; or NULL. */
static struct segment *import_again(const struct request *request, struct context *context)
{
	if (!context->session->is_restored)
		return NULL;
	list_for_each(struct segment, segment, &context->segments, link)
		if (segment->is_import && segment->origin &&
		    segment->request == request->message->id)
			return segment;
	return NULL;
}

static int import_make_new(struct request *request, struct context *context,
			   struct segment **ret_import)
{
	struct session *session = context->session;
	struct export *export =
		export_of_tenant(request, request->message->import_memory->key);
	int r;

	if (!export)
		return key_unknown(request);
	if (export->segment->kind == SEGMENT_NOTIFY && !(session->features & HCCLD_FEATURE_RESOURCES))
		return request_fail(request, CAUSE_UNBUILT, "the key is of a notify, which the library of this process does not know");
	if (export->segment->context->session != session &&
	    !export_allows(export, session->view.pid))
		return request_fail(
			request, CAUSE_PERMISSION,
			"pid %d, which exports this memory or notify, has not named pid %d among those that may import it (aclrtIpcMemSetImportPid, aclrtMemSetPidToShareableHandle, aclrtNotifySetImportPid; aclrtDeviceGetBareTgid gives the pid that counts)",
			export->segment->context->session->view.pid, session->view.pid);
	r = import_new(context, export, request->message->id, ret_import);
	if (r == -EDQUOT)
		return request_fail(request, CAUSE_LIMIT,
				    "this process has %" PRIu32
				    " memory segments; a process has at most %u",
				    session->segment_slots.used, HCCLD_SEGMENTS_PER_SESSION);
	if (r == -EUSERS)
		return request_fail(request, CAUSE_LIMIT,
				    "the processes of uid %" PRIu32
				    " have imported memory %u times, which is the most that one user may",
				    session->uid, HCCLD_IMPORTS_PER_USER);
	return r;
}

int handle_import_memory(struct request *request)
{
	struct session *session = request_session(request);
	struct context *context =
		session_context(session, request->message->import_memory->context);
	struct segment *import;
	int r;

	if (!context)
		return request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	import = import_again(request, context);
	if (!import) {
		r = import_make_new(request, context, &import);
		if (r < 0)
			return r;
	}
	r = import_reply(request, import);
	if (r < 0)
		teardown_lost_segment(request->control, import);
	return r;
}

int handle_list_lost(struct request *request)
{
	uint64_t after = request->message->list_lost->after;
	Hccld__Control__ListLostReply *reply = &request->body.list_lost;
	struct session *session = request_session(request);

	hccld__control__list_lost_reply__init(reply);
	reply->segments = request_alloc(request, LOST_PAGE * sizeof(uint64_t));
	reply->losses = request_alloc(request, LOST_PAGE * sizeof(uint32_t));
	reply->exits = request_alloc(request, LOST_PAGE * sizeof(int32_t));
	if (!reply->segments || !reply->losses || !reply->exits)
		return -ENOMEM;
	/* the cursor is a place, counted from 1 */
	for (uint64_t i = after; i < HCCLD_SEGMENTS_PER_SESSION; i++) {
		const struct segment *segment = session->places[i].segment;

		if (!segment || !segment->is_lost || segment->is_closing)
			continue;
		reply->losses[reply->n_losses++] = segment->loss;
		reply->exits[reply->n_exits++] = segment->loss_exit;
		reply->segments[reply->n_segments++] = segment->id;
		if (reply->n_segments == LOST_PAGE) {
			reply->next = i + 1;
			break;
		}
	}
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_LIST_LOST;
	request->reply.list_lost = reply;
	return 0;
}

/* ---- devices ---- */

/* FNV-1a. */
static uint64_t hash(uint64_t seed, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		seed = (seed ^ bytes[i]) * UINT64_C(0x100000001b3);
	return seed;
}

/* Of the machine and the device's number: the same whenever and by whomever it is asked (version 8 of RFC 9562). */
static void device_uuid(const struct registry *registry, uint32_t device, uint8_t *uuid)
{
	CLEANUP(close_fdp) int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	char machine[33] = "";
	uint64_t high, low;
	ssize_t size = fd < 0 ? 0 : read(fd, machine, 32);

	if (size <= 0) {
		memcpy(machine, registry->node, 32);
		size = 32;
	}
	high = hash(hash(UINT64_C(0xcbf29ce484222325), machine, (size_t)size), &device,
		    sizeof(device));
	low = hash(hash(high, "hccld device", 12), &device, sizeof(device));
	memcpy(uuid, &high, sizeof(high));
	memcpy(uuid + sizeof(high), &low, sizeof(low));
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

int handle_describe_device(struct request *request)
{
	uint32_t device = request->message->describe_device->device;
	Hccld__Control__DescribeDeviceReply *reply = &request->body.describe_device;
	const struct registry *registry = request->control->registry;

	if (device >= registry->device_count)
		return request_fail(request, CAUSE_NO_DEVICE,
				    "there is no device %" PRIu32 ": hccld has %" PRIu32
				    " devices, counted from 0",
				    device, registry->device_count);
	lazy_look(request->control->registry);
	hccld__control__describe_device_reply__init(reply);
	reply->uuid.data = request_alloc(request, UUID_BYTES);
	if (!reply->uuid.data)
		return -ENOMEM;
	reply->uuid.len = UUID_BYTES;
	device_uuid(registry, device, reply->uuid.data);
	reply->memory_used = registry->devices[device].memory.used;
	reply->memory_total = registry->devices[device].memory.total;
	reply->pid = (uint32_t)request_session(request)->view.pid;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_DESCRIBE_DEVICE;
	request->reply.describe_device = reply;
	return 0;
}
