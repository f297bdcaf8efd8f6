/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the commands that print something. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct options {
	bool json;
	bool verbose;
};

/* An option of one command; its help is in the command's text. */
struct extra_option {
	const char *name;
	enum { OPTION_FLAG, OPTION_VALUE, OPTION_VALUE_OR_NOT } kind;
	bool *is_given; /* NULL: nobody asks */
	const char **value; /* stays as it is without a value; points into argv */
};

struct command_line {
	const char *help; /* what --help prints before the common options */
	const struct extra_option *extra;
	size_t extra_count; /* at most OPTIONS_EXTRA_MAX */
	bool takes_verbose, takes_arguments;
};
#define OPTIONS_EXTRA_MAX 8u

/* As options_parse() below. Arguments are argv[optind] and on. */
int options_parse_line(int argc, char **argv, const struct command_line *line, struct options *ret_options, int *ret_status);

/*
 * @help: what --help prints before the common options. @takes_verbose: -v exists. 0: go on; 1: the command is over, with *@ret_status.
 */
int options_parse(int argc, char **argv, const char *help, bool takes_verbose,
		  struct options *ret_options, int *ret_status);
