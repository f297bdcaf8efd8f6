/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl run: options, and which daemon the ranks use. */
#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/connection.h"
#include "hcclctl/command.h"
#include "hcclctl/installation.h"
#include "hcclctl/job.h"
#include "hcclctl/query.h"
#include "hcclctl/text.h"
#include "hcclctl/visible.h"
#include "proto/cleanup.h"
#include "proto/limits.h"

#define DEVICES_DEFAULT 8u
#define GRACE_S 5u
#define DAEMON_ARGUMENTS_MAX 32

struct run {
	uint32_t rank_count, device_count, grace_s;
	bool private, keep_going, verbose;
	bool has_devices;      /* --devices */
	bool daemon_absent;    /* private because none runs */
	char daemon[PATH_MAX]; /* --daemon, else "" */
	char *daemon_arguments[DAEMON_ARGUMENTS_MAX + 1];
	size_t daemon_argument_count;
	const char *socket, *config_file;
	char **program;
};

static void usage(FILE *file)
{
	fputs("Usage: hcclctl run -n N [OPTIONS] [--] PROGRAM [ARGUMENTS]\n\n"
	      "Starts N processes of PROGRAM, one for each rank, and puts \"[rank] \" before each line they print.\n"
	      "They find in their environment RANK_ID and RANK, RANK_SIZE and WORLD_SIZE, LOCAL_RANK,\n"
	      "LOCAL_WORLD_SIZE, DEVICE_ID (rank modulo devices), HCCLD_SOCKET, HCCLD_JOB, and in LD_LIBRARY_PATH\n"
	      "the libraries of this installation. Rank 0 reads standard input unless that is a terminal.\n\n"
	      "  -n, --ranks N          how many, 1 to 4096\n"
	      "      --devices D        spread the ranks over D devices (default: all of a running daemon,\n"
	      "                         8 of a private one)\n"
	      "      --private          start a daemon for this run alone, also when one is running\n"
	      "      --keep-going       when a rank fails let the others go on\n"
	      "      --grace S          seconds from SIGTERM to SIGKILL when ranks are ended (default 5)\n"
	      "      --socket PATH      use the daemon there; with --private: where the daemon listens\n"
	      "  -v, --verbose          say which daemon is used\n"
	      "  -h, --help             this text\n\n"
	      "For the private daemon (each implies --private; see hccld(8)):\n"
	      "      --config FILE      its settings; the number of devices is that of --devices\n"
	      "      --device-memory SIZE, --soc-name NAME, --copy-threads N, --allow-duplicate-items,\n"
	      "      --keeper, --local-path NAME, --log-level LEVEL\n"
	      "      --daemon PROGRAM   the hccld to start (default: of this installation)\n\n"
	      "SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the ranks. A second request\n"
	      "to end ends them by SIGTERM and after the grace period by SIGKILL, a third one kills at once.\n\n"
	      "Exit status: that of the first rank that failed (128 + n when it was killed by signal n), 0 if none\n"
	      "did; 125 if the run could not be set up, 126 if PROGRAM cannot be run, 127 if there is none;\n"
	      "2 wrong usage, 3 no daemon at the socket that --socket names.\n",
	      file);
}

enum {
	RUN_DEVICES = 256,
	RUN_PRIVATE,
	RUN_KEEP_GOING,
	RUN_GRACE,
	RUN_SOCKET,
	RUN_DAEMON,
	RUN_FOR_DAEMON, /* handed on with its argument */
	RUN_FLAG_FOR_DAEMON,
};

static const struct option options[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "devices", required_argument, NULL, RUN_DEVICES },
	{ "private", no_argument, NULL, RUN_PRIVATE },
	{ "keep-going", no_argument, NULL, RUN_KEEP_GOING },
	{ "grace", required_argument, NULL, RUN_GRACE },
	{ "socket", required_argument, NULL, RUN_SOCKET },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "daemon", required_argument, NULL, RUN_DAEMON },
	{ "config", required_argument, NULL, RUN_FOR_DAEMON },
	{ "device-memory", required_argument, NULL, RUN_FOR_DAEMON },
	{ "soc-name", required_argument, NULL, RUN_FOR_DAEMON },
	{ "copy-threads", required_argument, NULL, RUN_FOR_DAEMON },
	{ "local-path", required_argument, NULL, RUN_FOR_DAEMON },
	{ "log-level", required_argument, NULL, RUN_FOR_DAEMON },
	{ "allow-duplicate-items", no_argument, NULL, RUN_FLAG_FOR_DAEMON },
	{ "keeper", no_argument, NULL, RUN_FLAG_FOR_DAEMON },
	{ NULL, 0, NULL, 0 },
};

