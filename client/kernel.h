/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host kernels: functions of the program whose blocks run all at the same time, on threads of this process, at their place in a stream.
 * Each block counts as a vector core of the device. A host function of a kind for everybody else (hostfunc.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hccld_stream;
struct kernel;

/* What a stream has of it; kernel.c, with its mutex. */
struct kernel_stream {
	uint32_t held;		/* vector cores, as the daemon knows */
	uint32_t queued;	/* kernels that are not over, also those that are being launched */
	uint32_t launching;	/* threads in hccld_kernel_launch() */
	bool is_asking;		/* a request about `held` is under way */
	uint64_t idle_since_ns; /* `queued` became 0 */
	struct hccld_stream *next; /* that holds any */
};

/*
 * Queues @function, with a copy of @size bytes of @args. -EINVAL: more blocks than the device has vector cores; -EXFULL: they are in use;
 * -ENOBUFS: no memory, no threads; text set.
 */
int hccld_kernel_launch(struct hccld_stream *stream, void (*function)(uint32_t block_index, uint32_t block_count, void *args),
			uint32_t blocks, const void *args, size_t size);

/* Calls @action when none of the kernels that have been launched by now runs, or is going to: at once, or in the thread of the last one. */
void hccld_kernels_then(void (*action)(void *base, uint64_t size), void *base, uint64_t size);

/* Does a kernel that has been launched by now run, or is one going to? */
bool hccld_kernels_run(void);

/* ---- for hostfunc.c ---- */

/* It has run, or is not going to; frees it. */
void hccld_kernel_over(struct kernel *kernel);
/* The stream has ended: until no thread launches on it. */
void hccld_kernel_await_launches(struct hccld_stream *stream);
/* The stream holds nothing any more, and has nothing queued; @running, a kernel of it, goes on. NULL: none does. */
void hccld_kernel_forget(struct hccld_stream *stream, struct kernel *running);
/* Afterwards, before the daemon takes the stream away: @running keeps its cores until it is over. Asks the daemon: without any lock of a stream. */
void hccld_kernel_keep(struct hccld_stream *stream, struct kernel *running);
