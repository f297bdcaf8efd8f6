/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stamps: what a program marks in a profile. `mutex` guards the list of those that live, in which a pointer of the program is looked up
 * before it is followed. Spans of push and pop belong to the thread, those of start and stop to the process.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "acl/acl_prof.h"
#include "client/error.h"
#include "client/profile.h"
#include "client/stream.h"

#define MARK_LENGTH_MAX 127u

struct stamp {
	struct stamp *next, *previous;
	uint32_t range; /* 0: not started */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct stamp *stamps;
static uint32_t last_range;
static _Thread_local uint32_t depth;

static int failure(int code, const char *function, const char *text)
{
	hccld_error(CAUSE_NONE, "%s: %s", function, text);
	return code;
}

static int check_running(const char *function)
{
	if (hccld_profile_is_running())
		return 0;
	return failure(ACL_ERROR_PROF_NOT_RUN, function, "aclprofStart was not called");
}

/* With `mutex`. */
static struct stamp *stamp_find(const void *handle)
{
	struct stamp *stamp = stamps;

	while (stamp && stamp != handle)
		stamp = stamp->next;
	return stamp;
}

static int stamp_error(const char *function)
{
	return hccld_acl_result(hccld_error(CAUSE_NULL, "%s: the stamp is not one of aclprofCreateStamp", function));
}

void *hccld_profile_stamp_new(void)
{
	struct stamp *stamp;

	if (check_running("aclprofCreateStamp") != 0)
		return NULL;
	stamp = calloc(1, sizeof(*stamp));
	if (!stamp) {
		hccld_error(CAUSE_HOST_MEMORY, "no memory for a stamp");
		return NULL;
	}
	pthread_mutex_lock(&mutex);
	stamp->next = stamps;
	if (stamps)
		stamps->previous = stamp;
	stamps = stamp;
	pthread_mutex_unlock(&mutex);
	return stamp;
}

void hccld_profile_stamp_free(void *handle)
{
	struct stamp *stamp;

	pthread_mutex_lock(&mutex);
	stamp = stamp_find(handle);
	if (stamp) {
		*(stamp->previous ? &stamp->previous->next : &stamps) = stamp->next;
		if (stamp->next)
			stamp->next->previous = stamp->previous;
	}
	pthread_mutex_unlock(&mutex);
	if (!stamp && handle)
		(void)stamp_error("aclprofDestroyStamp");
	free(stamp);
}

int hccld_profile_stamp_check(const char *function, const void *handle)
{
	bool is_known;

	pthread_mutex_lock(&mutex);
	is_known = stamp_find(handle) != NULL;
	pthread_mutex_unlock(&mutex);
	return is_known ? check_running(function) : stamp_error(function);
}

int hccld_profile_mark(size_t length, void *handle)
{
	struct hccld_stream *stream;
	int r;

	if (length == 0 || length > MARK_LENGTH_MAX)
		return hccld_acl_result(hccld_error(CAUSE_NULL, "aclprofMarkEx: msgLen is %zu; expected 1 to %u", length, MARK_LENGTH_MAX));
	r = hccld_stream_get(handle, &stream);
	return r < 0 ? hccld_acl_result(r) : check_running("aclprofMarkEx");
}

int hccld_profile_push(const void *handle)
{
	int r = hccld_profile_stamp_check("aclprofPush", handle);

	if (r == 0)
		depth++;
	return r;
}

int hccld_profile_pop(void)
{
	int r = check_running("aclprofPop");

	if (r != 0)
		return r;
	if (depth == 0)
		return failure(ACL_ERROR_PROFILING_FAILURE, "aclprofPop", "this thread has called aclprofPush as often as aclprofPop");
	depth--;
	return 0;
}

int hccld_profile_range_start(const void *handle, uint32_t *ret_range)
{
	struct stamp *stamp;
	int r = hccld_profile_stamp_check("aclprofRangeStart", handle);

	if (r != 0)
		return r;
	pthread_mutex_lock(&mutex);
	stamp = stamp_find(handle);
	if (!stamp)
		r = stamp_error("aclprofRangeStart");
	else if (stamp->range)
		r = failure(ACL_ERROR_PROFILING_FAILURE, "aclprofRangeStart", "the stamp was started before; call aclprofRangeStop first");
	else {
		if (++last_range == 0)
			last_range = 1;
		stamp->range = last_range;
		*ret_range = last_range;
	}
	pthread_mutex_unlock(&mutex);
	return r;
}

int hccld_profile_range_stop(uint32_t range)
{
	struct stamp *stamp;
	int r = check_running("aclprofRangeStop");

	if (r != 0)
		return r;
	pthread_mutex_lock(&mutex);
	for (stamp = stamps; stamp && (stamp->range != range || !range);)
		stamp = stamp->next;
	if (stamp)
		stamp->range = 0;
	else
		r = failure(ACL_ERROR_PROFILING_FAILURE, "aclprofRangeStop", "rangeId is not one that aclprofRangeStart gave, or was stopped");
	pthread_mutex_unlock(&mutex);
	return r;
}
