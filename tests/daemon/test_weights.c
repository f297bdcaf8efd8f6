/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of tenants: what the text may be, and whom it means. */
#include "registry/weights.h"

#include "tests/support/test.h"

TEST(what_makes_no_sense_is_refused)
{
	static const char *const good[] = { "", "equal", "0=1", "1000=64", " 1000=4,  1001=2 ,/a/b=3", "4294967295=2", "/with=sign=5" };
	static const char *const bad[] = { "even", "1000", "1000=", "1000=0", "1000=65", "1000=4294967297", "=4", "/=4", "slurm=4", "1000=4x", "1000 =4",
					   "4294967296=2", "-1=2", "1000=4;1001=2", " ", ",", "equal 1000=2", "1000=99999999999999999999" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		check_msg(weights_check(good[i]), "\"%s\" is good", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_msg(!weights_check(bad[i]), "\"%s\" is bad", bad[i]);
}

TEST(the_best_fit_counts)
{
	static const char text[] = "1000=2,/slurm=3 /slurm/uid_1000=4 1001=5 1001=6 /a=b=7";

	check_eq_uint(weights_find(text, 999, ""), 1);
	check_eq_uint(weights_find(text, 1000, ""), 2);
	check_eq_uint(weights_find(text, 1000, "/user.slice"), 2);
	check_eq_uint(weights_find(text, 1000, "/slurm/job"), 3);
	check_eq_uint(weights_find(text, 1000, "/slurmd"), 2);
	check_eq_uint(weights_find(text, 1000, "/slurm/uid_1000/job_1"), 4);
	check_eq_uint(weights_find(text, 1000, "/slurm/uid_10001"), 3);
	check_eq_uint(weights_find(text, 1001, ""), 6);
	check_eq_uint(weights_find(text, 0, "/a=b"), 7);
	check_eq_uint(weights_find("equal", 1000, "/slurm"), 1);
	check_eq_uint(weights_find("", 0, ""), 1);
}
