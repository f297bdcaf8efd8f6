/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one session of this process: connection, shared regions, device contexts. Made by the first call that needs it, kept until the
 * process ends (aclFinalize ends nothing that is still in use). The child of a fork has none: every call gives -ECHILD there.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/connection.h"
#include "engine/direct.h"
#include "proto/ring.h"
#include "proto/yard.h"

struct hccld_stream;

/* What this process has of one device: made by the first aclrtSetDevice, gone when the reference count is 0. */
struct hccld_context {
	uint32_t device;		/* the daemon's number */
	int32_t logical;		/* as the program sees it (ASCEND_RT_VISIBLE_DEVICES) */
	_Atomic uint64_t id;		/* the daemon's id of the context */
	struct yard_context *words;
	_Atomic uint64_t *bit_word;
	uint64_t bit;
	_Atomic(struct hccld_stream *) default_stream;	/* made on first use; use hccld_stream_get() */
	_Atomic(struct hccld_stream *) inner_stream;	/* the same; hccld_stream_get_inner() */
	uint32_t references;		/* device.c */
	_Atomic bool open;		/* device.c; a closed one keeps its address, and may be opened again under another id */
	bool drives, was_driven;	/* drive.h */
	struct direct_context direct;
};

struct hccld_session {
	struct hccld_connection *connection;
	uint64_t id;
	uint64_t features;		/* HCCLD_FEATURE_... that the daemon and this library have */
	char daemon_version[32];
	uint32_t device_count;		/* of the daemon, before ASCEND_RT_VISIBLE_DEVICES */
	char soc_name[64];
	int allow_duplicate_items;	/* the daemon's setting */
	void *region;			/* struct session_region */
	struct yard *yard;
	uint64_t yard_bytes;		/* without `copies` where the yard has none */
	const struct beacon *beacon;
	int event_fd;
};

/*
 * Maps shared memory that came as @fd (which stays the caller's); hccld_mapping_free() unmaps it. -EPROTO if it is smaller than @size; text
 * set.
 */
int hccld_map(int fd, uint64_t size, int protection, void **ret_memory);

/* The session, connected if need be. -ECHILD after a fork, -ENOTCONN without a daemon; text set. */
int hccld_session_get(struct hccld_session **ret_session);
/*
 * Has the daemon this bit of proto/feature.h? -EOPNOTSUPP if not; text set, with @what as "events".
 */
int hccld_session_need(uint64_t feature, const char *what, struct hccld_session **ret_session);
/* Is this the child of a fork of a process with a session? Cheap. */
int hccld_session_check_fork(void);
/* The current device's context of this thread. -ENXIO: none; text set. */
int hccld_context_current(struct hccld_context **ret_context);
