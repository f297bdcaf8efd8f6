/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting and parsing of small things. Stateless. */
#include "hcclctl/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_size(uint64_t bytes, char buffer[TEXT_SHORT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned int unit = 0;
	uint64_t scale = 1;

	while (unit < 6 && bytes / scale >= 1024) {
		scale *= 1024;
		unit++;
	}
	if (bytes % scale == 0 || bytes / scale >= 100)
		snprintf(buffer, TEXT_SHORT, "%" PRIu64 " %s", bytes / scale, units[unit]);
	else
		snprintf(buffer, TEXT_SHORT, "%.1f %s", (double)bytes / (double)scale, units[unit]);
	return buffer;
}

char *text_duration(uint64_t ms, char buffer[TEXT_SHORT])
{
	uint64_t s = ms / 1000;

	if (s < 1)
		snprintf(buffer, TEXT_SHORT, "%" PRIu64 " ms", ms);
	else if (s < 10)
		snprintf(buffer, TEXT_SHORT, "%" PRIu64 ".%" PRIu64 " s", s, ms % 1000 / 100);
	else if (s < 60)
		snprintf(buffer, TEXT_SHORT, "%" PRIu64 " s", s);
	else if (s < 3600)
		snprintf(buffer, TEXT_SHORT, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buffer, TEXT_SHORT, "%" PRIu64 " h %" PRIu64 " min", s / 3600,
			 s % 3600 / 60);
	else
		snprintf(buffer, TEXT_SHORT, "%" PRIu64 " d %" PRIu64 " h", s / 86400,
			 s % 86400 / 3600);
	return buffer;
}

/* Bytes of the well-formed UTF-8 character at @text, 0 if there is none. */
static size_t character_size(const unsigned char *text)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t size = text[0] < 0x80	   ? 1
		      : text[0] >> 5 == 6  ? 2
		      : text[0] >> 4 == 14 ? 3
		      : text[0] >> 3 == 30 ? 4
					   : 0;
	uint32_t code;

	if (size <= 1)
		return size;
	code = text[0] & (0x7fu >> size);
	for (size_t i = 1; i < size; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	/* overlong, surrogates, beyond Unicode, control characters of the second half */
	if (code < smallest[size] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff ||
	    code < 0xa0)
		return 0;
	return size;
}

char *text_clean(const char *text)
{
	const unsigned char *next = (const unsigned char *)text;
	char *clean = malloc(strlen(text) + 1), *end = clean;

	if (!clean)
		return NULL;
	while (*next) {
		size_t size = character_size(next);

		if (size == 0 || *next < 0x20 || *next == 0x7f) {
			*end++ = *next == '\n' || *next == '\t' ? ' ' : '?';
			next++;
		} else {
			memcpy(end, next, size);
			end += size;
			next += size;
		}
	}
	*end = '\0';
	return clean;
}

char *text_shell_quote(const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%";
	char *quoted, *end;

	if (*text && !text[strspn(text, plain)])
		return strdup(text);
	quoted = end = malloc(strlen(text) * 4 + 3);
	if (!quoted)
		return NULL;
	*end++ = '\'';
	for (; *text; text++) {
		if (*text == '\'') {
			memcpy(end, "'\\''", 4);
			end += 4;
		} else {
			*end++ = *text;
		}
	}
	*end++ = '\'';
	*end = '\0';
	return quoted;
}

int text_number(const char *text, uint32_t low, uint32_t high, uint32_t *ret_number)
{
	unsigned long long number;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno || number < low || number > high)
		return -ERANGE;
	*ret_number = (uint32_t)number;
	return 0;
}

int text_id(const char *text, uint64_t *ret_id)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || !number)
		return -EINVAL;
	*ret_id = number;
	return 0;
}
