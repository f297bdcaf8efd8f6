/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that wait for one another. */
#include <errno.h>

#include "base/text.h"
#include "registry/rendezvous.h"
#include "tests/support/test.h"

static struct joiner joiners[16];
static char buffer[256];

static int add(struct rendezvous *rendezvous, uint32_t rank, uint32_t size, uint64_t deadline)
{
	struct joiner *joiner = &joiners[rank < 16 ? rank : 15];
	struct text text;

	*joiner = (struct joiner){ .rank = rank, .pid = 100 + (int)rank, .deadline_ns = deadline };
	text_init(&text, buffer, sizeof(buffer));
	return rendezvous_add(rendezvous, joiner, size, &text);
}

static void check_missing(const struct rendezvous *rendezvous, const char *expected)
{
	struct text text;

	text_init(&text, buffer, sizeof(buffer));
	rendezvous_describe(rendezvous, &text);
	check_eq_str(buffer, expected);
}

TEST(the_last_rank_completes)
{
	struct rendezvous rendezvous = { 0 };

	check_eq_uint(rendezvous_deadline(&rendezvous), UINT64_MAX);
	check_eq_int(add(&rendezvous, 1, 3, 50), 0);
	check_eq_int(add(&rendezvous, 0, 3, 30), 0);
	check_eq_uint(rendezvous_deadline(&rendezvous), 30);
	check_missing(&rendezvous, "1 of 3 ranks is missing: rank 2");
	/* the next one counts when the earliest is taken out, and the other way round */
	rendezvous_remove(&rendezvous, &joiners[0]);
	check_eq_uint(rendezvous_deadline(&rendezvous), 50);
	check_eq_int(add(&rendezvous, 0, 3, 60), 0);
	check_eq_uint(rendezvous_deadline(&rendezvous), 50);
	rendezvous_remove(&rendezvous, &joiners[0]);
	check_eq_uint(rendezvous_deadline(&rendezvous), 50);
	rendezvous_remove(&rendezvous, &joiners[1]);
	check_eq_uint(rendezvous_deadline(&rendezvous), UINT64_MAX);
	check_eq_int(add(&rendezvous, 1, 3, 50), 0);
	check_eq_int(add(&rendezvous, 0, 3, 30), 0);
	check_eq_int(add(&rendezvous, 2, 3, 40), 1);
	rendezvous_deinit(&rendezvous);
}

TEST(a_communicator_of_one_is_complete_at_once)
{
	struct rendezvous rendezvous = { 0 };

	check_eq_int(add(&rendezvous, 0, 1, 1), 1);
	rendezvous_deinit(&rendezvous);
}

TEST(missing_ranks_are_listed_as_ranges)
{
	struct rendezvous rendezvous = { 0 };
	static const uint32_t here[] = { 0, 1, 3, 4, 7 };

	for (int i = 0; i < 5; i++)
		check_eq_int(add(&rendezvous, here[i], 8, 1), 0);
	check_missing(&rendezvous, "3 of 8 ranks are missing: ranks 2 and 5-6");
	rendezvous_remove(&rendezvous, &joiners[7]);
	rendezvous_remove(&rendezvous, &joiners[0]);
	check_missing(&rendezvous, "5 of 8 ranks are missing: ranks 0, 2 and 5-7");
	rendezvous_deinit(&rendezvous);
}

TEST(ranks_that_do_not_fit_are_refused_in_words)
{
	struct rendezvous rendezvous = { 0 };

	check_eq_int(add(&rendezvous, 2, 4, 1), 0);
	check_eq_int(add(&rendezvous, 3, 8, 1), -EINVAL);
	check_eq_str(
		buffer,
		"it joins with a size of 8 ranks, the ranks before it have joined with 4");
	check_eq_int(add(&rendezvous, 4, 4, 1), -EINVAL);
	check_str_contains(buffer, "rank 4 does not exist in a communicator of 4 ranks");
	check_eq_int(add(&rendezvous, 2, 4, 1), -EINVAL);
	check_eq_str(buffer, "rank 2 is already taken by pid 102");
	rendezvous_deinit(&rendezvous);
}
