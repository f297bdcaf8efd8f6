/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank tables: JSON files that say which rank is on which device of which server. Versions 1.0 and 1.2, 2.0, and the older form with
 * group_list (hccl-api, section 5). Pure functions but for hccld_rank_table_load() and hccld_rank_table_check().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/digest.h"
#include "proto/status.h"

#define HCCLD_RANK_TABLE_BYTES_MAX (64u << 20)	/* of a file */
#define HCCLD_RANK_TABLE_PATH_MAX 4096u

struct hccld_rank_table_server {
	const char *id;			/* server_id, or net_instance_id of layer 0 */
	const char *host_ip;		/* NULL: the table has none */
};

struct hccld_rank_table_rank {
	uint32_t server;		/* index in `servers` */
	uint32_t device;		/* physical number on that server */
};

/* What is left of a table that is valid. */
struct hccld_rank_table {
	uint32_t rank_count, server_count;
	struct hccld_rank_table_rank *ranks;	/* by rank */
	struct hccld_rank_table_server *servers;
	unsigned char digest[DIGEST_BYTES];	/* of ranks, servers and devices: the same for all files that say the same */
	void *json;				/* owns the texts */
};

struct hccld_rank_table_error {
	enum cause cause;
	char text[512];			/* line or field, what is there, what is expected */
};

/*
 * @text: @size bytes, not terminated. 0, or a negative errno (proto/status.h) with @ret_error filled in: CAUSE_TABLE_PARSE no JSON,
 * CAUSE_TABLE_VALUE, CAUSE_TABLE_ITEM an item is missing, CAUSE_UNBUILT more ranks than one node has, CAUSE_HOST_MEMORY.
 */
int hccld_rank_table_parse(const char *text, size_t size, struct hccld_rank_table **ret_table,
			   struct hccld_rank_table_error *ret_error);
struct hccld_rank_table *hccld_rank_table_free(struct hccld_rank_table *table);

/* Reads and parses the file @path. The text of the error names it. CAUSE_TABLE_FILE too. */
int hccld_rank_table_load(const char *path, struct hccld_rank_table **ret_table);
/*
 * Can rank @rank of the table be this process on the node's device @device? -EINVAL and kin; CAUSE_UNBUILT: ranks are on other nodes. Text
 * set.
 */
int hccld_rank_table_check(const struct hccld_rank_table *table, const char *path, uint32_t rank, uint32_t device);
