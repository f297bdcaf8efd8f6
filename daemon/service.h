/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager's side: readiness, status, watchdog, and the descriptor store. The other end
 * is systemd or our own keeper; without either, messages go nowhere (manager.h). Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "registry/store.h"

struct service;

/*
 * Reads what the manager has put into the environment.
 */
int service_new(struct service **ret_service);
struct service *service_free(struct service *service);

const struct descriptor_store *service_store(struct service *service);
/* A listening socket by socket activation, whatever the unit calls it: the caller's. -ENOENT. */
int service_take_listener(struct service *service);
/* Closes what was passed and nobody took, also in the store. */
void service_drop_rest(struct service *service);

/* "READY=1", "STATUS=...", "WATCHDOG=1" */
void service_notify(struct service *service, const char *state);
/* How often the watchdog wants a sign, 0: never. */
uint64_t service_watchdog_ms(const struct service *service);
bool service_has_manager(const struct service *service);
