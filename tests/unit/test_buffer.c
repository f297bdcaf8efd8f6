/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation and lookup of memory, with segments from tests/support/fake_engine.c. */
#include "client/buffer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "client/error.h"
#include "client/slab.h"
#include "tests/support/fake_engine.h"
#include "tests/support/test.h"

static void *allocate(enum hccld_memory memory, size_t size)
{
	void *pointer = NULL;

	check_eq_int(hccld_buffer_allocate(fake_context(), memory, size, 0, &pointer), 0);
	check_ptr(pointer);
	check_eq_uint((uintptr_t)pointer % 512, 0);
	return pointer;
}

static uint64_t available(const void *address)
{
	struct hccld_place place;

	return hccld_buffer_find(address, &place) == 0 ? place.available : 0;
}

TEST(buffer_lookup_knows_every_byte_of_an_allocation_and_no_other)
{
	static const size_t sizes[] = { 1, 511, 512, 513, 4128, 262143, 262144, 5000000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *p = allocate(HCCLD_MEMORY_DEVICE, sizes[i]);
		struct hccld_place first, last;

		check_eq_int(hccld_buffer_find(p, &first), 0);
		check_eq_uint(first.available, sizes[i]);
		check_eq_int(first.memory, HCCLD_MEMORY_DEVICE);
		check_eq_int(hccld_buffer_find(p + sizes[i] - 1, &last), 0);
		check_eq_uint(last.available, 1);
		check_eq_uint(last.segment, first.segment);
		check_eq_uint(last.offset, first.offset + sizes[i] - 1);
		/* another mapping may begin right behind it, but then it is another segment */
		if (hccld_buffer_find(p + sizes[i], &last) == 0)
			check_ne_uint(last.segment, first.segment);
	}
	check_eq_uint(available(NULL), 0);
	check_eq_uint(available(sizes), 0);
	check_eq_uint(available((void *)UINTPTR_MAX), 0);
}

TEST(buffer_small_ones_share_a_segment)
{
	for (unsigned int i = 0; i < SLAB_SIZE_FIRST / 512; i++)
		allocate(HCCLD_MEMORY_DEVICE, 512);
	check_eq_uint(fake_segments(), 1);
	check_eq_uint(hccld_buffer_idle(fake_context()), 0);
	for (unsigned int i = 0; i < SLAB_SIZE_SECOND / 512; i++)
		allocate(HCCLD_MEMORY_DEVICE, 512);
	check_eq_uint(fake_segments(), 2);
	check_eq_uint(hccld_buffer_idle(fake_context()), 0);
	for (unsigned int i = 0; i < SLAB_SIZE / 512; i++)
		allocate(HCCLD_MEMORY_DEVICE, 512);
	check_eq_uint(fake_segments(), 3);
	check_eq_uint(hccld_buffer_idle(fake_context()), 0);
	allocate(HCCLD_MEMORY_DEVICE, 1);
	check_eq_uint(fake_segments(), 4);
	check_eq_uint(hccld_buffer_idle(fake_context()), SLAB_SIZE - 512);
	allocate(HCCLD_MEMORY_HOST, 1);
	check_eq_uint(fake_segments(), 5);
	check_eq_uint(hccld_buffer_idle(fake_context()), SLAB_SIZE - 512);
}

TEST(buffer_free_and_allocate_restore_the_free_memory)
{
	uint64_t used = fake_device_bytes() - hccld_buffer_idle(fake_context());
	void *pointers[300];

	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 300; i++) {
			size_t size = (i * 7919u) % 400000u + 1;
			uint64_t before = fake_device_bytes() - hccld_buffer_idle(fake_context());

			pointers[i] = allocate(HCCLD_MEMORY_DEVICE, size);
			check_ge_uint(fake_device_bytes() - hccld_buffer_idle(fake_context()),
				      before + size);
		}
		for (unsigned int i = 0; i < 300; i++)
			check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, pointers[i * 7 % 300]),
				     0);
		check_eq_uint(fake_device_bytes() - hccld_buffer_idle(fake_context()), used);
	}
	check_le_uint(fake_segments(), 1);
}

TEST(buffer_free_refuses_what_is_no_allocation)
{
	char *small = allocate(HCCLD_MEMORY_DEVICE, 2000);
	char *large = allocate(HCCLD_MEMORY_DEVICE, 2000000);
	char *host = allocate(HCCLD_MEMORY_HOST, 2000);
	int stack;

	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, small + 512), -EINVAL);
	check_str_contains(hccld_error_take(), "aclrtMalloc");
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, small + 1), -EINVAL);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, large + 4096), -EINVAL);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, &stack), -EINVAL);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, host), -EINVAL);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_HOST, small), -EINVAL);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, small), 0);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, small), -EINVAL);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, large), 0);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, large), -EINVAL);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_HOST, host), 0);
}

