/* SPDX-License-Identifier: Apache-2.0 */
#include "client/environment.h"

#include <errno.h>
#include <string.h>

#include "client/error.h"
#include "tests/support/test.h"

static const char *given_name, *given_value;

static char *lookup(const char *name)
{
	return given_name && !strcmp(name, given_name) ? (char *)(uintptr_t)given_value : NULL;
}

static int read_with(const char *name, const char *value, struct hccld_environment *ret)
{
	given_name = name;
	given_value = value;
	return hccld_environment_read(lookup, ret);
}

static void check_refused(const char *name, const char *value, const char *range)
{
	struct hccld_environment environment = { .buffer_mb = 4711 };
	const char *text;

	check_eq_int(read_with(name, value, &environment), -EBADMSG);
	check_eq_uint(environment.buffer_mb, 4711);
	text = hccld_error_take();
	check_str_contains(text, "EI0001");
	check_str_contains(text, name);
	check_str_contains(text, value);
	check_str_contains(text, range);
	check_eq_int(hccld_hccl_result(-EBADMSG), 1);
	check_eq_int(hccld_acl_result(-EBADMSG), 107000);
}

TEST(environment_has_the_defaults_of_hccl)
{
	struct hccld_environment environment;

	check_eq_int(read_with(NULL, NULL, &environment), 0);
	check_eq_uint(environment.exec_timeout_ms, 1836000);
	check_eq_uint(environment.connect_timeout_ms, 120000);
	check_eq_uint(environment.buffer_mb, 200);
	check(!environment.entry_log);
	check(!environment.allow_duplicate_items);
	check_eq_int(read_with("HCCL_EXEC_TIMEOUT", "", &environment), 0);
	check_eq_uint(environment.exec_timeout_ms, 1836000);
}

TEST(environment_takes_the_ends_of_each_range)
{
	struct hccld_environment environment;

	check_eq_int(read_with("HCCL_EXEC_TIMEOUT", "0", &environment), 0);
	check_eq_uint(environment.exec_timeout_ms, 0);
	check_eq_int(read_with("HCCL_EXEC_TIMEOUT", "2147483647", &environment), 0);
	check_eq_uint(environment.exec_timeout_ms, UINT32_MAX);
	check_eq_int(read_with("HCCL_CONNECT_TIMEOUT", "120", &environment), 0);
	check_eq_uint(environment.connect_timeout_ms, 120000);
	check_eq_int(read_with("HCCL_CONNECT_TIMEOUT", "7200", &environment), 0);
	check_eq_uint(environment.connect_timeout_ms, 7200000);
	check(!environment.is_connect_ms);
	check_eq_int(read_with("HCCLD_CONNECT_TIMEOUT_MS", "250", &environment), 0);
	check_eq_uint(environment.connect_timeout_ms, 250);
	check(environment.is_connect_ms);
	check_eq_int(read_with("HCCL_BUFFSIZE", "1", &environment), 0);
	check_eq_uint(environment.buffer_mb, 1);
	check_eq_int(read_with("HCCL_ENTRY_LOG_ENABLE", "1", &environment), 0);
	check(environment.entry_log);
	check_eq_int(read_with("HCCLD_ALLOW_DUPLICATE_ITEMS", "1", &environment), 0);
	check(environment.allow_duplicate_items);
	check_eq_int(read_with("HCCL_RDMA_TC", "252", &environment), 0);
	check_eq_int(read_with("HCCL_RDMA_TC", "0", &environment), 0);
	check_eq_int(read_with("HCCL_IF_BASE_PORT", "65520", &environment), 0);
	/* ten digits, leading zeros or not */
	check_eq_int(read_with("HCCL_CONNECT_TIMEOUT", "0000000121", &environment), 0);
	check_eq_uint(environment.connect_timeout_ms, 121000);
}

