/* SPDX-License-Identifier: Apache-2.0 */
/* Copy and fill, by this thread or as tasks of a stream. */
#include "client/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/buffer.h"
#include "client/channel.h"
#include "client/error.h"
#include "client/hostfunc.h"
#include "client/share.h"
#include "client/stream.h"
#include "client/strict.h"
#include "client/virtual.h"

#define PIECE (8u << 20) /* staging memory of one task */
#define TYPE_UINT8 7u	 /* HCCL_DATA_TYPE_UINT8 */

/* What an address of the program is. */
struct region {
	bool known; /* to the engine: `place` is valid */
	struct hccld_place place;
	char *address;
};

enum wanted { ANY, HOST, DEVICE };

/* ---- checks ---- */

static int check_counts(const char *function, const void *destination, uint64_t max,
			const void *source, uint64_t count)
{
	if (!destination || !source)
		return hccld_error(CAUSE_NULL, "%s: %s is NULL", function,
				   destination ? "src" : "dst");
	if (count == 0 || max == 0 || count > max)
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: count is %" PRIu64 ", destMax is %" PRIu64
				   "; expected 0 < count <= destMax",
				   function, count, max);
	return 0;
}

static int check_kind(const char *function, int kind, bool async, enum wanted *ret_destination,
		      enum wanted *ret_source)
{
	static const enum wanted of[][2] = {
		[HCCLD_COPY_HOST_TO_HOST] = { HOST, HOST },
		[HCCLD_COPY_HOST_TO_DEVICE] = { DEVICE, HOST },
		[HCCLD_COPY_DEVICE_TO_HOST] = { HOST, DEVICE },
		[HCCLD_COPY_DEVICE_TO_DEVICE] = { DEVICE, DEVICE },
		[HCCLD_COPY_DEFAULT] = { ANY, ANY },
		[HCCLD_COPY_HOST_TO_BUFFER_TO_DEVICE] = { DEVICE, HOST },
		[HCCLD_COPY_INNER_DEVICE] = { DEVICE, DEVICE },
		[HCCLD_COPY_INTER_DEVICE] = { DEVICE, DEVICE },
	};
	int last = async ? HCCLD_COPY_INTER_DEVICE : HCCLD_COPY_HOST_TO_BUFFER_TO_DEVICE;

	/* the code of CANN for an unknown kind is that of a NULL pointer */
	if (kind < 0 || kind > last)
		return hccld_error(CAUSE_NULL, "%s: kind is %d; expected 0 to %d", function, kind,
				   last);
	*ret_destination = of[kind][0];
	*ret_source = of[kind][1];
	return 0;
}

/* @name: the argument. */
static int region_find(const char *function, const char *name, const void *address, uint64_t count,
		       enum wanted wanted, struct region *ret_region)
{
	char extra[HCCLD_EXTRA_TEXT];
	bool is_device;
	int r;

	ret_region->address = (char *)(uintptr_t)address;
	ret_region->known = hccld_share_find(address, &ret_region->place) == 0;
	if (!ret_region->known) {
		r = hccld_share_lost_error(function, address);
		if (r < 0)
			return r;
	}
	is_device = ret_region->known && ret_region->place.memory == HCCLD_MEMORY_DEVICE;
	if (wanted == DEVICE && !is_device)
		return hccld_error(CAUSE_NOT_DEVICE_MEMORY,
				   "%s: %s is %p, which is not device memory, but kind says so",
				   function, name, address);
	if (wanted == HOST && is_device)
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: %s is %p, which is device memory, but kind says host",
				   function, name, address);
	/* no memory of the program's own: touching it is the end of the process */
	if (!ret_region->known && hccld_virtual_overlaps(address, count))
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: %s is %p, in or before a range of aclrtReserveMemAddress where nothing is mapped; call aclrtMapMem first (again, if the device was reset)",
				   function, name, address);
	if (!ret_region->known && hccld_channels_network_at(address, count))
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: %s is %p, in or before memory of a peer whose channel goes by a network: it is no memory of this process; read or write it over the channel (HcommReadOnThread, HcommWriteOnThread)",
				   function, name, address);
	if (ret_region->known && count > ret_region->place.available &&
	    count > hccld_buffer_span(address, count))
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: %s is %p, whose allocation ends after %" PRIu64 " bytes%s; count is %" PRIu64,
				   function, name, address, ret_region->place.available, hccld_buffer_extra_text(address, extra), count);
	return 0;
}

