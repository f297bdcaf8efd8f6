/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs between the two devices of the guest (run-guest), without anything of ours: what else is tested there relies on
 * them. One process has both ends, a reliable connection, and memory of its own on either.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/test.h"

#define SIZE (4u << 20) /* of the memory of an end */
#define COMPLETION_TIMEOUT_S 20
#define ADDRESS_TIMEOUT_S 10
#define PORT 1
#define TEST_TIMEOUT_S 60

struct end {
	struct ibv_context *context;
	struct ibv_pd *domain;
	struct ibv_cq *queue; /* both of sent and received */
	struct ibv_qp *pair;
	struct ibv_mr *region;
	uint8_t *memory;
	uint32_t gid_index;
	union ibv_gid gid;
};

struct wire {
	struct end ends[2];
};

static time_t deadline(unsigned seconds)
{
	return time(NULL) + seconds * test_timeout_scale();
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *context = NULL;
	int count = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);

	check_ptr(devices);
	for (int i = 0; i < count; i++) {
		if (strcmp(ibv_get_device_name(devices[i]), name) == 0)
			context = ibv_open_device(devices[i]);
	}
	ibv_free_device_list(devices);
	check_msg(context, "%s cannot be opened, %d devices", name, count);
	return context;
}

/* The entry of the IPv4 address: a while after the address itself. */
static void find_gid(struct end *end)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };
	time_t limit = deadline(ADDRESS_TIMEOUT_S);

	while (time(NULL) < limit) {
		for (uint32_t i = 0; i < 16; i++) {
			struct ibv_gid_entry entry;

			if (ibv_query_gid_ex(end->context, PORT, i, &entry, 0) ||
			    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
			    memcmp(entry.gid.raw, prefix, sizeof(prefix)) != 0)
				continue;
			end->gid_index = i;
			end->gid = entry.gid;
			return;
		}
		usleep(20000);
	}
	check_msg(false, "no IPv4 address among the GIDs");
}

static void end_open(struct end *end, const char *device)
{
	struct ibv_qp_init_attr attributes = { .qp_type = IBV_QPT_RC,
					       .cap = { .max_send_wr = 16,
							.max_recv_wr = 16,
							.max_send_sge = 1,
							.max_recv_sge = 1 } };

	end->context = open_device(device);
	find_gid(end);
	end->domain = ibv_alloc_pd(end->context);
	check_ptr(end->domain);
	end->queue = ibv_create_cq(end->context, 64, NULL, NULL, 0);
	check_ptr(end->queue);
	attributes.send_cq = attributes.recv_cq = end->queue;
	end->pair = ibv_create_qp(end->domain, &attributes);
	check_ptr(end->pair);
	end->memory = aligned_alloc(4096, SIZE);
	check_ptr(end->memory);
	memset(end->memory, 0, SIZE);
	end->region = ibv_reg_mr(end->domain, end->memory, SIZE,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					 IBV_ACCESS_REMOTE_WRITE);
	check_ptr(end->region);
}

static void end_connect(struct end *end, const struct end *peer)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = PORT,
				    .qp_access_flags =
					    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr receive = { .qp_state = IBV_QPS_RTR,
				       .path_mtu = IBV_MTU_4096,
				       .dest_qp_num = peer->pair->qp_num,
				       .rq_psn = 17,
				       .max_dest_rd_atomic = 4,
				       .min_rnr_timer = 12,
				       .ah_attr = { .is_global = 1,
						    .port_num = PORT,
						    .grh = { .dgid = peer->gid,
							     .sgid_index = (uint8_t)end->gid_index,
							     .hop_limit = 1 } } };
	struct ibv_qp_attr send = { .qp_state = IBV_QPS_RTS,
				    .timeout = 18, /* 1 s: emulation is slow */
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .sq_psn = 17,
				    .max_rd_atomic = 4 };

	check_eq_int(ibv_modify_qp(end->pair, &init,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					   IBV_QP_ACCESS_FLAGS),
		     0);
	check_eq_int(ibv_modify_qp(end->pair, &receive,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER),
		     0);
	check_eq_int(ibv_modify_qp(end->pair, &send,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC),
		     0);
}

static void end_close(struct end *end)
{
	check_eq_int(ibv_destroy_qp(end->pair), 0);
	check_eq_int(ibv_dereg_mr(end->region), 0);
	check_eq_int(ibv_destroy_cq(end->queue), 0);
	check_eq_int(ibv_dealloc_pd(end->domain), 0);
	check_eq_int(ibv_close_device(end->context), 0);
	free(end->memory);
}

static void wire_open(struct wire *wire)
{
	memset(wire, 0, sizeof(*wire));
	end_open(&wire->ends[0], "rxe0");
	end_open(&wire->ends[1], "rxe1");
	end_connect(&wire->ends[0], &wire->ends[1]);
	end_connect(&wire->ends[1], &wire->ends[0]);
}

static void wire_close(struct wire *wire)
{
	end_close(&wire->ends[0]);
	end_close(&wire->ends[1]);
}

/* The next completion of @end. */
static struct ibv_wc end_wait(struct end *end)
{
	struct ibv_wc completion;
	time_t limit = deadline(COMPLETION_TIMEOUT_S);
	int count;

