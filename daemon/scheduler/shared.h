/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies that clients help with (engine/chunk.c): what the engine has to know of the node. */
#pragma once

#include <stdbool.h>

struct engine;
struct view_session;

void shared_start(struct engine *engine);
/* struct engine_host */
bool shared_has_ended(void *data, const struct view_session *session);
