/* SPDX-License-Identifier: Apache-2.0 */
/* Values of settings as text, and back. No state. */
#include "daemon/setting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static const struct setting_choice booleans[] = {
	{ "yes", 1 }, { "no", 0 }, { "true", 1 }, { "false", 0 }, { "on", 1 },
	{ "off", 0 }, { "1", 1 },  { "0", 0 },	  { NULL, 0 },
};

/* From the longest: setting_format() takes the first that leaves no rest. */
static const struct setting_choice durations[] = {
	{ "h", 3600000 }, { "min", 60000 }, { "s", 1000 }, { "ms", 1 },
	{ "m", 60000 },	  { "sec", 1000 },  { "", 1000 },  { NULL, 0 },
};

static const char byte_units[] = "KMGT";

static int choice_find(const struct setting_choice *choices, const char *name, uint32_t *ret_value)
{
	for (; choices->name; choices++) {
		if (strcasecmp(choices->name, name) != 0)
			continue;
		*ret_value = choices->value;
		return 0;
	}
	return -EINVAL;
}

/* Digits, and what follows them. */
static int number_parse(const char *text, uint64_t *ret_number, const char **ret_rest)
{
	char *end;
	unsigned long long number;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	*ret_number = number;
	*ret_rest = end;
	return 0;
}

static int scale(uint64_t number, uint64_t unit, uint64_t *ret_product)
{
	return __builtin_mul_overflow(number, unit, ret_product) ? -EINVAL : 0;
}

/* 4096, 512K, 512M, 4G, 1T, with or without iB or B behind the letter */
static int bytes_parse(const char *text, uint64_t *ret_bytes)
{
	const char *rest, *unit;
	uint64_t number;

	if (number_parse(text, &number, &rest) < 0)
		return -EINVAL;
	if (!*rest) {
		*ret_bytes = number;
		return 0;
	}
	unit = strchr(byte_units, *rest >= 'a' ? *rest - 32 : *rest);
	rest++;
	if (!unit || (strcmp(rest, "") != 0 && strcmp(rest, "B") != 0 && strcmp(rest, "iB") != 0))
		return -EINVAL;
	return scale(number, 1024ull << (unit - byte_units) * 10, ret_bytes);
}

static int duration_parse(const char *text, uint64_t *ret_ms)
{
	uint64_t number;
	uint32_t unit;
	const char *rest;

	if (number_parse(text, &number, &rest) < 0)
		return -EINVAL;
	rest += *rest == ' ';
	if (choice_find(durations, rest, &unit) < 0)
		return -EINVAL;
	return scale(number, unit, ret_ms);
}

static int integer_parse(const char *text, uint64_t *ret_number)
{
	const char *rest;

	return number_parse(text, ret_number, &rest) < 0 || *rest ? -EINVAL : 0;
}

/* What a line of a configuration file can hold, and a log show. */
static bool text_is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

static int text_parse(const struct setting *setting, const char *text, char *place)
{
	size_t length = strlen(text);

	if (length < setting->low || length > setting->high || length >= setting->size ||
	    !text_is_plain(text) || (setting->type == SETTING_PATH && text[0] != '/') ||
	    (setting->check && !setting->check(text)))
		return -EINVAL;
	memset(place, 0, setting->size);
	memcpy(place, text, length);
	return 0;
}

static void number_store(const struct setting *setting, void *place, uint64_t number)
{
	uint32_t small = (uint32_t)number;

	if (setting->type == SETTING_BOOL)
		*(bool *)place = number == 1;
	else if (setting->size == sizeof(small))
		memcpy(place, &small, sizeof(small));
	else
		memcpy(place, &number, sizeof(number));
}

static uint64_t number_load(const struct setting *setting, const void *place)
{
	uint32_t small;
	uint64_t number;

	if (setting->type == SETTING_BOOL)
		return *(const bool *)place;
	if (setting->size == sizeof(small)) {
		memcpy(&small, place, sizeof(small));
		return small;
	}
	memcpy(&number, place, sizeof(number));
	return number;
}

static int value_parse(const struct setting *setting, const char *text, uint64_t *ret_number)
{
	uint32_t value = 0;
	int r = -EINVAL;

	switch (setting->type) {
	case SETTING_BOOL:
		r = choice_find(booleans, text, &value);
		*ret_number = value;
		return r;
	case SETTING_CHOICE:
		r = choice_find(setting->choices, text, &value);
		*ret_number = value;
		return r;
	case SETTING_INTEGER:
		r = integer_parse(text, ret_number);
		break;
	case SETTING_BYTES:
		r = bytes_parse(text, ret_number);
		break;
	case SETTING_DURATION:
		r = duration_parse(text, ret_number);
		break;
	case SETTING_TEXT:
	case SETTING_PATH:
		break;
	}
	if (r < 0 || *ret_number < setting->low || *ret_number > setting->high)
		return -EINVAL;
	return 0;
}

