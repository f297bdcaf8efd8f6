/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences built piece by piece in a buffer of fixed size, cut when they do not fit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *data; /* always terminated */
	size_t size, length;
};

/* @size > 0 */
void text_init(struct text *text, char *buffer, size_t size);
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "512 MiB", "1.5 GiB", "4096 bytes": exact or with one decimal. */
void text_add_bytes(struct text *text, uint64_t bytes);
/* "rank 3", "ranks 2 and 5-6", "ranks 0, 2 and 5-6": those of @count that are in. Returns how many that are. */
uint32_t text_add_ranks(struct text *text, uint32_t count, bool (*is_in)(const void *data, uint32_t number), const void *data);
/* Of the process @pid: "is stopped", and how it goes on. */
void text_add_stopped(struct text *text, int32_t pid);
/*
 * Copies what another process sent: bad UTF-8 and control characters become '?'. Cuts at @size - 1,
 * between characters.
 */
void text_clean(char *buffer, size_t size, const char *foreign);
