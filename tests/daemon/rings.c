/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/daemon/rings.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/support/test.h"

static void rings_take(struct rings *rings, const Hccld__Control__OpenPairsReply__Extent *extent, int fd)
{
	struct stat st;
	void *base;

	check_eq_int(fstat(fd, &st), 0);
	check_eq_uint((uint64_t)st.st_size, extent->bytes);
	check_gt_uint(extent->count, 0);
	check_ge_uint(extent->bytes, extent->count * PAIR_PLACE);
	base = mmap(NULL, extent->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(base != MAP_FAILED && rings->count < EXTENTS_MAX);
	if (rings->count)
		check_ge_uint(extent->first, rings->first[rings->count - 1] + rings->pairs[rings->count - 1]);
	rings->first[rings->count] = extent->first;
	rings->pairs[rings->count] = extent->count;
	rings->bases[rings->count++] = base;
}

void rings_free(struct rings *rings)
{
	for (uint32_t i = 0; i < rings->count; i++)
		munmap(rings->bases[i], rings->pairs[i] * PAIR_PLACE);
	rings->count = 0;
}

/* The ring that the directory names, and what else there is of it. */
static struct pair_ring *find(const struct rings *rings, const struct scene *scene, uint32_t source, uint32_t destination, struct pair_rest **ret_rest)
{
	uint32_t word = atomic_load(&comm_region_directory(scene->region, scene->size)[source * scene->size + destination]);

	for (uint32_t i = 0; word && i < rings->count; i++) {
		uint32_t at = word - 1 - rings->first[i];

		if (word - 1 < rings->first[i] || at >= rings->pairs[i])
			continue;
		check_lt_uint(at, pair_extent_rings(rings->pairs[i]));
		*ret_rest = pair_extent_rest(rings->bases[i], rings->pairs[i], at);
		return rings->bases[i] + at;
	}
	return NULL;
}

struct pair_ring *rings_find(const struct rings *rings, const struct scene *scene, uint32_t source, uint32_t destination)
{
	struct pair_rest *rest;

	return find(rings, scene, source, destination, &rest);
}

struct pair_offer *rings_slot(const struct rings *rings, const struct scene *scene, uint32_t source, uint32_t destination, uint64_t number)
{
	struct pair_rest *rest = NULL;
	struct pair_ring *ring = find(rings, scene, source, destination, &rest);

	return pair_ring_slot(ring, rest, number);
}

bool open_pairs(struct scene *scene, uint32_t rank, uint32_t count, uint32_t mapped, struct rings *rings)
{
	Hccld__Control__OpenPairs open = HCCLD__CONTROL__OPEN_PAIRS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	const Hccld__Control__OpenPairsReply *body;
	struct raw_reply reply;
	uint32_t peers[RANKS_MAX];
	bool more;

	for (uint32_t i = 0; i < count; i++)
		peers[i] = i;
	open.rank = scene->ranks[rank];
	open.n_send_to = count;
	open.send_to = peers;
	open.map = rings != NULL;
	open.mapped_pairs = mapped;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
	request.open_pairs = &open;
	raw_call(&scene->clients[rank > 0], &request, &reply);
	check_msg(reply.message->cause == 0, "OpenPairs: %s", reply.message->text);
	if (!rings) {
		raw_reply_free(&reply);
		return false;
	}
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_OPEN_PAIRS);
	body = reply.message->open_pairs;
	check_eq_uint(reply.packet.fd_count, body->n_extents);
	for (size_t i = 0; i < body->n_extents; i++)
		rings_take(rings, body->extents[i], reply.packet.fds[i]);
	more = body->more;
	raw_reply_free(&reply);
	return more;
}

uint64_t listed_pending(uint32_t *ret_pid)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	const Hccld__Control__Tenant *tenant;
	struct raw_client tool;
	struct raw_reply reply;
	uint64_t used = UINT64_MAX;

	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	list.kind = HCCLD__CONTROL__LIST__KIND__TENANTS;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	raw_call(&tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	check_eq_uint(reply.message->list->n_tenants, 1);
	tenant = reply.message->list->tenants[0];
	for (size_t i = 0; i < tenant->n_limits; i++) {
		if (strcmp(tenant->limits[i]->name, "pending bytes") != 0)
			continue;
		used = tenant->limits[i]->used;
		*ret_pid = tenant->limits[i]->top_pid;
	}
	raw_reply_free(&reply);
	raw_client_stop(&tool);
	return used;
}