/* What others may have mapped is given to nobody else, reads as zeros, and goes with its slab. */
TEST(buffer_shared_small_memory_keeps_its_place)
{
	char *first = allocate(HCCLD_MEMORY_DEVICE, 4096);
	char *shared = allocate(HCCLD_MEMORY_DEVICE, 4000);
	char *large = allocate(HCCLD_MEMORY_DEVICE, 300000);
	uint32_t segments = fake_segments();
	char *pointers[64];

	memset(shared, 7, 4000);
	hccld_buffer_share(shared + 100);
	hccld_buffer_share(large);
	hccld_buffer_share(&segments);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, large), 0);
	check_eq_uint(fake_segments(), segments - 1);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, shared), 0);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, shared), -EINVAL);
	check_eq_uint(available(shared), 0);
	for (unsigned int i = 0; i < 4000; i++)
		check_eq_int(shared[i], 0);
	for (unsigned int i = 0; i < 64; i++) {
		pointers[i] = allocate(HCCLD_MEMORY_DEVICE, 4096);
		check(pointers[i] >= shared + 4096 || pointers[i] + 4096 <= shared);
	}
	for (unsigned int i = 0; i < 64; i++)
		check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, pointers[i]), 0);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, first), 0);
	/* an empty slab is kept for the next allocation, but not this one: only the other is there */
	check_le_uint(fake_segments(), 1);
	first = allocate(HCCLD_MEMORY_DEVICE, 4096);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, first), 0);
	check_eq_uint(fake_device_bytes() - hccld_buffer_idle(fake_context()), 0);
}

TEST(buffer_last_bytes_of_a_device_can_be_had)
{
	unsigned int count = 0;
	void *pointer;
	int r;

	fake_device_limit(SLAB_SIZE + 40960);
	while ((r = hccld_buffer_allocate(fake_context(), HCCLD_MEMORY_DEVICE, 4096, 0, &pointer)) ==
	       0) {
		count++;
		/* nor has a success a text of what was tried before */
		check_null(hccld_error_take());
	}
	check_eq_int(r, -ENOMEM);
	check_eq_uint(count, 512 + 10);
	check_eq_uint(fake_device_bytes(), SLAB_SIZE + 40960);
}

TEST(buffer_empty_slab_makes_way_for_a_large_allocation)
{
	void *small = allocate(HCCLD_MEMORY_DEVICE, 100);

	fake_device_limit(SLAB_SIZE);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, small), 0);
	allocate(HCCLD_MEMORY_DEVICE, SLAB_SIZE);
}

TEST(buffer_host_memory_outlives_its_context)
{
	char *small = allocate(HCCLD_MEMORY_HOST, 100),
	     *large = allocate(HCCLD_MEMORY_HOST, 1000000);
	char *device = allocate(HCCLD_MEMORY_DEVICE, 100);

	memset(small, 's', 100);
	memset(large, 'l', 1000000);
	hccld_buffer_keep_host(fake_context());
	hccld_buffer_forget(fake_context());
	check_eq_uint(available(device), 0);
	/* the engine cannot reach it any more, so it is like the program's own */
	check_eq_uint(available(small), 0);
	check_eq_uint(available(large), 0);
	check_eq_int(small[99], 's');
	check_eq_int(large[999999], 'l');
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_HOST, small), 0);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_HOST, large), 0);
	check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, device), -EINVAL);
}

static _Atomic bool enough;

/* One allocation of its own, looked up while others come and go around it. */
static void *look_up(void *arg)
{
	_Atomic uint64_t *rounds = arg;
	char *mine = allocate(HCCLD_MEMORY_DEVICE, 3000);
	struct hccld_place expected, place;

	check_eq_int(hccld_buffer_find(mine, &expected), 0);
	while (!atomic_load(&enough)) {
		check_eq_int(hccld_buffer_find(mine + 1000, &place), 0);
		check_eq_uint(place.segment, expected.segment);
		check_eq_uint(place.offset, expected.offset + 1000);
		check_eq_uint(place.available, 2000);
		atomic_fetch_add(rounds, 1);
	}
	return NULL;
}

TEST(buffer_lookup_is_right_while_others_change)
{
	pthread_t threads[3];
	_Atomic uint64_t rounds[3] = { 0 };
	void *pointers[16] = { NULL };

	for (unsigned int i = 0; i < 3; i++)
		check_eq_int(pthread_create(&threads[i], NULL, look_up, &rounds[i]), 0);
	/* all of them look up before anything changes, and go on meanwhile */
	for (unsigned int i = 0; i < 3; i++)
		while (atomic_load(&rounds[i]) == 0)
			sched_yield();
	for (unsigned int i = 0; i < 3000; i++) {
		void **pointer = &pointers[i * 5 % 16];

		if (*pointer)
			check_eq_int(hccld_buffer_free(HCCLD_MEMORY_DEVICE, *pointer), 0);
		*pointer = allocate(HCCLD_MEMORY_DEVICE, i % 3 ? 300000 : 200000);
	}
	atomic_store(&enough, true);
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}
