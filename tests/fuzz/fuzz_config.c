/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a configuration file. A problem is a sentence that names the file; what is right is in its range all the same. */
#include <string.h>

#include "daemon/config.h"
#include "tests/fuzz/input.h"

#define NAME "hccld.conf"
#define MORE "there are more, which are not listed"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct said {
	uint32_t count;
	bool is_more;
};

static void say(void *data, const char *problem)
{
	struct said *said = data;

	insist(!said->is_more);
	said->is_more = strcmp(problem, MORE) == 0;
	said->count += !said->is_more;
	insist(said->is_more || strstr(problem, NAME));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct said said = { 0 };
	struct config_report report = { .say = say, .data = &said, .is_lenient = size % 2 };
	struct config config;
	char *text = malloc(size ? size : 1);

	insist(text);
	memcpy(text, data, size);
	config_init(&config);
	config_read_text(NAME, text, size, &config, &report);
	free(text);
	insist(report.is_lenient ? report.count == 0 : said.is_more ? report.count > said.count : report.count == said.count);
	insist(config.devices >= 1 && config.devices <= HCCLD_DEVICES_MAX);
	/* a word such as auto gets its value later */
	insist(config_origin(&config, config_find("daemon", "copy_threads"))->is_word || config.copy_threads <= 64);
	insist(memchr(config.socket, 0, sizeof(config.socket)) && memchr(config.soc_name, 0, sizeof(config.soc_name)));
	return 0;
}
