/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 20 ranks whose rank tables, configurations and orders are wrong, in numbered cases. Each rank must get the right code and a text that
 * tells what to change; afterwards all is as if nothing had been.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

#define RANKS 20u
#define WRONG 7u	/* the rank that is wrong when only one is */
#define EDITS 4096u

struct wrong;

struct rank {
	uint32_t rank;
	aclrtStream stream;
	pthread_t thread;
};

typedef void run_function(const struct wrong *wrong, struct rank *rank);

struct wrong {
	int number;
	run_function *run;
	const char *find, *replace;	/* an edit of the table, or a field of the configuration and its value */
	HcclResult result;
	const char *text;
};

static struct rank ranks[RANKS];
static pthread_barrier_t barrier;
static char table_path[128];
static HcclRootInfo root;
static const struct wrong *first_case;
static size_t case_count;

static void meet(void)
{
	pthread_barrier_wait(&barrier);
}

/* ---- tables ---- */

static size_t append_devices(char *text, size_t size)
{
	size_t length = 0;

	for (uint32_t i = 0; i < RANKS; i++)
		length += (size_t)snprintf(text + length, size - length,
					   "%s\n{\"device_id\":\"%u\",\"device_ip\":\"10.1.0.%u\",\"rank_id\":\"%u\"}", i ? "," : "", i, i + 1, i);
	return length;
}

static void table_1(char *text, size_t size, const char *version, const char *more)
{
	size_t length = (size_t)snprintf(text, size,
					 "{\"status\":\"completed\",\n\"version\":\"%s\",\n\"server_count\":\"1\",\n\"server_list\":[{\"server_id\":\"node-0\",\"device\":[",
					 version);

	length += append_devices(text + length, size - length);
	snprintf(text + length, size - length, "]}]%s}\n", more);
}

static void table_2(char *text, size_t size)
{
	size_t length = (size_t)snprintf(text, size, "{\"version\":\"2.0\",\"rank_count\":%u,\"rank_list\":[", RANKS);

	for (uint32_t i = 0; i < RANKS; i++)
		length += (size_t)snprintf(text + length, size - length,
					   "%s\n{\"rank_id\":%u,\"local_id\":%u,\"device_id\":%u,\"level_list\":[{\"net_layer\":0,\"net_instance_id\":\"s\",\"net_type\":\"TOPO_FILE_DESC\"}]}",
					   i ? "," : "", i, i, i);
	snprintf(text + length, size - length, "]}\n");
}

static void table_groups(char *text, size_t size)
{
	size_t length = (size_t)snprintf(text, size,
					 "{\"status\":\"completed\",\"group_count\":\"1\",\"group_list\":[{\"instance_count\":\"1\",\"device_count\":\"%u\",\"instance_list\":[{\"server_id\":\"node-0\",\"devices\":[",
					 RANKS);

	length += append_devices(text + length, size - length);
	snprintf(text + length, size - length, "]}]}]}\n");
}

static void table_write(const char *text)
{
	FILE *file = fopen(table_path, "w");

	check_ptr(file);
	fputs(text, file);
	check_eq_int(fclose(file), 0);
}

static void table_edit(char *text, size_t size, const char *find, const char *replace)
{
	static char copy[65536];
	char *at = strstr(text, find);

	check_msg(at != NULL, "the table has no %s", find);
	snprintf(copy, sizeof(copy), "%s", at + strlen(find));
	snprintf(at, size - (size_t)(at - text), "%s%s", replace, copy);
}

static void good_table(void)
{
	static char text[65536];

	table_1(text, sizeof(text), "1.0", "");
	table_write(text);
}

/* All ranks read the same wrong table: each is told the same, with the name of the file. */
static void all_fail(const struct wrong *wrong, const char *path, struct rank *rank)
{
	HcclComm comm = NULL;
	const char *text;
	HcclResult r;

	meet();
	r = HcclCommInitClusterInfo(path, rank->rank, &comm);
	text = aclGetRecentErrMsg();
	check_msg(r == wrong->result, "case %d: rank %u got %d: %s", wrong->number, rank->rank, (int)r, text ? text : "no text");
	check_str_contains(text, wrong->text);
	if (strlen(path) < 200)
		check_str_contains(text, path);
	check_null(comm);
	meet();
}

