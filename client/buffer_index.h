/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory of this process belongs to which segment: what buffer.c and those who add mappings of their own keep. Everybody else
 * looks up by hccld_buffer_find().
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/buffer.h"
#include "client/segment.h"

struct slab;

/* mappings can be more than segments: one may be mapped several times */
#define RECORDS_MAX 65536u

struct record {
	_Atomic uint64_t start, size;
	_Atomic uint64_t id;	/* 0: ordinary memory by now, the engine cannot reach it */
	_Atomic uint64_t bytes; /* of the one allocation in it, if it is no slab */
	_Atomic uint8_t extra;	/* what of them nobody has asked for */
	_Atomic(struct slab *) slab;
	_Atomic uint8_t memory;
	_Atomic uint64_t shift; /* of `start` in the segment */
	_Atomic bool is_mapping; /* made by hccld_buffer_add(), who takes care of the memory */
	_Atomic bool joins;
	int32_t device;	     /* number of its context's device; -1: the context is gone */
	struct record *next; /* spare */
};

/* For those who change. Never held during a request to the daemon. */
void hccld_index_lock(void);
void hccld_index_unlock(void);

/* All with the lock held. */
void hccld_index_insert(struct record *record);
/* The record around @address, or NULL. */
struct record *hccld_index_find(uint64_t address);
uint32_t hccld_index_count(void);
/* By address. */
struct record *hccld_index_at(uint32_t position);
/* A record that is in no index yet; NULL: there are RECORDS_MAX. */
struct record *hccld_record_take(const struct hccld_segment *segment, enum hccld_memory memory, int32_t device);
/* Takes the record out of the index; the caller unmaps or frees the segment. */
struct hccld_segment hccld_record_drop(struct record *record);
