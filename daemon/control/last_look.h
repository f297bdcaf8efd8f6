/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before streams are taken away the engine does what was queued in them and waits for nobody: a send that needs no receiver is done though
 * its sender goes right behind it. Who drives himself has done it when he submitted; this is for what the engine alone does.
 */
#pragma once

struct context;
struct control;
struct session;

/*
 * @then(@arg) when it has, at once if there is nothing to do, and after a time in any case. Of all contexts of @session, or of @only (not NULL). Contexts
 * of the session stay until then, but for what was about to go already.
 */
void last_look(struct control *control, struct session *session, const struct context *only, void (*then)(void *arg), void *arg);
