/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory in this process, with a guard before and behind it: addresses where nothing is, so that a loop of the program that runs
 * beyond the end of device memory ends by SIGSEGV there, and not in the memory of a peer or in the ring of a stream. Any thread.
 *
 * Guards need addresses and kernel mappings, of which programs have to have enough (ulimit -v, vm.max_map_count): beyond a number of
 * mappings, or when there is no room for them, memory is mapped without.
 */
#pragma once

#include <stdint.h>

#define HCCLD_GUARD (64u << 10)

/*
 * @size bytes of @fd from @offset on, or zeros of this process if @fd is -1; neither for forked children nor for core dumps. NULL with
 * errno set. What is put in its place by MAP_FIXED or MREMAP_FIXED has to be as large.
 */
void *hccld_mapping_new(int fd, uint64_t offset, uint64_t size, int protection);
/* All of what came from hccld_mapping_new(). */
void hccld_mapping_free(const volatile void *base, uint64_t size);
