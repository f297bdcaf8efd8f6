/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kept {
	struct list link;
	size_t size;
	unsigned char data[];
};

void stream_init(struct stream *stream, size_t limit)
{
	*stream = (struct stream){ .limit = limit };
	list_init(&stream->frames);
	stream->next = &stream->frames;
}

static void stream_forget(struct stream *stream, struct kept *kept)
{
	assert(stream->next != &kept->link);
	stream->bytes -= kept->size;
	list_remove(&kept->link);
	free(kept);
}

void stream_deinit(struct stream *stream)
{
	stream->next = &stream->frames;
	list_for_each(struct kept, kept, &stream->frames, link)
		stream_forget(stream, kept);
}

void stream_reset(struct stream *stream)
{
	size_t limit = stream->limit;

	stream_deinit(stream);
	stream_init(stream, limit);
}

int stream_push(struct stream *stream, const void *data, size_t size)
{
	struct kept *kept;

	if (size > stream->limit - stream->bytes)
		return -ENOBUFS;
	kept = malloc(sizeof(*kept) + size);
	if (!kept)
		return -ENOMEM;
	kept->size = size;
	memcpy(kept->data, data, size);
	list_append(&stream->frames, &kept->link);
	if (stream->next == &stream->frames)
		stream->next = &kept->link;
	stream->bytes += size;
	stream->last++;
	return 0;
}

bool stream_pop(struct stream *stream, const void **ret_data, size_t *ret_size)
{
	const struct kept *kept = list_entry(stream->next, struct kept, link);

	if (stream->next == &stream->frames)
		return false;
	stream->next = stream->next->next;
	stream->sent++;
	*ret_data = kept->data;
	*ret_size = kept->size;
	return true;
}

int stream_ack(struct stream *stream, uint64_t received)
{
	if (received > stream->sent)
		return -EPROTO;
	for (; stream->acked < received; stream->acked++)
		stream_forget(stream, list_entry(stream->frames.next, struct kept, link));
	return 0;
}

int stream_resume(struct stream *stream, uint64_t received)
{
	/* it may have more than the present connection was given: from the one before */
	if (received > stream->last || received < stream->acked)
		return -EPROTO;
	stream->next = &stream->frames;
	while (stream->acked < received) {
		stream_forget(stream, list_entry(stream->frames.next, struct kept, link));
		stream->acked++;
	}
	stream->sent = stream->acked;
	stream->next = stream->frames.next;
	return 0;
}

int stream_take(struct stream *stream, uint64_t number)
{
	if (number <= stream->received)
		return 0;
	if (number != stream->received + 1)
		return -EPROTO;
	stream->received = number;
	return 1;
}
