/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands, one file each, and what they share: exit statuses and how they complain. */
#pragma once

#include <stdbool.h>

/* Exit statuses; `run` adds those of the program (command_run.c). Documented in hcclctl(1). */
enum exit_status {
	STATUS_OK = 0,
	STATUS_STUCK = 1, /* `status`: something is stuck; elsewhere: the request failed */
	STATUS_USAGE = 2,
	STATUS_NO_DAEMON = 3,
};

struct command {
	const char *name;
	const char *summary;
	/* @argv[0] is "hcclctl NAME", for messages. Returns the exit status. */
	int (*run)(int argc, char **argv);
};

int command_channels(int argc, char **argv);
int command_comms(int argc, char **argv);
int command_config(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_drain(int argc, char **argv);
int command_env(int argc, char **argv);
int command_log(int argc, char **argv);
int command_kill(int argc, char **argv);
int command_links(int argc, char **argv);
int command_monitor(int argc, char **argv);
int command_notifies(int argc, char **argv);
int command_ping(int argc, char **argv);
int command_limits(int argc, char **argv);
int command_mem(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_resources(int argc, char **argv);
int command_run(int argc, char **argv);
int command_status(int argc, char **argv);
int command_streams(int argc, char **argv);
int command_threads(int argc, char **argv);
int command_undrain(int argc, char **argv);
int command_version(int argc, char **argv);
int command_waiting(int argc, char **argv);

/* Writes out what is on stdout. A negative errno if that is lost, said on stderr the first time (-EPIPE is not: nobody reads). */
int output_flush(void);
/* One line on stderr, "hcclctl: ...". */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