/* All of it. 1: the addresses are equal, nothing is to be done. */
static int copy_check(const char *function, void *destination, size_t max, const void *source,
		      size_t count, int kind, bool async, struct region *ret_destination,
		      struct region *ret_source)
{
	enum wanted wanted_destination = ANY, wanted_source = ANY;
	int r;

	r = hccld_session_check_fork();
	if (r < 0)
		return r;
	r = check_counts(function, destination, max, source, count);
	if (r < 0)
		return r;
	if (destination == source)
		return 1;
	r = check_kind(function, kind, async, &wanted_destination, &wanted_source);
	if (r < 0)
		return r;
	r = region_find(function, "dst", destination, count, wanted_destination, ret_destination);
	if (r < 0)
		return r;
	return region_find(function, "src", source, count, wanted_source, ret_source);
}

static int fill_check(const char *function, void *address, size_t max, size_t count,
		      struct region *ret_region)
{
	int r;

	r = hccld_session_check_fork();
	if (r < 0)
		return r;
	if (!address)
		return hccld_error(CAUSE_NULL, "%s: devPtr is NULL", function);
	if (count == 0 || count > max)
		return hccld_error(
			CAUSE_ARGUMENT,
			"%s: count is %zu, maxCount is %zu; expected 0 < count <= maxCount",
			function, count, max);
	return region_find(function, "devPtr", address, count, ANY, ret_region);
}

/* ---- by this thread ---- */

/* Is it device memory that this thread may not touch (HCCLD_STRICT_DEVICE)? */
static bool is_closed(const struct region *region)
{
	return region->known && region->place.memory == HCCLD_MEMORY_DEVICE && hccld_strict_is_closed();
}

static int transfer(struct hccld_context *context, const struct region *to, const struct region *from, int value, size_t count);

static int copy_now(struct hccld_context *context, const struct region *to, const struct region *from, size_t count)
{
	if (is_closed(to) || is_closed(from))
		return transfer(context, to, from, 0, count);
	memmove(to->address, from->address, count);
	return 0;
}

int hccld_memory_copy(void *destination, size_t destination_max, const void *source, size_t count,
		      int kind)
{
	struct region to, from;
	struct hccld_context *context;
	int r;

	r = copy_check("aclrtMemcpy", destination, destination_max, source, count, kind, false, &to,
		       &from);
	if (r < 0)
		return r;
	if (r == 1)
		return 0;
	r = hccld_context_current(&context);
	if (r < 0)
		return r;
	return copy_now(context, &to, &from, count);
}

/* The whole blocks lie where their first and last rows do. */
static int rows_check(const char *function, void *destination, size_t destination_pitch,
		      const void *source, size_t source_pitch, size_t width, size_t height, int kind,
		      bool async)
{
	const size_t to_size = (height - 1) * destination_pitch + width;
	struct region to, from;
	int r;

	r = copy_check(function, destination, to_size, source, width, kind, async, &to, &from);
	if (r < 0)
		return r;
	/* equal addresses, too: with different pitches their rows are not the same */
	r = region_find(function, "dst", destination, to_size, ANY, &to);
	if (r < 0)
		return r;
	return region_find(function, "src", source, (height - 1) * source_pitch + width, ANY, &from);
}

static int copy_row(const char *function, struct hccld_context *context, void *destination, const void *source, size_t width)
{
	struct region to, from;
	int r;

	if (!hccld_strict_is_closed()) {
		memmove(destination, source, width);
		return 0;
	}
	r = region_find(function, "dst", destination, width, ANY, &to);
	if (r == 0)
		r = region_find(function, "src", source, width, ANY, &from);
	return r < 0 ? r : copy_now(context, &to, &from, width);
}

