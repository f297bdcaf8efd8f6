/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/weights.h"

#include <stddef.h>
#include <string.h>

struct weight {
	const char *group; /* NULL: it is a user */
	size_t length;	   /* of it */
	uint32_t uid, value;
};

/* At most ten digits, all of @text up to @end. */
static bool number_parse(const char *text, const char *end, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (text == end || end - text > 10)
		return false;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9')
			return false;
		number = number * 10 + (uint64_t)(*text - '0');
	}
	*ret_number = number;
	return true;
}

/* One entry from *@text on, which is moved behind it. False: it makes no sense. */
static bool weight_parse(const char **text, struct weight *ret_weight)
{
	const char *start = *text, *end = start + strcspn(start, " ,"), *equals = end;
	uint64_t number;

	/* a name may have one in it */
	while (equals > start && *equals != '=')
		equals--;
	*text = end;
	if (equals == start || !number_parse(equals + 1, end, &number) || number < 1 || number > WEIGHTS_HIGHEST)
		return false;
	*ret_weight = (struct weight){ .value = (uint32_t)number };
	if (*start == '/') {
		ret_weight->group = start;
		ret_weight->length = (size_t)(equals - start);
		return ret_weight->length > 1;
	}
	if (!number_parse(start, equals, &number) || number > UINT32_MAX)
		return false;
	ret_weight->uid = (uint32_t)number;
	return true;
}

static bool is_equal(const char *text)
{
	return !*text || strcmp(text, "equal") == 0;
}

bool weights_check(const char *text)
{
	struct weight weight;

	if (is_equal(text))
		return true;
	if (!text[strspn(text, " ,")])
		return false;
	for (text += strspn(text, " ,"); *text; text += strspn(text, " ,"))
		if (!weight_parse(&text, &weight))
			return false;
	return true;
}

/* How well it fits: 0: not. */
static size_t weight_fit(const struct weight *weight, uint32_t uid, const char *cgroup)
{
	if (!weight->group)
		return weight->uid == uid;
	if (strncmp(cgroup, weight->group, weight->length) != 0 || (cgroup[weight->length] && cgroup[weight->length] != '/'))
		return 0;
	return 1 + weight->length;
}

uint32_t weights_find(const char *text, uint32_t uid, const char *cgroup)
{
	uint32_t found = 1;
	size_t best = 0;
	struct weight weight;

	if (is_equal(text))
		return found;
	for (text += strspn(text, " ,"); *text; text += strspn(text, " ,")) {
		size_t fit = weight_parse(&text, &weight) ? weight_fit(&weight, uid, cgroup) : 0;

		if (!fit || fit < best)
			continue;
		best = fit;
		found = weight.value;
	}
	return found;
}
