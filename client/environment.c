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
	};
}

int hccld_environment_read(char *(*lookup)(const char *name),
			   struct hccld_environment *ret_environment)
{
	static const struct number connect = { "HCCL_CONNECT_TIMEOUT", 120, 7200, "s" };
	static const struct number connect_ms = { "HCCLD_CONNECT_TIMEOUT_MS", 1, 7200000, "ms" };
	static const struct number exec = { "HCCL_EXEC_TIMEOUT", 0, 2147483647, "s" };
	static const struct number buffer = { "HCCL_BUFFSIZE", 1, 2147483647, "MB" };
	static const struct number entry_log = { "HCCL_ENTRY_LOG_ENABLE", 0, 1, "" };
	static const struct number duplicates = { "HCCLD_ALLOW_DUPLICATE_ITEMS", 0, 1, "" };
	struct hccld_environment environment = environment_default();
	uint64_t value;
	int r;

	r = number_read(lookup, &connect, &value);
	if (r < 0)
		return r;
	if (r == 0)
		environment.connect_timeout_ms = milliseconds(value);
	r = number_read(lookup, &connect_ms, &value);
	if (r < 0)
		return r;
	if (r == 0)
		environment.connect_timeout_ms = (uint32_t)value;
	r = number_read(lookup, &exec, &value);
	if (r < 0)
		return r;
	if (r == 0)
		environment.exec_timeout_ms = milliseconds(value);
	r = number_read(lookup, &buffer, &value);
	if (r < 0)
		return r;
	if (r == 0)
		environment.buffer_mb = (uint32_t)value;
	r = number_read(lookup, &entry_log, &value);
	if (r < 0)
		return r;
	if (r == 0)
		environment.entry_log = value;
	r = number_read(lookup, &duplicates, &value);
	if (r < 0)
		return r;
	if (r == 0)
		environment.allow_duplicate_items = value;
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

uint32_t hccld_environment_buffer_mb(void)
{
	pthread_once(&once, environment_load);
	return process_environment.buffer_mb;
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
