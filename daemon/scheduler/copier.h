/* SPDX-License-Identifier: Apache-2.0 */
/* Copy workers: threads that take one slice at a time from the engine thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct copier;

/* @count threads (0 is fine). Negative errno of pthread_create or -ENOMEM. */
int copier_new(uint32_t count, struct copier **ret_copier);
/* Joins the threads; slices that are out come back to @engine first. Takes NULL. */
struct copier *copier_free(struct copier *copier, struct engine *engine);

/* Engine thread: takes back what is finished and hands out what is worth it. True if anything moved. */
bool copier_run(struct copier *copier, struct engine *engine);
/* Slices are out: the engine thread must not sleep long. */
bool copier_is_busy(const struct copier *copier);
