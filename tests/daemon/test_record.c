/* SPDX-License-Identifier: Apache-2.0 */
/* What the next process finds in the registry, also when this one died in the middle of a store. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "registry/record.h"
#include "registry/store.h"
#include "tests/support/test.h"

/* As the store would: another descriptor of the same memory. */
static struct records *reopen(struct records *records)
{
	int fd = fcntl(records_fd(records), F_DUPFD_CLOEXEC, 3);
	int more_fd = fcntl(records_more_fd(records), F_DUPFD_CLOEXEC, 3);

	check_null(records_free(records));
	check_eq_int(records_new(fd, more_fd, &records), 0);
	return records;
}

static uint32_t add_session(struct records *records, uint64_t id)
{
	struct record_session session = { .id = id, .pid = (int32_t)id * 10 };
	uint32_t index;

	check_eq_int(records_add(records, RECORD_SESSION, &session, &index), 0);
	return index;
}

TEST(records_survive_their_process)
{
	struct records *records;
	struct record_session *session;
	uint32_t first, second;
	uint64_t id;

	check_eq_int(records_new(-1, -1, &records), 0);
	first = add_session(records, 1);
	second = add_session(records, 2);
	records_remove(records, RECORD_SESSION, first);
	id = records_next_id(records);
	records = reopen(records);
	check_null(records_get(records, RECORD_SESSION, first));
	session = records_get(records, RECORD_SESSION, second);
	check_ptr(session);
	check_eq_uint(session->id, 2);
	check_eq_int(session->pid, 20);
	check_gt_uint(records_next_id(records), id);
	/* the free place is used first */
	check_eq_uint(add_session(records, 3), first);
	check_eq_uint(records_limit(records, RECORD_SESSION), 2);
	records_free(records);
}

/* Cut between the content and the last word, and in the middle of the last word. */
TEST(torn_records_are_not_there)
{
	struct records *records;
	struct record_session *session;
	uint32_t index;

	check_eq_int(records_new(-1, -1, &records), 0);
	index = add_session(records, 7);
	session = records_get(records, RECORD_SESSION, index);
	atomic_store(&session->valid, session->valid & 0xffffffff);
	records = reopen(records);
	check_null(records_get(records, RECORD_SESSION, index));
	/* the place is free again, and what is left in it does no harm */
	check_eq_uint(add_session(records, 8), index);
	session = records_get(records, RECORD_SESSION, index);
	check_ptr(session);
	check_eq_uint(session->id, 8);
	check_eq_str(session->process, "");
	records_free(records);
}

TEST(tables_end)
{
	struct records *records;
	struct record_tenant tenant = { .id = 1 };
	uint32_t index, count = 0;

	check_eq_int(records_new(-1, -1, &records), 0);
	while (records_add(records, RECORD_TENANT, &tenant, &index) == 0)
		check_eq_uint(index, count++);
	check_eq_uint(count, 1024);
	check_eq_int(records_add(records, RECORD_TENANT, &tenant, &index), -EDQUOT);
	records_remove(records, RECORD_TENANT, 512);
	check_eq_int(records_add(records, RECORD_TENANT, &tenant, &index), 0);
	check_eq_uint(index, 512);
	records_free(records);
}

TEST(another_layout_is_refused)
{
	struct records *records;
	uint64_t *words;
	int fd;

	check_eq_int(records_new(-1, -1, &records), 0);
	fd = fcntl(records_fd(records), F_DUPFD_CLOEXEC, 3);
	records_free(records);
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(words != MAP_FAILED);
	words[1] ^= 1;
	munmap(words, 4096);
	check_eq_int(records_new(fd, -1, &records), -EPROTO);
	fd = memfd_create("short", MFD_CLOEXEC);
	check_eq_int(records_new(fd, -1, &records), -EPROTO);
}

