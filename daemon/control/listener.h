/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections. */
#pragma once

struct control;
struct listener;

/* @fd stays the caller's. */
int listener_new(struct control *control, int fd, struct listener **ret_listener);
struct listener *listener_free(struct listener *listener);