static void with_table(const struct wrong *wrong, struct rank *rank, int version)
{
	static char text[65536];

	if (rank->rank == 0) {
		if (version == 2)
			table_2(text, sizeof(text));
		else if (version == 0)
			table_groups(text, sizeof(text));
		else
			table_1(text, sizeof(text), version == 12 ? "1.2" : "1.0",
				version == 12 ? ",\"super_pod_list\":[{\"super_pod_id\":\"0\",\"server_list\":[{\"server_id\":\"node-0\"}]}]" : "");
		table_edit(text, sizeof(text), wrong->find, wrong->replace);
		table_write(text);
	}
	all_fail(wrong, table_path, rank);
}

static void run_1_0(const struct wrong *wrong, struct rank *rank)
{
	with_table(wrong, rank, 10);
}

static void run_1_2(const struct wrong *wrong, struct rank *rank)
{
	with_table(wrong, rank, 12);
}

static void run_2_0(const struct wrong *wrong, struct rank *rank)
{
	with_table(wrong, rank, 2);
}

static void run_groups(const struct wrong *wrong, struct rank *rank)
{
	with_table(wrong, rank, 0);
}

/* @find is a whole file */
static void run_file(const struct wrong *wrong, struct rank *rank)
{
	if (rank->rank == 0)
		table_write(wrong->find);
	all_fail(wrong, table_path, rank);
}

static void run_path(const struct wrong *wrong, struct rank *rank)
{
	all_fail(wrong, wrong->find, rank);
}

static void run_long_path(const struct wrong *wrong, struct rank *rank)
{
	static char path[5000];

	if (rank->rank == 0)
		memset(path, 'x', sizeof(path) - 1);
	all_fail(wrong, path, rank);
}

static void run_fifo(const struct wrong *wrong, struct rank *rank)
{
	if (rank->rank == 0) {
		unlink(table_path);
		check_eq_int(mkfifo(table_path, 0600), 0);
	}
	all_fail(wrong, table_path, rank);
	if (rank->rank == 0)
		unlink(table_path);
}

/* ---- one rank is wrong, is told so, and does it right: nobody else notices ---- */

