/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a side can beyond the first release of the protocol: bits of Hello.features and HelloReply.features. Each side says what it has; what
 * one of them lacks is not used: tasks, items and messages that need a bit are sent only to who has it. Release 0.1.0 has none. A bit is
 * never used again.
 */
#pragma once

#include <stdint.h>

#define HCCLD_FEATURE_TASKS (UINT64_C(1) << 0) /* events, host functions, values; AbortTasks; segments of kind EVENT */
#define HCCLD_FEATURE_MEMORY (UINT64_C(1) << 1) /* export and import of memory, descriptions of devices */
#define HCCLD_FEATURE_COMM (UINT64_C(1) << 2)  /* rank tables, parts of communicators, suspend and resume, ending a join */
#define HCCLD_FEATURE_TOOLS (UINT64_C(1) << 4) /* Farewell before a session is ended; KillSession, Drain, Ping, Monitor, list of streams */
#define HCCLD_FEATURE_RESOURCES (UINT64_C(1) << 5) /* notifies, reductions, threads, registrations, channels, vector cores, lazy segments */
#define HCCLD_FEATURE_DIRECT (UINT64_C(1) << 6) /* clients drive the executor: OpenPairs answers with the rings, MapPeer; states PATIENT and HELD */
#define HCCLD_FEATURE_LINKS (UINT64_C(1) << 7) /* links to other nodes: their list, pings to them */

/* What this build has. */
#define HCCLD_FEATURES \
	(HCCLD_FEATURE_TASKS | HCCLD_FEATURE_MEMORY | HCCLD_FEATURE_COMM | HCCLD_FEATURE_TOOLS | HCCLD_FEATURE_RESOURCES | HCCLD_FEATURE_DIRECT | \
	 HCCLD_FEATURE_LINKS)