TEST(starts_are_counted_until_one_settles)
{
	struct records *records;

	check_eq_int(records_new(-1, -1, &records), 0);
	check_eq_uint(records_count_start(records), 1);
	records = reopen(records);
	check_eq_uint(records_count_start(records), 2);
	records_settled(records);
	records = reopen(records);
	check_eq_uint(records_count_start(records), 1);
	records_free(records);
}

/* Release 0.1.0 has the first file only; its records are kept, and the later kinds have a place. */
TEST(a_registry_of_the_first_release_is_taken_over)
{
	struct record_drain drain = { .uid = 5 };
	const struct record_session *session;
	struct records *records;
	uint32_t place, index;
	int fd;

	check_eq_int(records_new(-1, -1, &records), 0);
	place = add_session(records, 7);
	fd = fcntl(records_fd(records), F_DUPFD_CLOEXEC, 3);
	records_free(records);
	check_eq_int(records_new(fd, -1, &records), 0);
	session = records_get(records, RECORD_SESSION, place);
	check_ptr(session);
	check_eq_uint(session->id, 7);
	check_eq_uint(session->features, 0);
	check_null(records_get(records, RECORD_DRAIN, 0));
	check_eq_int(records_add(records, RECORD_DRAIN, &drain, &index), 0);
	records = reopen(records);
	check_ptr(records_get(records, RECORD_DRAIN, index));
	check_ptr(records_get(records, RECORD_SESSION, place));
	records_free(records);
}

/* As a file of a release that lacked our last kind, and of one that has kinds we do not know. */
TEST(tables_of_other_releases_are_found_and_left_alone)
{
	struct record_drain drain = { .uid = 5 };
	struct records *records;
	uint64_t *words;
	uint32_t index;
	int fd, more_fd;

	check_eq_int(records_new(-1, -1, &records), 0);
	fd = fcntl(records_more_fd(records), F_DUPFD_CLOEXEC, 3);
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(words != MAP_FAILED);
	check_gt_uint(words[2], 0); /* how many kinds it has */
	words[2]--;
	records = reopen(records);
	check_eq_uint(words[2], RECORD_KINDS - RECORD_FIRST_KINDS);
	check_eq_int(records_add(records, RECORD_DRAIN, &drain, &index), 0);
	words[2]++;
	records = reopen(records);
	check_eq_uint(words[2], RECORD_KINDS - RECORD_FIRST_KINDS + 1);
	check_ptr(records_get(records, RECORD_DRAIN, index));
	/* another struct of a kind is another layout */
	((uint32_t *)words)[6]++;
	more_fd = fcntl(records_more_fd(records), F_DUPFD_CLOEXEC, 3);
	close(fd);
	fd = fcntl(records_fd(records), F_DUPFD_CLOEXEC, 3);
	records_free(records);
	check_eq_int(records_new(fd, more_fd, &records), -EPROTO);
	munmap(words, 4096);
}

/* ---- names in the store ---- */

static uint64_t id_of(const char *digits)
{
	return strtoull(digits, NULL, 36);
}

/* Segment 32090 took the place of the records of channels and notifies: its free was their end. */
TEST(no_object_has_the_name_of_a_registry)
{
	static const char *const fixed[] = { STORE_REGISTRY, STORE_REGISTRY_MORE, STORE_BEACON, STORE_EVENT, STORE_LISTEN };
	static const enum store_kind known[] = { STORE_YARD, STORE_SOCKET, STORE_PIDFD, STORE_REGION, STORE_SEGMENT, STORE_EXTENT };
	char name[STORE_NAME_MAX];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (size_t k = 0; k < sizeof(fixed) / sizeof(fixed[0]); k++)
			check_ne_int(strcmp(store_name(name, known[i], id_of(fixed[k] + 1)), fixed[k]), 0);
	check_eq_str(store_name(name, STORE_SEGMENT, 32089), "mord");
	check_eq_str(store_name(name, STORE_SEGMENT, 32090), "More");
	check_eq_str(store_name(name, STORE_EXTENT, id_of("vent")), "Event");
}
