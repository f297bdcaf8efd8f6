/* SPDX-License-Identifier: Apache-2.0 */
#include "client/variables.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/connection.h"
#include "client/environment.h"
#include "client/error.h"

#define CHECKED "checked; nothing depends on it here"

static const struct row {
	const char *name, *initial, *meaning;
} rows[] = {
	{ "HCCLD_SOCKET", NULL, "the daemon's socket" },
	{ "ASCEND_RT_VISIBLE_DEVICES", "all", "devices the program sees, such as 4,5" },
	{ "HCCL_EXEC_TIMEOUT", "1836",
	  "seconds until an operation without its other side fails; 0: never" },
	{ "HCCL_CONNECT_TIMEOUT", "120",
	  "seconds until a communicator with missing ranks fails, 120 to 7200" },
	{ "HCCLD_CONNECT_TIMEOUT_MS", "unset",
	  "the same in ms, 1 to 7200000; wins over HCCL_CONNECT_TIMEOUT" },
	{ "HCCL_INTRA_PCIE_ENABLE", "1", "1: ranks of a server reach each other's memory; not with HCCL_INTRA_ROCE_ENABLE=1" },
	{ "HCCL_INTRA_ROCE_ENABLE", "0", "1: ranks of a server use RoCE, and channels for load and store are refused" },
	{ "HCCL_BUFFSIZE", "200", "MB of each of the two halves of the HCCL buffer of a communicator" },
	{ "HCCL_OP_EXPANSION_MODE", "unset", "AI_CPU, AIV, HOST and so on; shown by hcclctl comms -v" },
	{ "HCCL_OP_RETRY_ENABLE", "unset", "such as \"L0:0, L1:1, L2:1\"; shown by hcclctl comms -v" },
	{ "HCCL_OP_RETRY_PARAMS", "MaxCnt:1, HoldTime:5000, IntervalTime:1000", "shown by hcclctl comms -v" },
	{ "HCCL_DETERMINISTIC", "false", "false, true or strict" },
	{ "HCCL_ALGO", "unset", "checked; operations between two ranks do not depend on it" },
	{ "HCCL_RDMA_TC", "132", CHECKED },
	{ "HCCL_RDMA_SL", "4", CHECKED },
	{ "HCCL_RDMA_TIMEOUT", "20", CHECKED },
	{ "HCCL_RDMA_RETRY_CNT", "7", CHECKED },
	{ "HCCL_RDMA_QPS_PER_CONNECTION", "1", CHECKED },
	{ "HCCL_MULTI_QP_THRESHOLD", "512", CHECKED },
	{ "HCCL_IF_BASE_PORT", "60000", CHECKED },
	{ "HCCL_WHITELIST_DISABLE", "1", CHECKED },
	{ "HCCL_DIAGNOSE_ENABLE", "0", CHECKED },
	{ "HCCLD_JOB", "unset", "a text: ranks with the same rank table meet within a job only" },
	{ "HCCL_ENTRY_LOG_ENABLE", "0", "1: every operator call leaves a line on standard error" },
	{ "HCCLD_STRICT_DEVICE", "0", "1: host code that touches device memory ends by SIGSEGV there; 2: the same without protection keys" },
	{ "HCCLD_ALLOW_DUPLICATE_ITEMS", "0",
	  "1: several items for one peer in a batch go in list order, also if the daemon does not say so" },
};

static _Thread_local const char *only;

/* Of two that say one thing together. */
static bool is_of_pair(const char *name)
{
	return strcmp(name, "HCCL_INTRA_PCIE_ENABLE") == 0 || strcmp(name, "HCCL_INTRA_ROCE_ENABLE") == 0;
}

/* An environment with one variable, or with a pair of them: whatever is wrong is wrong with that. */
static char *lookup_only(const char *name)
{
	return strcmp(name, only) == 0 || (is_of_pair(name) && is_of_pair(only)) ? getenv(name) : NULL;
}

/* "[PID: n] <time> <Title>(EI0001): text", newline, solution: the text. */
static const char *error_plain(const char *error, char *buffer, size_t size)
{
	const char *text = error ? strstr(error, "): ") : NULL;

	if (!text)
		return error;
	text += 3;
	snprintf(buffer, size, "%.*s", (int)strcspn(text, "\n"), text);
	return buffer;
}

void hccld_variables_list(void (*tell)(void *data, const struct hccld_variable *variable),
			  void *data)
{
	char path[PATH_MAX], text[HCCLD_TEXT_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *set = getenv(rows[i].name);
		struct hccld_environment environment;
		struct hccld_variable variable = { .name = rows[i].name,
						   .meaning = rows[i].meaning,
						   .is_set = set && *set };

		variable.value = variable.is_set ? set : rows[i].initial;
		only = rows[i].name;
		if (hccld_environment_read(lookup_only, &environment) < 0)
			variable.error = error_plain(hccld_error_take(), text, sizeof(text));
		if (!variable.value)
			variable.value =
				hccld_socket_path(path, sizeof(path)) < 0 ? "unknown" : path;
		tell(data, &variable);
	}
}
