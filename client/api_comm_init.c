/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The creation of communicators, as libhcomm.so exports it: arguments are checked in HCCL's order, then the core is called. Behaviour and
 * codes are those of CANN 9.0 unless a comment says otherwise.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "client/argument.h"
#include "client/comm.h"
#include "client/device.h"
#include "client/environment.h"
#include "client/error.h"
#include "client/group.h"
#include "client/rank_table.h"
#include "hccl/hccl_comm.h"
#include "proto/cleanup.h"

#define API(call) ((HcclResult)hccld_hccl_result(call))
#define NO_PART UINT64_C(0xFFFFFFFF)	/* subCommId of ranks that are not in the part */

HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo)
{
	if (!rootInfo)
		return null_argument(__func__, "rootInfo");
	return API(hccld_root_info_new(rootInfo));
}

/* One rank, on the current device. @config NULL: the environment's settings. */
static HcclResult init_rank(const char *function, uint32_t size, const HcclRootInfo *root, uint32_t rank,
			    const HcclCommConfig *config, bool wants_config, HcclComm *ret_comm)
{
	struct hccld_comm_join join = { .root = root, .rank = rank, .size = size, .ret_handle = ret_comm };
	int r;

	r = hccld_context_current(&join.context);
	if (r < 0)
		return API(r);
	join.context_id = join.context->id;
	if (size == 0 || size > HCCLD_RANKS_MAX)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: nRanks is %u, expected 1 to %u", function, size, HCCLD_RANKS_MAX));
	if (rank >= size)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: rank is %u, expected less than nRanks, which is %u", function, rank, size));
	if (!ret_comm)
		return null_argument(function, "comm");
	if (!root)
		return null_argument(function, "rootInfo");
	if (wants_config && !config)
		return null_argument(function, "config");
	r = config ? hccld_comm_config_read(config, &join.config) : hccld_comm_config_default(&join.config);
	if (r == 0)
		r = hccld_group_join(&join);
	return API(r);
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm)
{
	return init_rank(__func__, nRanks, rootInfo, rank, NULL, false, comm);
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, const HcclCommConfig *config,
				      HcclComm *comm)
{
	return init_rank(__func__, nRanks, rootInfo, rank, config, true, comm);
}

/* Every device that exists, once. */
static int check_devices(const char *function, uint32_t count, const int32_t *devices)
{
	uint32_t device_count;
	int r = hccld_device_count(&device_count);

	if (r < 0)
		return r;
	if (device_count == 0)
		return hccld_error(CAUSE_ARGUMENT, "%s: this process sees no device; ASCEND_RT_VISIBLE_DEVICES names none that exists", function);
	for (uint32_t i = 0; i < count; i++) {
		if (devices[i] < 0 || (uint32_t)devices[i] >= device_count)
			return hccld_error(CAUSE_ARGUMENT, "%s: devices[%u] is %d, expected 0 to %u", function, i, devices[i],
					   device_count - 1);
		for (uint32_t k = 0; k < i; k++)
			if (devices[k] == devices[i])
				return hccld_error(CAUSE_ARGUMENT, "%s: devices[%u] is %d, as devices[%u]; expected each device once",
						   function, i, devices[i], k);
	}
	return 0;
}

/* Contexts first, then all joins at once: they complete one another. The current device of the thread stays as it is. */
static int init_all(uint32_t count, const int32_t *devices, struct hccld_comm_join *joins, HcclComm *comms)
{
	struct hccld_comm_config settings;
	HcclRootInfo root;
	int r;

	r = hccld_comm_config_default(&settings);
	if (r == 0)
		r = hccld_root_info_new(&root);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		joins[i] = (struct hccld_comm_join){ .root = &root, .rank = i, .size = count, .hold_context = true };
		joins[i].config = settings;
		joins[i].ret_handle = &comms[i];
		r = hccld_context_acquire(devices[i], &joins[i].context);
		if (r == 0)
			joins[i].context_id = joins[i].context->id;
	}
	if (r == 0)
		r = hccld_comm_join(joins, count);
	for (uint32_t i = 0; r < 0 && i < count; i++)
		if (joins[i].context)
			hccld_context_release(joins[i].context, joins[i].context_id);
	return r;
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t *devices, HcclComm *comms)
{
	CLEANUP(freep) struct hccld_comm_join *joins = NULL;
	int r;

	if (ndev == 0)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: ndev is 0, expected at least 1", __func__));
	if (!devices)
		return null_argument(__func__, "devices");
	if (!comms)
		return null_argument(__func__, "comms");
	r = check_devices(__func__, ndev, devices);
	if (r < 0)
		return API(r);
	joins = calloc(ndev, sizeof(*joins));
	if (!joins)
		return API(hccld_error(CAUSE_HOST_MEMORY, "%s: no memory for %u ranks", __func__, ndev));
	return API(init_all(ndev, devices, joins, comms));
}

