/* SPDX-License-Identifier: Apache-2.0 */
/* Lists page by page, and what they say. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

static struct private_daemon private_daemon;

static void start(void)
{
	check_eq_int(private_daemon_start(&private_daemon, NULL, NULL), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

static void list(struct raw_client *tool, int kind, uint64_t after, struct raw_reply *reply)
{
	Hccld__Control__List message = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	message.kind = (Hccld__Control__List__Kind)kind;
	message.after = after;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &message;
	raw_call(tool, &request, reply);
}

TEST(sessions_come_page_by_page)
{
	static struct raw_client clients[300];
	struct raw_client tool;
	struct raw_reply reply;
	uint64_t after = 0, previous = 0;
	uint32_t count = 0, pages = 0;

	start();
	for (int i = 0; i < 300; i++)
		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	do {
		list(&tool, HCCLD__CONTROL__LIST__KIND__SESSIONS, after, &reply);
		check_eq_uint(reply.message->cause, 0);
		check_le_uint(reply.message->list->n_sessions, HCCLD_LIST_PAGE);
		for (size_t i = 0; i < reply.message->list->n_sessions; i++) {
			const Hccld__Control__Session *session = reply.message->list->sessions[i];

			check_gt_uint(session->session, previous);
			check_eq_uint(session->session, clients[count].session);
			check_eq_uint(session->pid, getpid());
			check_eq_str(session->process, "raw-client");
			previous = session->session;
			count++;
		}
		after = reply.message->list->next;
		pages++;
		raw_reply_free(&reply);
	} while (after);
	check_eq_uint(count, 300);
	check_eq_uint(pages, 3);
	for (int i = 0; i < 300; i++)
		raw_client_stop(&clients[i]);
	raw_client_stop(&tool);
	stop();
}

/* A communicator whose members do not fit into one entry, between two small ones. */
TEST(members_of_a_large_communicator_come_in_parts)
{
	struct raw_client client, tool;
	struct raw_reply reply;
	struct raw_root root;
	uint64_t context, after = 0;
	uint32_t members = 0, entries = 0;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	context = raw_open_context(&client, 0);
	for (int i = 0; i < 3; i++) {
		raw_root_info(&client, &root);
		raw_join_send(&client, &root, 4, i == 1 ? HCCLD_RANKS_MAX : 5, context, 60000);
	}
	/* an answer to this one: the joins before have been read */
	raw_root_info(&client, &root);
	do {
		list(&tool, HCCLD__CONTROL__LIST__KIND__COMMS, after, &reply);
		check_eq_uint(reply.message->cause, 0);
		for (size_t i = 0; i < reply.message->list->n_comms; i++) {
			const Hccld__Control__Comm *comm = reply.message->list->comms[i];

			entries++;
			check_eq_str(comm->state, "joining");
			for (size_t k = 0; k < comm->n_members; k++) {
				members++;
				check_eq_str(comm->members[k]->state,
					     comm->members[k]->rank == 4 ? "joining" : "missing");
			}
		}
		after = reply.message->list->next;
		raw_reply_free(&reply);
	} while (after);
	check_eq_uint(members, HCCLD_RANKS_MAX + 10);
	check_eq_uint(entries, 4 + 2 + 1);
	raw_client_stop(&client);
	raw_client_stop(&tool);
	stop();
}

TEST(devices_are_listed)
{
	struct raw_client client, tool;
	struct raw_reply reply;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	raw_allocate(&client, raw_open_context(&client, 5), 8192, NULL);
	list(&tool, HCCLD__CONTROL__LIST__KIND__DEVICES, 0, &reply);
	check_eq_uint(reply.message->list->n_devices, 8);
	check_eq_uint(reply.message->list->devices[5]->memory_used, 8192);
	check_eq_uint(reply.message->list->devices[5]->contexts, 1);
	check_eq_uint(reply.message->list->next, 0);
	raw_reply_free(&reply);
	list(&tool, 77, 0, &reply);
	check_eq_uint(reply.message->cause, CAUSE_UNBUILT);
	raw_reply_free(&reply);
	list(&tool, HCCLD__CONTROL__LIST__KIND__DEVICES, UINT64_MAX, &reply);
	check_eq_uint(reply.message->list->n_devices, 0);
	raw_reply_free(&reply);
	raw_client_stop(&client);
	raw_client_stop(&tool);
	stop();
}

/* Puts one receive from @peer at the head of the stream, as a client would. */
static void submit_receive(struct raw_client *client, uint32_t stream, uint64_t rank, uint32_t peer,
			   uint64_t segment)
{
	struct stream_ring *ring = session_stream(client->region, stream);
	struct task *task = &ring->slots[0].task;
	struct item *item = &ring->slots[1].item;
	struct yard_context *words = &client->yard->contexts[ring->context];
	uint64_t one = 1;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	*task = (struct task){ .kind = TASK_BATCH,
			       .slot_count = 2,
			       .item_count = 1,
			       .rank = rank,
			       .submitted_ns =
				       (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec };
	*item = (struct item){ .kind = ITEM_RECEIVE,
			       .peer = peer,
			       .bytes = 4096,
			       .segment = segment,
			       .next = LANE_END,
			       .next_lane = LANE_END };
	atomic_store(&ring->tail, 2);
	atomic_store(&words->state, yard_next(words->state, CONTEXT_LEFT));
	atomic_fetch_or(&client->yard->bits[ring->context / 64], 1ull << (ring->context % 64));
	check_eq_int(write(client->event_fd, &one, sizeof(one)), sizeof(one));
}

TEST(what_waits_is_explained)
{
	struct raw_client client, tool;
	struct raw_reply reply;
	struct raw_root root;
	const Hccld__Control__Waiting *waiting;
	uint64_t contexts[2], handles[2];
	uint32_t stream;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	raw_root_info(&client, &root);
	for (uint32_t i = 0; i < 2; i++) {
		contexts[i] = raw_open_context(&client, i);
		raw_join_send(&client, &root, i, 2, contexts[i], 10000);
	}
	for (uint32_t i = 0; i < 2; i++) {
		check_eq_int(raw_receive(&client, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		handles[i] = reply.message->join_comm->rank;
		raw_reply_free(&reply);
	}
	raw_open_pair(&client, handles[0], 1);
	stream = raw_create_stream(&client, contexts[1]);
	submit_receive(&client, stream, handles[1], 0,
		       raw_allocate(&client, contexts[1], 4096, NULL));
	usleep(1200000);
	list(&tool, HCCLD__CONTROL__LIST__KIND__WAITING, 0, &reply);
	check_eq_uint(reply.message->list->n_waiting, 1);
	waiting = reply.message->list->waiting[0];
	check_eq_uint(waiting->rank, 1);
	check_eq_uint(waiting->peer, 0);
	check_eq_uint(waiting->direction, ITEM_RECEIVE);
	check_eq_uint(waiting->bytes, 4096);
	check_eq_uint(waiting->stream, stream);
	check_ge_uint(waiting->age_ms, 1000);
	check(!waiting->peer_posted);
	check_str_contains(waiting->reason,
			   "to send 4 KiB: rank 0 has not posted that send and has no work queued");
	raw_reply_free(&reply);
	raw_status(&reply);
	check_eq_uint(reply.message->status->waiting_count, 1);
	check_ptr(reply.message->status->oldest);
	check(reply.message->status->healthy);
	check_str_contains(reply.message->status->verdict, "waiting: communicator hccl-");
	check_str_contains(reply.message->status->verdict, ": rank 1 (pid ");
	raw_reply_free(&reply);
	raw_client_stop(&client);
	raw_client_stop(&tool);
	stop();
}
