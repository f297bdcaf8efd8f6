/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is shared with clients: memfds of fixed size, sealed before anyone sees them, of mode
 * 0 so that a descriptor cannot be reopened with more rights. Any thread. Failures of system calls
 * are logged here; -ENOMEM: no memory behind it, -EDQUOT: out of descriptors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* @backed: all pages exist before it returns; else memfd_back() before use. */
int memfd_new(const char *name, uint64_t bytes, bool backed, int *ret_fd);
int memfd_back(int fd, uint64_t offset, uint64_t bytes);
/* What memfd_back() would give at most, as far as the node and the control group of this process have it. */
uint64_t memfd_room(void);
/* Frees the pages, whoever maps them; they read as zeros afterwards. */
void memfd_punch(int fd, uint64_t offset, uint64_t bytes);
/* Maps it read-write and keeps it out of core dumps and forks. @populate: page tables too. */
int memfd_map(int fd, uint64_t bytes, bool populate, void **ret_base);
void memfd_unmap(void *base, uint64_t bytes); /* takes NULL */
/* Another descriptor of the same memory that can only be read. */
int memfd_read_only(int fd, int *ret_fd);

/* Zeroed private memory for sparse tables: costs only the pages that are touched. */
int sparse_new(uint64_t bytes, void **ret_base); /* -ENOMEM */
void sparse_free(void *base, uint64_t bytes);	 /* takes NULL */
