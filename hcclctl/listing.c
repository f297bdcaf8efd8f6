/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the daemon as tables and JSON. */
#include "hcclctl/listing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"

struct target {
	const struct listing *listing;
	const struct options *options;
	struct table *table;
	cJSON *array;
	size_t pages_with_rows;
};

static int add_page(const Hccld__Control__ListReply *page, void *arg)
{
	struct target *target = arg;

	if (page->n_sessions || page->n_comms || page->n_devices || page->n_waiting ||
	    page->n_streams || page->n_notifies || page->n_threads || page->n_tenants || page->n_memory || page->n_resources ||
	    page->n_channels || page->n_registrations || page->n_imports || page->n_links)
		target->pages_with_rows++;
	if (target->array)
		target->listing->json(target->array, page);
	else
		target->listing->rows(target->table, page, target->options);
	return 0;
}

/* What is asked for; without a filter all of it. */
static int ask(const struct listing *listing, struct query *query, struct target *target)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;

	list.kind = listing->kind;
	if (listing->filter && !listing->filter(&list))
		return -EINVAL;
	return query_list_filtered(query, &list, add_page, target);
}

static uint32_t count_hidden(const struct listing *listing, struct query *query)
{
	struct hccld_call call;
	uint32_t hidden = 0;

	if (query_status(query, &call) == 0) {
		hidden = listing->counts_comms ? call.reply->status->hidden_comms : call.reply->status->hidden_sessions;
		hccld_call_end(&call);
	}
	return hidden;
}

void listing_print_hidden(const struct listing *listing, struct query *query)
{
	uint32_t hidden = count_hidden(listing, query);

	if (hidden)
		printf("%" PRIu32 " session%s of other users %s not shown\n", hidden, hidden == 1 ? "" : "s", hidden == 1 ? "is" : "are");
}

/* An empty table: there is nothing, or nothing that this user sees. */
static void print_none(const struct listing *listing, struct query *query)
{
	uint32_t hidden = count_hidden(listing, query);

	if (hidden)
		printf("none of yours; %" PRIu32 " %s%s of other users %s not shown\n", hidden,
		       listing->counts_comms ? "communicator" : "session", hidden == 1 ? "" : "s", hidden == 1 ? "is" : "are");
	else
		puts(listing->none);
}

int listing_print(const struct listing *listing, struct query *query, const struct options *options)
{
	struct target target = { .listing = listing, .options = options };
	int r;

	target.table = listing->table(options);
	if (!target.table)
		return -ENOMEM;
	r = ask(listing, query, &target);
	if (r == 0 && target.pages_with_rows && listing->is_optional)
		putchar('\n');
	if (r == 0 && target.pages_with_rows) {
		table_sort(target.table, listing->order, listing->order_count);
		r = table_print(target.table);
	}
	if (r == 0 && !target.pages_with_rows && !listing->is_optional)
		print_none(listing, query);
	table_free(target.table);
	return r;
}

int listing_add(const struct listing *listing, struct query *query, cJSON *root)
{
	struct target target = { .listing = listing };

	target.array = cJSON_AddArrayToObject(root, listing->name);
	if (!target.array)
		return -ENOMEM;
	return ask(listing, query, &target);
}

int listing_run(const struct listing *listing, int argc, char **argv)
{
	const struct command_line line = { .help = listing->help,
					   .extra = listing->extra,
					   .extra_count = listing->extra_count,
					   .takes_verbose = listing->takes_verbose };
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	struct options options;
	struct query *query;
	cJSON *root;
	int r, status;

	if (options_parse_line(argc, argv, &line, &options, &status))
		return status;
	if (listing->filter && !listing->filter(&list))
		return STATUS_USAGE;
	r = query_open(&query);
	if (r < 0)
		return query_complain(r);
	if (listing->feature && query_lacks(query, listing->feature, listing->name)) {
		query_close(query);
		return STATUS_STUCK;
	}
	status = listing->check ? listing->check(query) : STATUS_OK;
	if (status != STATUS_OK) {
		query_close(query);
		return status;
	}
	if (!options.json) {
		r = listing_print(listing, query, &options);
		query_close(query);
		return r < 0 ? query_complain(r) : STATUS_OK;
	}
	root = cJSON_CreateObject();
	r = listing_add(listing, query, root);
	query_close(query);
	if (r < 0) {
		cJSON_Delete(root);
		return query_complain(r);
	}
	return json_print(root);
}