int hccld_memory_copy_rows(const char *function, void *destination, size_t destination_pitch,
			   const void *source, size_t source_pitch, size_t width, size_t height,
			   int kind)
{
	struct hccld_context *context;
	int r;

	r = rows_check(function, destination, destination_pitch, source, source_pitch, width, height,
		       kind, false);
	if (r < 0)
		return r;
	r = hccld_context_current(&context);
	if (r < 0)
		return r;
	for (size_t row = 0; row < height && r == 0; row++)
		r = copy_row(function, context, (char *)destination + row * destination_pitch,
			     (const char *)source + row * source_pitch, width);
	return r;
}

int hccld_memory_fill(void *address, size_t max, int value, size_t count)
{
	struct region region;
	struct hccld_context *context;
	int r;

	r = fill_check("aclrtMemset", address, max, count, &region);
	if (r < 0)
		return r;
	r = hccld_context_current(&context);
	if (r < 0)
		return r;
	if (is_closed(&region))
		return transfer(context, &region, NULL, value, count);
	memset(address, value, count);
	return 0;
}

/* ---- as tasks ---- */

/* Staging memory of one task. */
struct stage {
	_Atomic uint32_t owners; /* its task, and what fills `in` later */
	void *in;  /* stands for the source */
	void *out; /* stands for the destination */
	const void *source;
	void *destination;
	size_t size;
};

static void stage_drop(void *arg)
{
	struct stage *stage = arg;

	if (atomic_fetch_sub(&stage->owners, 1) > 1)
		return;
	if (stage->in)
		(void)hccld_buffer_free(HCCLD_MEMORY_HOST, stage->in);
	if (stage->out)
		(void)hccld_buffer_free(HCCLD_MEMORY_HOST, stage->out);
	free(stage);
}

static void stage_done(void *arg)
{
	struct stage *stage = arg;

	if (stage->out)
		memcpy(stage->destination, stage->out, stage->size);
	stage_drop(stage);
}

/* At its place in the stream: only now the source holds what is to be copied. */
static void stage_fill(void *arg)
{
	struct stage *stage = arg;

	memcpy(stage->in, stage->source, stage->size);
	stage_drop(stage);
}

static int stage_allocate(struct hccld_stream *stream, size_t size, void **ret_memory,
			  struct hccld_place *ret_place)
{
	int r;

	r = hccld_buffer_allocate(hccld_stream_context(stream), HCCLD_MEMORY_HOST, size, 0,
				  ret_memory);
	if (r < 0)
		return r;
	return hccld_buffer_find(*ret_memory, ret_place);
}

/*
 * Now, if nothing that is queued before the copy can still write the source. A host function cannot wait for another one, and has its
 * source ready.
 */
static int stage_source(struct hccld_stream *stream, struct stage *stage)
{
	int r;

	if (hccld_host_is_inside() || !hccld_stream_is_held(stream)) {
		memcpy(stage->in, stage->source, stage->size);
		return 0;
	}
	stage->owners = 2;
	r = hccld_host_launch_own(stream, stage_fill, stage_drop, stage);
	if (r < 0)
		stage->owners = 1;
	return r;
}

/* Replaces what the engine cannot reach. @ret_stage: NULL if nothing had to be. */
static int stage_new(struct hccld_stream *stream, struct region *to, struct region *from,
		     size_t size, struct stage **ret_stage)
{
	struct stage *stage;
	int r = 0;

	*ret_stage = NULL;
	if (to->known && (!from || from->known))
		return 0;
	stage = calloc(1, sizeof(*stage));
	if (!stage)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to queue a copy");
	stage->owners = 1;
	stage->size = size;
	if (from && !from->known) {
		stage->source = from->address;
		r = stage_allocate(stream, size, &stage->in, &from->place);
	}
	if (r == 0 && stage->in)
		r = stage_source(stream, stage);
	if (r == 0 && !to->known) {
		stage->destination = to->address;
		r = stage_allocate(stream, size, &stage->out, &to->place);
	}
	if (r < 0) {
		stage_drop(stage);
		return r;
	}
	*ret_stage = stage;
	return 0;
}

