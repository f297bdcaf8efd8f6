/* SPDX-License-Identifier: Apache-2.0 */
/* HcclCreateSubCommConfig, groups, settings. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/job.h"

#define RANKS 8u

/* The sum of all ranks' numbers, by a ring. */
static void ring(HcclComm comm, aclrtStream stream)
{
	unsigned char *memory = job_memory(64, 0);
	uint32_t rank, size;

	check_ok(HcclGetRankId(comm, &rank));
	check_ok(HcclGetRankSize(comm, &size));
	memset(memory, (int)rank + 1, 32);
	HcclSendRecvItem items[] = { job_send((rank + 1) % size, memory, 32), job_receive((rank + size - 1) % size, memory + 32, 32) };

	check_ok(HcclBatchSendRecv(items, 2, comm, stream));
	check_ok(HcclBarrier(comm, stream));
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_uint(memory[63], (rank + size - 1) % size + 1);
	check_ok(aclrtFree(memory));
}

/* Even and odd ranks with the same id, at the same time; then a part of a part; then all again in reverse. */
static void parts_rank(struct job_rank *rank)
{
	uint32_t own = rank->rank / 2, halves[RANKS / 2], pair[2] = { 0 }, all[RANKS];
	HcclComm half = NULL, quarter = NULL, reverse = NULL, none = (HcclComm)7;
	char name[COMM_NAME_MAX_LENGTH], whole[COMM_NAME_MAX_LENGTH], wanted[300];
	HcclCommConfig config;
	uint32_t value;

	HcclCommConfigInit(&config);
	for (uint32_t i = 0; i < RANKS; i++)
		all[i] = RANKS - 1 - i;
	for (uint32_t i = 0; i < RANKS / 2; i++)
		halves[i] = 2 * i + rank->rank % 2;
	check_ok(HcclCreateSubCommConfig(&rank->comm, RANKS / 2, halves, 1, own, &config, &half));
	check_ok(HcclGetRankId(half, &value));
	check_eq_uint(value, own);
	check_ok(HcclGetCommName(rank->comm, whole));
	check_ok(HcclGetCommName(half, name));
	snprintf(wanted, sizeof(wanted), "%s_sub_1", whole);
	check_eq_str(name, wanted);
	ring(half, rank->stream);
	/* ranks that are not in it: nothing happens */
	check_ok(HcclCreateSubCommConfig(&half, 2, NULL, 0xFFFFFFFF, 0, &config, &none));
	check(none == (HcclComm)7);
	/* the list may be shorter than rankNum says: it is not read */
	check_fails(HcclCreateSubCommConfig(&half, RANKS, pair, 2, own, &config, &none), HCCL_E_PARA, "rankNum is 8; communicator");
	pair[0] = own / 2 * 2;
	pair[1] = pair[0] + 1;
	strcpy(config.hcclCommName, own < 2 ? "front" : "back");
	/* the names of the two parities on one device would be the same */
	snprintf(config.hcclCommName + strlen(config.hcclCommName), 8, "%u", rank->rank % 2);
	check_ok(HcclCreateSubCommConfig(&half, 2, pair, 2, own % 2, &config, &quarter));
	ring(quarter, rank->stream);
	config.hcclCommName[0] = '\0';
	check_ok(HcclCreateSubCommConfig(&rank->comm, RANKS, all, 9, RANKS - 1 - rank->rank, &config, &reverse));
	ring(reverse, rank->stream);
	check_ok(HcclCommDestroy(half));
	/* a part lives without its whole */
	ring(quarter, rank->stream);
	check_ok(HcclCommDestroy(quarter));
	check_ok(HcclCommDestroy(reverse));
}

static void parts(void)
{
	job_ranks(RANKS, RANKS, parts_rank, NULL);
}

TEST(parts_of_communicators)
{
	job_run(parts);
}

/* Names of parts that would be too long still differ when those of their wholes do. */
static void long_names(void)
{
	uint32_t members[] = { 0 };
	HcclComm wholes[2], parts[3];
	char names[3][COMM_NAME_MAX_LENGTH];
	HcclCommConfig config;
	HcclRootInfo root;

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 3; i++) {
		HcclCommConfigInit(&config);
		if (i < 2) {
			memset(config.hcclCommName, 'a', COMM_NAME_MAX_LENGTH - 2);
			config.hcclCommName[COMM_NAME_MAX_LENGTH - 2] = (char)('0' + i);
			check_ok(HcclGetRootInfo(&root));
			check_ok(HcclCommInitRootInfoConfig(1, &root, 0, &config, &wholes[i]));
		}
		HcclCommConfigInit(&config);
		check_ok(HcclCreateSubCommConfig(i < 2 ? &wholes[i] : &parts[0], 1, members, UINT64_MAX, 0, &config, &parts[i]));
		check_ok(HcclGetCommName(parts[i], names[i]));
		check_str_contains(names[i], "_sub_18446744073709551615");
		for (int k = 0; k < i; k++)
			check(strcmp(names[i], names[k]) != 0);
	}
	for (int i = 2; i >= 0; i--)
		check_ok(HcclCommDestroy(parts[i]));
	for (int i = 0; i < 2; i++)
		check_ok(HcclCommDestroy(wholes[i]));
}