static bool has_text(const struct setting *setting)
{
	return setting->type == SETTING_TEXT || setting->type == SETTING_PATH;
}

int setting_parse(const struct setting *setting, const char *text, void *base, bool *ret_is_word)
{
	void *place = (char *)base + setting->offset;
	uint64_t number = 0;
	int r;

	if (!*text)
		text = setting->initial;
	if (setting->word && strcasecmp(text, setting->word) == 0) {
		if (has_text(setting))
			memset(place, 0, setting->size);
		else
			number_store(setting, place, UINT64_MAX);
		*ret_is_word = true;
		return 0;
	}
	if (has_text(setting)) {
		r = text_parse(setting, text, place);
	} else {
		r = value_parse(setting, text, &number);
		if (r == 0)
			number_store(setting, place, number);
	}
	if (r == 0)
		*ret_is_word = false;
	return r;
}

static void bytes_format(struct text *text, uint64_t bytes)
{
	int unit = -1;

	while (bytes && bytes % 1024 == 0 && unit < 3) {
		bytes /= 1024;
		unit++;
	}
	text_add(text, "%" PRIu64, bytes);
	if (unit >= 0)
		text_add(text, "%c", byte_units[unit]);
}

static void duration_format(struct text *text, uint64_t ms)
{
	const struct setting_choice *unit = durations;

	while (ms % unit->value)
		unit++;
	if (ms == 0)
		text_add(text, "0s");
	else
		text_add(text, "%" PRIu64 "%s", ms / unit->value, unit->name);
}

static const char *choice_name(const struct setting_choice *choices, uint64_t value)
{
	for (; choices->name; choices++)
		if (choices->value == value)
			return choices->name;
	return "?";
}

static void number_format(const struct setting *setting, struct text *text, uint64_t number)
{
	uint64_t ones = setting->size == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;

	if (setting->word && setting->type != SETTING_BOOL && number == ones) {
		text_add(text, "%s", setting->word);
		return;
	}
	switch (setting->type) {
	case SETTING_BOOL:
		text_add(text, "%s", number ? "yes" : "no");
		break;
	case SETTING_BYTES:
		bytes_format(text, number);
		break;
	case SETTING_DURATION:
		duration_format(text, number);
		break;
	case SETTING_CHOICE:
		text_add(text, "%s", choice_name(setting->choices, number));
		break;
	case SETTING_INTEGER:
	case SETTING_TEXT:
	case SETTING_PATH:
		text_add(text, "%" PRIu64, number);
		break;
	}
}

void setting_format(const struct setting *setting, const void *base, char *buffer, size_t size)
{
	const void *place = (const char *)base + setting->offset;
	struct text text;

	text_init(&text, buffer, size);
	if (has_text(setting))
		text_add(&text, "%s", (const char *)place);
	else
		number_format(setting, &text, number_load(setting, place));
}

void setting_describe(const struct setting *setting, char *buffer, size_t size)
{
	const struct setting_choice *choice = setting->choices;
	struct text text;

	text_init(&text, buffer, size);
	switch (setting->type) {
	case SETTING_BOOL:
		text_add(&text, setting->word ? "yes, no" : "yes or no");
		break;
	case SETTING_INTEGER:
		text_add(&text, "a whole number from %" PRIu64 " to %" PRIu64, setting->low,
			 setting->high);
		break;
	case SETTING_BYTES:
		text_add(&text, "a size such as 512M or 4G, from ");
		bytes_format(&text, setting->low);
		text_add(&text, " to ");
		bytes_format(&text, setting->high);
		break;
	case SETTING_DURATION:
		text_add(&text, "a time such as 500ms, 10s or 5min, from ");
		duration_format(&text, setting->low);
		text_add(&text, " to ");
		duration_format(&text, setting->high);
		break;
	case SETTING_CHOICE:
		text_add(&text, "one of ");
		for (; choice->name; choice++)
			text_add(&text, "%s%s", choice->name,
				 !choice[1].name   ? ""
				 : !choice[2].name ? " or "
						   : ", ");
		break;
	case SETTING_TEXT:
		if (setting->form)
			text_add(&text, "%s; ", setting->form);
		text_add(&text, "%" PRIu64 " to %" PRIu64 " bytes without control characters",
			 setting->low, setting->high);
		break;
	case SETTING_PATH:
		text_add(&text, "an absolute path of at most %" PRIu64 " bytes", setting->high);
		break;
	}
	if (setting->word)
		text_add(&text, "%s or %s", setting->type == SETTING_BOOL ? "" : ",",
			 setting->word);
}

void setting_option(const struct setting *setting, char *buffer, size_t size)
{
	struct text text;

	text_init(&text, buffer, size);
	text_add(&text, "%s", setting->key);
	for (char *p = buffer; *p; p++)
		if (*p == '_')
			*p = '-';
}
