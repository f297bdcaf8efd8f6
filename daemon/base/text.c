/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences in a buffer of fixed size. */
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define RUNS_MAX 8u

void text_init(struct text *text, char *buffer, size_t size)
{
	*text = (struct text){ .data = buffer, .size = size };
	buffer[0] = 0;
}

void text_add(struct text *text, const char *format, ...)
{
	size_t room = text->size - text->length;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->data + text->length, room, format, args);
	va_end(args);
	if (n > 0)
		text->length += (size_t)n < room ? (size_t)n : room - 1;
}

void text_add_bytes(struct text *text, uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	unsigned int unit = 0;
	uint64_t scale = 1024;

	if (bytes < 8192 && bytes % 1024) {
		text_add(text, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
		return;
	}
	if (bytes == 0) {
		text_add(text, "0 bytes");
		return;
	}
	while (unit + 1 < sizeof(units) / sizeof(units[0]) && bytes / scale >= 1024) {
		scale *= 1024;
		unit++;
	}
	if (bytes % scale)
		text_add(text, "%.1f %s", (double)bytes / (double)scale, units[unit]);
	else
		text_add(text, "%" PRIu64 " %s", bytes / scale, units[unit]);
}

static uint32_t count_runs(uint32_t count, bool (*is_in)(const void *data, uint32_t number), const void *data, uint32_t *ret_numbers)
{
	bool was_in = false;
	uint32_t runs = 0;

	*ret_numbers = 0;
	for (uint32_t i = 0; i < count; i++) {
		bool is = is_in(data, i);

		*ret_numbers += is;
		runs += is && !was_in;
		was_in = is;
	}
	return runs;
}

uint32_t text_add_ranks(struct text *text, uint32_t count, bool (*is_in)(const void *data, uint32_t number), const void *data)
{
	uint32_t numbers, runs = count_runs(count, is_in, data, &numbers), seen = 0, end;

	text_add(text, numbers == 1 ? "rank " : "ranks ");
	for (uint32_t i = 0; i < count; i = end + 1) {
		end = i;
		if (!is_in(data, i))
			continue;
		while (end + 1 < count && is_in(data, end + 1))
			end++;
		if (seen == RUNS_MAX) {
			text_add(text, " and more");
			break;
		}
		if (seen++)
			text_add(text, seen == runs ? " and " : ", ");
		if (i == end)
			text_add(text, "%" PRIu32, i);
		else
			text_add(text, "%" PRIu32 "-%" PRIu32, i, end);
	}
	return numbers;
}

void text_add_stopped(struct text *text, int32_t pid)
{
	text_add(text, "is stopped (SIGSTOP or a debugger): kill -CONT %" PRId32 ", or the debugger, lets it go on", pid);
}

/* Length of the UTF-8 character at @s, 0 if there is none. */
static size_t character_length(const unsigned char *s)
{
	size_t n;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	n = s[0] >= 0xc2 && s[0] < 0xe0	  ? 2
	    : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
	    : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
					  : 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* control characters of the second half, overlong forms, surrogates, beyond U+10FFFF */
	if ((s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void text_clean(char *buffer, size_t size, const char *foreign)
{
	size_t length = 0;

	while (*foreign) {
		size_t n = character_length((const unsigned char *)foreign);

		if (length + (n ? n : 1) >= size)
			break;
		if (n)
			memcpy(buffer + length, foreign, n);
		else
			buffer[length] = '?';
		length += n ? n : 1;
		foreign += n ? n : 1;
	}
	buffer[length] = 0;
}
