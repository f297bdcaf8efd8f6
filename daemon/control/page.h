/* SPDX-License-Identifier: Apache-2.0 */
/* One page of a list, and what fills it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/request.h"

struct page {
	struct request *request;
	void **entries; /* [HCCLD_LIST_PAGE] */
	size_t count, bytes;
	uint64_t after, last; /* cursors: of the previous page, of the newest entry */
	bool is_full;
	int error;
};

/* False: no more on this page. @message NULL: out of memory. */
bool page_add(struct page *page, ProtobufCMessage *message, uint64_t cursor);

/* list_orphans.c: after all else that waits */
void list_orphans(struct page *page);
/* list_resources.c */
void list_resources(struct page *page);
/* list_notifies.c */
void list_notifies(struct page *page);
/* list_channels.c */
void list_channels(struct page *page);
void list_registrations(struct page *page);
void list_imports(struct page *page);
/* list_limits.c */
void list_tenants(struct page *page);
void list_memory(struct page *page);
/* list_threads.c */
void list_threads(struct page *page);
/* list_links.c */
void list_links(struct page *page);
