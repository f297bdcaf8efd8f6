/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the rank table's parser: fields of JSON objects, with errors that name their place. Not for others. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "client/rank_table.h"

/* Where in the table: a chain from the innermost outwards, on the stack of the functions that walk it. */
struct place {
	const struct place *outer;	/* NULL: the table itself */
	const char *array;		/* name of the array */
	uint32_t index;
};

struct reader {
	struct hccld_rank_table *table;
	struct hccld_rank_table_error *error;
	uint32_t server_room, rank_room;
	bool *seen;			/* [rank_room] ranks that are in the table */
};

/* "server_list[0].device[2].rank_id ", then the text. Returns status_error(@cause). @key may be NULL. */
int hccld_reader_fail(struct reader *reader, enum cause cause, const struct place *place, const char *key, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The value of @key, which must not be there twice; *ret NULL: it is not there. */
int hccld_reader_find(struct reader *reader, const struct place *place, const cJSON *object, const char *key, const cJSON **ret_value);
/* A text of 1 to @length_max bytes. @optional: NULL and "" are fine, *ret_text is NULL then. */
int hccld_reader_text(struct reader *reader, const struct place *place, const cJSON *object, const char *key, size_t length_max,
		bool optional, const char **ret_text);
/* A whole number in [low, high] that is written as a text; @optional: *ret_value stays as it is. */
int hccld_reader_text_number(struct reader *reader, const struct place *place, const cJSON *object, const char *key, uint32_t low,
		       uint32_t high, bool optional, uint32_t *ret_value);
/* A JSON number. */
int hccld_reader_number(struct reader *reader, const struct place *place, const cJSON *object, const char *key, uint32_t low,
		  uint32_t high, bool optional, uint32_t *ret_value);
/* An array of @low to @high objects. */
int hccld_reader_array(struct reader *reader, const struct place *place, const cJSON *object, const char *key, uint32_t low,
		 uint32_t high, const cJSON **ret_array, uint32_t *ret_count);
/* An IPv4 or IPv6 address; @optional as in hccld_reader_text(). */
int hccld_reader_address(struct reader *reader, const struct place *place, const cJSON *object, const char *key, bool optional,
		   const char **ret_text);

/* "status" of all versions. */
int hccld_reader_status(struct reader *reader, const cJSON *root, bool optional);
/* Tables for so many ranks and servers, before the first is added. */
int hccld_reader_reserve(struct reader *reader, uint32_t rank_count, uint32_t server_count);
/* The index of server @id, new or known. */
uint32_t hccld_reader_server(struct reader *reader, const char *id);
/* Rank @rank is on @device of @server. */
int hccld_reader_add(struct reader *reader, const struct place *place, uint32_t rank, uint32_t server, uint32_t device);

int hccld_rank_table_read_1(struct reader *reader, const cJSON *root, bool has_super_pods);
int hccld_rank_table_read_groups(struct reader *reader, const cJSON *root);
int hccld_rank_table_read_2(struct reader *reader, const cJSON *root);
