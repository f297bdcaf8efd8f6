/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds how much. */
#include "registry/quota.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "registry/registry.h"
#include "registry/session.h"

#define TOP 3

static const struct {
	const char *name, *setting;
} kinds[QUOTA_KINDS] = {
	[QUOTA_MEMORY] = { "memory", "memory_per_tenant" },
	[QUOTA_SESSIONS] = { "sessions", "sessions_per_tenant" },
	[QUOTA_STREAMS] = { "streams", "streams_per_tenant" },
	[QUOTA_NOTIFIES] = { "notifies", "notifies_per_tenant" },
	[QUOTA_COMMS] = { "communicators", "communicators_per_tenant" },
	[QUOTA_DESCRIPTORS] = { "descriptors", "descriptors_per_tenant" },
	[QUOTA_REGISTRATIONS] = { "registrations", "registrations_per_tenant" },
	[QUOTA_CHANNELS] = { "channels", "channels_per_tenant" },
	[QUOTA_PENDING] = { "pending bytes", "pending_per_tenant" },
};

const char *quota_name(enum quota_kind kind)
{
	return kinds[kind].name;
}

const char *quota_setting(enum quota_kind kind)
{
	return kinds[kind].setting;
}

bool quota_is_bytes(enum quota_kind kind)
{
	return kind == QUOTA_MEMORY || kind == QUOTA_PENDING;
}

/* What the engine goes by; its word for no limit is 0. */
static void quota_set_share(struct quota *quota)
{
	uint32_t weight = weights_find(quota->registry->limits.weights, quota->uid, quota->cgroup);
	uint64_t limit = quota->registry->limits.values[QUOTA_PENDING];

	atomic_store_explicit(&quota->share.pending_limit, limit == UINT64_MAX ? 0 : limit,
			      memory_order_relaxed);
	atomic_store_explicit(&quota->share.weight, weight, memory_order_relaxed);
}

void quotas_set_limits(struct registry *registry, const struct quota_limits *limits)
{
	registry->limits = *limits;
	list_for_each(struct quota, quota, &registry->quotas, link)
		quota_set_share(quota);
}

uint64_t quota_used(const struct quota *quota, enum quota_kind kind)
{
	if (kind == QUOTA_PENDING)
		return atomic_load_explicit(&quota->share.pending, memory_order_relaxed);
	return quota->used[kind];
}

static struct quota *quota_new(struct registry *registry, uint32_t uid, const char *cgroup)
{
	struct quota *quota = calloc(1, sizeof(*quota));

	if (!quota)
		return NULL;
	list_init(&quota->link);
	quota->registry = registry;
	quota->serial = ++registry->quota_serial;
	quota->uid = uid;
	snprintf(quota->cgroup, sizeof(quota->cgroup), "%s", cgroup);
	quota_set_share(quota);
	list_append(&registry->quotas, &quota->link);
	return quota;
}

struct quota *quota_get(struct registry *registry, uint32_t uid, const char *cgroup)
{
	struct quota *quota;

	list_for_each(struct quota, other, &registry->quotas, link)
		if (other->uid == uid && strcmp(other->cgroup, cgroup) == 0)
			return quota_ref(other);
	quota = quota_new(registry, uid, cgroup);
	return quota ? quota_ref(quota) : NULL;
}

struct quota *quota_ref(struct quota *quota)
{
	quota->references++;
	return quota;
}

struct quota *quota_unref(struct quota *quota)
{
	if (!quota || --quota->references)
		return NULL;
	list_remove(&quota->link);
	free(quota);
	return NULL;
}

uint64_t quota_left(const struct quota *quota, enum quota_kind kind)
{
	uint64_t limit = quota->registry->limits.values[kind];

	/* a limit that was lowered may be below what is used */
	return quota->used[kind] < limit ? limit - quota->used[kind] : 0;
}

