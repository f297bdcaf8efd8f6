/* SPDX-License-Identifier: Apache-2.0 */
/* The words of settings. */
#include "client/comm_settings.h"

#include <stdatomic.h>
#include <string.h>
#include <strings.h>

#include "client/environment.h"
#include "client/session.h"

#define NUMBER_LENGTH_MAX 10

static const char *skip_spaces(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

/* "name:number" with spaces around; NULL: something else. *@ret_name_length: of the name at @at. */
static const char *pair_read(const char *at, size_t *ret_name_length, uint64_t *ret_number)
{
	const char *start;

	*ret_name_length = strcspn(at, ": \t,");
	at = skip_spaces(at + *ret_name_length);
	if (*at != ':')
		return NULL;
	start = at = skip_spaces(at + 1);
	*ret_number = 0;
	while (*at >= '0' && *at <= '9' && at - start < NUMBER_LENGTH_MAX)
		*ret_number = *ret_number * 10 + (uint64_t)(*at++ - '0');
	return at == start ? NULL : skip_spaces(at);
}

bool hccld_retry_enable_parse(const char *text, uint8_t *ret_levels)
{
	uint8_t levels = 0, seen = 0;
	const char *at = skip_spaces(text);

	for (;;) {
		const char *name = at;
		size_t length;
		uint64_t number;
		unsigned int level;

		at = pair_read(at, &length, &number);
		if (!at || length != 2 || name[0] != 'L' || name[1] < '0' || name[1] > '2' || number > 1)
			return false;
		level = (unsigned int)(name[1] - '0');
		if (seen >> level & 1)
			return false;
		seen |= (uint8_t)(1u << level);
		levels |= (uint8_t)(number << level);
		if (!*at)
			break;
		if (*at != ',')
			return false;
		at = skip_spaces(at + 1);
	}
	*ret_levels = levels;
	return true;
}

bool hccld_retry_params_parse(const char *text, struct comm_settings *settings)
{
	static const struct {
		const char *name;
		uint64_t low, high;
	} words[] = { { "MaxCnt", 1, 10 }, { "HoldTime", 0, 60000 }, { "IntervalTime", 0, 60000 } };
	uint64_t values[3] = { settings->retry_count, settings->retry_hold_ms, settings->retry_interval_ms };
	const char *at = skip_spaces(text);
	unsigned int seen = 0;

	for (;;) {
		const char *name = at;
		unsigned int i = 0;
		size_t length;
		uint64_t number;

		at = pair_read(at, &length, &number);
		while (at && i < 3 && !(strlen(words[i].name) == length && strncmp(words[i].name, name, length) == 0))
			i++;
		if (!at || i == 3 || seen >> i & 1 || number < words[i].low || number > words[i].high)
			return false;
		seen |= 1u << i;
		values[i] = number;
		if (!*at)
			break;
		if (*at != ',')
			return false;
		at = skip_spaces(at + 1);
	}
	settings->retry_count = (uint8_t)values[0];
	settings->retry_hold_ms = (uint16_t)values[1];
	settings->retry_interval_ms = (uint16_t)values[2];
	return true;
}

/* Is the text from @at on, @length bytes, one of the words? */
static bool is_word(const char *at, size_t length, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == length && strncmp(*words, at, length) == 0)
			return true;
	return false;
}

/* "level0:NA;level1:ring": levels that grow. */
static bool levels_check(const char *at, size_t length)
{
	static const char *const algorithms[] = { "NA", "fullmesh", "ring", "H-D_R", "NHR", "NHR_V1", "NB", "AHC", "pipeline",
						  "pairwise", NULL };
	const char *end = at + length;
	char lowest = '0';

	for (;;) {
		const char *word;
		size_t size;

		if (end - at < 8 || strncmp(at, "level", 5) != 0 || at[5] < lowest || at[5] > '3' || at[6] != ':')
			return false;
		lowest = (char)(at[5] + 1);
		word = at + 7;
		size = strcspn(word, ";/");
		if (word + size > end || !is_word(word, size, algorithms))
			return false;
		at = word + size;
		if (at == end)
			return true;
		at++;
	}
}

bool hccld_algo_check(const char *text)
{
	static const char *const operators[] = { "allgather", "reducescatter", "allreduce", "broadcast", "reduce", "scatter",
						 "alltoall", "others", NULL };
	const char *at = text;

	for (;;) {
		size_t length = strcspn(at, "/"), name = strcspn(at, "=:/");

		if (at[name] == '=') {
			if (!is_word(at, name, operators))
				return false;
			at += name + 1;
			length -= name + 1;
		}
		if (!levels_check(at, length))
			return false;
		at += length;
		if (!*at)
			return true;
		at++;
	}
}

bool hccld_expansion_parse(const char *text, uint8_t *ret_mode)
{
	static const struct {
		const char *name;
		uint8_t mode;
	} words[] = { { "AI_CPU", 2 }, { "AICPU_TS", 2 }, { "AICPU_CacheDisable", 2 }, { "AIV", 3 },
		      { "HOST", 1 },   { "HOST_TS", 1 },  { "CCU_MS", 5 },	       { "CCU_SCHED", 6 } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].name, text) != 0)
			continue;
		*ret_mode = words[i].mode;
		return true;
	}
	return false;
}

bool hccld_deterministic_parse(const char *text, uint8_t *ret_value)
{
	static const char *const words[] = { "false", "true", "strict" };

	for (uint8_t i = 0; i < 3; i++) {
		if (strcasecmp(words[i], text) != 0)
			continue;
		*ret_value = i;
		return true;
	}
	return false;
}

int hccld_strict_is_known(bool *ret_known, const char **ret_soc_name)
{
	struct hccld_session *session;
	int r = hccld_session_get(&session);

	if (r < 0)
		return r;
	*ret_known = strncmp(session->soc_name, "Ascend910B", strlen("Ascend910B")) == 0;
	if (ret_soc_name)
		*ret_soc_name = session->soc_name;
	return 0;
}

static _Atomic uint8_t deterministic;

void hccld_deterministic_set(uint8_t value)
{
	atomic_store_explicit(&deterministic, value, memory_order_relaxed);
}

uint8_t hccld_deterministic(void)
{
	uint8_t value;

	return hccld_environment_deterministic(&value) ? value : atomic_load_explicit(&deterministic, memory_order_relaxed);
}

/* As documented of HcclCommConfig: 4 on Ascend 950, 6 on A2 and A3. */
uint8_t hccld_qos_default(const char *soc_name)
{
	return strncmp(soc_name, "Ascend950", strlen("Ascend950")) == 0 ? 4 : COMM_QOS_DEFAULT;
}
