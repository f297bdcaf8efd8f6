/* SPDX-License-Identifier: Apache-2.0 */
/* A table on standard output, as lsblk prints it (libsmartcols). Errors (no memory) stick and show in table_print(). */
#pragma once

#include <stddef.h>

struct table;

enum column_kind {
	COLUMN_LEFT,
	COLUMN_RIGHT,
	COLUMN_WRAP, /* text that may go over several lines when the terminal is narrow */
};

struct column {
	const char *title;
	enum column_kind kind;
};

struct table *table_new(const struct column *columns, size_t count);
struct table *table_free(struct table *table);
void table_row(struct table *table);
/* Fills the next cell of the row. Foreign text is made harmless. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Rows by these columns, the first counts most; numbers by value, what is equal stays in its order. */
void table_sort(struct table *table, const size_t *columns, size_t count);
/* Nothing is printed for a table without rows. -ENOMEM. */
int table_print(struct table *table);
