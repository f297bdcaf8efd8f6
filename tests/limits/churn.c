/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Things come and go: churn N. N connections, sessions with a stream, communicators of two ranks, allocations and notifies, then as many again.
 * Between the two rounds nothing of the daemon may have grown: memory that is its own (PSS without its memfds), descriptors, memfds,
 * streams, records. Starts a daemon of its own.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

struct measure {
	uint64_t anonymous_kib; /* private memory of the daemon */
	uint64_t memfd_kib;	/* backed in its memfds */
	int fds, threads;
	uint32_t sessions, comms, streams;
	uint64_t device_bytes;
};

static struct private_daemon private_daemon;

static uint64_t status_field(const char *file, const char *name)
{
	char path[64], line[256];
	uint64_t value = 0;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/%s", private_daemon.pid, file);
	stream = fopen(path, "re");
	check_ptr(stream);
	while (fgets(line, sizeof(line), stream))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoull(line + strlen(name), NULL, 10);
	fclose(stream);
	return value;
}

/* Counts descriptors, and what memfds are backed with. */
static void measure_fds(struct measure *measure)
{
	static ino_t seen[65536];
	char path[300];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", private_daemon.pid);
	dir = opendir(path);
	check_ptr(dir);
	while ((entry = readdir(dir))) {
		char target[256];
		struct stat st;
		ssize_t n;
		size_t i = 0;

		if (entry->d_name[0] == '.')
			continue;
		measure->fds++;
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", private_daemon.pid, entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 7 || strncmp(target, "/memfd:", 7) != 0 || stat(path, &st) < 0)
			continue;
		while (i < count && seen[i] != st.st_ino)
			i++;
		if (i < count)
			continue;
		check_lt_uint(count, sizeof(seen) / sizeof(seen[0]));
		seen[count++] = st.st_ino;
		measure->memfd_kib += (uint64_t)st.st_blocks / 2;
	}
	closedir(dir);
}

static struct measure measure_now(void)
{
	struct measure measure = { 0 };
	struct raw_reply reply;

	raw_status(&reply);
	measure.sessions = reply.message->status->sessions;
	measure.comms = reply.message->status->comms;
	measure.streams = reply.message->status->streams;
	for (size_t i = 0; i < reply.message->status->n_devices; i++)
		measure.device_bytes += reply.message->status->devices[i]->memory_used;
	raw_reply_free(&reply);
	measure.anonymous_kib = status_field("status", "RssAnon:");
	measure.threads = (int)status_field("status", "Threads:");
	measure_fds(&measure);
	return measure;
}

/* When all that was taken down is gone. */
static struct measure measure_settled(void)
{
	struct measure measure;

	for (unsigned tries = 0;; tries++) {
		measure = measure_now();
		if ((!measure.sessions && !measure.comms && !measure.streams && !measure.device_bytes) ||
		    tries > 200 * test_timeout_scale())
			return measure;
		usleep(20000);
	}
}

static void churn_connections(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		close(raw_connect());
}

static void churn_sessions(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct raw_client client;

		raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		raw_create_stream(&client, raw_open_context(&client, i % 8));
		raw_client_stop(&client);
	}
}

static void churn_comms(struct raw_client *client, uint64_t context, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct raw_reply reply;
		struct raw_root root;
		uint64_t ranks[2];

		raw_root_info(client, &root);
		raw_join_send(client, &root, 0, 2, context, 20000);
		raw_join_send(client, &root, 1, 2, context, 20000);
		for (uint32_t rank = 0; rank < 2; rank++) {
			check_eq_int(raw_receive(client, &reply), 0);
			check_eq_uint(reply.message->cause, 0);
			ranks[rank] = reply.message->join_comm->rank;
			raw_reply_free(&reply);
		}
		raw_open_pair(client, ranks[0], 1);
		raw_leave(client, ranks[0]);
		raw_leave(client, ranks[1]);
	}
}

static void churn_memory(struct raw_client *client, uint64_t context, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		raw_free(client, raw_allocate(client, context, 4096u << i % 6, NULL));
}

static uint32_t create_notifies(struct raw_client *client, uint64_t context, uint32_t count)
{
	Hccld__Control__CreateNotifies message = HCCLD__CONTROL__CREATE_NOTIFIES__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint32_t first;

	message.context = context;
	message.count = count;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_NOTIFIES;
	request.create_notifies = &message;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	first = reply.message->create_notifies->first;
	raw_reply_free(&reply);
	return first;
}

static void free_notifies(struct raw_client *client, uint64_t context, uint32_t first)
{
	Hccld__Control__FreeNotifies message = HCCLD__CONTROL__FREE_NOTIFIES__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	message.context = context;
	message.first = first;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_FREE_NOTIFIES;
	request.free_notifies = &message;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
}

/* One stays, so that places are given out around it. */
static void churn_notifies(struct raw_client *client, uint64_t context, uint32_t count)
{
	uint32_t kept = create_notifies(client, context, 100);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = create_notifies(client, context, 1 + i % 70);

		check_eq_uint(first, kept + 100);
		free_notifies(client, context, first);
	}
	free_notifies(client, context, kept);
}

static void churn(uint32_t count)
{
	struct raw_client client;
	uint64_t context;

	churn_connections(count);
	churn_sessions(count);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	churn_comms(&client, context, count);
	churn_memory(&client, context, count);
	churn_notifies(&client, context, count);
	raw_client_stop(&client);
}

static void print(const char *what, const struct measure *m)
{
	printf("%-8s %6" PRIu64 " KiB own memory, %6" PRIu64
	       " KiB in memfds, %d descriptors, %d threads, %u sessions, %u communicators, %u streams\n",
	       what, m->anonymous_kib, m->memfd_kib, m->fds, m->threads, m->sessions, m->comms, m->streams);
	fflush(stdout);
}

/* Returns what it is after another round, which leaves nothing but memory of the allocator. */
static struct measure churn_again(uint32_t count, const struct measure *before)
{
	struct measure after = { 0 };

	churn(count);
	/* what the last question has opened may still be about to close */
	for (unsigned tries = 0; tries < 50 * test_timeout_scale(); tries++) {
		after = measure_settled();
		if (after.fds == before->fds)
			break;
		usleep(50000);
	}
	print("after", &after);
	check_eq_int(after.fds, before->fds);
	check_eq_int(after.threads, before->threads);
	check_eq_uint(after.memfd_kib, before->memfd_kib);
	check_eq_uint(after.sessions + after.comms + after.streams, 0);
	return after;
}

static void churn_and_compare(uint32_t count)
{
	static const char *const options[] = { "--device-memory", "64M", "--log-level", "error", NULL };
	struct measure before, after;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	/* the first round makes what stays: caches of the allocator, threads, tables */
	churn(count);
	measure_settled();
	usleep(300000);
	before = measure_settled();
	print("before", &before);
	after = churn_again(count, &before);
	/*
	 * A heap breathes, and keeps what it once needed at the same time, more when ends are taken down late on a loaded machine. A leak
	 * grows by every round; one of even a byte a time shows in thousands of times, see `long`.
	 */
	for (int round = 0; round < 4 && after.anonymous_kib > before.anonymous_kib + 256; round++) {
		before = after;
		after = churn_again(count, &before);
	}
	check_le_uint(after.anonymous_kib, before.anonymous_kib + 256);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

TEST_TIMEOUT(nothing_grows, 60)
{
	churn_and_compare(200);
}

TEST_TIMEOUT(ten_thousand_of_each, 600)
{
	if (!getenv("TEST_LEVEL") || strcmp(getenv("TEST_LEVEL"), "long") != 0)
		return;
	churn_and_compare(10000);
}
