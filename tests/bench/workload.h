/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workload that every contender is timed on: a batch is a list of sends and receives that is posted as a whole and waited for as a
 * whole. Patterns, calibration, timing, check of the data and the output line are the same for all; a contender supplies the functions
 * contender_*.
 *
 * A case is PATTERN[!]:SIZE[:ITEMS], SIZE in bytes with k or m, ITEMS per peer and direction. Patterns: pp (even ranks send a batch,
 * rank ^ 1 answers with one), uni (even ranks to rank ^ 1), pair (rank ^ 1, both ways), ring (receive from the previous, send to the next),
 * mesh (to and from every other rank). !: fresh data: before each batch the sender writes to every cache line but the first and the last,
 * which is not timed; else the receiver's cache may have old copies of data that never change, which flatters whoever copies once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workload_item {
	uint32_t peer;
	bool sends;
	char *buffer;
	size_t size;
};

struct workload {
	const char *name;		/* of the contender */
	uint32_t rank, size;
	size_t area;			/* bytes of the send area, and of the receive area */
	char *areas[2];			/* [0] send, [1] receive */
	uint64_t repetition_ns;
	uint32_t repetitions;
};

/* The items that batches are made of until the next call. */
void contender_prepare(const struct workload_item *items, uint32_t count);
/* Posts @count items from @first on and returns when all are done. */
void contender_batch(uint32_t first, uint32_t count);
void contender_barrier(void);
/* Rank 0's value; the largest value. */
uint64_t contender_broadcast(uint64_t value);
uint64_t contender_maximum(uint64_t value);

/* For areas that all cases fit into, which are the caller's to set. BENCH_NAME overrides @name; BENCH_MS: length of a repetition. */
void workload_init(struct workload *workload, const char *name, uint32_t rank, uint32_t size, int case_count, char **cases);
/* Times each of the cases; rank 0 prints a line for each. Returns the number of cases with wrong data. */
int workload_run(const struct workload *workload, int case_count, char **cases);