static void join_well(struct rank *rank, HcclComm *comm)
{
	check_ok(HcclCommInitClusterInfo(table_path, rank->rank, comm));
	check_ok(HcclBarrier(*comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
}

static void run_table_call(const struct wrong *wrong, struct rank *rank)
{
	HcclComm comm = NULL;
	bool wants_comm = !wrong->find || strcmp(wrong->find, "comm") != 0;

	if (rank->rank == 0)
		good_table();
	meet();
	if (rank->rank == WRONG) {
		const char *path = wrong->find && strcmp(wrong->find, "clusterInfo") == 0 ? NULL : table_path;
		uint32_t number = wrong->find && strcmp(wrong->find, "rank") == 0 ? (uint32_t)atoi(wrong->replace) : WRONG;

		if (wrong->find && strcmp(wrong->find, "config") == 0)
			check_fails(HcclCommInitClusterInfoConfig(path, number, NULL, &comm), wrong->result, wrong->text);
		else
			check_fails(HcclCommInitClusterInfo(path, number, wants_comm ? &comm : NULL), wrong->result, wrong->text);
		check_null(comm);
	}
	join_well(rank, &comm);
	check_ok(HcclCommDestroy(comm));
	meet();
}

static void config_set(HcclCommConfig *config, const char *field, const char *value)
{
	uint32_t number = (uint32_t)strtoul(value, NULL, 0);

	HcclCommConfigInit(config);
	if (strcmp(field, "size") == 0)
		memcpy(config->reserved, &(uint64_t){ number }, sizeof(uint64_t));
	else if (strcmp(field, "magic") == 0)
		memcpy(config->reserved + 8, &number, sizeof(number));
	else if (strcmp(field, "version") == 0)
		memcpy(config->reserved + 12, &number, sizeof(number));
	else if (strcmp(field, "buffer") == 0)
		config->hcclBufferSize = number;
	else if (strcmp(field, "deterministic") == 0)
		config->hcclDeterministic = number;
	else if (strcmp(field, "class") == 0)
		config->hcclRdmaTrafficClass = number;
	else if (strcmp(field, "level") == 0)
		config->hcclRdmaServiceLevel = number;
	else if (strcmp(field, "qos") == 0)
		config->hcclQos = number;
	else if (strcmp(field, "zero-copy") == 0)
		config->aclGraphZeroCopyEnable = (uint8_t)number;
	else if (strcmp(field, "name") == 0)
		memset(config->hcclCommName, 'x', sizeof(config->hcclCommName));
	else if (strcmp(field, "algo") == 0)
		strcpy(config->hcclAlgo, value);
	else if (strcmp(field, "retry") == 0)
		strcpy(config->hcclRetryEnable, value);
	else
		strcpy(config->hcclRetryParams, value);
}

static void run_config(const struct wrong *wrong, struct rank *rank)
{
	HcclCommConfig config;
	HcclComm comm = NULL;

	if (rank->rank == 0)
		check_ok(HcclGetRootInfo(&root));
	meet();
	if (rank->rank == WRONG) {
		config_set(&config, wrong->find, wrong->replace);
		check_fails(HcclCommInitRootInfoConfig(RANKS, &root, rank->rank, &config, &comm), wrong->result, wrong->text);
		check_null(comm);
	}
	HcclCommConfigInit(&config);
	check_ok(HcclCommInitRootInfoConfig(RANKS, &root, rank->rank, &config, &comm));
	check_ok(HcclCommDestroy(comm));
	meet();
}

/* ---- orders ---- */

static void run_second_table(const struct wrong *wrong, struct rank *rank)
{
	HcclComm comm = NULL, other = NULL;

	if (rank->rank == 0)
		good_table();
	meet();
	join_well(rank, &comm);
	check_fails(HcclCommInitClusterInfo(table_path, rank->rank, &other), wrong->result, wrong->text);
	check_ok(HcclCommDestroy(comm));
	meet();
	/* then it is free again */
	join_well(rank, &comm);
	check_ok(HcclCommDestroy(comm));
	meet();
}

/* The wrong one, those that wait and those that come later are told the same. */
static void run_disagree(const struct wrong *wrong, struct rank *rank)
{
	bool is_wrong = rank->rank == WRONG;
	uint32_t size = RANKS + (is_wrong && strcmp(wrong->find, "size") == 0);
	uint32_t number = is_wrong && strcmp(wrong->find, "rank") == 0 ? WRONG - 1 : rank->rank;
	HcclComm comm = NULL;

	if (rank->rank == 0)
		check_ok(HcclGetRootInfo(&root));
	meet();
	check_fails(HcclCommInitRootInfo(size, &root, number, &comm), wrong->result, wrong->text);
	check_null(comm);
	meet();
}

static void fill_members(uint32_t *members)
{
	for (uint32_t i = 0; i < RANKS; i++)
		members[i] = i;
}

static void run_part(const struct wrong *wrong, struct rank *rank)
{
	uint32_t members[RANKS], own = rank->rank;
	HcclComm comm = NULL, part = NULL;
	HcclCommConfig config;
	uint64_t id = 5;

	if (rank->rank == 0)
		good_table();
	meet();
	join_well(rank, &comm);
	HcclCommConfigInit(&config);
	fill_members(members);
	if (rank->rank == WRONG) {
		if (strcmp(wrong->find, "twice") == 0)
			members[3] = 4;
		else if (strcmp(wrong->find, "outside") == 0)
			members[3] = RANKS;
		else if (strcmp(wrong->find, "place") == 0)
			own = WRONG + 1;
		else if (strcmp(wrong->find, "no place") == 0)
			own = RANKS;
		else
			id = 0xFFFFFFFF;
		check_fails(HcclCreateSubCommConfig(&comm, RANKS, members, id, own, &config, &part), wrong->result, wrong->text);
		check_null(part);
	}
	fill_members(members);
	check_ok(HcclCreateSubCommConfig(&comm, RANKS, members, 5, rank->rank, &config, &part));
	check_ok(HcclCommDestroy(part));
	check_ok(HcclCommDestroy(comm));
	meet();
}

/* One rank has another list, and comes first or last: all are told, and can try again at once. */
static void run_part_lists(const struct wrong *wrong, struct rank *rank)
{
	HcclComm comm = NULL, part = NULL;
	uint32_t members[RANKS];
	HcclCommConfig config;

	if (rank->rank == 0)
		good_table();
	meet();
	join_well(rank, &comm);
	HcclCommConfigInit(&config);
	for (int round = 0; round < 2; round++) {
		fill_members(members);
		if (round == 0 && rank->rank == WRONG) {
			members[0] = 1;
			members[1] = 0;
		}
		if (round == 0 && (rank->rank == WRONG) != (strcmp(wrong->find, "first") == 0))
			usleep(30000);
		if (round == 0)
			check_fails(HcclCreateSubCommConfig(&comm, RANKS, members, 5, rank->rank, &config, &part), wrong->result,
				    wrong->text);
		else
			check_ok(HcclCreateSubCommConfig(&comm, RANKS, members, 5, rank->rank, &config, &part));
		meet();
	}
	check_ok(HcclCommDestroy(part));
	check_ok(HcclCommDestroy(comm));
	meet();
}

static void run_group(const struct wrong *wrong, struct rank *rank)
{
	HcclComm comm = NULL;

	if (rank->rank == 0)
		good_table();
	meet();
	join_well(rank, &comm);
	if (strcmp(wrong->find, "end") == 0) {
		check_fails(HcclGroupEnd(), wrong->result, wrong->text);
	} else {
		check_ok(HcclGroupStart());
		if (strcmp(wrong->find, "barrier") == 0)
			check_fails(HcclBarrier(comm, rank->stream), wrong->result, wrong->text);
		else
			check_ok(HcclSend(rank, 8, HCCL_DATA_TYPE_INT8, 0, comm, rank->stream));
		if (strcmp(wrong->find, "barrier") == 0)
			check_ok(HcclGroupEnd());
		else
			check_fails(HcclGroupEnd(), wrong->result, wrong->text);
	}
	check_ok(HcclBarrier(comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_ok(HcclCommDestroy(comm));
	meet();
}

static void run_suspended(const struct wrong *wrong, struct rank *rank)
{
	HcclComm comm = NULL;

	if (rank->rank == 0)
		good_table();
	meet();
	join_well(rank, &comm);
	meet();
	check_ok(HcclCommSuspend(comm));
	check_fails(HcclBarrier(comm, rank->stream), wrong->result, wrong->text);
	/* one that is suspended later would end what others have begun after they were resumed */
	meet();
	check_ok(HcclCommResume(comm));
	check_ok(HcclBarrier(comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_ok(HcclCommDestroy(comm));
	meet();
}

static void run_no_device(const struct wrong *wrong, struct rank *rank)
{
	HcclComm comm = NULL;

	if (rank->rank == 0)
		good_table();
	meet();
	if (rank->rank == WRONG) {
		/* the device of another rank */
		check_ok(aclrtSetDevice((int32_t)WRONG + 1));
		check_fails(HcclCommInitClusterInfo(table_path, rank->rank, &comm), wrong->result, wrong->text);
		check_ok(aclrtSetDevice((int32_t)WRONG));
	}
	join_well(rank, &comm);
	check_ok(HcclCommDestroy(comm));
	meet();
}

/* ---- time-outs ---- */

static void run_absent(const struct wrong *wrong, struct rank *rank)
{
	HcclComm comm = NULL;

	if (rank->rank == 0) {
		good_table();
		check_ok(HcclGetRootInfo(&root));
	}
	meet();
	if (rank->rank != WRONG && strcmp(wrong->find, "table") == 0)
		check_fails(HcclCommInitClusterInfo(table_path, rank->rank, &comm), wrong->result, wrong->text);
	else if (rank->rank != WRONG)
		check_fails(HcclCommInitRootInfo(RANKS, &root, rank->rank, &comm), wrong->result, wrong->text);
	check_null(comm);
	meet();
}

/* One rank reads a table that is valid, and another one. */
static void run_other_table(const struct wrong *wrong, struct rank *rank)
{
	static char text[65536], other_path[160];
	HcclComm comm = NULL;

	if (rank->rank == 0) {
		table_1(text, sizeof(text), "1.0", "");
		table_edit(text, sizeof(text), wrong->find, wrong->replace);
		table_write(text);
		snprintf(other_path, sizeof(other_path), "%s.other", table_path);
		check_eq_int(rename(table_path, other_path), 0);
		good_table();
	}
	meet();
	check_fails(HcclCommInitClusterInfo(rank->rank == WRONG ? other_path : table_path, rank->rank, &comm), wrong->result,
		    rank->rank == WRONG ? "19 of 20 ranks are missing: ranks 0-6 and 8-19" : wrong->text);
	meet();
	/* who comes too late with the right table is told that the others have given up, and once only */
	if (rank->rank == WRONG)
		check_fails(HcclCommInitClusterInfo(table_path, rank->rank, &comm), wrong->result, wrong->text);
	meet();
}

static void run_absent_member(const struct wrong *wrong, struct rank *rank)
{
	HcclComm comm = NULL, part = NULL;
	uint32_t members[RANKS];
	HcclCommConfig config;

	if (rank->rank == 0)
		good_table();
	meet();
	join_well(rank, &comm);
	HcclCommConfigInit(&config);
	fill_members(members);
	if (rank->rank != WRONG)
		check_fails(HcclCreateSubCommConfig(&comm, RANKS, members, 9, rank->rank, &config, &part), wrong->result, wrong->text);
	meet();
	check_ok(HcclCommDestroy(comm));
	meet();
}

#include "tests/integration/comm_wrong_cases.h"

static void *rank_main(void *data)
{
	struct rank *rank = data;

	check_ok(aclrtSetDevice((int32_t)rank->rank));
	check_ok(aclrtCreateStream(&rank->stream));
	for (size_t i = 0; i < case_count; i++) {
		if (rank->rank == 0)
			fprintf(stderr, "case %d\n", first_case[i].number);
		meet();
		first_case[i].run(&first_case[i], rank);
		check_null(aclGetRecentErrMsg());
		meet();
	}
	return NULL;
}

static void run_cases(void)
{
	check_eq_int(pthread_barrier_init(&barrier, NULL, RANKS), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		ranks[i].rank = i;
		check_eq_int(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
	}
	for (uint32_t i = 0; i < RANKS; i++)
		pthread_join(ranks[i].thread, NULL);
}

static void run_all(const struct wrong *list, size_t count, int first_number)
{
	static const char *const options[] = { "--devices", "20", NULL };
	struct private_daemon daemon;
	int status;
	pid_t pid;

	for (size_t i = 0; i < count; i++)
		check_eq_int(list[i].number, first_number + (int)i);
	first_case = list;
	case_count = count;
	snprintf(table_path, sizeof(table_path), "%s", test_path("table"));
	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	fflush(NULL);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		run_cases();
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(private_daemon_stop(&daemon), 0);
	check_msg(status == 0, "the program ended with wait status 0x%x", (unsigned int)status);
}

TEST_TIMEOUT(wrong_in_many_ways, 120)
{
	run_all(cases, sizeof(cases) / sizeof(cases[0]), 1);
}

TEST_TIMEOUT(wrong_and_waited_for, 120)
{
	setenv("HCCLD_CONNECT_TIMEOUT_MS", "500", 1);
	run_all(late_cases, sizeof(late_cases) / sizeof(late_cases[0]), 1 + (int)(sizeof(cases) / sizeof(cases[0])));
}
