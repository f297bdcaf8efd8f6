/* SPDX-License-Identifier: Apache-2.0 */
/* Copy workers: threads that take one slice at a time from the engine thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct copier;

/*
 * @count threads (0 is fine), which write @event_fd when they have finished something while @awake is not BEACON_AWAKE. Both outlive the
 * copier. Negative
 * errno of pthread_create or -ENOMEM.
 */
int copier_new(uint32_t count, const _Atomic uint32_t *awake, int event_fd, struct copier **ret_copier);
/* Joins the threads; slices that are out come back to @engine first. Takes NULL. */
struct copier *copier_free(struct copier *copier, struct engine *engine);

/*
 * Engine thread: takes back what is finished and hands out what is worth it. True if anything moved. @crowded: tenants share, and what one of
 * them has to copy must not take the cores that others compute on.
 */
bool copier_run(struct copier *copier, struct engine *engine, bool crowded);
/* Slices are out. */
bool copier_is_busy(const struct copier *copier);
/* Something is to be taken back. */
bool copier_has_done(const struct copier *copier);
