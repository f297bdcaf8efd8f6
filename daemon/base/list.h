/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive circular list. The head is a node of its own; an unlinked node points to itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *previous;
};

#define list_entry(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* Declares @entry, which may be removed and freed in the body. */
#define list_for_each(type, entry, head, member)                                 \
	for (type *entry = list_entry((head)->next, type, member),               \
		  *entry##_next_ = list_entry(entry->member.next, type, member); \
	     &entry->member != (head);                                           \
	     entry = entry##_next_, entry##_next_ = list_entry(entry->member.next, type, member))

static inline void list_init(struct list *node)
{
	node->next = node->previous = node;
}

static inline bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_append(struct list *head, struct list *node)
{
	node->previous = head->previous;
	node->next = head;
	head->previous->next = node;
	head->previous = node;
}

static inline void list_remove(struct list *node)
{
	node->previous->next = node->next;
	node->next->previous = node->previous;
	list_init(node);
}

/* Moves all nodes of @from to the end of @head. */
static inline void list_splice(struct list *head, struct list *from)
{
	if (list_is_empty(from))
		return;
	from->next->previous = head->previous;
	head->previous->next = from->next;
	from->previous->next = head;
	head->previous = from->previous;
	list_init(from);
}
