/* SPDX-License-Identifier: Apache-2.0 */
/* What all commands that print one list have in common: ask, page by page, as a table or as a JSON array. */
#pragma once

#include <cjson/cJSON.h>

#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/table.h"

struct listing {
	const char *help;
	Hccld__Control__List__Kind kind;
	bool takes_verbose;
	const struct extra_option *extra; /* of the command */
	size_t extra_count;
	/* NULL: nothing. Sets what the options say; false: complained about, wrong usage. */
	bool (*filter)(Hccld__Control__List *list);
	uint64_t feature; /* that the daemon must have; 0: none */
	const char *name; /* of the array in the JSON object */
	const char *none; /* instead of an empty table */
	bool is_optional; /* of a part of a command: a table behind a free line, or nothing */
	bool counts_comms; /* what others have of it: communicators; else processes */
	/* NULL: nothing. Asked first: STATUS_OK, or complained about, and this is the status. */
	int (*check)(struct query *query);
	const size_t *order; /* columns of the table that its rows are sorted by; NULL: they are as they come */
	size_t order_count;
	struct table *(*table)(const struct options *options);
	void (*rows)(struct table *table, const Hccld__Control__ListReply *page,
		     const struct options *options);
	void (*json)(cJSON *array, const Hccld__Control__ListReply *page);
};

/* The whole command. */
int listing_run(const struct listing *listing, int argc, char **argv);
/* How many sessions of others are not shown, if any: after a list that has something in any case. */
void listing_print_hidden(const struct listing *listing, struct query *query);
/* Without the command line, as a part of a command: prints the table, or adds the array to @root. 0 or a negative errno. */
int listing_print(const struct listing *listing, struct query *query,
		  const struct options *options);
int listing_add(const struct listing *listing, struct query *query, cJSON *root);
