/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the commands that print something. */
#pragma once

#include <stdbool.h>

struct options {
	bool json;
	bool verbose;
};

/*
 * @help: what --help prints before the common options. @takes_verbose: -v exists. 0: go on; 1: the command is over, with *@ret_status.
 */
int options_parse(int argc, char **argv, const char *help, bool takes_verbose,
		  struct options *ret_options, int *ret_status);
