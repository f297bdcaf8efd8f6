/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of bytes. */
#include "registry/account.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "base/text.h"

#define TOP 3

void account_init(struct account *account, uint64_t total)
{
	*account = (struct account){ .total = total };
	list_init(&account->holders);
}

void holder_init(struct holder *holder, int32_t pid)
{
	*holder = (struct holder){ .pid = pid };
	list_init(&holder->link);
}

void account_force(struct account *account, struct holder *holder, uint64_t bytes)
{
	if (holder->used == 0 && bytes)
		list_append(&account->holders, &holder->link);
	account->used += bytes;
	holder->used += bytes;
}

int account_charge(struct account *account, struct holder *holder, uint64_t bytes)
{
	/* after a restart with a smaller budget more may be used than there is */
	if (account->used > account->total || bytes > account->total - account->used)
		return -EDQUOT;
	account_force(account, holder, bytes);
	return 0;
}

void account_refund(struct account *account, struct holder *holder, uint64_t bytes)
{
	assert(holder->used >= bytes && account->used >= bytes);
	if (!bytes)
		return;
	account->used -= bytes;
	holder->used -= bytes;
	if (holder->used == 0)
		list_remove(&holder->link);
}

void account_describe(const struct account *account, struct text *text)
{
	const struct holder *top[TOP] = { NULL };

	text_add(text, "has ");
	text_add_bytes(text, account->total);
	text_add(text, ", of which ");
	text_add_bytes(text, account->used);
	text_add(text, " are in use");
	list_for_each(struct holder, holder, &account->holders, link) {
		const struct holder *mine = holder;

		for (int i = 0; i < TOP && mine; i++) {
			const struct holder *other = top[i];

			if (other && other->used >= mine->used)
				continue;
			top[i] = mine;
			mine = other;
		}
	}
	for (int i = 0; i < TOP && top[i]; i++) {
		text_add(text, i ? ", " : " (");
		if (top[i]->pid)
			text_add(text, "pid %d: ", top[i]->pid);
		else
			text_add(text, "communicators: ");
		text_add_bytes(text, top[i]->used);
	}
	if (top[0])
		text_add(text, ")");
}