/* One task: @from NULL fills with @value. */
static int submit(struct hccld_stream *stream, struct region to, const struct region *source,
		  int value, size_t size)
{
	struct item items[2] = { { .kind = source ? ITEM_COPY : ITEM_FILL,
				   .data_type = TYPE_UINT8,
				   .bytes = size,
				   .next = LANE_END,
				   .next_lane = LANE_END },
				 { .kind = ITEM_SOURCE, .next = LANE_END, .next_lane = LANE_END } };
	struct task task = { .kind = TASK_BATCH, .first_lane = 0 };
	struct hccld_after after = { .action = stage_done, .cancel = stage_drop };
	struct region from = source ? *source : (struct region){ 0 };
	struct stage *stage;
	int r;

	r = stage_new(stream, &to, source ? &from : NULL, size, &stage);
	if (r < 0)
		return r;
	items[0].segment = to.place.segment;
	items[0].offset = to.place.offset;
	if (source) {
		items[1].bytes = size;
		items[1].segment = from.place.segment;
		items[1].offset = from.place.offset;
	} else {
		items[0].peer = (unsigned char)value;
	}
	if (!stage)
		return hccld_stream_submit(stream, &task, items, source ? 2 : 1);
	after.arg = stage;
	after.writes = stage->destination;
	after.size = stage->destination ? size : 0;
	r = hccld_stream_submit_after(stream, &task, items, source ? 2 : 1, &after);
	if (r < 0)
		stage_drop(stage);
	return r;
}

/* Into the next mapping at the end of one, too: region_find() has found that there is one. */
static void region_advance(struct region *region, size_t size)
{
	region->address += size;
	if (!region->known)
		return;
	region->place.offset += size;
	region->place.available -= size;
	if (region->place.available == 0)
		region->known = hccld_buffer_find(region->address, &region->place) == 0;
}

static size_t region_limit(const struct region *region, size_t size)
{
	if (!region->known || !region->address)
		return size;
	return size < region->place.available ? size : (size_t)region->place.available;
}

/* As one task, or in pieces if staging memory is needed or a buffer is made of several mappings. */
static int submit_pieces(struct hccld_stream *stream, struct region to, const struct region *source,
			 int value, size_t count)
{
	struct region from = source ? *source : (struct region){ .known = true };
	size_t piece = to.known && from.known ? count : PIECE;

	for (size_t done = 0, size; done < count; done += size) {
		int r;

		size = count - done < piece ? count - done : piece;
		size = region_limit(&from, region_limit(&to, size));
		r = submit(stream, to, source ? &from : NULL, value, size);
		if (r < 0)
			return r;
		region_advance(&to, size);
		if (source)
			region_advance(&from, size);
	}
	return 0;
}

/* Within device memory, as by memmove(): by way of host memory. */
static int transfer_overlapping(struct hccld_stream *stream, const struct region *to, const struct region *from, size_t count)
{
	struct region between = { .known = true };
	void *memory;
	int r;

	r = stage_allocate(stream, count, &memory, &between.place);
	if (r < 0)
		return r;
	between.address = memory;
	r = submit_pieces(stream, between, from, 0, count);
	if (r == 0)
		r = submit_pieces(stream, *to, &between, 0, count);
	if (r == 0)
		r = hccld_stream_wait(stream, -1);
	(void)hccld_buffer_free(HCCLD_MEMORY_HOST, memory);
	return r;
}

/* By the engine, on a stream of the library's own; one at a time, so that an error is that of the caller. @from NULL fills with @value. */
static int transfer(struct hccld_context *context, const struct region *to, const struct region *from, int value, size_t count)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct hccld_stream *stream;
	int cancel, r;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	r = hccld_stream_get_inner(context, &stream);
	if (r == 0 && from && to->known && from->known && to->address < from->address + count && from->address < to->address + count)
		r = transfer_overlapping(stream, to, from, count);
	else if (r == 0)
		r = submit_pieces(stream, *to, from, value, count);
	if (r == 0)
		r = hccld_stream_wait(stream, -1);
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
	return r;
}

