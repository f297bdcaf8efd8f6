/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon: everything is made, tied together and ended here. */
#pragma once

struct config;

/* Serves until SIGTERM or SIGINT. 0, or a negative errno with the reason in the log. */
int daemon_run(const struct config *config);
