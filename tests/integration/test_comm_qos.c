/* SPDX-License-Identifier: Apache-2.0 */
/* hcclQos: what hcclctl is told of it, and that the weight of a communicator outlives the daemon. */
#include <signal.h>
#include <string.h>

#include "tests/support/hcclctl.h"
#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"

#define RANKS 2u

static void check_listed(const char *name, uint32_t qos, uint32_t weight)
{
	Hccld__Control__List message = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_client tool;
	struct raw_reply reply;
	uint32_t found = 0;

	message.kind = HCCLD__CONTROL__LIST__KIND__COMMS;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &message;
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	raw_call(&tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	for (size_t i = 0; i < reply.message->list->n_comms; i++) {
		const Hccld__Control__Comm *comm = reply.message->list->comms[i];

		if (strcmp(comm->name, name) != 0)
			continue;
		found++;
		check_ptr(comm->settings);
		check_eq_uint(comm->settings->qos, 1 + qos);
		check_eq_uint(comm->weight, weight);
	}
	check_eq_uint(found, 1);
	raw_reply_free(&reply);
	raw_client_stop(&tool);
}

static HcclComm join(const HcclRootInfo *root, uint32_t rank, const char *name, uint32_t qos)
{
	HcclCommConfig config;
	HcclComm comm;

	HcclCommConfigInit(&config);
	strcpy(config.hcclCommName, name);
	config.hcclQos = qos;
	check_ok(HcclCommInitRootInfoConfig(RANKS, root, rank, &config, &comm));
	return comm;
}

static void two_ranks(uint32_t rank, HcclRootInfo *shared)
{
	static const struct {
		const char *name;
		uint32_t given, other, shown;
	} cases[] = {
		{ "lowest", 0, 0, 0 },
		{ "highest", 7, 7, 7 },
		{ "default", HCCL_COMM_QOS_CONFIG_NOT_SET, HCCL_COMM_QOS_CONFIG_NOT_SET, 6 },
		/* HCCL does not compare them: that of rank 0 counts */
		{ "differing", 2, 5, 2 },
	};
	HcclComm comm;

	check_ok(aclrtSetDevice((int32_t)rank));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (rank == 0)
			check_ok(HcclGetRootInfo(shared));
		job_meet();
		comm = join(shared, rank, cases[i].name, rank ? cases[i].other : cases[i].given);
		if (rank == 0)
			check_listed(cases[i].name, cases[i].shown, cases[i].shown + 1);
		/* it stays until it was looked at */
		check_ok(HcclCommDestroy(comm));
	}
}

TEST(the_level_of_rank_0_counts)
{
	job_run_processes(RANKS, two_ranks);
}

static uint32_t daemon_pid(void)
{
	struct raw_reply reply;
	uint32_t pid;

	raw_status(&reply);
	pid = reply.message->status->pid;
	raw_reply_free(&reply);
	return pid;
}

static void kill_worker(void)
{
	uint32_t pid = daemon_pid();

	check_eq_int(kill((pid_t)pid, SIGKILL), 0);
	/* the socket is the same: this waits in its backlog */
	check_ne_int((int)daemon_pid(), (int)pid);
}

static void restarted(void)
{
	HcclCommConfig config;
	HcclRootInfo root;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	HcclCommConfigInit(&config);
	strcpy(config.hcclCommName, "kept");
	config.hcclQos = 3;
	check_ok(HcclGetRootInfo(&root));
	check_ok(HcclCommInitRootInfoConfig(1, &root, 0, &config, &comm));
	kill_worker();
	check_listed("kept", 3, 4);
	hcclctl_expect("comms -v", ", qos 3 (weight 4)");
	hcclctl_expect("comms --json", "\"qos\":\t3,");
	check_ok(HcclCommDestroy(comm));
}

TEST(a_restart_keeps_it)
{
	static const char *const options[] = { "--keeper", NULL };

	job_set_options(options);
	job_run(restarted);
}

/* A program of an older version of the struct has it not set, whatever is behind its end. */
static void old_version(void)
{
	HcclCommConfig config;
	HcclRootInfo root;
	HcclComm comm;
	uint32_t version = 9;

	check_ok(aclrtSetDevice(0));
	HcclCommConfigInit(&config);
	memcpy(config.reserved + 12, &version, sizeof(version));
	strcpy(config.hcclCommName, "old");
	config.hcclQos = 99;
	check_ok(HcclGetRootInfo(&root));
	check_ok(HcclCommInitRootInfoConfig(1, &root, 0, &config, &comm));
	check_listed("old", 6, 7);
	check_ok(HcclCommDestroy(comm));
}

TEST(an_old_version_has_the_default)
{
	job_run(old_version);
}

static void on_950(void)
{
	HcclRootInfo root;
	HcclComm comm;
	char name[128];

	check_ok(aclrtSetDevice(0));
	check_ok(HcclGetRootInfo(&root));
	check_ok(HcclCommInitRootInfo(1, &root, 0, &comm));
	check_ok(HcclGetCommName(comm, name));
	check_listed(name, 4, 5);
	check_ok(HcclCommDestroy(comm));
}

TEST(the_default_is_that_of_the_device)
{
	static const char *const options[] = { "--soc-name", "Ascend950PR_9599", NULL };

	job_set_options(options);
	job_run(on_950);
}
