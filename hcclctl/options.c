/* SPDX-License-Identifier: Apache-2.0 */
/* --json, --socket, --verbose, --help. */
#include "hcclctl/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "hcclctl/command.h"
#include "hcclctl/query.h"

enum { OPTION_JSON = 256, OPTION_SOCKET, OPTION_EXTRA };

static const struct option common_options[] = {
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "help", no_argument, NULL, 'h' },
	{ "verbose", no_argument, NULL, 'v' },
};
#define COMMON_COUNT (sizeof(common_options) / sizeof(common_options[0]))

static void print_help(const struct command_line *line)
{
	fputs(line->help, stdout);
	printf("\n%s"
	       "      --json         machine-readable; the fields are in hcclctl(1)\n"
	       "      --socket PATH  the daemon's socket\n"
	       "  -h, --help         this text\n",
	       line->takes_verbose ? "  -v, --verbose      more\n" : "");
}

static void list_options(const struct command_line *line, struct option *ret_options)
{
	static const int arguments[] = { no_argument, required_argument, optional_argument };

	memcpy(ret_options, common_options, sizeof(common_options));
	for (size_t i = 0; i < line->extra_count; i++)
		ret_options[COMMON_COUNT + i] =
			(struct option){ line->extra[i].name, arguments[line->extra[i].kind], NULL,
					 OPTION_EXTRA + (int)i };
	ret_options[COMMON_COUNT + line->extra_count] = (struct option){ 0 };
}

static void take_extra(const struct extra_option *extra, const char *value)
{
	if (extra->is_given)
		*extra->is_given = true;
	if (extra->value && value)
		*extra->value = value;
}

int options_parse_line(int argc, char **argv, const struct command_line *line,
		       struct options *ret_options, int *ret_status)
{
	struct option long_options[COMMON_COUNT + OPTIONS_EXTRA_MAX + 1];
	struct options options = { .json = false };
	int option;

	list_options(line, long_options);
	*ret_status = STATUS_USAGE;
	while ((option = getopt_long(argc, argv, "vh", long_options, NULL)) != -1) {
		if (option >= OPTION_EXTRA) {
			take_extra(&line->extra[option - OPTION_EXTRA], optarg);
			continue;
		}
		switch (option) {
		case OPTION_JSON:
			options.json = true;
			break;
		case OPTION_SOCKET:
			if (query_set_socket(optarg))
				break;
			return 1;
		case 'h':
			print_help(line);
			*ret_status = STATUS_OK;
			return 1;
		case 'v':
			options.verbose = true;
			if (line->takes_verbose)
				break;
			complain("this command has no --verbose");
			return 1;
		default:
			fprintf(stderr, "'%s --help' shows the options.\n", argv[0]);
			return 1;
		}
	}
	if (optind < argc && !line->takes_arguments) {
		complain("what is '%s'? '%s --help' shows what the command takes", argv[optind],
			 argv[0]);
		return 1;
	}
	*ret_options = options;
	*ret_status = STATUS_OK;
	return 0;
}

int options_parse(int argc, char **argv, const char *help, bool takes_verbose,
		  struct options *ret_options, int *ret_status)
{
	const struct command_line line = { .help = help, .takes_verbose = takes_verbose };

	return options_parse_line(argc, argv, &line, ret_options, ret_status);
}