int hccld_memory_copy_async(void *destination, size_t destination_max, const void *source,
			    size_t count, int kind, void *handle)
{
	static const char function[] = "aclrtMemcpyAsync";
	uintptr_t to_start = (uintptr_t)destination, from_start = (uintptr_t)source;
	struct hccld_stream *stream;
	struct region to, from;
	bool nothing;
	int r;

	r = copy_check(function, destination, destination_max, source, count, kind, true, &to,
		       &from);
	if (r < 0)
		return r;
	if (r == 0 && to_start < from_start + count && from_start < to_start + count)
		return hccld_error(CAUSE_ARGUMENT, "%s: dst %p and src %p overlap within %zu bytes",
				   function, destination, source, count);
	nothing = r == 1;
	r = hccld_stream_get(handle, &stream);
	if (r < 0 || nothing)
		return r;
	/* an earlier copy of this stream may still have to write what this one reads now */
	if (!from.known && !hccld_stream_is_held(stream)) {
		r = hccld_stream_settle(stream, source, count);
		if (r < 0)
			return r;
	}
	return submit_pieces(stream, to, &from, 0, count);
}

static int known_find(const char *function, const char *name, const void *address,
		      const struct hccld_place *place, uint64_t count, struct region *ret_region)
{
	int r;

	if (place) {
		*ret_region = (struct region){ true, *place, (char *)(uintptr_t)address };
		return 0;
	}
	r = region_find(function, name, address, count, ANY, ret_region);
	if (r < 0 || ret_region->known)
		return r;
	return hccld_error(CAUSE_NOT_DEVICE_MEMORY,
			   "%s: %s is %p; expected memory of aclrtMalloc or aclrtMallocHost, or memory of another process that was imported or came with a channel",
			   function, name, address);
}

int hccld_memory_copy_on(const char *function, void *destination,
			 const struct hccld_place *destination_place, const void *source,
			 const struct hccld_place *source_place, uint64_t count,
			 struct hccld_stream *stream)
{
	uintptr_t to_start = (uintptr_t)destination, from_start = (uintptr_t)source;
	struct region to, from;
	int r;

	r = known_find(function, "dst", destination, destination_place, count, &to);
	if (r == 0)
		r = known_find(function, "src", source, source_place, count, &from);
	if (r < 0)
		return r;
	if (to_start < from_start + count && from_start < to_start + count)
		return hccld_error(CAUSE_ARGUMENT, "%s: dst %p and src %p overlap within %" PRIu64 " bytes",
				   function, destination, source, count);
	return stream ? submit_pieces(stream, to, &from, 0, count) : 0;
}

int hccld_memory_copy_rows_async(const char *function, void *destination, size_t destination_pitch,
				 const void *source, size_t source_pitch, size_t width,
				 size_t height, int kind, void *handle)
{
	char *to = destination;
	const char *from = source;
	int r;

	/* nothing is queued if something is wrong */
	r = rows_check(function, destination, destination_pitch, source, source_pitch, width, height,
		       kind, true);
	for (size_t row = 0; row < height && r == 0; row++) {
		const uintptr_t to_row = (uintptr_t)to + row * destination_pitch;
		const uintptr_t from_row = (uintptr_t)from + row * source_pitch;

		if (to_row != from_row && to_row < from_row + width && from_row < to_row + width)
			r = hccld_error(CAUSE_ARGUMENT, "%s: row %zu of dst and that of src overlap",
					function, row);
	}
	for (size_t row = 0; row < height && r == 0; row++)
		r = hccld_memory_copy_async(to + row * destination_pitch, width,
					    from + row * source_pitch, width, kind, handle);
	return r;
}

int hccld_memory_fill_async(void *address, size_t max, int value, size_t count, void *handle)
{
	struct hccld_stream *stream;
	struct region region;
	int r;

	r = fill_check("aclrtMemsetAsync", address, max, count, &region);
	if (r < 0)
		return r;
	r = hccld_stream_get(handle, &stream);
	if (r < 0)
		return r;
	return submit_pieces(stream, region, NULL, value, count);
}
