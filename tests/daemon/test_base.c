/* SPDX-License-Identifier: Apache-2.0 */
/* Maps, places and texts of daemon/base, and how processes have ended. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/idmap.h"
#include "base/process.h"
#include "base/slots.h"
#include "base/text.h"
#include "tests/support/test.h"

TEST(idmap_keeps_what_is_set_and_not_removed)
{
	struct idmap map = { 0 };
	static char values[4096];
	uint64_t seed = test_seed();
	bool is_set[4096] = { false };

	srandom((unsigned int)seed);
	check_null(idmap_get(&map, 7));
	check_null(idmap_remove(&map, 7));
	for (int i = 0; i < 100000; i++) {
		uint32_t id = 1 + (uint32_t)random() % 4095;

		if (random() % 2) {
			check_eq_int(idmap_set(&map, (uint64_t)id << 20, &values[id]), 0);
			is_set[id] = true;
		} else {
			check_eq_ptr(idmap_remove(&map, (uint64_t)id << 20),
				     is_set[id] ? &values[id] : NULL);
			is_set[id] = false;
		}
	}
	for (uint32_t id = 1; id < 4096; id++)
		check_eq_ptr(idmap_get(&map, (uint64_t)id << 20), is_set[id] ? &values[id] : NULL);
	idmap_deinit(&map);
}

TEST(slots_are_given_round_robin)
{
	struct slots slots;
	uint32_t index;

	check_eq_int(slots_init(&slots, 200), 0);
	for (uint32_t i = 0; i < 200; i++) {
		check_eq_int(slots_take(&slots, &index), 0);
		check_eq_uint(index, i);
	}
	check_eq_int(slots_take(&slots, &index), -ENOSPC);
	slots_give(&slots, 17);
	slots_give(&slots, 150);
	check_eq_int(slots_take(&slots, &index), 0);
	check_eq_uint(index, 17);
	check_eq_int(slots_take(&slots, &index), 0);
	check_eq_uint(index, 150);
	slots_give(&slots, 3);
	slots_give(&slots, 199);
	check_eq_int(slots_take_lowest(&slots, &index), 0);
	check_eq_uint(index, 3);
	check_eq_int(slots_take_at(&slots, 199), 0);
	check_eq_int(slots_take_at(&slots, 199), -EBUSY);
	check_eq_int(slots_take_at(&slots, 200), -EINVAL);
	slots_deinit(&slots);
}

/* A place that was given back is the last to be given again. */
TEST(slots_come_back_late)
{
	struct slots slots;
	uint32_t index;

	check_eq_int(slots_init(&slots, 100), 0);
	for (uint32_t i = 0; i < 250; i++) {
		check_eq_int(slots_take(&slots, &index), 0);
		check_eq_uint(index, i % 100);
		slots_give(&slots, index);
	}
	slots_deinit(&slots);
}

static void check_bytes(uint64_t bytes, const char *expected)
{
	struct text text;
	char buffer[64];

	text_init(&text, buffer, sizeof(buffer));
	text_add_bytes(&text, bytes);
	check_eq_str(buffer, expected);
}

TEST(text_says_sizes_for_people)
{
	check_bytes(0, "0 bytes");
	check_bytes(1, "1 byte");
	check_bytes(4095, "4095 bytes");
	check_bytes(4096, "4 KiB");
	check_bytes(512ull << 20, "512 MiB");
	check_bytes(3ull << 29, "1.5 GiB");
	check_bytes(UINT64_MAX, "16777216.0 TiB");
}

static bool is_in(const void *data, uint32_t number)
{
	return ((const char *)data)[number] == 'x';
}

static void check_ranks(const char *members, uint32_t count, const char *expected)
{
	char buffer[128];
	struct text text;

	text_init(&text, buffer, sizeof(buffer));
	check_eq_uint(text_add_ranks(&text, (uint32_t)strlen(members), is_in, members), count);
	check_eq_str(buffer, expected);
}

