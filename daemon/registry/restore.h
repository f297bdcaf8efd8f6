/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a restart: objects and views from the records and the descriptor store. Before the
 * scheduler starts.
 */
#pragma once

struct registry;

/*
 * Rebuilds everything that is whole. A session that lacks a descriptor is gone at once, its ranks
 * are dead; one that could be restored in part only is marked is_broken. Never fails: what cannot
 * be restored is dropped, with a report.
 */
void registry_restore(struct registry *registry);

/*
 * Root infos nobody waits for and whose session is gone: some time after the restart, when all
 * clients have asked again.
 */
void registry_sweep(struct registry *registry);
