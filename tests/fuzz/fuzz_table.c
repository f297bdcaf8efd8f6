/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables: what the parser accepts is whole, what it refuses has a cause and a text. */
#include <string.h>

#include "client/rank_table.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_table(const struct hccld_rank_table *table)
{
	size_t texts = 0;

	insist(table->rank_count > 0 && table->server_count > 0);
	for (uint32_t i = 0; i < table->rank_count; i++)
		insist(table->ranks[i].server < table->server_count);
	for (uint32_t i = 0; i < table->server_count; i++) {
		texts += strlen(table->servers[i].id);
		if (table->servers[i].host_ip)
			texts += strlen(table->servers[i].host_ip);
	}
	insist(texts < HCCLD_RANK_TABLE_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hccld_rank_table_error error = { 0 };
	struct hccld_rank_table *table = NULL;
	/* of that size exactly, without a NUL behind it */
	char *text = malloc(size ? size : 1);
	int r;

	insist(text);
	memcpy(text, data, size);
	r = hccld_rank_table_parse(text, size, &table, &error);
	free(text);
	if (r == 0) {
		check_table(table);
	} else {
		insist(r < 0 && !table && error.cause && r == status_error(error.cause));
		insist(error.text[0] && strnlen(error.text, sizeof(error.text)) < sizeof(error.text));
	}
	hccld_rank_table_free(table);
	return 0;
}
