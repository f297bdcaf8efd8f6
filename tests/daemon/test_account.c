/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets and who holds them. */
#include <errno.h>

#include "base/text.h"
#include "registry/account.h"
#include "tests/support/test.h"

#define MIB (1ull << 20)

TEST(account_gives_up_to_its_total)
{
	struct account account;
	struct holder holder;

	account_init(&account, 10 * MIB);
	holder_init(&holder, 1);
	check_eq_int(account_charge(&account, &holder, 6 * MIB), 0);
	check_eq_int(account_charge(&account, &holder, 5 * MIB), -EDQUOT);
	check_eq_int(account_charge(&account, &holder, UINT64_MAX), -EDQUOT);
	check_eq_int(account_charge(&account, &holder, 4 * MIB), 0);
	check_eq_int(account_charge(&account, &holder, 1), -EDQUOT);
	account_refund(&account, &holder, 10 * MIB);
	check_eq_uint(account.used, 0);
	check(list_is_empty(&account.holders));
}

/* A restart with a smaller budget: what is there stays, nothing new. */
TEST(account_may_be_over_its_total)
{
	struct account account;
	struct holder holder;

	account_init(&account, 10 * MIB);
	holder_init(&holder, 1);
	account_force(&account, &holder, 20 * MIB);
	check_eq_int(account_charge(&account, &holder, 1), -EDQUOT);
	account_refund(&account, &holder, 20 * MIB);
	check_eq_int(account_charge(&account, &holder, 10 * MIB), 0);
}

TEST(account_names_its_largest_holders)
{
	struct account account;
	struct holder holders[5];
	static const uint64_t sizes[5] = { 10, 50, 30, 0, 40 };
	struct text text;
	char buffer[256];

	account_init(&account, 200 * MIB);
	for (int i = 0; i < 5; i++) {
		holder_init(&holders[i], 100 + i);
		check_eq_int(account_charge(&account, &holders[i], sizes[i] * MIB), 0);
	}
	text_init(&text, buffer, sizeof(buffer));
	account_describe(&account, &text);
	check_eq_str(
		buffer,
		"has 200 MiB, of which 130 MiB are in use (pid 101: 50 MiB, pid 104: 40 MiB, pid 102: 30 MiB)");
}