/* ---- rank tables ---- */

static void table_freep(struct hccld_rank_table **table)
{
	hccld_rank_table_free(*table);
}

/* Ranks meet by what the table says, and within a job. */
static void table_meeting(const struct hccld_rank_table *table, uint64_t job, struct hccld_meeting *ret_meeting)
{
	struct digest digest = digest_new();

	digest_add(&digest, table->digest, sizeof(table->digest));
	digest_add_number(&digest, job);
	hccld_environment_job(&digest);
	*ret_meeting = (struct hccld_meeting){ 0 };
	digest_write(&digest, ret_meeting->digest);
}

static int join_table(const char *path, struct hccld_comm_join *join)
{
	CLEANUP(table_freep) struct hccld_rank_table *table = NULL;
	struct hccld_meeting meeting;
	int r = hccld_rank_table_load(path, &table);

	if (r < 0)
		return r;
	r = hccld_rank_table_check(table, path, join->rank, join->context->device);
	if (r < 0)
		return r;
	if (hccld_comm_has_table(join->context->logical))
		return hccld_error(CAUSE_LIMIT,
				   "this process has a communicator of a rank table on device %d; destroy it first, or make another one by HcclCreateSubCommConfig or a root info",
				   join->context->logical);
	table_meeting(table, join->config.job, &meeting);
	join->size = table->rank_count;
	join->meeting = &meeting;
	join->name = "hccl_world_group";
	return hccld_group_join(join);
}

static HcclResult init_table(const char *function, const char *path, uint32_t rank, const HcclCommConfig *config, bool wants_config,
			     HcclComm *ret_comm)
{
	struct hccld_comm_join join = { .rank = rank, .ret_handle = ret_comm };
	int r;

	if (!path)
		return null_argument(function, "clusterInfo");
	if (!ret_comm)
		return null_argument(function, "comm");
	if (wants_config && !config)
		return null_argument(function, "config");
	r = hccld_context_current(&join.context);
	if (r < 0)
		return API(r);
	join.context_id = join.context->id;
	r = config ? hccld_comm_config_read(config, &join.config) : hccld_comm_config_default(&join.config);
	if (r == 0)
		r = join_table(path, &join);
	return API(r);
}

HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank, HcclComm *comm)
{
	return init_table(__func__, clusterInfo, rank, NULL, false, comm);
}

HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank, HcclCommConfig *config, HcclComm *comm)
{
	return init_table(__func__, clusterInfo, rank, config, true, comm);
}

/* ---- parts of communicators ---- */

/* What the daemon cannot know better. */
static int check_members(const struct hccld_comm *whole, uint32_t count, const uint32_t *members, uint32_t own)
{
	CLEANUP(freep) bool *seen = calloc(whole->size, sizeof(*seen));

	if (count > whole->size)
		return hccld_error(CAUSE_ARGUMENT, "rankNum is %" PRIu32 "; communicator %s has %" PRIu32 " ranks", count, whole->name,
				   whole->size);
	if (!seen)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for the members of a communicator");
	for (uint32_t i = 0; i < count; i++) {
		if (members[i] >= whole->size)
			return hccld_error(CAUSE_ARGUMENT, "rankIds[%" PRIu32 "] is %" PRIu32 "; communicator %s has %" PRIu32
					   " ranks, expected 0 to %" PRIu32,
					   i, members[i], whole->name, whole->size, whole->size - 1);
		if (seen[members[i]])
			return hccld_error(CAUSE_ARGUMENT, "rankIds[%" PRIu32 "] is %" PRIu32
					   ", as an entry before; expected each rank once", i, members[i]);
		seen[members[i]] = true;
	}
	if (members[own] == whole->rank)
		return 0;
	return hccld_error(CAUSE_ARGUMENT, "rankIds[%" PRIu32 "] is %" PRIu32 ", but this is rank %" PRIu32
			   " of communicator %s; subCommRankId is the rank's own place in rankIds",
			   own, members[own], whole->rank, whole->name);
}

