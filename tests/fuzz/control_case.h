/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of fuzz_control.c (control_messages.c). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/control.pb-c.h"
#include "proto/limits.h"
#include "tests/fuzz/input.h"

#define NUMBERS 32u
#define EXPORT_KEYS 4u

/* Numbers that replies have named, of all connections: contexts, segments, ranks, sessions, keys. */
struct numbers {
	uint64_t values[NUMBERS], sessions[4];
	uint32_t next, next_session, next_export;
	struct {
		unsigned char bytes[HCCLD_KEY_BYTES_MAX];
		size_t size;
	} exports[EXPORT_KEYS];
	uint64_t rank; /* that has joined last */
	uint64_t key;
	unsigned char secret[32];
};

void numbers_add(struct numbers *numbers, uint64_t value);
/* Remembers what @reply gives away. */
void numbers_learn(struct numbers *numbers, const Hccld__Control__Reply *reply);
/* One of them, a small one, or any. */
uint64_t numbers_take(const struct numbers *numbers, struct input *input);

/* Packs the request that @input names into @data. Returns its size. */
size_t message_make(struct input *input, const struct numbers *numbers, uint64_t id, unsigned char *data);
size_t message_hello(struct input *input, uint64_t id, unsigned char *data);

/* control_scene.c: one of the two ranks of a scene, and what its client was given last. */
struct scene {
	uint32_t rank_index;
	struct {
		uint64_t context, rank, buffer, segment, registration, channel, import;
		uint32_t stream;
	} own;
};

#define SCENE_PARTS 14u
#define SCENE_OFFER 10u /* the part that offers a channel */

/* Packs the request of @part into @data. Returns its size. */
size_t scene_make(unsigned int part, const struct scene *scene, const struct numbers *numbers, uint64_t id, unsigned char *data);
void scene_learn(struct scene *scene, const Hccld__Control__Reply *reply);
