/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: the allocation that a test has chosen fails. HCCLD_TEST_MALLOC names a file with struct fail_malloc.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/fail_malloc.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static struct fail_malloc *shared;

__attribute__((constructor)) static void fail_malloc_init(void)
{
	const char *path = getenv("HCCLD_TEST_MALLOC");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *base;

	if (fd < 0)
		return;
	base = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (base != MAP_FAILED)
		shared = base;
}

static int fails(void)
{
	if (!shared || atomic_load(&shared->countdown) <= 0 || atomic_fetch_sub(&shared->countdown, 1) != 1)
		return 0;
	atomic_fetch_add(&shared->failed, 1);
	errno = ENOMEM;
	return 1;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *realloc(void *pointer, size_t size)
{
	return fails() ? NULL : __libc_realloc(pointer, size);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __libc_memalign(alignment, size);
}

__attribute__((visibility("default"))) int posix_memalign(void **pointer, size_t alignment, size_t size)
{
	void *memory = fails() ? NULL : __libc_memalign(alignment, size);

	if (!memory)
		return ENOMEM;
	*pointer = memory;
	return 0;
}
