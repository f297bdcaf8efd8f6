/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From SIGTERM to the end of the loop. Two kinds:
 *
 *   restart  the service manager is about to start the next process: everything stays in its store, nobody is
 *            told anything, and the loop ends at once. Programs notice a pause.
 *   stop     nobody will go on with the work. New work is refused, what is in flight may finish until the grace
 *            period is over, the rest is named in the log; then the loop ends, sockets hang up, and
 *            clients' calls answer that hccld was stopped.
 *
 * A second signal ends the loop at once. Control thread.
 */
#pragma once

#include <stdint.h>

struct control;
struct loop;
struct service;
struct stop;

struct stop_options {
	struct loop *loop;
	struct control *control;
	struct service *service;
	uint32_t grace_ms;
};

int stop_new(const struct stop_options *options, struct stop **ret_stop);
/* SIGTERM or SIGINT has come. */
void stop_request(struct stop *stop, int number);
void stop_set_grace(struct stop *stop, uint32_t grace_ms);
struct stop *stop_free(struct stop *stop);
