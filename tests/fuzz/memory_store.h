/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor store in memory: what a keeper holds from one process of the daemon to the next. */
#pragma once

struct descriptor_store;

const struct descriptor_store *memory_store(void);
/* Descriptors that are in it. */
unsigned int memory_store_count(void);
/* What is in it is an earlier process's from now on: it can be taken. */
void memory_store_restart(void);
/* What this process has neither taken nor added goes. */
void memory_store_drop_rest(void);
