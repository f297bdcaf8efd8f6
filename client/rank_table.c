/* SPDX-License-Identifier: Apache-2.0 */
/* From the bytes of a rank table to its ranks: JSON, the version, what holds for all versions. */
#include "client/rank_table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/rank_table_reader.h"
#include "proto/cleanup.h"
#include "proto/limits.h"

struct hccld_rank_table *hccld_rank_table_free(struct hccld_rank_table *table)
{
	if (!table)
		return NULL;
	free(table->ranks);
	free(table->servers);
	cJSON_Delete(table->json);
	free(table);
	return NULL;
}

static void table_freep(struct hccld_rank_table **table)
{
	hccld_rank_table_free(*table);
}

/* Where parsing has stopped, as people count. */
static int json_fail(struct reader *reader, const char *text, const char *at, const char *what)
{
	uint32_t line = 1, column = 1;

	for (const char *c = text; c < at; c++) {
		column = *c == '\n' ? 1 : column + 1;
		line += *c == '\n';
	}
	return hccld_reader_fail(reader, CAUSE_TABLE_PARSE, NULL, NULL, "line %" PRIu32 ", column %" PRIu32 ": %s", line, column, what);
}

/* @text is terminated; a byte 0 within its @size bytes ends the JSON too early, like any other garbage. */
static int json_parse(struct reader *reader, const char *text, size_t size)
{
	const char *end = text;
	cJSON *root;

	if (size == 0)
		return hccld_reader_fail(reader, CAUSE_TABLE_PARSE, NULL, NULL, "it is empty; expected a rank table in JSON");
	root = cJSON_ParseWithOpts(text, &end, 0);
	reader->table->json = root;
	if (!root)
		return json_fail(reader, text, end, "this is no JSON; look for a missing comma, quote or bracket here or before");
	while (end < text + size && strchr(" \t\r\n", *end) && *end)
		end++;
	if (end < text + size)
		return json_fail(reader, text, end, "there is more after the end of the table; take it away");
	if (!cJSON_IsObject(root))
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, NULL, NULL, "it is no object; expected { \"version\": ... }");
	return 0;
}

/* By version; the older form has none. */
static int table_read(struct reader *reader, const cJSON *root)
{
	const cJSON *groups;
	const char *version;
	int r;

	r = hccld_reader_text(reader, NULL, root, "version", 64, true, &version);
	if (r == 0)
		r = hccld_reader_find(reader, NULL, root, "group_list", &groups);
	if (r < 0)
		return r;
	if (!version && groups)
		return hccld_rank_table_read_groups(reader, root);
	if (!version)
		return hccld_reader_fail(reader, CAUSE_TABLE_ITEM, NULL, "version",
				   "is missing; expected \"1.0\" or \"1.2\" with server_list, \"2.0\" with rank_list");
	if (strcmp(version, "1.0") == 0 || strcmp(version, "1.2") == 0)
		return hccld_rank_table_read_1(reader, root, strcmp(version, "1.2") == 0);
	if (strcmp(version, "2.0") == 0)
		return hccld_rank_table_read_2(reader, root);
	return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, NULL, "version", "is \"%s\"; expected \"1.0\", \"1.2\" or \"2.0\"", version);
}

struct span {
	uint32_t first, last, count;
};

/* Ranks of a server follow one another, each on a device of its own. */
static int table_check_servers(struct reader *reader)
{
	const struct hccld_rank_table *table = reader->table;
	CLEANUP(freep) struct span *spans = calloc(table->server_count, sizeof(*spans));
	CLEANUP(freep) uint64_t *devices = calloc(table->server_count, sizeof(*devices));

	static_assert(HCCLD_DEVICES_MAX <= 64, "a bit each");
	if (!spans || !devices)
		return hccld_reader_fail(reader, CAUSE_HOST_MEMORY, NULL, NULL, "no memory for %" PRIu32 " servers", table->server_count);
	for (uint32_t i = 0; i < table->rank_count; i++) {
		const struct hccld_rank_table_rank *rank = &table->ranks[i];
		struct span *span = &spans[rank->server];

		if (devices[rank->server] >> rank->device & 1)
			return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, NULL, NULL,
					   "device_id %" PRIu32 " of server \"%.64s\" is there twice, also for rank %" PRIu32
					   "; expected each device of a server once",
					   rank->device, table->servers[rank->server].id, i);
		devices[rank->server] |= UINT64_C(1) << rank->device;
		if (!span->count++)
			span->first = i;
		span->last = i;
	}
	for (uint32_t i = 0; i < table->server_count; i++)
		if (spans[i].count && spans[i].last - spans[i].first + 1 != spans[i].count)
			return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, NULL, NULL,
					   "the %" PRIu32 " ranks of server \"%.64s\" are between %" PRIu32 " and %" PRIu32
					   "; expected ranks that follow one another on each server",
					   spans[i].count, table->servers[i].id, spans[i].first, spans[i].last);
	return 0;
}

static void table_digest(struct hccld_rank_table *table)
{
	struct digest digest = digest_new();

	digest_add_text(&digest, "rank table");
	for (uint32_t i = 0; i < table->rank_count; i++) {
		digest_add_text(&digest, table->servers[table->ranks[i].server].id);
		digest_add_number(&digest, table->ranks[i].device);
	}
	digest_write(&digest, table->digest);
}

int hccld_rank_table_parse(const char *text, size_t size, struct hccld_rank_table **ret_table,
			   struct hccld_rank_table_error *ret_error)
{
	CLEANUP(table_freep) struct hccld_rank_table *table = calloc(1, sizeof(*table));
	CLEANUP(freep) char *copy = size < HCCLD_RANK_TABLE_BYTES_MAX ? malloc(size + 1) : NULL;
	CLEANUP(freep) bool *seen = NULL;
	struct reader reader = { .table = table, .error = ret_error };
	int r;

	if (size >= HCCLD_RANK_TABLE_BYTES_MAX)
		return hccld_reader_fail(&reader, CAUSE_TABLE_PARSE, NULL, NULL, "it has %zu bytes; expected less than %u MiB", size,
				   HCCLD_RANK_TABLE_BYTES_MAX >> 20);
	if (!table || !copy)
		return hccld_reader_fail(&reader, CAUSE_HOST_MEMORY, NULL, NULL, "no memory to read %zu bytes", size);
	memcpy(copy, text, size);
	copy[size] = '\0';
	r = json_parse(&reader, copy, size);
	if (r == 0)
		r = table_read(&reader, table->json);
	seen = reader.seen;
	if (r == 0)
		r = table_check_servers(&reader);
	if (r < 0)
		return r;
	table_digest(table);
	*ret_table = take_ptr(&table);
	return 0;
}
