/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcclctl: looks at a daemon and starts the ranks of a program. An ordinary client: what it knows it asks for over the same socket as
 * every program. One thread. This file chooses the subcommand.
 */
#include "hcclctl/command.h"
#include "hcclctl/query.h"
#include "proto/spelling.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
	{ "status", "is the daemon well, and what has waited longest", command_status },
	{ "ps", "the processes that are connected", command_ps },
	{ "comms", "communicators and their ranks", command_comms },
	{ "devices", "devices with their memory, RDMA devices of this machine", command_devices },
	{ "limits", "what each tenant holds, and how much it may", command_limits },
	{ "mem", "memory by device, process and kind", command_mem },
	{ "resources", "channels, notifies, vector cores: budgets, and which rank holds them", command_resources },
	{ "channels", "channels: which ranks have each other's memory, and which wait for that", command_channels },
	{ "waiting", "every operation that waits: for whom, since when, why", command_waiting },
	{ "config", "every setting of the daemon, where it comes from, what changes it", command_config },
	{ "log", "what the daemon logs from now on", command_log },
	{ "streams", "streams: what each is at, and what its head waits for", command_streams },
	{ "notifies", "notifies: who has them, their values, who waits", command_notifies },
	{ "threads", "execution queues of programs' own operators, and what each is at", command_threads },
	{ "links", "links to other nodes: state, address, round trip, bytes", command_links },
	{ "monitor", "what happens from now on, a line for each event", command_monitor },
	{ "ping", "is the daemon alive; for scripts, by its exit status", command_ping },
	{ "kill", "end the session of a process", command_kill },
	{ "drain", "let no new programs in; undrain: let them in again", command_drain },
	{ "undrain", "the end of drain", command_undrain },
	{ "run", "start the ranks of a program", command_run },
	{ "env", "print the shell settings for building and running with this installation",
	  command_env },
	{ "version", "versions of this tool and of the daemon", command_version },
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

int output_flush(void)
{
	static int lost; /* the error, once it is told */

	if (lost || (!fflush(stdout) && !ferror(stdout)))
		return lost;
	lost = errno ? -errno : -EIO;
	if (lost != -EPIPE)
		fprintf(stderr, "hcclctl: cannot write the output: %s\n", strerror(-lost));
	return lost;
}

void complain(const char *format, ...)
{
	char line[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	(void)output_flush();
	fprintf(stderr, "hcclctl: %s\n", line);
}

static void print_overview(FILE *file)
{
	fputs("Usage: hcclctl [--socket PATH] COMMAND [OPTIONS]\n\n"
	      "Looks at hccld, the daemon that offers HCCL on this node, and starts programs that use it.\n\n"
	      "Commands:\n",
	      file);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(file, "  %-9s %s\n", commands[i].name, commands[i].summary);
	fputs("\n"
	      "Options:\n"
	      "  --socket PATH  the daemon's socket (default: HCCLD_SOCKET, else /run/hccld/hccld.sock,\n"
	      "                 else hccld/hccld.sock in XDG_RUNTIME_DIR)\n"
	      "  --json         machine-readable output (of all commands but run)\n"
	      "  --help         this text; after a command: about that command\n"
	      "  --version      as the command version\n\n"
	      "First steps:\n"
	      "  hcclctl run -n 8 -- ./program   eight ranks on a private daemon if none runs\n"
	      "  hcclctl status                  what goes on\n\n"
	      "Exit status: 0 all is well, 1 something is stuck or failed, 2 wrong usage, 3 no daemon.\n"
	      "More: man hcclctl, man 7 hccld\n",
	      file);
}

/* The command that @name was probably meant to be, or NULL. */
static const char *suggestion(const char *name)
{
	static const char *const others[][2] = {
		{ "sessions", "ps" },  { "processes", "ps" },	     { "top", "status" },
		{ "list", "ps" },      { "start", "run" },	     { "exec", "run" },
		{ "launch", "run" },   { "communicators", "comms" }, { "nics", "devices" },
		{ "memory", "mem" },   { "quota", "limits" },	     { "tenants", "limits" },
		{ "settings", "config" }, { "wait", "waiting" }, { "environment", "env" },     { "info", "status" },
	};
	const char *best = NULL;
	unsigned int best_distance = 3;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(name, others[i][0]))
			return others[i][1];
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		unsigned int distance = spelling_distance(name, commands[i].name);

		if (distance < best_distance && 2 * distance <= strlen(commands[i].name)) {
			best_distance = distance;
			best = commands[i].name;
		}
	}
	return best;
}

static int unknown_command(const char *name)
{
	const char *meant = suggestion(name);

	if (meant)
		complain("there is no command '%s'; did you mean '%s'?", name, meant);
	else
		complain("there is no command '%s'; 'hcclctl help' lists them", name);
	return STATUS_USAGE;
}

/* What is closed would become the connection, and get what we print. Only to read: a write fails as before. */
static void fill_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int run_command(const char *name, int argc, char **argv)
{
	char title[48];

	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(name, commands[i].name))
			continue;
		snprintf(title, sizeof(title), "hcclctl %s", name);
		argv[0] = title;
		optind = 0; /* getopt_long starts anew */
		if (commands[i].run != command_run) /* it does without */
			fill_standard_fds();
		return commands[i].run(argc, argv);
	}
	return unknown_command(name);
}

/* `hcclctl help [COMMAND]` */
static int help(int argc, char **argv)
{
	char *again[] = { NULL, (char *)"--help", NULL };

	if (argc < 2 || argv[1][0] == '-') {
		print_overview(stdout);
		return STATUS_OK;
	}
	return run_command(argv[1], 2, again);
}

/* Alone it is a question; what has options was to do something, and must not look as if it had. */
static int no_command(bool has_options)
{
	if (!has_options) {
		print_overview(stdout);
		return STATUS_OK;
	}
	complain("which command? 'hcclctl help' lists them (a --socket without PATH takes the next word for it)");
	return STATUS_USAGE;
}

enum { OPTION_SOCKET = 256, OPTION_VERSION, OPTION_JSON };

static const struct option options[] = {
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

/* Options before the command; `hcclctl --json status` is `hcclctl status --json`. */
static int dispatch(int argc, char **argv)
{
	bool json = false, version = false;
	char **moved;
	int c, r, count;

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (c) {
		case OPTION_SOCKET:
			if (!query_set_socket(optarg))
				return STATUS_USAGE;
			break;
		case OPTION_JSON:
			json = true;
			break;
		case OPTION_VERSION:
			version = true;
			break;
		case 'h':
			print_overview(stdout);
			return STATUS_OK;
		default:
			fputs("'hcclctl --help' shows what there is.\n", stderr);
			return STATUS_USAGE;
		}
	}
	argc -= optind;
	argv += optind;
	if (!version && argc == 0)
		return no_command(optind > 1);
	if (!version && !strcmp(argv[0], "help"))
		return help(argc, argv);

	moved = calloc((size_t)argc + 3, sizeof(*moved));
	if (!moved)
		return STATUS_STUCK;
	count = 1;
	if (json)
		moved[count++] = (char *)"--json";
	for (int i = 1; i < argc; i++)
		moved[count++] = argv[i];
	r = run_command(version ? "version" : argv[0], count, moved);
	free(moved);
	return r;
}

int main(int argc, char **argv)
{
	int r, status;

	setlocale(LC_CTYPE, "");
	status = dispatch(argc, argv);
	/* A full disk must not look like success. A reader that left early is its own business. */
	r = output_flush();
	if (r < 0 && r != -EPIPE && status == STATUS_OK)
		status = STATUS_STUCK;
	return status;
}
