/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon: everything is made, tied together and ended here. */
#pragma once

struct config;

/*
 * Serves until SIGTERM or SIGINT; SIGHUP reads the configuration again, which the command line (@argc, @argv) leads to, and changes
 * @config. 0, or a negative errno with the reason in the log.
 */
int daemon_run(struct config *config, int argc, char **argv);
