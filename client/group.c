/* SPDX-License-Identifier: Apache-2.0 */
/* The group of a thread: what was noted, in order. Freed by the end of the group; of a thread that ends without it, by its destructor. */
#include "client/group.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/comm.h"
#include "client/error.h"
#include "client/exchange.h"
#include "proto/cleanup.h"

#define DEPTH_MAX 1000000u

struct operation {
	HcclSendRecvItem item;
	void *comm, *stream;
	bool done;
};

struct creation {
	struct hccld_comm_join join;
	HcclRootInfo root;
	struct hccld_meeting meeting;
	char name[HCCLD_COMM_NAME_MAX];
	uint32_t *members;
};

struct group {
	uint32_t depth;
	struct operation *operations;
	uint32_t operation_count, operation_room;
	struct creation *creations;
	uint32_t creation_count, creation_room;
};

static _Thread_local struct group group;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void group_clear(struct group *of)
{
	free(of->operations);
	for (uint32_t i = 0; i < of->creation_count; i++)
		free(of->creations[i].members);
	free(of->creations);
	*of = (struct group){ 0 };
}

static void thread_ends(void *data)
{
	group_clear(data);
}

static void key_make(void)
{
	pthread_key_create(&key, thread_ends);
}

void hccld_group_start(void)
{
	pthread_once(&once, key_make);
	pthread_setspecific(key, &group);
	if (group.depth < DEPTH_MAX)
		group.depth++;
}

bool hccld_group_is_open(void)
{
	return group.depth > 0;
}

/* Room for @more entries of @size bytes behind @count. */
static int reserve(void **array, uint32_t count, uint32_t more, uint32_t *room, size_t size)
{
	uint64_t wanted = (uint64_t)count + more, rounded = *room ? *room : 16;
	void *larger;

	if (wanted <= *room)
		return 0;
	while (rounded < wanted)
		rounded *= 2;
	larger = rounded <= UINT32_MAX ? realloc(*array, rounded * size) : NULL;
	if (!larger)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for the operations of a group");
	*array = larger;
	*room = (uint32_t)rounded;
	return 0;
}

int hccld_group_add(const HcclSendRecvItem *list, uint32_t count, void *comm, void *stream)
{
	int r = reserve((void **)&group.operations, group.operation_count, count, &group.operation_room, sizeof(*group.operations));

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < count; i++)
		group.operations[group.operation_count++] = (struct operation){ list[i], comm, stream, false };
	return 0;
}

int hccld_group_join(struct hccld_comm_join *join)
{
	CLEANUP(freep) uint32_t *members = NULL;
	struct creation *creation;
	int r;

	if (!hccld_group_is_open())
		return hccld_comm_join(join, 1);
	r = reserve((void **)&group.creations, group.creation_count, 1, &group.creation_room, sizeof(*group.creations));
	if (r < 0)
		return r;
	if (join->meeting && join->meeting->parent) {
		members = malloc(join->size * sizeof(*members));
		if (!members)
			return hccld_error(CAUSE_HOST_MEMORY, "no memory for the members of a communicator");
		memcpy(members, join->meeting->members, join->size * sizeof(*members));
	}
	creation = &group.creations[group.creation_count++];
	*creation = (struct creation){ .join = *join };
	if (join->root)
		creation->root = *join->root;
	if (join->meeting)
		creation->meeting = *join->meeting;
	snprintf(creation->name, sizeof(creation->name), "%s", join->name ? join->name : "");
	creation->meeting.members = creation->members = take_ptr(&members);
	return 0;
}

/* All at once: they complete one another. */
static int run_creations(struct group *of)
{
	CLEANUP(freep) struct hccld_comm_join *joins = calloc(of->creation_count, sizeof(*joins));

	if (of->creation_count == 0)
		return 0;
	if (!joins)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to create %u communicators", of->creation_count);
	for (uint32_t i = 0; i < of->creation_count; i++) {
		struct creation *creation = &of->creations[i];

		joins[i] = creation->join;
		if (joins[i].root)
			joins[i].root = &creation->root;
		if (joins[i].meeting)
			joins[i].meeting = &creation->meeting;
		joins[i].name = creation->name;
	}
	return hccld_comm_join(joins, of->creation_count);
}

/* The operations from @first on that go to the same communicator and stream. @list has room for all. */
static int run_batch(struct group *of, uint32_t first, HcclSendRecvItem *list)
{
	const struct operation *head = &of->operations[first];
	uint32_t count = 0;

	for (uint32_t i = first; i < of->operation_count; i++) {
		struct operation *operation = &of->operations[i];

		if (operation->done || operation->comm != head->comm || operation->stream != head->stream)
			continue;
		operation->done = true;
		if (operation->item.count)
			list[count++] = operation->item;
	}
	return count ? hccld_exchange_group(list, count, head->comm, head->stream) : 0;
}

static int run_operations(struct group *of)
{
	CLEANUP(freep) HcclSendRecvItem *list = malloc((of->operation_count + 1) * sizeof(*list));
	int error = 0;

	if (!list)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for the %u operations of a group", of->operation_count);
	for (uint32_t i = 0; i < of->operation_count; i++) {
		int r = of->operations[i].done ? 0 : run_batch(of, i, list);

		if (r < 0 && error == 0) {
			error = r;
			hccld_error_mute(true);
		}
	}
	hccld_error_mute(false);
	return error;
}

int hccld_group_end(void)
{
	struct group ended;
	int r;

	if (group.depth == 0)
		return hccld_error(CAUSE_NOT_SUPPORTED, "HcclGroupEnd: this thread has no group; HcclGroupStart comes first");
	if (--group.depth > 0)
		return 0;
	/* ours now: what is called below may see that no group is open */
	ended = group;
	group = (struct group){ 0 };
	r = run_creations(&ended);
	if (r == 0)
		r = run_operations(&ended);
	group_clear(&ended);
	return r;
}
