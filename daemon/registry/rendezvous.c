/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a communicator that wait for the rest. */
#include "registry/rendezvous.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

int rendezvous_add(struct rendezvous *rendezvous, struct joiner *joiner, uint32_t size,
		   struct text *text)
{
	const struct joiner *other;

	if (!rendezvous->size) {
		rendezvous->joiners = calloc(size, sizeof(*rendezvous->joiners));
		if (!rendezvous->joiners)
			return -ENOMEM;
		rendezvous->size = size;
	}
	if (size != rendezvous->size) {
		text_add(text,
			 "it joins with a size of %" PRIu32 " ranks, the ranks before it have joined with %" PRIu32,
			 size, rendezvous->size);
		return -EINVAL;
	}
	if (joiner->rank >= size) {
		text_add(text,
			 "rank %" PRIu32 " does not exist in a communicator of %" PRIu32 " ranks",
			 joiner->rank, size);
		return -EINVAL;
	}
	other = rendezvous->joiners[joiner->rank];
	if (other) {
		text_add(text, "rank %" PRIu32 " is already taken by pid %d", joiner->rank,
			 other->pid);
		return -EINVAL;
	}
	rendezvous->joiners[joiner->rank] = joiner;
	if (!rendezvous->joined++ || joiner->deadline_ns < rendezvous->deadline_ns)
		rendezvous->deadline_ns = joiner->deadline_ns;
	return rendezvous->joined == size;
}

void rendezvous_remove(struct rendezvous *rendezvous, struct joiner *joiner)
{
	assert(rendezvous->joiners[joiner->rank] == joiner);
	rendezvous->joiners[joiner->rank] = NULL;
	rendezvous->joined--;
	if (joiner->deadline_ns > rendezvous->deadline_ns)
		return;
	rendezvous->deadline_ns = UINT64_MAX;
	for (uint32_t i = 0; rendezvous->joined && i < rendezvous->size; i++)
		if (rendezvous->joiners[i] &&
		    rendezvous->joiners[i]->deadline_ns < rendezvous->deadline_ns)
			rendezvous->deadline_ns = rendezvous->joiners[i]->deadline_ns;
}

void rendezvous_deinit(struct rendezvous *rendezvous)
{
	free(rendezvous->joiners);
	*rendezvous = (struct rendezvous){ 0 };
}

uint64_t rendezvous_deadline(const struct rendezvous *rendezvous)
{
	return rendezvous->joined ? rendezvous->deadline_ns : UINT64_MAX;
}

static bool is_missing(const void *data, uint32_t rank)
{
	const struct rendezvous *rendezvous = data;

	return !rendezvous->joiners[rank];
}

void rendezvous_describe(const struct rendezvous *rendezvous, struct text *text)
{
	uint32_t missing = rendezvous->size - rendezvous->joined;

	text_add(text, "%" PRIu32 " of %" PRIu32 " ranks %s missing: ", missing, rendezvous->size, missing == 1 ? "is" : "are");
	text_add_ranks(text, rendezvous->size, is_missing, rendezvous);
}
