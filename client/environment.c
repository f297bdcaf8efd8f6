/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables of communicators. Written once under pthread_once(), read by any thread afterwards. */
#include "client/environment.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/comm_settings.h"
#include "client/error.h"

#define CONNECT_TIMEOUT_DEFAULT_S 120u
#define EXEC_TIMEOUT_DEFAULT_S 1836u
#define BUFFER_DEFAULT_MB 200u
#define NUMBER_LENGTH_MAX 10u /* as in HCCL */

struct number {
	const char *name;
	uint64_t low, high;
	const char *unit; /* "" for a switch */
};

/*
 * The value of a variable that holds a number, -EBADMSG with text, or 1 if it is not set. An empty one counts as not set.
 */
static int number_read(char *(*lookup)(const char *name), const struct number *number,
		       uint64_t *ret_value)
{
	const char *text = lookup(number->name);
	uint64_t value = 0;
	size_t length;
	bool valid;

	if (!text || !*text)
		return 1;
	length = strnlen(text, NUMBER_LENGTH_MAX + 1);
	valid = length <= NUMBER_LENGTH_MAX;
	for (size_t i = 0; valid && i < length; i++) {
		valid = isdigit((unsigned char)text[i]);
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	if (!valid || value < number->low || value > number->high)
		return hccld_error(
			CAUSE_ENVIRONMENT,
			"environment variable %s is \"%.64s\"; expected a whole number from %" PRIu64
			" to %" PRIu64 "%s%s of at most %u digits",
			number->name, text, number->low, number->high, *number->unit ? " " : "",
			number->unit, NUMBER_LENGTH_MAX);
	*ret_value = value;
	return 0;
}

/* The values of those that are set into @values. */
static int numbers_read(char *(*lookup)(const char *name), const struct number *numbers, size_t count, uint64_t *values)
{
	for (size_t i = 0; i < count; i++) {
		int r = number_read(lookup, &numbers[i], &values[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Milliseconds in 32 bits: 49 days stand for more. */
static uint32_t milliseconds(uint64_t seconds)
{
	return seconds > UINT32_MAX / 1000 ? UINT32_MAX : (uint32_t)(seconds * 1000);
}

static struct hccld_environment environment_default(void)
{
	return (struct hccld_environment){
		.exec_timeout_ms = EXEC_TIMEOUT_DEFAULT_S * 1000,
		.connect_timeout_ms = CONNECT_TIMEOUT_DEFAULT_S * 1000,
		.buffer_mb = BUFFER_DEFAULT_MB,
		.settings = { .retry_count = 1, .retry_hold_ms = 5000, .retry_interval_ms = 1000 },
	};
}

static int own_read(char *(*lookup)(const char *name), struct hccld_environment *environment)
{
	static const struct number numbers[] = {
		{ "HCCL_CONNECT_TIMEOUT", 120, 7200, "s" },
		{ "HCCLD_CONNECT_TIMEOUT_MS", 1, 7200000, "ms" },
		{ "HCCL_EXEC_TIMEOUT", 0, 2147483647, "s" },
		{ "HCCL_BUFFSIZE", 1, 2147483647, "MB" },
		{ "HCCL_ENTRY_LOG_ENABLE", 0, 1, "" },
		{ "HCCLD_ALLOW_DUPLICATE_ITEMS", 0, 1, "" },
		{ "HCCLD_STRICT_DEVICE", 0, 2, "" }, /* strict.c uses it */
	};
	enum { CONNECT, CONNECT_MS, EXEC, BUFFER, ENTRY_LOG, DUPLICATES, STRICT, COUNT };
	uint64_t values[COUNT] = { environment->connect_timeout_ms / 1000,
				   0,
				   environment->exec_timeout_ms / 1000,
				   environment->buffer_mb,
				   false,
				   false,
				   0 };
	int r = numbers_read(lookup, numbers, COUNT, values);

	if (r < 0)
		return r;
	environment->connect_timeout_ms = values[CONNECT_MS] ? (uint32_t)values[CONNECT_MS]
							     : milliseconds(values[CONNECT]);
	environment->is_connect_ms = values[CONNECT_MS];
	environment->exec_timeout_ms = milliseconds(values[EXEC]);
	environment->buffer_mb = (uint32_t)values[BUFFER];
	environment->entry_log = values[ENTRY_LOG];
	environment->allow_duplicate_items = values[DUPLICATES];
	return 0;
}

/*
 * Of links to other nodes, and of what there is none of here: nothing depends on them, but a value that HCCL refuses is better found here
 * than on a machine with NPUs. Where products differ, what one of them takes is right.
 */
static int others_check(char *(*lookup)(const char *name))
{
	static const struct number numbers[] = {
		{ "HCCL_RDMA_TC", 0, 255, "" },
		{ "HCCL_RDMA_SL", 0, 7, "" },
		{ "HCCL_RDMA_TIMEOUT", 0, 31, "" },
		{ "HCCL_RDMA_RETRY_CNT", 1, 7, "" },
		{ "HCCL_RDMA_QPS_PER_CONNECTION", 1, 32, "" },
		{ "HCCL_MULTI_QP_THRESHOLD", 1, 8192, "KB" },
		{ "HCCL_IF_BASE_PORT", 1024, 65520, "" },
		{ "HCCL_WHITELIST_DISABLE", 0, 1, "" },
		{ "HCCL_DIAGNOSE_ENABLE", 0, 1, "" },
	};
	enum { TRAFFIC_CLASS, COUNT = sizeof(numbers) / sizeof(numbers[0]) };
	uint64_t values[COUNT] = { 0 };
	int r = numbers_read(lookup, numbers, COUNT, values);

	if (r < 0)
		return r;
	if (values[TRAFFIC_CLASS] % 4 == 0)
		return 0;
	return hccld_error(CAUSE_ENVIRONMENT, "environment variable %s is \"%" PRIu64 "\"; expected a multiple of 4 from 0 to 255",
			   numbers[TRAFFIC_CLASS].name, values[TRAFFIC_CLASS]);
}

/* Within a server: PCIe, unless RoCE is chosen. One variable alone may only say what it is called after. */
static int path_read(char *(*lookup)(const char *name), struct hccld_environment *environment)
{
	static const struct number pcie = { "HCCL_INTRA_PCIE_ENABLE", 0, 1, "" };
	static const struct number roce = { "HCCL_INTRA_ROCE_ENABLE", 0, 1, "" };
	uint64_t by_pcie = 0, by_roce = 0;
	int has_pcie, has_roce;

	has_pcie = number_read(lookup, &pcie, &by_pcie);
	if (has_pcie < 0)
		return has_pcie;
	has_roce = number_read(lookup, &roce, &by_roce);
	if (has_roce < 0)
		return has_roce;
	/* number_read() says 1 if it is not set */
	if (by_pcie && by_roce)
		return hccld_error(CAUSE_ENVIRONMENT,
				   "environment variables HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE are both 1; expected one of them: 1 and 0 for PCIe, 0 and 1 for RoCE between ranks of a server");
	if (has_pcie != has_roce && !by_pcie && !by_roce)
		return hccld_error(CAUSE_ENVIRONMENT, "environment variable %s is 0 and %s is not set; expected the other one to be 1, which says what ranks of a server use",
				   has_pcie ? roce.name : pcie.name, has_pcie ? pcie.name : roce.name);
	environment->intra_roce = by_roce;
	return 0;
}

static bool text_is_good(const char *name, const char *text, struct hccld_environment *environment)
{
	struct comm_settings *settings = &environment->settings;

	if (strcmp(name, "HCCL_OP_EXPANSION_MODE") == 0)
		return hccld_expansion_parse(text, &settings->op_expansion_mode);
	if (strcmp(name, "HCCL_OP_RETRY_ENABLE") == 0)
		return hccld_retry_enable_parse(text, &settings->retry_levels);
	if (strcmp(name, "HCCL_OP_RETRY_PARAMS") == 0)
		return hccld_retry_params_parse(text, settings);
	if (strcmp(name, "HCCL_ALGO") == 0)
		return hccld_algo_check(text);
	environment->has_deterministic = true;
	return hccld_deterministic_parse(text, &settings->deterministic);
}

/* An empty one counts as not set. */
static int texts_read(char *(*lookup)(const char *name), struct hccld_environment *environment)
{
	static const struct {
		const char *name, *form;
	} texts[] = { { "HCCL_OP_EXPANSION_MODE", HCCLD_EXPANSION_FORM },
		      { "HCCL_OP_RETRY_ENABLE", HCCLD_RETRY_ENABLE_FORM },
		      { "HCCL_OP_RETRY_PARAMS", HCCLD_RETRY_PARAMS_FORM },
		      { "HCCL_ALGO", HCCLD_ALGO_FORM },
		      { "HCCL_DETERMINISTIC", HCCLD_DETERMINISTIC_FORM } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *text = lookup(texts[i].name);

		if (text && *text && !text_is_good(texts[i].name, text, environment))
			return hccld_error(CAUSE_ENVIRONMENT,
					   "environment variable %s is \"%.64s\"; expected %s",
					   texts[i].name, text, texts[i].form);
	}
	return 0;
}

int hccld_environment_read(char *(*lookup)(const char *name),
			   struct hccld_environment *ret_environment)
{
	struct hccld_environment environment = environment_default();
	int r = own_read(lookup, &environment);

	if (r == 0)
		r = others_check(lookup);
	if (r == 0)
		r = path_read(lookup, &environment);
	if (r == 0)
		r = texts_read(lookup, &environment);
	if (r < 0)
		return r;
	environment.settings.buffer_mb = environment.buffer_mb;
	*ret_environment = environment;
	return 0;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct hccld_environment process_environment;
static bool malformed;

static void environment_load(void)
{
	process_environment = environment_default();
	malformed = hccld_environment_read(getenv, &process_environment) < 0;
}

int hccld_environment_check(void)
{
	struct hccld_environment again;
	int r;

	pthread_once(&once, environment_load);
	if (!malformed)
		return 0;
	/* once more, for the text in this thread; what the first call found counts even if somebody corrected the variable since */
	r = hccld_environment_read(getenv, &again);
	if (r < 0)
		return r;
	return hccld_error(
		CAUSE_ENVIRONMENT,
		"an environment variable was malformed when this process first used a communicator");
}

uint32_t hccld_environment_exec_timeout_ms(void)
{
	pthread_once(&once, environment_load);
	return process_environment.exec_timeout_ms;
}

uint32_t hccld_environment_connect_timeout_ms(void)
{
	pthread_once(&once, environment_load);
	return process_environment.connect_timeout_ms;
}

bool hccld_environment_connect_is_ms(void)
{
	pthread_once(&once, environment_load);
	return process_environment.is_connect_ms;
}

uint32_t hccld_environment_buffer_mb(void)
{
	pthread_once(&once, environment_load);
	return process_environment.buffer_mb;
}

struct comm_settings hccld_environment_settings(void)
{
	pthread_once(&once, environment_load);
	return process_environment.settings;
}

bool hccld_environment_deterministic(uint8_t *ret_value)
{
	pthread_once(&once, environment_load);
	*ret_value = process_environment.settings.deterministic;
	return process_environment.has_deterministic;
}

void hccld_environment_job(struct digest *digest)
{
	static const char *const launchers[] = { "PMIX_NAMESPACE", "OMPI_MCA_orte_ess_jobid", "SLURM_JOB_ID", "SLURM_STEP_ID",
						 "MASTER_PORT" };
	const char *job = getenv("HCCLD_JOB");

	if (job && *job) {
		digest_add_text(digest, job);
		return;
	}
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		job = getenv(launchers[i]);
		digest_add_text(digest, job ? job : "");
	}
}

bool hccld_environment_intra_roce(void)
{
	pthread_once(&once, environment_load);
	return process_environment.intra_roce;
}

bool hccld_environment_entry_log(void)
{
	pthread_once(&once, environment_load);
	return process_environment.entry_log;
}

bool hccld_environment_allow_duplicate_items(void)
{
	pthread_once(&once, environment_load);
	return process_environment.allow_duplicate_items;
}

void hccld_environment_log_entry(const char *format, ...)
{
	char line[512];
	va_list args;
	int n;

	if (!hccld_environment_entry_log())
		return;
	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n >= 0)
		fprintf(stderr, "hccld: %s\n", line);
}