/* {whole}_sub_{id}. One that would be too long has a digest of the whole's name in place of its end: another whole's part has another. */
static void part_name(const char *whole, uint64_t id, char ret_name[HCCLD_COMM_NAME_MAX])
{
	struct digest digest = digest_new();

	if (snprintf(ret_name, HCCLD_COMM_NAME_MAX, "%s_sub_%" PRIu64, whole, id) < (int)HCCLD_COMM_NAME_MAX)
		return;
	digest_add_text(&digest, whole);
	snprintf(ret_name, HCCLD_COMM_NAME_MAX, "%.80s-%016" PRIx64 "_sub_%" PRIu64, whole, (uint64_t)(digest.value >> 64), id);
}

static int join_part(struct hccld_comm *whole, struct hccld_comm_join *join, const uint32_t *members, uint64_t id)
{
	struct hccld_meeting meeting = { .parent = whole->task_rank, .part = id, .members = members };
	char name[HCCLD_COMM_NAME_MAX];
	struct digest digest = digest_new();
	uint32_t epoch;
	int r;

	r = check_members(whole, join->size, members, join->rank);
	if (r == 0 && !hccld_context_is_open(whole->on, whole->context))
		r = hccld_error(CAUSE_BAD_HANDLE, "communicator %s ended when device %d was reset", whole->name, whole->device);
	if (r == 0)
		r = hccld_comm_check_running(whole, &epoch);
	if (r < 0)
		return r;
	digest_add_number(&digest, whole->comm);
	digest_write(&digest, meeting.digest);
	part_name(whole->name, id, name);
	join->context = whole->on;
	join->context_id = whole->context;
	join->meeting = &meeting;
	join->name = name;
	return hccld_group_join(join);
}

HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t rankNum, uint32_t *rankIds, uint64_t subCommId, uint32_t subCommRankId,
				   HcclCommConfig *config, HcclComm *subComm)
{
	struct hccld_comm_join join = { .rank = subCommRankId, .size = rankNum, .ret_handle = subComm };
	CLEANUP(hccld_comm_putp) struct hccld_comm *whole = NULL;
	int r;

	if (!subComm)
		return null_argument(__func__, "subComm");
	if (!rankIds && subCommId == NO_PART)
		return HCCL_SUCCESS;
	if (!rankIds || subCommId == NO_PART)
		return API(hccld_error(CAUSE_ARGUMENT,
				       "%s: %s; a rank of the part passes both, a rank that is not in it rankIds NULL and subCommId 0xFFFFFFFF",
				       __func__, rankIds ? "subCommId is 0xFFFFFFFF, but rankIds is given" : "rankIds is NULL, but subCommId is given"));
	if (rankNum == 0 || rankNum > HCCLD_RANKS_MAX)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: rankNum is %u, expected 1 to %u", __func__, rankNum, HCCLD_RANKS_MAX));
	if (subCommRankId >= rankNum)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: subCommRankId is %u, expected less than rankNum, which is %u", __func__,
				       subCommRankId, rankNum));
	if (!config)
		return null_argument(__func__, "config");
	r = hccld_comm_config_read(config, &join.config);
	if (r < 0)
		return API(r);
	if (!comm || !*comm)
		return null_argument(__func__, "comm");
	r = hccld_comm_get(*comm, &whole);
	if (r == 0)
		r = join_part(whole, &join, rankIds, subCommId);
	return API(r);
}