static int number_option(const char *name, uint32_t low, uint32_t high, uint32_t *ret_number)
{
	if (text_number(optarg, low, high, ret_number) == 0)
		return 0;
	complain("%s takes a number from %" PRIu32 " to %" PRIu32 ", not '%s'", name, low, high,
		 optarg);
	return -EINVAL;
}

static int add_daemon_argument(struct run *run, const char *text)
{
	if (run->daemon_argument_count == DAEMON_ARGUMENTS_MAX) {
		complain("too many options for the daemon");
		return -E2BIG;
	}
	run->daemon_arguments[run->daemon_argument_count++] = (char *)text;
	return 0;
}

/* For ini_parse(): the last number of devices in a file. */
static int read_devices(void *file_devices, const char *section, const char *name, const char *value)
{
	if (strcmp(section, "devices") == 0 && strcmp(name, "devices") == 0)
		*(uint32_t *)file_devices = (uint32_t)strtoul(value, NULL, 10);
	return 1;
}

/* Those of --config do not count: that is told, since its other settings do. The daemon complains of a file that is wrong. */
static void compare_devices(const struct run *run)
{
	uint32_t file_devices = 0;

	if (run->config_file)
		(void)ini_parse(run->config_file, read_devices, &file_devices);
	if (file_devices && file_devices != run->device_count)
		complain("the private daemon has %" PRIu32 " devices (%s), not %" PRIu32 " as in %s: hcclctl run sets the number by --devices",
			 run->device_count, run->has_devices ? "--devices" : "the default", file_devices, run->config_file);
}

/* An option of hccld under its own name. */
static int pass_to_daemon(struct run *run, int place)
{
	static char names[DAEMON_ARGUMENTS_MAX][32];
	char *name = names[run->daemon_argument_count % DAEMON_ARGUMENTS_MAX];
	int r;

	snprintf(name, sizeof(names[0]), "--%s", options[place].name);
	run->private = true;
	r = add_daemon_argument(run, name);
	if (r == 0 && options[place].has_arg)
		r = add_daemon_argument(run, optarg);
	if (strcmp(options[place].name, "config") == 0)
		run->config_file = optarg;
	return r;
}

static int parse_option(struct run *run, int option, int place)
{
	switch (option) {
	case 'n':
		return number_option("-n", 1, JOB_RANKS_MAX, &run->rank_count);
	case RUN_DEVICES:
		return number_option("--devices", 1, HCCLD_DEVICES_MAX, &run->device_count);
	case RUN_GRACE:
		return number_option("--grace", 0, 86400, &run->grace_s);
	case RUN_PRIVATE:
		run->private = true;
		return 0;
	case RUN_KEEP_GOING:
		run->keep_going = true;
		return 0;
	case RUN_SOCKET:
		if (!query_set_socket(optarg))
			return -EINVAL;
		return 0;
	case 'v':
		run->verbose = true;
		return 0;
	case RUN_DAEMON:
		run->private = true;
		if (!realpath(optarg, run->daemon)) {
			complain("--daemon %s: %s", optarg, strerror(errno));
			return -errno;
		}
		return 0;
	case RUN_FOR_DAEMON:
	case RUN_FLAG_FOR_DAEMON:
		return pass_to_daemon(run, place);
	default:
		return -EINVAL;
	}
}

/* 0: go on. Otherwise *@ret_status is the exit status. */
static int parse(struct run *run, int argc, char **argv, int *ret_status)
{
	int option, place = 0;

	*ret_status = STATUS_USAGE;
	while ((option = getopt_long(argc, argv, "+n:vh", options, &place)) != -1) {
		if (option == 'h') {
			usage(stdout);
			*ret_status = STATUS_OK;
			return 1;
		}
		if (parse_option(run, option, place) < 0) {
			fputs("'hcclctl run --help' shows the options.\n", stderr);
			return 1;
		}
	}
	if (!run->rank_count)
		complain("how many ranks? hcclctl run -n N -- PROGRAM");
	else if (optind == argc)
		complain("which program? hcclctl run -n %" PRIu32 " -- PROGRAM", run->rank_count);
	else
		run->program = argv + optind;
	return !run->program;
}

/* 0: complained about, wrong usage. */
static uint32_t count_visible(uint32_t device_count)
{
	char error[160];
	uint32_t count = visible_count(device_count);

	if (!count)
		complain("ASCEND_RT_VISIBLE_DEVICES is '%.64s': %s", getenv("ASCEND_RT_VISIBLE_DEVICES") ?: "",
			 visible_error(device_count, error, sizeof(error)) ?: "the daemon has no device");
	return count;
}

