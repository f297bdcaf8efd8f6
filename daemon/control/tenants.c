/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants, as control sees them. */
#include "control/tenants.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/namespace.h"
#include "base/process.h"
#include "base/text.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/remnants.h"
#include "control/request.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/tenant.h"
#include "scheduler/scheduler.h"

int tenants_key(const struct connection *connection, int pidfd, struct tenant_key *ret_key)
{
	const struct control *control = connection->control;
	struct tenant_key key = { .uid = connection->peer.uid };

	key.is_private = namespace_uid_is_nobody(key.uid);
	/* what we can see ourselves counts more than what was sent */
	key.user_namespace = namespace_of_process(connection->peer.pid);
	if (!key.user_namespace)
		key.user_namespace = connection->user_namespace;
	if (control->options.tenant_has_cgroup &&
	    cgroup_of_process(connection->peer.pid, key.cgroup, sizeof(key.cgroup)) < 0)
		log_warning("%s: its cgroup cannot be read: its user alone makes the tenant",
			    connection_name(connection));
	/* the pid was its own while we looked, or somebody else's was looked at */
	if (process_has_ended(pidfd))
		return -ESRCH;
	*ret_key = key;
	return 0;
}

int tenants_get(struct control *control, const struct tenant_key *key, struct tenant **ret_tenant)
{
	struct tenant *tenant;
	int r;

	r = tenant_get(control->registry, key, &tenant);
	if (r < 0)
		return r;
	if (!tenant->is_scheduled) {
		scheduler_yard_add(control->scheduler, &tenant->view);
		tenant->is_scheduled = true;
	}
	*ret_tenant = tenant;
	return 0;
}

/* A tenant on its way out. */
struct retreat {
	struct scheduler_call call;
	struct control *control;
	struct tenant *tenant;
};

/* Engine thread. */
static bool retreat_run(struct engine *engine, void *arg)
{
	struct retreat *retreat = arg;

	(void)engine;
	scheduler_yard_remove(retreat->control->scheduler, &retreat->tenant->view);
	return true;
}

static void retreat_done(void *arg)
{
	struct retreat *retreat = arg;

	remnants_drop(retreat->control, retreat->tenant);
	tenant_remove(retreat->tenant);
	free(retreat);
}

void tenants_collect(struct control *control, struct tenant *tenant)
{
	struct retreat *retreat;

	/* when the daemon stops, the next process finds those that have no sessions */
	if (tenant->session_count || tenant->is_leaving || control->is_stopping)
		return;
	if (!tenant->is_scheduled) {
		remnants_drop(control, tenant);
		tenant_remove(tenant);
		return;
	}
	retreat = calloc(1, sizeof(*retreat));
	if (!retreat)
		return; /* it stays, and serves the next process of its kind */
	tenant->is_leaving = true;
	retreat->control = control;
	retreat->tenant = tenant;
	retreat->call = (struct scheduler_call){ .run = retreat_run,
						 .done = retreat_done,
						 .arg = retreat };
	scheduler_call(control->scheduler, &retreat->call);
}

int tenants_refuse(struct request *request, enum cause cause, const struct quota *quota,
		   enum quota_kind kind, uint64_t asked)
{
	struct text text;

	text_init(&text, request->text, sizeof(request->text));
	quota_describe(quota, kind, asked, &text);
	return status_error(cause);
}

int tenants_refuse_stream(struct request *request, const struct session *session, int r)
{
	if (r == -EUSERS && quota_is_short(session->quota, QUOTA_STREAMS, 1))
		return tenants_refuse(request, CAUSE_STREAMS, session->quota, QUOTA_STREAMS, 1);
	if (r == -EUSERS)
		return tenants_refuse(request, CAUSE_HOST_MEMORY, session->quota, QUOTA_MEMORY, SESSION_STREAM_STRIDE);
	if (r == -ENOSR || r == -EDQUOT)
		return request_fail(request, CAUSE_STREAMS,
				    "this process has %" PRIu32 " streams; there is no room for more (a process has at most %u)",
				    session->stream_slots.used, HCCLD_STREAMS_PER_SESSION);
	return r;
}

int tenants_refuse_region(struct request *request, const struct quota *quota, uint64_t bytes)
{
	if (quota_is_short(quota, QUOTA_MEMORY, bytes))
		return tenants_refuse(request, CAUSE_HOST_MEMORY, quota, QUOTA_MEMORY, bytes);
	return tenants_refuse(request, CAUSE_LIMIT, quota, QUOTA_DESCRIPTORS, 1);
}

void tenants_describe_host(const struct registry *registry, uint64_t bytes, struct text *text)
{
	text_add(text, "host memory for pinned buffers, side buffers and communicators ");
	account_describe(&registry->host, text);
	text_add(text, "; ");
	text_add_bytes(text, bytes);
	text_add(text, " more were asked for");
}

int tenants_refuse_host(struct request *request, uint64_t bytes)
{
	const struct session *session = request_session(request);
	struct text text;

	text_init(&text, request->text, sizeof(request->text));
	tenants_describe_host(session->registry, bytes, &text);
	text_add(&text, " by pid %d; " TENANTS_HOST_REMEDY, session->view.pid);
	return status_error(CAUSE_HOST_MEMORY);
}