	do {
		count = ibv_poll_cq(end->queue, 1, &completion);
		check_ge_int(count, 0);
		check_msg(count || time(NULL) < limit, "no completion in %u s",
			  COMPLETION_TIMEOUT_S);
	} while (!count);
	return completion;
}

static void end_expect(struct end *end, enum ibv_wc_opcode opcode)
{
	struct ibv_wc completion = end_wait(end);

	check_eq_str(ibv_wc_status_str(completion.status), ibv_wc_status_str(IBV_WC_SUCCESS));
	check_eq_int((int)completion.opcode, (int)opcode);
	if (opcode == IBV_WC_RECV)
		check_eq_uint(completion.byte_len, SIZE);
}

/* All of the memory at once. */
static void end_post(struct end *end, enum ibv_wr_opcode opcode, const struct end *peer,
		     uint32_t key)
{
	struct ibv_sge part = { .addr = (uintptr_t)end->memory,
				.length = SIZE,
				.lkey = end->region->lkey };
	struct ibv_send_wr *bad, request = {
		.sg_list = &part, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED
	};

	request.wr.rdma.remote_addr = (uintptr_t)peer->memory;
	request.wr.rdma.rkey = key;
	check_eq_int(ibv_post_send(end->pair, &request, &bad), 0);
}

static void end_post_receive(struct end *end)
{
	struct ibv_sge part = { .addr = (uintptr_t)end->memory,
				.length = SIZE,
				.lkey = end->region->lkey };
	struct ibv_recv_wr *bad, request = { .sg_list = &part, .num_sge = 1 };

	check_eq_int(ibv_post_recv(end->pair, &request, &bad), 0);
}

/* Numbers that no two words and no two @seed share. */
static void end_fill(struct end *end, uint32_t seed)
{
	uint32_t *words = (uint32_t *)end->memory;

	for (uint32_t i = 0; i < SIZE / 4; i++)
		words[i] = (i * 2654435761u) ^ seed;
}

static void end_check(const struct end *end, uint32_t seed)
{
	const uint32_t *words = (const uint32_t *)end->memory;

	for (uint32_t i = 0; i < SIZE / 4; i++)
		check_msg(words[i] == ((i * 2654435761u) ^ seed), "byte %u is wrong", i * 4);
}

TEST_TIMEOUT(verbs_send, TEST_TIMEOUT_S)
{
	struct wire wire;

	wire_open(&wire);
	for (uint32_t from = 0; from < 2; from++) {
		struct end *sender = &wire.ends[from], *receiver = &wire.ends[1 - from];

		end_fill(sender, 0x11110000u + from);
		end_post_receive(receiver);
		end_post(sender, IBV_WR_SEND, receiver, 0);
		end_expect(receiver, IBV_WC_RECV);
		end_expect(sender, IBV_WC_SEND);
		end_check(receiver, 0x11110000u + from);
	}
	wire_close(&wire);
}

TEST_TIMEOUT(verbs_write, TEST_TIMEOUT_S)
{
	struct wire wire;

	wire_open(&wire);
	end_fill(&wire.ends[0], 0x22220000u);
	end_post(&wire.ends[0], IBV_WR_RDMA_WRITE, &wire.ends[1], wire.ends[1].region->rkey);
	end_expect(&wire.ends[0], IBV_WC_RDMA_WRITE);
	end_check(&wire.ends[1], 0x22220000u);
	wire_close(&wire);
}

TEST_TIMEOUT(verbs_read, TEST_TIMEOUT_S)
{
	struct wire wire;

	wire_open(&wire);
	end_fill(&wire.ends[1], 0x33330000u);
	end_post(&wire.ends[0], IBV_WR_RDMA_READ, &wire.ends[1], wire.ends[1].region->rkey);
	end_expect(&wire.ends[0], IBV_WC_RDMA_READ);
	end_check(&wire.ends[0], 0x33330000u);
	wire_close(&wire);
}

TEST_TIMEOUT(verbs_refuse_a_wrong_key, TEST_TIMEOUT_S)
{
	struct wire wire;
	struct ibv_wc completion;

	wire_open(&wire);
	end_fill(&wire.ends[0], 0x44440000u);
	end_post(&wire.ends[0], IBV_WR_RDMA_WRITE, &wire.ends[1], wire.ends[1].region->rkey ^ 0x5a);
	completion = end_wait(&wire.ends[0]);
	check_eq_str(ibv_wc_status_str(completion.status),
		     ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR));
	for (uint32_t i = 0; i < SIZE; i++)
		check_msg(wire.ends[1].memory[i] == 0, "byte %u was written", i);
	wire_close(&wire);
}

/* What the kernel counts while both ends are open: that its counts are those of zero afterwards means something. */
TEST_TIMEOUT(verbs_are_counted, TEST_TIMEOUT_S)
{
	struct wire wire;

	wire_open(&wire);
	check_eq_int(system("rdma resource show | grep -c ' mr 1 ctx 1 ' | grep -qx 2"), 0);
	wire_close(&wire);
	check_eq_int(system("rdma resource show | grep -c ' mr 0 ctx 0 ' | grep -qx 2"), 0);
}