/* A running daemon if there is one and it is to be used: its devices. Otherwise run->private. 0 or an exit status. */
static int find_daemon(struct run *run)
{
	struct query *query;
	uint32_t visible;
	int r;

	if (run->private)
		return 0;
	r = query_open(&query);
	if (r == -ENOTCONN && !query_socket_is_given()) {
		run->private = run->daemon_absent = true;
		return 0;
	}
	if (r < 0) {
		r = query_complain(r);
		if (r != STATUS_NO_DAEMON)
			fputs("'hcclctl run --private' uses a daemon of its own.\n", stderr);
		return r == STATUS_NO_DAEMON ? r : JOB_FAILED;
	}
	visible = count_visible(query_hello(query)->device_count);
	query_close(query);
	if (getenv("HCCLD_LOCAL_PATH"))
		complain("HCCLD_LOCAL_PATH is set, but does nothing: the daemon that runs here has a setting of its own (hcclctl status); --private starts one that heeds it");
	if (!visible)
		return STATUS_USAGE;
	if (run->device_count > visible) {
		complain("--devices %" PRIu32 ", but the daemon has %" PRIu32
			 " that the ranks may use; "
			 "--private starts one with as many as you like",
			 run->device_count, visible);
		return STATUS_USAGE;
	}
	if (!run->device_count)
		run->device_count = visible;
	return 0;
}

static bool absolute_path(const char *path, char absolute[PATH_MAX])
{
	CLEANUP(freep) char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);

	return snprintf(absolute, PATH_MAX, "%s%s%s", here ? here : "", here ? "/" : "", path) <
	       PATH_MAX;
}

static int start_daemon(struct run *run, struct job *job)
{
	struct guard_options guard = { .daemon = run->daemon, .arguments = run->daemon_arguments };
	static char path[PATH_MAX];
	char tried[PATH_MAX];

	if (!run->daemon[0] && installation_daemon(run->daemon) < 0) {
		complain(
			"there is no hccld beside this hcclctl nor in PATH; --daemon PROGRAM names one");
		return JOB_FAILED;
	}
	if (query_socket_is_given()) {
		if (!absolute_path(getenv("HCCLD_SOCKET"), path)) {
			complain("--socket: the path is too long");
			return STATUS_USAGE;
		}
		guard.socket = path;
	}
	if (!job_start_daemon(job, &guard))
		return JOB_FAILED;
	if (run->daemon_absent)
		complain("no daemon answers at %s; started a private one with %" PRIu32 " devices at %s",
			 hccld_socket_path(tried, sizeof(tried)) < 0 ? "the socket of this shell" : tried, run->device_count, job_guard(job)->socket);
	else if (run->verbose)
		complain("started a private daemon with %" PRIu32 " devices at %s", run->device_count, job_guard(job)->socket);
	return 0;
}

static int run_job(struct run *run)
{
	static char devices[16];
	char library_directory[PATH_MAX + 8];
	struct launch launch = { .program = run->program, .rank_count = run->rank_count };
	struct job *job;
	int r, status = 0;

	run->has_devices = run->device_count != 0;
	if (!run->device_count)
		run->device_count = DEVICES_DEFAULT;
	launch.device_count = run->device_count;
	if (run->private) {
		snprintf(devices, sizeof(devices), "%" PRIu32, run->device_count);
		compare_devices(run);
		if (add_daemon_argument(run, "--devices") < 0 ||
		    add_daemon_argument(run, devices) < 0)
			return STATUS_USAGE;
		launch.device_count = count_visible(run->device_count);
		if (!launch.device_count)
			return STATUS_USAGE;
	}
	if (installation_ascend(library_directory) == 0) {
		strcat(library_directory, "/lib64");
		if (access(library_directory, X_OK) == 0)
			launch.library_directory = library_directory;
	}
	r = job_new(&launch, run->keep_going, run->grace_s, &job);
	if (r == -EMFILE)
		complain("%" PRIu32
			 " ranks need more open files than the limit allows (ulimit -Hn)",
			 run->rank_count);
	else if (r < 0)
		complain("cannot prepare the run: %s", strerror(-r));
	if (r < 0)
		return JOB_FAILED;
	if (run->private)
		status = start_daemon(run, job);
	else if (run->verbose)
		complain("using the running daemon, %" PRIu32 " devices", run->device_count);
	if (status == 0)
		status = job_run(job);
	job_free(job);
	return status;
}

int command_run(int argc, char **argv)
{
	/* What the user gives comes later and counts. */
	struct run run = { .grace_s = GRACE_S,
			   .daemon_arguments = { (char *)"--no-keeper", (char *)"--log-level",
						 (char *)"warning" },
			   .daemon_argument_count = 3 };
	int status;

	if (parse(&run, argc, argv, &status))
		return status;
	status = find_daemon(&run);
	if (status)
		return status;
	return run_job(&run);
}
