/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a rank table, one at a time. Everything here is a file's word: checked before it is used. */
#include "client/rank_table_reader.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/limits.h"

#define PLACES_MAX 4
#define SHOWN 64 /* bytes of a value in a text */

static size_t place_write(const struct place *place, const char *key, char *buffer, size_t size)
{
	const struct place *chain[PLACES_MAX];
	size_t length = 0;
	int depth = 0;

	for (; place && depth < PLACES_MAX; place = place->outer)
		chain[depth++] = place;
	while (depth-- && length < size) {
		int n = snprintf(buffer + length, size - length, "%s[%" PRIu32 "]%s", chain[depth]->array, chain[depth]->index,
				 depth || key ? "." : "");

		length += n > 0 ? (size_t)n : 0;
	}
	if (key && length < size)
		length += (size_t)snprintf(buffer + length, size - length, "%s", key);
	return length < size ? length : size - 1;
}

int hccld_reader_fail(struct reader *reader, enum cause cause, const struct place *place, const char *key, const char *format, ...)
{
	struct hccld_rank_table_error *error = reader->error;
	size_t length = place_write(place, key, error->text, sizeof(error->text));
	va_list args;

	if (length && length + 1 < sizeof(error->text))
		error->text[length++] = ' ';
	va_start(args, format);
	vsnprintf(error->text + length, sizeof(error->text) - length, format, args);
	va_end(args);
	error->cause = cause;
	return status_error(cause);
}

int hccld_reader_find(struct reader *reader, const struct place *place, const cJSON *object, const char *key, const cJSON **ret_value)
{
	const cJSON *found = NULL, *child;

	if (!cJSON_IsObject(object))
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, NULL, "is no object; expected { \"%s\": ... }", key);
	cJSON_ArrayForEach(child, object) {
		if (!child->string || strcmp(child->string, key) != 0)
			continue;
		if (found)
			return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key, "is there twice; leave one of them away");
		found = child;
	}
	*ret_value = found;
	return 0;
}

static int reader_missing(struct reader *reader, const struct place *place, const char *key, const char *what)
{
	return hccld_reader_fail(reader, CAUSE_TABLE_ITEM, place, key, "is missing; add \"%s\": %s", key, what);
}

int hccld_reader_text(struct reader *reader, const struct place *place, const cJSON *object, const char *key, size_t length_max,
		bool optional, const char **ret_text)
{
	const cJSON *value;
	size_t length;
	int r = hccld_reader_find(reader, place, object, key, &value);

	if (r < 0)
		return r;
	*ret_text = NULL;
	if (!value)
		return optional ? 0 : reader_missing(reader, place, key, "\"...\"");
	if (!cJSON_IsString(value))
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key, "is no text; expected one in quotes, also for numbers");
	length = strlen(value->valuestring);
	if (length == 0 && optional)
		return 0;
	if (length == 0 || length > length_max)
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key, "has %zu bytes; expected 1 to %zu", length, length_max);
	*ret_text = value->valuestring;
	return 0;
}

int hccld_reader_text_number(struct reader *reader, const struct place *place, const cJSON *object, const char *key, uint32_t low,
		       uint32_t high, bool optional, uint32_t *ret_value)
{
	const char *text, *at;
	uint64_t value = 0;
	int r = hccld_reader_text(reader, place, object, key, 64, optional, &text);

	if (r < 0 || !text)
		return r;
	for (at = text; *at >= '0' && *at <= '9' && at - text < 10; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (*at || value < low || value > high)
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key,
				   "is \"%s\"; expected a whole number from %" PRIu32 " to %" PRIu32 " in quotes", text, low, high);
	*ret_value = (uint32_t)value;
	return 0;
}

int hccld_reader_number(struct reader *reader, const struct place *place, const cJSON *object, const char *key, uint32_t low,
		  uint32_t high, bool optional, uint32_t *ret_value)
{
	const cJSON *value;
	int r = hccld_reader_find(reader, place, object, key, &value);

	if (r < 0)
		return r;
	if (!value)
		return optional ? 0 : reader_missing(reader, place, key, "a number");
	if (!cJSON_IsNumber(value))
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key,
				   "is no number; expected a whole number from %" PRIu32 " to %" PRIu32 " without quotes", low, high);
	/* the comparison refuses NaN, too */
	if (!(value->valuedouble >= low && value->valuedouble <= high) || value->valuedouble != (double)(uint32_t)value->valuedouble)
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key,
				   "is %.15g; expected a whole number from %" PRIu32 " to %" PRIu32, value->valuedouble, low, high);
	*ret_value = (uint32_t)value->valuedouble;
	return 0;
}

