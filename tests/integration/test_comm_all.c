/* SPDX-License-Identifier: Apache-2.0 */
/* HcclCommInitAll at its limits: no device, a device that is reset, more ranks than the process may have. */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/limits.h"
#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

static void init_all_without_device(void)
{
	int32_t device = 0;
	HcclComm comm;

	check_fails(HcclCommInitAll(1, &device, &comm), HCCL_E_PARA, "sees no device");
}

TEST(init_all_of_a_process_without_device)
{
	job_run_with("ASCEND_RT_VISIBLE_DEVICES", "none", init_all_without_device);
}

/* What the communicator holds of its device has gone with a reset by force: what is there now is somebody else's. */
static void init_all_and_reset(void)
{
	int32_t device = 0;
	aclrtStream stream;
	HcclComm comm;
	void *memory;

	check_ok(HcclCommInitAll(1, &device, &comm));
	check_ok(aclrtResetDeviceForce(0));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	memory = job_memory(100, 1);
	check_fails(HcclSend(memory, 100, HCCL_DATA_TYPE_INT8, 0, comm, stream), HCCL_E_PARA, "ended when device 0 was reset");
	check_ok(HcclCommDestroy(comm));
	check_null(aclGetRecentErrMsg());
	check_ok(aclrtGetDevice(&device));
	check_ok(aclrtFree(memory));
	check_ok(aclrtResetDevice(0));
	check_fails(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL, "not in use");
}

TEST(init_all_holds_its_devices_until_a_reset_by_force)
{
	job_run(init_all_and_reset);
}

/* More ranks than the process may have: told at once, and those that would have fitted are not left waiting for the others. */
static void init_all_past_the_limit(void)
{
	int32_t devices[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	HcclComm comms[8];
	time_t start;

	for (uint32_t i = 0; i < HCCLD_RANKS_PER_SESSION - 6; i++)
		check_ok(HcclCommInitAll(1, devices, comms));
	start = time(NULL);
	check_fails(HcclCommInitAll(8, devices, comms), HCCL_E_UNAVAIL, "4096 communicators");
	check_le_int(time(NULL) - start, 10 * test_timeout_scale());
	check_ok(HcclCommInitAll(6, devices, comms));
}

TEST_TIMEOUT(init_all_past_the_limit_of_the_process, 90)
{
	job_run(init_all_past_the_limit);
}

/* A watchdog that asks for nothing but the asynchronous error learns that the daemon went for good. */
static void outlive_the_daemon(void)
{
	HcclResult async = HCCL_E_RESERVED;
	struct private_daemon daemon;
	int32_t device = 0;
	HcclComm comm;

	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	check_ok(HcclCommInitAll(1, &device, &comm));
	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_SUCCESS);
	private_daemon_kill(&daemon);
	private_daemon_stop(&daemon);
	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_E_UNAVAIL);
}

TEST(the_end_of_the_daemon_is_an_asynchronous_error)
{
	pid_t pid = fork();	/* the session ends with its process */
	int status;

	if (pid == 0) {
		outlive_the_daemon();
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
}
