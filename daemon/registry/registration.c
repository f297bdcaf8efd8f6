/* SPDX-License-Identifier: Apache-2.0 */
/* Registered memory. */
#include "registry/registration.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/cleanup.h"
#include "registry/comm.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"

struct registration *registration_overlap(const struct rank *rank, uint64_t segment,
					  uint64_t offset, uint64_t bytes, const char *tag,
					  bool *ret_is_same)
{
	list_for_each(struct registration, other, &rank->registrations, link) {
		if (other->segment != segment || other->offset >= offset + bytes ||
		    offset >= other->offset + other->bytes)
			continue;
		*ret_is_same = other->offset == offset && other->bytes == bytes &&
			       strcmp(other->tag, tag) == 0;
		return other;
	}
	return NULL;
}

/* In the place of its id: records are restored in any order. */
static int registration_publish(struct registration *registration)
{
	struct rank *rank = registration->rank;
	struct list *after = rank->registrations.previous;
	int r = idmap_set(&rank->session->registry->registration_ids, registration->id, registration);

	if (r < 0)
		return r;
	while (after != &rank->registrations &&
	       list_entry(after, struct registration, link)->id > registration->id)
		after = after->previous;
	list_append(after->next, &registration->link);
	return 0;
}

static struct registration *registration_make(struct rank *rank,
					      const struct record_registration *record)
{
	struct registration *registration = calloc(1, sizeof(*registration));

	if (!registration)
		return NULL;
	list_init(&registration->link);
	registration->rank = rank;
	registration->id = record->id;
	registration->segment = record->segment;
	registration->offset = record->offset;
	registration->bytes = record->bytes;
	snprintf(registration->tag, sizeof(registration->tag), "%.*s",
		 (int)sizeof(record->tag) - 1, record->tag);
	return registration;
}

int registration_new(struct rank *rank, const struct segment *segment, uint64_t offset,
		     uint64_t bytes, const char *tag, struct registration **ret_registration)
{
	CLEANUP(freep) struct registration *registration = NULL;
	struct session *session = rank->session;
	struct records *records = session->registry->records;
	struct record_registration record = { .session = session->view.id,
					      .rank = rank->handle,
					      .segment = segment->id,
					      .offset = offset,
					      .bytes = bytes };
	int r;

	if (session_take(session, QUOTA_REGISTRATIONS, 1) < 0)
		return -EUSERS;
	record.id = records_next_id(records);
	snprintf(record.tag, sizeof(record.tag), "%s", tag);
	registration = registration_make(rank, &record);
	r = registration ? records_add(records, RECORD_REGISTRATION, &record,
				       &registration->record)
			 : -ENOMEM;
	if (r == 0) {
		r = registration_publish(registration);
		if (r < 0)
			records_remove(records, RECORD_REGISTRATION, registration->record);
	}
	if (r < 0) {
		session_give(session, QUOTA_REGISTRATIONS, 1);
		return r;
	}
	*ret_registration = take_ptr(&registration);
	return 0;
}

struct registration *registration_find(const struct rank *rank, uint64_t id)
{
	struct registration *registration =
		id ? idmap_get(&rank->session->registry->registration_ids, id) : NULL;

	return registration && registration->rank == rank ? registration : NULL;
}

struct segment *registration_segment(const struct registration *registration)
{
	return session_segment(registration->rank->session, registration->segment);
}

void registration_remove(struct registration *registration)
{
	struct session *session = registration->rank->session;

	records_remove(session->registry->records, RECORD_REGISTRATION, registration->record);
	idmap_remove(&session->registry->registration_ids, registration->id);
	session_give(session, QUOTA_REGISTRATIONS, 1);
	list_remove(&registration->link);
	free(registration);
}

void registrations_remove(struct rank *rank)
{
	list_for_each(struct registration, registration, &rank->registrations, link)
		registration_remove(registration);
}

int registration_restore(struct registry *registry, uint32_t index)
{
	const struct record_registration *record =
		records_get(registry->records, RECORD_REGISTRATION, index);
	CLEANUP(freep) struct registration *registration = NULL;
	struct session *session;
	struct segment *segment;
	struct rank *rank;
	int r;

	assert(record);
	session = idmap_get(&registry->session_ids, record->session);
	rank = session ? session_rank(session, record->rank) : NULL;
	if (!rank)
		return -ENOENT;
	segment = session_segment(session, record->segment);
	if (!record->id || idmap_get(&registry->registration_ids, record->id) ||
	    (segment && (record->bytes > segment->memory.bytes ||
			 record->offset > segment->memory.bytes - record->bytes)))
		return -EPROTO;
	registration = registration_make(rank, record);
	if (!registration)
		return -ENOMEM;
	registration->record = index;
	r = registration_publish(registration);
	if (r < 0)
		return r;
	session_take_back(session, QUOTA_REGISTRATIONS, 1);
	take_ptr(&registration);
	return 0;
}

void registrations_free(struct rank *rank)
{
	list_for_each(struct registration, registration, &rank->registrations, link)
		free(registration);
}