TEST(parts_with_long_names)
{
	job_run(long_names);
}

/* ---- a member dies, or leaves, before it has joined the part ---- */

static void lost_member(uint32_t index, HcclRootInfo *shared)
{
	uint32_t members[] = { 0, 1, 2 };
	struct job_rank rank;
	HcclCommConfig config;
	HcclComm part = NULL;

	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, 4, (int32_t)index);
	HcclCommConfigInit(&config);
	job_meet();
	if (index == 2) {
		usleep(200000);
		job_expect_kill();
		kill(getpid(), SIGKILL);
	}
	if (index < 2)
		check_fails(HcclCreateSubCommConfig(&rank.comm, 3, members, 0, index, &config, &part), HCCL_E_REMOTE,
			    "killed by signal 9 before it had joined the part");
	if (index == 3)
		usleep(400000);
	/* who comes later hears it at once */
	if (index < 2)
		check_fails(HcclCreateSubCommConfig(&rank.comm, 3, members, 1, index, &config, &part), HCCL_E_REMOTE,
			    "make the part without it");
	check_null(part);
	members[2] = 3;
	if (index != 2) {
		check_ok(HcclCreateSubCommConfig(&rank.comm, 3, members, 2, index == 3 ? 2 : index, &config, &part));
		ring(part, rank.stream);
		check_ok(HcclCommDestroy(part));
		check_ok(HcclCommDestroy(rank.comm));
	}
}

TEST(a_part_with_a_lost_member_fails_at_once)
{
	job_run_processes(4, lost_member);
}

/* ---- groups ---- */

