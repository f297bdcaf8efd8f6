/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes of the ranks to our outputs, line by line. One thread. */
#include "hcclctl/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_SIZE 65536u
#define LINE_SIZE_MAX (1u << 20) /* a longer line is broken in two */
#define SINK_FULL (1u << 20)
/* A pipe that polls as writable takes this much without blocking (PIPE_BUF of Linux). */
#define WRITE_SIZE 4096u

void sink_init(struct sink *sink, int fd)
{
	struct stat status;

	memset(sink, 0, sizeof(*sink));
	sink->fd = fd;
	sink->always_ready =
		!fstat(fd, &status) && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

void sink_deinit(struct sink *sink)
{
	free(sink->data);
	memset(sink, 0, sizeof(*sink));
	sink->fd = -1;
}

bool sink_is_empty(const struct sink *sink)
{
	return sink->start == sink->end;
}

bool sink_is_full(const struct sink *sink)
{
	return sink->end - sink->start >= SINK_FULL;
}

int sink_add(struct sink *sink, const void *data, size_t size)
{
	if (sink->error || !size)
		return 0;
	if (size > sink->capacity - sink->end && sink->start) {
		memmove(sink->data, sink->data + sink->start, sink->end - sink->start);
		sink->end -= sink->start;
		sink->start = 0;
	}
	if (size > sink->capacity - sink->end) {
		size_t capacity = (sink->end + size) * 2;
		char *grown = realloc(sink->data, capacity);

		if (!grown)
			return -ENOMEM;
		sink->data = grown;
		sink->capacity = capacity;
	}
	memcpy(sink->data + sink->end, data, size);
	sink->end += size;
	return 0;
}

void sink_write(struct sink *sink)
{
	while (sink->start < sink->end) {
		struct pollfd ready = { .fd = sink->fd, .events = POLLOUT };
		size_t size = sink->end - sink->start;
		ssize_t n;

		if (!sink->always_ready) {
			/* Our two outputs may be one pipe, so what an earlier poll said may be over. */
			if (poll(&ready, 1, 0) <= 0)
				return;
			if (size > WRITE_SIZE)
				size = WRITE_SIZE;
		}
		n = write(sink->fd, sink->data + sink->start, size);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			sink->error = errno;
			sink->start = sink->end = 0;
			return;
		}
		sink->start += (size_t)n;
	}
	sink->start = sink->end = 0;
}

void source_init(struct source *source, int fd, struct sink *sink, const char *prefix)
{
	int flags = fcntl(fd, F_GETFL);

	memset(source, 0, sizeof(*source));
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	source->fd = fd;
	source->sink = sink;
	source->prefix_size = strlen(prefix);
	if (source->prefix_size > sizeof(source->prefix))
		source->prefix_size = sizeof(source->prefix);
	memcpy(source->prefix, prefix, source->prefix_size);
}

/* Prefix, the kept begin of the line, @data, which ends with the line or gets an end. Without memory the line is lost, nothing else. */
static void source_emit(struct source *source, const char *data, size_t size)
{
	bool has_end = size && data[size - 1] == '\n';

	if (sink_add(source->sink, source->prefix, source->prefix_size) == 0 &&
	    sink_add(source->sink, source->line, source->size) == 0 &&
	    sink_add(source->sink, data, size) == 0 && !has_end)
		sink_add(source->sink, "\n", 1);
	source->size = 0;
}

static void source_keep(struct source *source, const char *data, size_t size)
{
	if (size > source->capacity - source->size) {
		size_t capacity = (source->size + size) * 2;
		char *grown = realloc(source->line, capacity);

		if (!grown) {
			source_emit(source, data, size);
			return;
		}
		source->line = grown;
		source->capacity = capacity;
	}
	memcpy(source->line + source->size, data, size);
	source->size += size;
	if (source->size >= LINE_SIZE_MAX)
		source_emit(source, NULL, 0);
}

void source_read(struct source *source)
{
	static char buffer[READ_SIZE];
	char *next = buffer, *end;
	ssize_t n;

	if (source->fd < 0)
		return;
	n = read(source->fd, buffer, sizeof(buffer));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		source_close(source);
		return;
	}
	end = buffer + n;
	while (next < end) {
		char *newline = memchr(next, '\n', (size_t)(end - next));

		if (!newline) {
			source_keep(source, next, (size_t)(end - next));
			break;
		}
		source_emit(source, next, (size_t)(newline + 1 - next));
		next = newline + 1;
	}
}

void source_close(struct source *source)
{
	if (source->fd < 0)
		return;
	if (source->size)
		source_emit(source, NULL, 0);
	close(source->fd);
	source->fd = -1;
	free(source->line);
	source->line = NULL;
	source->capacity = 0;
}
