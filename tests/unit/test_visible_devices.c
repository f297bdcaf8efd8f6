/* SPDX-License-Identifier: Apache-2.0 */
#include "client/device.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/test.h"

static void check_list(const char *list, const char *expected)
{
	uint32_t devices[HCCLD_DEVICES_MAX];
	uint32_t count = hccld_visible_devices(list, 8, devices);
	char text[256] = "";

	for (uint32_t i = 0; i < count; i++) {
		char number[16];

		snprintf(number, sizeof(number), "%s%u", i ? "," : "", devices[i]);
		strcat(text, number);
	}
	check_eq_str(text, expected);
}

TEST(visible_devices_are_all_without_a_list)
{
	check_list(NULL, "0,1,2,3,4,5,6,7");
}

TEST(visible_devices_keep_the_order_of_the_list)
{
	check_list("4,5", "4,5");
	check_list("7,0,3", "7,0,3");
	check_list("6", "6");
	check_list("007,1", "7,1");
}

TEST(visible_devices_end_at_the_first_bad_entry)
{
	check_list("", "");
	check_list("1,2,8,3", "1,2");
	check_list("1,2,2,3", "1,2");
	check_list("1,,2", "1");
	check_list("1,2,", "1,2");
	check_list("1,-2", "1");
	check_list("1, 2", "1");
	check_list("1,2x,3", "1");
	check_list("none", "");
	check_list("1,99999999999999999999,2", "1");
	check_list("4294967296", "");
}

TEST(visible_devices_are_at_most_as_many_as_there_can_be)
{
	uint32_t devices[HCCLD_DEVICES_MAX];

	check_eq_uint(hccld_visible_devices(NULL, 1000000, devices), HCCLD_DEVICES_MAX);
	check_eq_uint(hccld_visible_devices(NULL, 0, devices), 0);
	check_eq_uint(hccld_visible_devices("0", 0, devices), 0);
}