static void group_rank(struct job_rank *rank)
{
	uint32_t next = (rank->rank + 1) % rank->size, previous = (rank->rank + rank->size - 1) % rank->size;
	unsigned char *memory = job_memory(1 << 20, 0);
	bool is_open = true;

	check_ok(HcclGroupStatusGet(&is_open));
	check(!is_open);
	check_fails(HcclGroupStatusGet(NULL), HCCL_E_PTR, "isGroupEnabled is NULL");
	memset(memory, (int)rank->rank + 1, 300000);
	memset(memory + 1000, 77, 1000);
	/* all send first: without the group nobody would receive. Several for one peer go in order; count 0 is passed over */
	check_ok(HcclGroupStart());
	check_ok(HcclGroupStatusGet(&is_open));
	check(is_open);
	check_ok(HcclSend(memory, 1000, HCCL_DATA_TYPE_INT8, next, rank->comm, rank->stream));
	check_ok(HcclSend(memory + 1000, 1000, HCCL_DATA_TYPE_INT8, next, rank->comm, rank->stream));
	check_ok(HcclGroupStart());
	check_ok(HcclSend(memory + 2000, 200000, HCCL_DATA_TYPE_INT8, next, rank->comm, rank->stream));
	check_ok(HcclSend(NULL, 0, HCCL_DATA_TYPE_INT8, 12345, rank->comm, rank->stream));
	check_ok(HcclGroupEnd());
	check_ok(HcclRecv(memory + 400000, 1000, HCCL_DATA_TYPE_INT8, previous, rank->comm, rank->stream));
	check_ok(HcclRecv(memory + 401000, 1000, HCCL_DATA_TYPE_INT8, previous, rank->comm, rank->stream));
	HcclSendRecvItem item = job_receive(previous, memory + 402000, 200000);

	check_ok(HcclBatchSendRecv(&item, 1, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_uint(memory[400000], 0u);	/* nothing was done yet */
	check_ok(HcclGroupEnd());
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_uint(memory[400000], previous + 1);
	check_eq_uint(memory[401000], 77u);
	check_eq_uint(memory[401999], 77u);
	check_eq_uint(memory[402000 + 199999], previous + 1);
	check_ok(HcclGroupStatusGet(&is_open));
	check(!is_open);
	/* arguments are checked at the end; what has nothing to do with the error is done */
	check_ok(HcclGroupStart());
	check_ok(HcclSend(memory, 10, HCCL_DATA_TYPE_INT8, next, NULL, rank->stream));
	check_ok(HcclSend(memory, 10, HCCL_DATA_TYPE_INT8, next, rank->comm, rank->stream));
	check_ok(HcclRecv(memory + 500000, 10, HCCL_DATA_TYPE_INT8, previous, rank->comm, rank->stream));
	check_fails(HcclGroupEnd(), HCCL_E_PTR, "comm of an operation of the group is NULL");
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_uint(memory[500009], previous + 1);
}

static void groups(void)
{
	job_ranks(4, 4, group_rank, NULL);
}

TEST(groups_of_sends_and_receives)
{
	job_run(groups);
}

/* One thread makes all ranks, as NCCL programs do. */
static void group_creation(void)
{
	HcclComm comms[4] = { NULL }, parts[4] = { NULL };
	uint32_t members[] = { 3, 2, 1, 0 };
	aclrtStream streams[4];
	unsigned char *memory[4];
	HcclCommConfig config;
	HcclRootInfo root;

	check_ok(HcclGetRootInfo(&root));
	HcclCommConfigInit(&config);
	check_ok(HcclGroupStart());
	for (uint32_t i = 0; i < 4; i++) {
		check_ok(aclrtSetDevice((int32_t)i));
		check_ok(HcclCommInitRootInfo(4, &root, i, &comms[i]));
		check_null(comms[i]);
	}
	check_ok(HcclGroupEnd());
	check_ok(HcclGroupStart());
	for (uint32_t i = 0; i < 4; i++)
		check_ok(HcclCreateSubCommConfig(&comms[i], 4, members, 1, 3 - i, &config, &parts[i]));
	check_ok(HcclGroupEnd());
	check_ok(HcclGroupStart());
	for (uint32_t i = 0; i < 4; i++) {
		check_ok(aclrtSetDevice((int32_t)i));
		check_ok(aclrtCreateStream(&streams[i]));
		memory[i] = job_memory(20, (int)i + 1);
		check_ok(HcclSend(memory[i], 10, HCCL_DATA_TYPE_INT8, (3 - i + 1) % 4, parts[i], streams[i]));
		check_ok(HcclRecv(memory[i] + 10, 10, HCCL_DATA_TYPE_INT8, (3 - i + 3) % 4, parts[i], streams[i]));
	}
	check_ok(HcclGroupEnd());
	for (uint32_t i = 0; i < 4; i++) {
		check_ok(aclrtSynchronizeStream(streams[i]));
		check_eq_uint(memory[i][19], (i + 1) % 4 + 1);
		check_ok(HcclCommDestroy(parts[i]));
		check_ok(HcclCommDestroy(comms[i]));
	}
}

TEST(one_thread_creates_all_ranks_in_a_group)
{
	job_run(group_creation);
}

/* ---- settings ---- */

static void settings(void)
{
	HcclOpExpansionMode mode = HCCL_OP_EXPANSION_MODE_INVALID;
	HcclConfigValue value = { .value = 1 };
	HcclCommStatus status;
	HcclCommConfig config;
	HcclRootInfo root;
	HcclComm comm;

	check_ok(HcclSetConfig(HCCL_DETERMINISTIC, value));
	value.value = 7;
	check_ok(HcclGetConfig(HCCL_DETERMINISTIC, &value));
	check_eq_int(value.value, 1);
	value.value = 3;
	check_fails(HcclSetConfig(HCCL_DETERMINISTIC, value), HCCL_E_PARA, "HCCL_DETERMINISTIC is 3, expected 0 (off) or 1 (on)");
	value.value = -1;
	check_fails(HcclSetConfig(HCCL_DETERMINISTIC, value), HCCL_E_PARA, "HCCL_DETERMINISTIC is -1");
	value.value = 2;
	check_fails(HcclSetConfig(HCCL_DETERMINISTIC, value), HCCL_E_NOT_SUPPORT, "which Ascend910_9391 does not have");
	check_ok(HcclSetConfig(HCCL_CONFIG_RESERVED, value));
	check_fails(HcclGetConfig(HCCL_DETERMINISTIC, NULL), HCCL_E_PTR, "configValue is NULL");
	check_ok(aclrtSetDevice(0));
	for (uint32_t i = 0; i <= 6; i++) {
		static const HcclOpExpansionMode modes[] = { HCCL_OP_EXPANSION_MODE_AIV,	HCCL_OP_EXPANSION_MODE_HOST,
							     HCCL_OP_EXPANSION_MODE_AI_CPU,	HCCL_OP_EXPANSION_MODE_AIV,
							     HCCL_OP_EXPANSION_AIV_ONLY,	HCCL_OP_EXPANSION_MODE_CCU_MS,
							     HCCL_OP_EXPANSION_MODE_CCU_SCHED };

		HcclCommConfigInit(&config);
		config.hcclOpExpansionMode = i;
		strcpy(config.hcclRetryEnable, "L0:0, L1:1, L2:1");
		strcpy(config.hcclRetryParams, "MaxCnt:3,HoldTime:100 , IntervalTime:0");
		strcpy(config.hcclAlgo, "allreduce=level0:NA;level1:H-D_R/others=level0:NA;level1:ring;level2:NHR");
		strcpy(config.hcclCommName, "with settings");
		check_ok(HcclGetRootInfo(&root));
		check_ok(HcclCommInitRootInfoConfig(1, &root, 0, &config, &comm));
		check_ok(HcclConfigGetInfo(comm, HCCL_CONFIG_TYPE_OP_EXPANSION_MODE, sizeof(mode), &mode));
		/* without one of its own it is the environment's */
		check_eq_int(mode, modes[i]);
		check_ok(HcclCommGetStatus("with settings", &status));
		check_eq_int(status, HCCL_COMM_STATUS_READY);
		check_fails(HcclConfigGetInfo(comm, HCCL_CONFIG_TYPE_OP_EXPANSION_MODE, 8, &mode), HCCL_E_PARA, "infoLen is 8, expected 4");
		check_fails(HcclConfigGetInfo(comm, HCCL_CONFIG_TYPE_OP_EXPANSION_MODE, 4, NULL), HCCL_E_PTR, "info is NULL");
		check_fails(HcclConfigGetInfo(NULL, HCCL_CONFIG_TYPE_OP_EXPANSION_MODE, 4, &mode), HCCL_E_PTR, "comm is NULL");
		check_ok(HcclCommDestroy(comm));
	}
	check_fails(HcclCommGetStatus("with settings", &status), HCCL_E_PTR, "has no communicator \"with settings\"");
}

TEST(settings_are_kept)
{
	job_run_with("HCCL_OP_EXPANSION_MODE", "AIV", settings);
}

/* Each version of the struct ends somewhere else; what lies behind is not the caller's. */
static void config_versions(void)
{
	static const size_t ends[] = {
		offsetof(HcclCommConfig, hcclCommName),
		offsetof(HcclCommConfig, hcclUdi),
		offsetof(HcclCommConfig, hcclOpExpansionMode),
		offsetof(HcclCommConfig, hcclRdmaTrafficClass),
		offsetof(HcclCommConfig, hcclWorldRankID),
		offsetof(HcclCommConfig, aclGraphZeroCopyEnable),
		offsetof(HcclCommConfig, hcclExecTimeOut),
		offsetof(HcclCommConfig, hcclBufferName),
		offsetof(HcclCommConfig, hcclQos),
		sizeof(HcclCommConfig),
		sizeof(HcclCommConfig) + 8,
	};
	struct {
		HcclCommConfig config;
		char more[64];
	} large;
	HcclRootInfo root;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	for (uint32_t version = 1; version <= sizeof(ends) / sizeof(ends[0]); version++) {
		HcclCommConfigInit(&large.config);
		memcpy(large.config.reserved, &ends[version - 1], sizeof(uint64_t));
		memcpy(large.config.reserved + 12, &version, sizeof(version));
		memset((char *)&large + ends[version - 1], 0xee, sizeof(large) - ends[version - 1]);
		check_ok(HcclGetRootInfo(&root));
		check_ok(HcclCommInitRootInfoConfig(1, &root, 0, &large.config, &comm));
		check_ok(HcclCommDestroy(comm));
		/* an old version in a new struct: what came later does not count either */
		memcpy(large.config.reserved, &(uint64_t){ sizeof(large) }, sizeof(uint64_t));
		check_ok(HcclGetRootInfo(&root));
		check_ok(HcclCommInitRootInfoConfig(1, &root, 0, &large.config, &comm));
		check_ok(HcclCommDestroy(comm));
	}
}

TEST(configurations_of_every_version)
{
	job_run(config_versions);
}

static void bad_variable(void)
{
	HcclRootInfo root;

	check_fails(HcclGetRootInfo(&root), HCCL_E_PARA, "EI0001");
}

TEST(bad_settings_in_the_environment)
{
	static const char *const bad[][2] = { { "HCCL_OP_EXPANSION_MODE", "GPU" },	{ "HCCL_OP_RETRY_ENABLE", "L3:1" },
					      { "HCCL_OP_RETRY_ENABLE", "L1:1, L1:0" }, { "HCCL_OP_RETRY_PARAMS", "MaxCnt:0" },
					      { "HCCL_OP_RETRY_PARAMS", "MaxCnt:" },	{ "HCCL_DETERMINISTIC", "maybe" },
					      { "HCCL_ALGO", "level1:ring;level0:NA" } };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		job_run_with(bad[i][0], bad[i][1], bad_variable);
}