TEST(environment_refuses_what_is_out_of_range_or_no_number)
{
	check_refused("HCCL_EXEC_TIMEOUT", "2147483648", "0 to 2147483647");
	check_refused("HCCL_EXEC_TIMEOUT", "-1", "0 to 2147483647");
	check_refused("HCCL_EXEC_TIMEOUT", "1.5", "0 to 2147483647");
	check_refused("HCCL_EXEC_TIMEOUT", "12s", "0 to 2147483647");
	check_refused("HCCL_EXEC_TIMEOUT", " 12", "0 to 2147483647");
	check_refused("HCCL_EXEC_TIMEOUT", "00000000012", "at most 10 digits");
	check_refused("HCCL_CONNECT_TIMEOUT", "119", "120 to 7200");
	check_refused("HCCL_CONNECT_TIMEOUT", "7201", "120 to 7200");
	check_refused("HCCLD_CONNECT_TIMEOUT_MS", "0", "1 to 7200000");
	check_refused("HCCL_BUFFSIZE", "0", "from 1 to");
	check_refused("HCCL_ENTRY_LOG_ENABLE", "2", "0 to 1");
	check_refused("HCCL_ENTRY_LOG_ENABLE", "true", "0 to 1");
	check_refused("HCCLD_ALLOW_DUPLICATE_ITEMS", "yes", "0 to 1");
	check_refused("HCCLD_STRICT_DEVICE", "3", "0 to 2");
	check_refused("HCCL_RDMA_TC", "256", "0 to 255");
	check_refused("HCCL_RDMA_TC", "133", "a multiple of 4");
	check_refused("HCCL_RDMA_SL", "8", "0 to 7");
	check_refused("HCCL_RDMA_TIMEOUT", "32", "0 to 31");
	check_refused("HCCL_RDMA_RETRY_CNT", "0", "1 to 7");
	check_refused("HCCL_RDMA_QPS_PER_CONNECTION", "33", "1 to 32");
	check_refused("HCCL_MULTI_QP_THRESHOLD", "8193", "1 to 8192 KB");
	check_refused("HCCL_IF_BASE_PORT", "65521", "1024 to 65520");
	check_refused("HCCL_WHITELIST_DISABLE", "2", "0 to 1");
	check_refused("HCCL_DIAGNOSE_ENABLE", "on", "0 to 1");
}

static const char *pcie, *roce;

static char *lookup_paths(const char *name)
{
	if (strcmp(name, "HCCL_INTRA_PCIE_ENABLE") == 0)
		return (char *)pcie;
	return strcmp(name, "HCCL_INTRA_ROCE_ENABLE") == 0 ? (char *)roce : NULL;
}

TEST(environment_chooses_the_path_within_a_server)
{
	static const struct {
		const char *pcie, *roce;
		int result; /* 0: PCIe, 1: RoCE, -1: an error */
	} rows[] = { { NULL, NULL, 0 }, { "1", NULL, 0 }, { "0", NULL, -1 }, { NULL, "1", 1 }, { NULL, "0", -1 }, { "1", "1", -1 },
		     { "0", "0", 0 },	{ "1", "0", 0 },  { "0", "1", 1 },   { "2", NULL, -1 }, { NULL, "yes", -1 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hccld_environment environment = { .intra_roce = rows[i].result == 0 };

		pcie = rows[i].pcie;
		roce = rows[i].roce;
		if (rows[i].result < 0) {
			check_eq_int(hccld_environment_read(lookup_paths, &environment), -EBADMSG);
			check_str_contains(hccld_error_take(), "EI0001");
			continue;
		}
		check_eq_int(hccld_environment_read(lookup_paths, &environment), 0);
		check_eq_int(environment.intra_roce, rows[i].result);
	}
}

TEST(environment_is_read_once)
{
	setenv("HCCL_EXEC_TIMEOUT", "77", 1);
	check_eq_int(hccld_environment_check(), 0);
	setenv("HCCL_EXEC_TIMEOUT", "nonsense", 1);
	check_eq_int(hccld_environment_check(), 0);
	check_eq_uint(hccld_environment_exec_timeout_ms(), 77000);
}

TEST(environment_that_was_malformed_stays_so)
{
	setenv("HCCL_BUFFSIZE", "nonsense", 1);
	check_eq_int(hccld_environment_check(), -EBADMSG);
	check_str_contains(hccld_error_take(), "HCCL_BUFFSIZE");
	check_eq_int(hccld_environment_check(), -EBADMSG);
	check_str_contains(hccld_error_take(), "nonsense");
	unsetenv("HCCL_BUFFSIZE");
	check_eq_int(hccld_environment_check(), -EBADMSG);
	check_str_contains(hccld_error_take(), "EI0001");
	check_eq_uint(hccld_environment_buffer_mb(), 200);
}