TEST(text_lists_ranks)
{
	check_ranks("..x", 1, "rank 2");
	check_ranks("xx.", 2, "ranks 0-1");
	check_ranks("x.x", 2, "ranks 0 and 2");
	check_ranks("x.xx.x", 4, "ranks 0, 2-3 and 5");
	check_ranks("x.x.x.x.x.x.x.x", 8, "ranks 0, 2, 4, 6, 8, 10, 12 and 14");
	check_ranks("x.x.x.x.x.x.x.x.x.x", 10, "ranks 0, 2, 4, 6, 8, 10, 12, 14 and more");
}

TEST(text_is_cut_not_overrun)
{
	struct text text;
	char buffer[8];

	text_init(&text, buffer, sizeof(buffer));
	text_add(&text, "%s", "abcdef");
	text_add(&text, "%s", "ghijkl");
	text_add(&text, "%s", "more");
	check_eq_str(buffer, "abcdefg");
}

TEST(text_of_others_is_cleaned)
{
	char buffer[16];

	text_clean(buffer, sizeof(buffer), "a\nb\x1b[1m");
	check_eq_str(buffer, "a?b?[1m");
	text_clean(buffer, sizeof(buffer), "gr\xc3\xbc\xc3\x9f");
	check_eq_str(buffer, "gr\xc3\xbc\xc3\x9f");
	/* a lone start byte, an overlong form, a surrogate, a lone continuation */
	text_clean(buffer, sizeof(buffer), "\xc3");
	check_eq_str(buffer, "?");
	text_clean(buffer, sizeof(buffer), "\xc0\xaf");
	check_eq_str(buffer, "??");
	text_clean(buffer, sizeof(buffer), "\xed\xa0\x80");
	check_eq_str(buffer, "???");
	/* a control character of the second half, and what comes behind those */
	text_clean(buffer, sizeof(buffer), "\xc2\x9b\xc2\xa0");
	check_eq_str(buffer, "??\xc2\xa0");
	/* cut between characters */
	text_clean(buffer, 4, "ab\xc3\xbc");
	check_eq_str(buffer, "ab");
}

struct ending {
	int pidfd, result;
	int32_t pid, status;
};

/* As soon as the pidfd says that it has ended. */
static void *ask_how_it_ended(void *data)
{
	struct ending *ending = data;
	struct pollfd ended = { .fd = ending->pidfd, .events = POLLIN };

	poll(&ended, 1, -1);
	do
		ending->result = process_exit_status(ending->pidfd, ending->pid, &ending->status);
	while (ending->result == -EAGAIN);
	return NULL;
}

static void end_a_process(bool is_collected_first, struct ending *ret_ending)
{
	pthread_t thread;

	ret_ending->pid = fork();
	if (ret_ending->pid == 0) {
		usleep(200);
		_exit(3);
	}
	ret_ending->pidfd = (int)syscall(SYS_pidfd_open, ret_ending->pid, 0);
	check_ge_int(ret_ending->pidfd, 0);
	if (is_collected_first)
		check_eq_int(waitpid(ret_ending->pid, NULL, 0), ret_ending->pid);
	check_eq_int(pthread_create(&thread, NULL, ask_how_it_ended, ret_ending), 0);
	if (!is_collected_first)
		check_eq_int(waitpid(ret_ending->pid, NULL, 0), ret_ending->pid);
	check_eq_int(pthread_join(thread, NULL), 0);
	close(ret_ending->pidfd);
}

/* Its parent collects it at the same moment. */
TEST(how_a_process_has_ended_is_not_lost)
{
	struct ending ending;

	end_a_process(true, &ending);
	if (ending.result == -ENOENT)
		return; /* before Linux 6.15 */
	for (int i = 0; i < 2000; i++) {
		end_a_process(false, &ending);
		check_eq_int(ending.result, 0);
		check_eq_int(ending.status, 3 << 8);
	}
}
