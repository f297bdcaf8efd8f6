/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives: order of checks, matching, independence of items, self items, limits. Errors in flight: test_p2p_fault.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"

/* Waits until the engine has written @value there, without a call. */
static void wait_for_byte(const unsigned char *byte, unsigned char value)
{
	for (int i = 0; *(volatile const unsigned char *)byte != value; i++) {
		check_msg(i < 5000 * (int)test_timeout_scale(), "byte is %u, not %u", *byte, value);
		usleep(1000);
	}
}

/* ---- order of the checks ---- */

/* Not a byte more: aclrtMalloc adds some. */
static void *exact_memory(uint64_t size)
{
	void *memory = NULL;

	check_ok(aclrtMallocAlign32(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
	return memory;
}

static void single_order_rank(struct job_rank *rank)
{
	const uint64_t too_many = 0x800000000ull;
	void *memory = exact_memory(128), *plain = &rank;

	check_ok(HcclSend(NULL, 0, HCCL_DATA_TYPE_RESERVED, 9, NULL, NULL));
	check_ok(HcclRecv(NULL, 0, HCCL_DATA_TYPE_RESERVED, 9, NULL, NULL));
	check_fails(HcclSend(NULL, 1, HCCL_DATA_TYPE_INT8, 1, NULL, NULL), HCCL_E_PTR, "HcclSend: comm is NULL");
	check_fails(HcclSend(NULL, 1, HCCL_DATA_TYPE_INT8, 1, rank->comm, NULL), HCCL_E_PTR, "HcclSend: sendBuf is NULL");
	check_fails(HcclRecv(NULL, 1, HCCL_DATA_TYPE_INT8, 1, rank->comm, NULL), HCCL_E_PTR, "HcclRecv: recvBuf is NULL");
	check_fails(HcclSend(memory, too_many, HCCL_DATA_TYPE_HIF8, 9, rank->comm, NULL), HCCL_E_PTR, "HcclSend: stream is NULL");
	check_fails(HcclSend(memory, too_many, HCCL_DATA_TYPE_HIF8, 9, rank->comm, rank->stream), HCCL_E_PARA, "count is 34359738368");
	check_fails(HcclSend(memory, 1, HCCL_DATA_TYPE_HIF8, 9, rank->comm, rank->stream), HCCL_E_NOT_SUPPORT, "dataType is 14 (hif8)");
	check_fails(HcclSend(memory, 1, HCCL_DATA_TYPE_INT8, 9, rank->comm, rank->stream), HCCL_E_PARA, "destRank is 9");
	check_fails(HcclRecv(memory, 1, HCCL_DATA_TYPE_INT8, 9, rank->comm, rank->stream), HCCL_E_PARA, "srcRank is 9");
	check_fails(HcclSend(memory, 1, HCCL_DATA_TYPE_INT8, rank->rank, rank->comm, rank->stream), HCCL_E_NOT_SUPPORT, "HcclBatchSendRecv");
	check_fails(HcclRecv(memory, 1, HCCL_DATA_TYPE_INT8, rank->rank, rank->comm, rank->stream), HCCL_E_NOT_SUPPORT, "EI0003");
	check_fails(HcclSend(plain, 1, HCCL_DATA_TYPE_INT8, 1 - rank->rank, rank->comm, rank->stream), HCCL_E_PARA, "buf is not device memory");
	check_fails(HcclSend(memory, 129, HCCL_DATA_TYPE_INT8, 1 - rank->rank, rank->comm, rank->stream), HCCL_E_PARA, "1 bytes longer");
	check_ok(aclrtSynchronizeStream(rank->stream));
}

/* Memory that goes while its receive waits: the text must not send one looking for a malloc. */
static void freed_rank(struct job_rank *rank)
{
	const uint32_t peer = 1 - rank->rank;
	unsigned char *memory = job_memory(1 << 20, 0);
	aclrtStream other;

	check_ok(aclrtCreateStream(&other));
	if (rank->rank == 0) {
		check_ok(HcclRecv(memory, 1 << 20, HCCL_DATA_TYPE_INT8, peer, rank->comm, rank->stream));
		check_ok(aclrtFree(memory));
	}
	check_ok(HcclBarrier(rank->comm, other));
	check_ok(aclrtSynchronizeStream(other));
	if (rank->rank == 1)
		check_ok(HcclSend(memory, 1 << 20, HCCL_DATA_TYPE_INT8, peer, rank->comm, rank->stream));
	check_fails(aclrtSynchronizeStream(rank->stream), rank->rank ? ACL_ERROR_RT_SUSPECT_REMOTE_ERROR : ACL_ERROR_RT_PARAM_INVALID,
		    "it was freed or unmapped");
	check_ok(HcclBarrier(rank->comm, other));
	check_ok(aclrtSynchronizeStream(other));
	check_ok(aclrtDestroyStream(other));
}

static void freed(void)
{
	job_ranks(2, 2, freed_rank, NULL);
}

TEST(receive_into_memory_freed_meanwhile)
{
	job_run(freed);
}

static void batch_order_rank(struct job_rank *rank)
{
	const uint32_t peer = 1 - rank->rank;
	unsigned char *memory = exact_memory(128);
	HcclSendRecvItem items[] = { job_send(peer, NULL, 1), { (HcclSendRecvType)2, memory, 1, HCCL_DATA_TYPE_INT8, peer } };
	HcclSendRecvItem lone[] = { job_send(peer, memory, 1), job_send(peer, memory, 1) };
	char part[128];
	void *host;

	check_fails(HcclBatchSendRecv(NULL, 0, NULL, NULL), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclBatchSendRecv(NULL, 0, rank->comm, NULL), HCCL_E_PTR, "stream is NULL");
	check_fails(HcclBatchSendRecv(NULL, 0, rank->comm, rank->stream), HCCL_E_PTR, "sendRecvInfo is NULL");
	check_ok(HcclBatchSendRecv(items, 0, rank->comm, rank->stream));
	items[1].remoteRank = 2;
	check_fails(HcclBatchSendRecv(items, 2, rank->comm, rank->stream), HCCL_E_PARA, "item 1: remoteRank is 2");
	items[1].remoteRank = peer;
	check_fails(HcclBatchSendRecv(items, 2, rank->comm, rank->stream), HCCL_E_PTR, "item 0: buf is NULL");
	items[0].buf = memory;
	check_fails(HcclBatchSendRecv(items, 2, rank->comm, rank->stream), HCCL_E_PARA, "item 1: sendRecvType is 2");
	check_fails(HcclBatchSendRecv(lone, 2, rank->comm, rank->stream), HCCL_E_PARA, "HCCLD_ALLOW_DUPLICATE_ITEMS=1");
	lone[1] = job_receive(peer, lone, 1);
	snprintf(part, sizeof(part), "rank %u, item 1: buf is not device memory; allocate it with aclrtMalloc", rank->rank);
	check_fails(HcclBatchSendRecv(lone, 2, rank->comm, rank->stream), HCCL_E_PARA, part);
	check_ok(aclrtMalloc(&host, 512, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtFree(host));
	lone[1].buf = host;
	check_fails(HcclBatchSendRecv(lone, 2, rank->comm, rank->stream), HCCL_E_PARA, "was freed: it is byte 0 of 512 that were allocated");
	check_ok(aclrtMallocHost(&host, 64));
	lone[1].buf = host;
	check_fails(HcclBatchSendRecv(lone, 2, rank->comm, rank->stream), HCCL_E_PARA, "buf is not device memory");
	lone[1] = job_receive(peer, memory + 64, 164);
	check_fails(HcclBatchSendRecv(lone, 2, rank->comm, rank->stream), HCCL_E_PARA, "item 1: buf is 100 bytes longer than its allocation");
	check_ok(aclrtSynchronizeStream(rank->stream));
}

static void orders(void)
{
	job_ranks(2, 1, single_order_rank, NULL);
	job_ranks(2, 2, batch_order_rank, NULL);
}

TEST(checks_are_in_order)
{
	job_run(orders);
}

/* ---- matching ---- */

static void types_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(256, rank->rank ? 0 : 0x3c);
	HcclSendRecvItem send = { HCCL_SEND, memory, 32, HCCL_DATA_TYPE_INT64, 1 };
	HcclSendRecvItem receive = { HCCL_RECV, memory, 128, HCCL_DATA_TYPE_BFP16, 0 };

	check_ok(HcclBatchSendRecv(rank->rank ? &receive : &send, 1, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_uint(memory[0], 0x3cu);
	check_eq_uint(memory[255], 0x3cu);
}

static void types(void)
{
	job_ranks(2, 2, types_rank, NULL);
}

TEST(types_of_equal_size_match)
{
	job_run(types);
}

/* A send and a receive, batches and single operators, all in the order of their calls. */
static void order_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(3000, 0);

	for (uint32_t i = 0; i < 300; i++) {
		HcclSendRecvItem item = rank->rank ? job_receive(0, memory + i * 10, 1 + i % 10) : job_send(1, memory + i * 10, 1 + i % 10);

		if (!rank->rank)
			memset(memory + i * 10, (int)(i % 251) + 1, 10);
		if (i % 3)
			check_ok(HcclBatchSendRecv(&item, 1, rank->comm, rank->stream));
		else if (rank->rank)
			check_ok(HcclRecv(item.buf, item.count, item.dataType, 0, rank->comm, rank->stream));
		else
			check_ok(HcclSend(item.buf, item.count, item.dataType, 1, rank->comm, rank->stream));
	}
	check_ok(aclrtSynchronizeStream(rank->stream));
	for (uint32_t i = 0; rank->rank && i < 300; i++) {
		check_eq_uint(memory[i * 10 + i % 10], i % 251 + 1);
		if (i % 10 < 9)
			check_eq_uint(memory[i * 10 + i % 10 + 1], 0u);
	}
}

static void order(void)
{
	job_ranks(2, 2, order_rank, NULL);
}

TEST(calls_match_in_their_order)
{
	job_run(order);
}

static void duplicates_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(200, 0);
	HcclSendRecvItem items[200];

	for (uint32_t i = 0; i < 100; i++) {
		memory[i] = (unsigned char)(100 * rank->rank + i);
		/* sends in list order, receives between them */
		items[2 * i] = job_send(1 - rank->rank, memory + i, 1);
		items[2 * i + 1] = job_receive(1 - rank->rank, memory + 100 + i, 1);
	}
	check_ok(HcclBatchSendRecv(items, 200, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	for (uint32_t i = 0; i < 100; i++)
		check_eq_uint(memory[100 + i], 100 * (1 - rank->rank) + i);
}

static void duplicates(void)
{
	job_ranks(2, 2, duplicates_rank, NULL);
}

TEST(duplicates_match_in_list_order)
{
	job_run_with("HCCLD_ALLOW_DUPLICATE_ITEMS", "1", duplicates);
}

static void empty_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(16, 1);
	HcclSendRecvItem items[] = { job_send(1, memory, 0), job_receive(1, memory + 8, 0) };
	HcclSendRecvItem real = rank->rank ? job_receive(0, memory + 8, 8) : job_send(1, memory, 8);

	/* nobody posts the other side of these */
	if (rank->rank == 0)
		check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStreamWithTimeout(rank->stream, 1000));
	/* and they take no number: the next pair is the first */
	check_ok(HcclBatchSendRecv(&real, 1, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
}

static void empty(void)
{
	job_ranks(2, 1, empty_rank, NULL);
}

TEST(items_of_count_0_complete_alone)
{
	job_run(empty);
}

/* ---- independence ---- */

/* Rank 2 is absent for a while: what is between 0 and 1 moves on, in the same batches. */
static void absent_rank(struct job_rank *rank)
{
	const uint32_t peer = 1 - rank->rank;
	unsigned char *memory = job_memory(4 * 100000, (int)rank->rank + 1);
	HcclSendRecvItem items[] = {
		job_receive(2, memory, 100000), job_send(2, memory + 100000, 100000),
		job_send(peer, memory + 200000, 100000), job_receive(peer, memory + 300000, 100000),
	};
	HcclSendRecvItem late[] = {
		job_send(0, memory, 100000), job_receive(0, memory + 100000, 100000),
		job_send(1, memory + 200000, 100000), job_receive(1, memory + 300000, 100000),
	};
	_Atomic int *moved = rank->data;

	if (rank->rank == 2) {
		while (*moved < 2)
			usleep(1000);
		check_ok(HcclBatchSendRecv(late, 4, rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		check_eq_uint(memory[100000], 1u);
		check_eq_uint(memory[399999], 2u);
		return;
	}
	check_ok(HcclBatchSendRecv(items, 4, rank->comm, rank->stream));
	wait_for_byte(memory + 399999, (unsigned char)(peer + 1));
	check_eq_int(aclrtSynchronizeStreamWithTimeout(rank->stream, 50), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	++*moved;
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_uint(memory[99999], 3u);
}

static void absent(void)
{
	_Atomic int moved = 0;

	job_ranks(3, 3, absent_rank, &moved);
}

TEST(absent_peer_holds_up_nobody_else)
{
	job_run(absent);
}

/* Rank 0 has 64 receives from ranks that are late, and a 65th from rank 1. */
static void many_absent_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(66 * 64, (int)rank->rank + 1);
	_Atomic int *arrived = rank->data;
	HcclSendRecvItem items[65];

	if (rank->rank == 0) {
		for (uint32_t i = 0; i < 64; i++)
			items[i] = job_receive(2 + i, memory + 64 * (2 + i), 64);
		items[64] = job_receive(1, memory + 64, 64);
		check_ok(HcclBatchSendRecv(items, 65, rank->comm, rank->stream));
		wait_for_byte(memory + 64 + 63, 2);
		*arrived = 1;
		check_ok(aclrtSynchronizeStream(rank->stream));
		for (uint32_t i = 1; i < 66; i++)
			check_eq_uint(memory[64 * i], i + 1);
		return;
	}
	while (rank->rank > 1 && !*arrived)
		usleep(2000);
	check_ok(HcclSend(memory, 64, HCCL_DATA_TYPE_INT8, 0, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
}

static void many_absent(void)
{
	_Atomic int arrived = 0;

	job_ranks(66, 8, many_absent_rank, &arrived);
}

TEST(item_65_does_not_wait_for_64_absent)
{
	job_run(many_absent);
}

/* Everybody receives first, and sends in another call on another stream, in the wrong order. */
static void crossed_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(4 << 20, (int)rank->rank + 1);
	const uint64_t half = 2 << 20;
	HcclSendRecvItem items[] = { job_receive(1 - rank->rank, memory + half, half), job_send(1 - rank->rank, memory, half) };
	aclrtStream other;

	check_ok(aclrtCreateStream(&other));
	check_ok(HcclBatchSendRecv(&items[rank->rank], 1, rank->comm, rank->stream));
	check_ok(HcclBatchSendRecv(&items[1 - rank->rank], 1, rank->comm, other));
	check_ok(aclrtSynchronizeStream(other));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_uint(memory[half], 2 - rank->rank);
	check_eq_uint(memory[2 * half - 1], 2 - rank->rank);
	check_ok(aclrtDestroyStream(other));
}

static void crossed(void)
{
	job_ranks(2, 1, crossed_rank, NULL);
}

TEST(streams_are_independent)
{
	job_run(crossed);
}

/* ---- self items, barrier ---- */

static void self_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(1 << 20, 0);
	HcclSendRecvItem items[] = {
		job_send(rank->rank, memory, 1000), job_receive(rank->rank, memory + 500000, 1000),
		job_receive(rank->rank, memory + 600000, 100000), job_send(rank->rank, memory + 1000, 100000),
		job_send(1 - rank->rank, memory, 5), job_receive(1 - rank->rank, memory + 900000, 5),
		job_send(rank->rank, memory, 70), job_receive(rank->rank, memory, 70),
	};

	for (uint32_t i = 0; i < 101000; i++)
		memory[i] = (unsigned char)(i % 253);
	check_ok(HcclBatchSendRecv(items, 8, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_mem(memory + 500000, memory, 1000);
	check_eq_mem(memory + 600000, memory + 1000, 100000);
	check_eq_mem(memory + 900000, memory, 5);
	items[1].buf = memory + 10;
	check_fails(HcclBatchSendRecv(items, 2, rank->comm, rank->stream), HCCL_E_PARA, "overlaps a part of item 1's");
}

static void self(void)
{
	job_ranks(2, 2, self_rank, NULL);
}

TEST(self_items_are_copied)
{
	job_run(self);
}

static void barrier_rank(struct job_rank *rank)
{
	_Atomic uint32_t *entered = rank->data;

	for (uint32_t round = 1; round <= 50; round++) {
		if (rank->rank == round % rank->size)
			usleep(500);
		++*entered;
		check_ok(HcclBarrier(rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		check_ge_uint(*entered, round * rank->size);
	}
}

static void barrier(void)
{
	_Atomic uint32_t entered = 0;

	job_ranks(5, 3, barrier_rank, &entered);
}

TEST(barrier_waits_for_all)
{
	job_run(barrier);
}

/* ---- limits ---- */

#define MANY (1u << 20)

static void limit_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(MANY, 0);
	HcclSendRecvItem *items = malloc((MANY + 1) * sizeof(*items));

	check_ptr(items);
	for (uint32_t i = 0; i <= MANY; i++) {
		items[i] = rank->rank ? job_receive(0, memory + i, 1) : job_send(1, memory + i, 1);
		if (!rank->rank && i < MANY)
			memory[i] = (unsigned char)(i % 251);
	}
	check_fails(HcclBatchSendRecv(items, MANY + 1, rank->comm, rank->stream), HCCL_E_PARA, "itemNum is 1048577, expected at most 1048576");
	check_ok(HcclBatchSendRecv(items, MANY, rank->comm, rank->stream));
	memset(items, 0xff, MANY * sizeof(*items));
	check_ok(aclrtSynchronizeStream(rank->stream));
	for (uint32_t i = 0; i < MANY; i++)
		check_eq_uint(memory[i], i % 251);
	free(items);
}

static void limit(void)
{
	job_ranks(2, 2, limit_rank, NULL);
}

TEST_TIMEOUT(a_million_items, 120)
{
	job_run_with("HCCLD_ALLOW_DUPLICATE_ITEMS", "1", limit);
}

/* More calls than the ring of a stream has slots, and more offers than that of a pair, before the other side comes. */
static void full_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(4000 * 8, 0);

	if (rank->rank)
		usleep(200000);
	for (uint32_t i = 0; i < 4000; i++) {
		HcclSendRecvItem item = rank->rank ? job_receive(0, memory + 8 * i, 8) : job_send(1, memory + 8 * i, 8);

		memcpy(memory + 8 * i, &i, rank->rank ? 0 : sizeof(i));
		check_ok(HcclBatchSendRecv(&item, 1, rank->comm, rank->stream));
	}
	check_ok(aclrtSynchronizeStream(rank->stream));
	for (uint32_t i = 0; i < 4000; i++)
		check_eq_mem(memory + 8 * i, &i, sizeof(i));
}

static void full(void)
{
	job_ranks(2, 2, full_rank, NULL);
}

TEST(full_rings_block_and_lose_nothing)
{
	job_run(full);
}

/* Every size around the limits between inline, small and sliced. */
static void sizes_rank(struct job_rank *rank)
{
	static const uint32_t sizes[] = { 1, 39, 40, 41, 8191, 65535, 65536, 65537, 262144, 262145, 2097151, 2097152, 5000001 };
	unsigned char *memory = job_memory(2 * 5000001, 0);

	for (uint32_t i = 0; i < 5000001; i++)
		memory[i] = (unsigned char)(i * 7 + rank->rank);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		HcclSendRecvItem items[] = {
			job_send(1 - rank->rank, memory, sizes[i]), job_receive(1 - rank->rank, memory + 5000001, sizes[i]),
		};

		memset(memory + 5000001, 0xaa, sizes[i]);
		check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		for (uint32_t k = 0; k < sizes[i]; k++)
			check_eq_uint(memory[5000001 + k], (unsigned char)(k * 7 + 1 - rank->rank));
	}
}

static void all_sizes(void)
{
	job_ranks(2, 2, sizes_rank, NULL);
}

TEST(every_way_of_moving_bytes)
{
	job_run(all_sizes);
}

/* ---- batches that no cache holds ---- */

#define PIECE (1u << 20)
#define PIECES 40u

static unsigned char piece_byte(uint32_t source, uint32_t piece, uint64_t at)
{
	return (unsigned char)(source * 101 + piece * 7 + at * 3 + (at >> 12));
}

static void pieces_rank(struct job_rank *rank)
{
	HcclSendRecvItem items[2 * PIECES];
	unsigned char *out = job_memory((uint64_t)PIECES * PIECE, 0), *in = job_memory((uint64_t)PIECES * PIECE, 0);
	uint32_t peer = 1 - rank->rank;

	for (uint32_t i = 0; i < PIECES; i++) {
		for (uint64_t at = 0; at < PIECE; at++)
			out[(uint64_t)i * PIECE + at] = piece_byte(rank->rank, i, at);
		items[2 * i] = job_send(peer, out + (uint64_t)i * PIECE, PIECE);
		items[2 * i + 1] = job_receive(peer, in + (uint64_t)i * PIECE, PIECE - i % 3);
		items[2 * i].count -= i % 3;
	}
	check_ok(HcclBatchSendRecv(items, 2 * PIECES, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	for (uint32_t i = 0; i < PIECES; i++)
		for (uint64_t at = 0; at < PIECE; at++)
			if (in[(uint64_t)i * PIECE + at] != (at < PIECE - i % 3 ? piece_byte(peer, i, at) : 0))
				check_msg(false, "piece %u, byte %llu", i, (unsigned long long)at);
}

static void pieces(void)
{
	setenv("HCCLD_ALLOW_DUPLICATE_ITEMS", "1", 1);
	job_ranks(2, 2, pieces_rank, NULL);
}

TEST(batches_that_no_cache_holds)
{
	job_run(pieces);
}