int hccld_reader_array(struct reader *reader, const struct place *place, const cJSON *object, const char *key, uint32_t low,
		 uint32_t high, const cJSON **ret_array, uint32_t *ret_count)
{
	const cJSON *value, *child;
	uint32_t count = 0;
	int r = hccld_reader_find(reader, place, object, key, &value);

	if (r < 0)
		return r;
	if (!value)
		return reader_missing(reader, place, key, "[ ... ]");
	if (!cJSON_IsArray(value))
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key, "is no list; expected [ ... ]");
	cJSON_ArrayForEach(child, value)
		count++;
	if (count < low || count > high)
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key, "has %" PRIu32 " entries; expected %" PRIu32 " to %" PRIu32,
				   count, low, high);
	*ret_array = value;
	*ret_count = count;
	return 0;
}

int hccld_reader_address(struct reader *reader, const struct place *place, const cJSON *object, const char *key, bool optional,
		   const char **ret_text)
{
	unsigned char address[sizeof(struct in6_addr)];
	int r = hccld_reader_text(reader, place, object, key, 64, optional, ret_text);

	if (r < 0 || !*ret_text)
		return r;
	if (inet_pton(AF_INET, *ret_text, address) == 1 || inet_pton(AF_INET6, *ret_text, address) == 1)
		return 0;
	return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key, "is \"%s\"; expected an IPv4 or IPv6 address such as 192.168.1.2",
			   *ret_text);
}

int hccld_reader_status(struct reader *reader, const cJSON *root, bool optional)
{
	const char *status;
	int r = hccld_reader_text(reader, NULL, root, "status", 1024, optional, &status);

	if (r < 0 || !status || strcmp(status, "completed") == 0)
		return r;
	if (strcmp(status, "initializing") == 0)
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, NULL, "status",
				   "is \"initializing\": whoever writes the table has not finished; wait until it is \"completed\"");
	return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, NULL, "status", "is \"%.*s\"; expected \"completed\"", SHOWN, status);
}

int hccld_reader_reserve(struct reader *reader, uint32_t rank_count, uint32_t server_count)
{
	struct hccld_rank_table *table = reader->table;

	if (rank_count == 0)
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, NULL, NULL, "the table has no rank; expected at least one device");
	if (rank_count > HCCLD_RANKS_MAX)
		return hccld_reader_fail(reader, CAUSE_UNBUILT, NULL, NULL,
				   "the table has %" PRIu32 " ranks; this release of hccld runs up to %u, all on one node", rank_count,
				   HCCLD_RANKS_MAX);
	table->ranks = calloc(rank_count, sizeof(*table->ranks));
	table->servers = calloc(server_count, sizeof(*table->servers));
	reader->seen = calloc(rank_count, sizeof(*reader->seen));
	reader->rank_room = rank_count;
	reader->server_room = server_count;
	if (!table->ranks || !table->servers || !reader->seen)
		return hccld_reader_fail(reader, CAUSE_HOST_MEMORY, NULL, NULL, "no memory for %" PRIu32 " ranks", rank_count);
	return 0;
}

uint32_t hccld_reader_server(struct reader *reader, const char *id)
{
	struct hccld_rank_table *table = reader->table;
	uint32_t i = 0;

	while (i < table->server_count && strcmp(table->servers[i].id, id) != 0)
		i++;
	if (i == table->server_count && i < reader->server_room)
		table->servers[table->server_count++].id = id;
	return i;
}

int hccld_reader_add(struct reader *reader, const struct place *place, uint32_t rank, uint32_t server, uint32_t device)
{
	struct hccld_rank_table *table = reader->table;

	if (rank >= reader->rank_room)
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, "rank_id",
				   "is %" PRIu32 "; the table has %" PRIu32 " ranks, expected 0 to %" PRIu32, rank, reader->rank_room,
				   reader->rank_room - 1);
	if (reader->seen[rank])
		return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, "rank_id",
				   "is %" PRIu32 ", as that of another device; expected each of 0 to %" PRIu32 " once", rank,
				   reader->rank_room - 1);
	reader->seen[rank] = true;
	table->ranks[rank] = (struct hccld_rank_table_rank){ .server = server, .device = device };
	table->rank_count++;
	return 0;
}
