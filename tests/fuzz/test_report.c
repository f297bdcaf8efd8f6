/* SPDX-License-Identifier: Apache-2.0 */
/* What a report costs when a client has made its streams as tedious to look at as it can: the daemon answers others meanwhile. */
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define LANES 4000u
#define CHAIN 64u
#define COUNT (LANES + CHAIN)
#define LIMIT_MS 300

static struct private_daemon private_daemon;

/* All items are done: nothing is waiting, and whoever asks what is has to look at them all, or at enough of them. */
static void fill(struct item *items)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		struct item item = { .kind = ITEM_COPY,
				     .state = ITEM_FAILED,
				     .next = i < LANES ? LANES : i + 1,
				     .next_lane = i + 1,
				     .done = i };

		memcpy(&items[i], &item, sizeof(item));
	}
}

static void report(struct raw_client *tool)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	list.kind = HCCLD__CONTROL__LIST__KIND__WAITING;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	raw_call(tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
}

TEST_TIMEOUT(a_report_takes_no_long_look, 60)
{
	static const char *const options[] = { "--device-memory", "256M", "--log-level", "error", NULL };
	struct raw_client liar, tool;
	struct timespec before, after;
	uint64_t context, side;
	struct stream_ring *rings[HCCLD_STREAMS_PER_SESSION];
	struct item *items;
	long ms;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	raw_client_start(&liar, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&liar, 0);
	side = raw_allocate(&liar, context, COUNT * sizeof(*items), (void **)&items);
	fill(items);
	for (uint32_t i = 0; i < HCCLD_STREAMS_PER_SESSION; i++) {
		rings[i] = session_stream(liar.region, raw_create_stream(&liar, context));
		rings[i]->slots[0].task =
			(struct task){ .kind = TASK_BATCH, .slot_count = 1, .item_count = COUNT, .side = side };
	}
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	/* the engine is not told: until its next heartbeat nobody has found out */
	for (uint32_t i = 0; i < HCCLD_STREAMS_PER_SESSION; i++)
		atomic_store(&rings[i]->tail, 1);
	clock_gettime(CLOCK_MONOTONIC, &before);
	report(&tool);
	clock_gettime(CLOCK_MONOTONIC, &after);
	ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
	check_lt_int(ms, LIMIT_MS * (long)test_timeout_scale());
	raw_client_stop(&tool);
	munmap(items, COUNT * sizeof(*items));
	raw_client_stop(&liar);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}