bool quota_is_short(const struct quota *quota, enum quota_kind kind, uint64_t amount)
{
	return amount > quota_left(quota, kind);
}

int quota_charge(struct quota *quota, enum quota_kind kind, uint64_t amount)
{
	if (quota_is_short(quota, kind, amount))
		return -EDQUOT;
	quota_force(quota, kind, amount);
	return 0;
}

void quota_force(struct quota *quota, enum quota_kind kind, uint64_t amount)
{
	quota->used[kind] += amount;
}

void quota_refund(struct quota *quota, enum quota_kind kind, uint64_t amount)
{
	assert(quota->used[kind] >= amount);
	quota->used[kind] -= amount;
}

uint64_t quota_held(const struct session *session, enum quota_kind kind)
{
	return kind == QUOTA_COMMS ? session->rank_slots.used + session->root_infos
				   : session->held[kind];
}

/* The largest holders, in order. */
static void quota_find_top(const struct quota *quota, enum quota_kind kind,
			   struct session *ret_top[TOP])
{
	for (int i = 0; i < TOP; i++)
		ret_top[i] = NULL;
	list_for_each(struct session, session, &quota->registry->sessions, link) {
		struct session *mine = session;

		if (session->quota != quota || !quota_held(session, kind))
			continue;
		for (int i = 0; i < TOP && mine; i++) {
			struct session *other = ret_top[i];

			if (other && quota_held(other, kind) >= quota_held(mine, kind))
				continue;
			ret_top[i] = mine;
			mine = other;
		}
	}
}

struct session *quota_top(const struct quota *quota, enum quota_kind kind)
{
	struct session *top[TOP];

	quota_find_top(quota, kind, top);
	return top[0];
}

void quota_describe_owner(const struct quota *quota, struct text *text)
{
	text_add(text, "uid %" PRIu32, quota->uid);
	if (*quota->cgroup)
		text_add(text, " in %s", quota->cgroup);
}

/* None of them holds more than another. */
static bool is_even(struct session *const top[TOP], enum quota_kind kind)
{
	for (int i = 1; i < TOP && top[i]; i++)
		if (quota_held(top[i], kind) != quota_held(top[0], kind))
			return false;
	return true;
}

static void add_amount(struct text *text, enum quota_kind kind, uint64_t amount)
{
	if (quota_is_bytes(kind))
		text_add_bytes(text, amount);
	else
		text_add(text, "%" PRIu64, amount);
}

void quota_describe(const struct quota *quota, enum quota_kind kind, uint64_t asked,
		    struct text *text)
{
	struct session *top[TOP];

	quota_find_top(quota, kind, top);
	text_add(text, "%s of ", quota_name(kind));
	quota_describe_owner(quota, text);
	text_add(text, ": ");
	add_amount(text, kind, quota->used[kind]);
	text_add(text, " of ");
	add_amount(text, kind, quota->registry->limits.values[kind]);
	text_add(text, " used, ");
	add_amount(text, kind, asked);
	text_add(text, " asked; ");
	for (int i = 0; i < TOP && top[i]; i++) {
		text_add(text, i ? ", " : is_even(top, kind) ? "held by " : "most is held by ");
		text_add(text, "pid %d %s (", top[i]->view.pid, top[i]->process);
		add_amount(text, kind, quota_held(top[i], kind));
		text_add(text, ")");
	}
	text_add(text, "%sraise [limits] %s; hcclctl config says where it is set", top[0] ? "; " : "", quota_setting(kind));
}

bool quota_holds_back(const struct quota *quota, uint64_t bytes)
{
	return !view_share_allows(&quota->share, bytes);
}

void quota_describe_held(const struct quota *quota, struct text *text)
{
	quota_describe_owner(quota, text);
	text_add(text, " has ");
	text_add_bytes(text, quota_used(quota, QUOTA_PENDING));
	text_add(text, " sent and not received; raise [limits] %s", quota_setting(QUOTA_PENDING));
}
