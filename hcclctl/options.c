/* SPDX-License-Identifier: Apache-2.0 */
/* --json, --socket, --verbose, --help. */
#include "hcclctl/options.h"

#include <getopt.h>
#include <stdio.h>

#include "hcclctl/command.h"
#include "hcclctl/query.h"

enum { OPTION_JSON = 256, OPTION_SOCKET };

static const struct option long_options[] = {
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "help", no_argument, NULL, 'h' },
	{ "verbose", no_argument, NULL, 'v' },
	{ NULL, 0, NULL, 0 },
};

static void print_help(const char *help, bool takes_verbose)
{
	fputs(help, stdout);
	printf("\n%s"
	       "      --json         machine-readable; the fields are in hcclctl(1)\n"
	       "      --socket PATH  the daemon's socket\n"
	       "  -h, --help         this text\n",
	       takes_verbose ? "  -v, --verbose      more\n" : "");
}

int options_parse(int argc, char **argv, const char *help, bool takes_verbose,
		  struct options *ret_options, int *ret_status)
{
	struct options options = { .json = false };
	int option;

	*ret_status = STATUS_USAGE;
	while ((option = getopt_long(argc, argv, "vh", long_options, NULL)) != -1) {
		switch (option) {
		case OPTION_JSON:
			options.json = true;
			break;
		case OPTION_SOCKET:
			query_set_socket(optarg);
			break;
		case 'h':
			print_help(help, takes_verbose);
			*ret_status = STATUS_OK;
			return 1;
		case 'v':
			options.verbose = true;
			if (takes_verbose)
				break;
			complain("this command has no --verbose");
			return 1;
		default:
			fprintf(stderr, "'%s --help' shows the options.\n", argv[0]);
			return 1;
		}
	}
	if (optind < argc) {
		complain("what is '%s'? '%s --help' shows what the command takes", argv[optind],
			 argv[0]);
		return 1;
	}
	*ret_options = options;
	return 0;
}
