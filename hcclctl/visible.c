/* SPDX-License-Identifier: Apache-2.0 */
/* The list is read as the library reads it. */
#include "hcclctl/visible.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/device.h"

uint32_t visible_count(uint32_t device_count)
{
	uint32_t devices[HCCLD_DEVICES_MAX];

	return hccld_visible_devices(getenv("ASCEND_RT_VISIBLE_DEVICES"), device_count, devices);
}

const char *visible_error(uint32_t device_count, char *buffer, size_t size)
{
	const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
	uint32_t seen = visible_count(device_count), entries = 1;

	for (const char *p = list ? list : ""; *p; p++)
		entries += *p == ',';
	if (!list || !device_count || seen == entries)
		return NULL;
	if (seen)
		snprintf(buffer, size, "a program sees the first %" PRIu32 " of its entries: the next one is no id from 0 to %" PRIu32 ", or is there twice",
			 seen, device_count - 1);
	else
		snprintf(buffer, size, "a program sees no device: the list does not begin with an id from 0 to %" PRIu32, device_count - 1);
	return buffer;
}
