/* SPDX-License-Identifier: Apache-2.0 */
/* Tables by libsmartcols. */
#include "hcclctl/table.h"

#include <errno.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hcclctl/text.h"
#include "proto/cleanup.h"

struct table {
	struct libscols_table *columns;
	struct libscols_line *line; /* the row that is being filled */
	size_t cell, rows;
	int error;
};

struct table *table_new(const struct column *columns, size_t count)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->columns = scols_new_table();
	if (!table->columns)
		return table_free(table);
	for (size_t i = 0; i < count; i++) {
		int flags = columns[i].kind == COLUMN_RIGHT  ? SCOLS_FL_RIGHT
			    : columns[i].kind == COLUMN_WRAP ? SCOLS_FL_WRAP
							     : 0;

		if (!scols_table_new_column(table->columns, columns[i].title, 0, flags))
			return table_free(table);
	}
	return table;
}

struct table *table_free(struct table *table)
{
	if (!table)
		return NULL;
	scols_unref_table(table->columns);
	free(table);
	return NULL;
}

void table_row(struct table *table)
{
	table->line = scols_table_new_line(table->columns, NULL);
	table->cell = 0;
	table->rows++;
	if (!table->line)
		table->error = -ENOMEM;
}

void table_cell(struct table *table, const char *format, ...)
{
	CLEANUP(freep) char *text = NULL;
	char *clean;
	va_list args;
	int n;

	if (table->error)
		return;
	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		table->error = -ENOMEM;
		return;
	}
	clean = text_clean(text);
	if (!clean || scols_line_refer_data(table->line, table->cell, clean)) {
		free(clean);
		table->error = -ENOMEM;
		return;
	}
	table->cell++;
}

static int cells_compare(struct libscols_cell *a, struct libscols_cell *b, void *data)
{
	const char *x = scols_cell_get_data(a), *y = scols_cell_get_data(b);
	size_t length = x ? strlen(x) : 0, other = y ? strlen(y) : 0;

	if (!length || !other)
		return (length > 0) - (other > 0);
	/* numbers have no zeros in front: the longer one is larger */
	if (strspn(x, "0123456789") == length && strspn(y, "0123456789") == other && length != other)
		return length < other ? -1 : 1;
	return strcmp(x, y);
}

void table_sort(struct table *table, const size_t *columns, size_t count)
{
	while (count-- && !table->error) {
		struct libscols_column *column = scols_table_get_column(table->columns, columns[count]);

		if (scols_column_set_cmpfunc(column, cells_compare, NULL) || scols_sort_table(table->columns, column))
			table->error = -ENOMEM;
	}
}

int table_print(struct table *table)
{
	if (table->error)
		return table->error;
	if (!table->rows)
		return 0;
	return scols_print_table(table->columns) ? -ENOMEM : 0;
}
