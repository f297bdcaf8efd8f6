/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/hcclctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

#define TRIES_MAX 1000

void hcclctl_expect(const char *arguments, const char *part)
{
	char command[512], text[16384];
	const char *hcclctl = getenv("HCCLCTL_BINARY");

	check_ptr(hcclctl);
	snprintf(command, sizeof(command), "%s %s", hcclctl, arguments);
	for (int i = 0; i < TRIES_MAX; i++) {
		FILE *pipe = popen(command, "r");

		check_ptr(pipe);
		text[fread(text, 1, sizeof(text) - 1, pipe)] = '\0';
		pclose(pipe);
		if (strstr(text, part))
			return;
		usleep(20000);
	}
	check_str_contains(text, part);
}
