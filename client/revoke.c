/* SPDX-License-Identifier: Apache-2.0 */
#include "client/revoke.h"

#include <sys/mman.h>

#include "client/kernel.h"
#include "client/mapping.h"
#include "client/strict.h"

void hccld_revoke(void *base, uint64_t size, bool is_device)
{
	void *zeros = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (zeros != MAP_FAILED && hccld_strict_replace(base, zeros, size, is_device) == 0)
		return;
	if (zeros != MAP_FAILED)
		munmap(zeros, size);
	/* no addresses: a kernel that touches it ends the program, which is better than to let it write to who does not expect that */
	(void)mprotect(base, size, PROT_NONE);
}

static void unmap(void *base, uint64_t size)
{
	hccld_strict_forget(base, size);
	hccld_mapping_free(base, size);
}

void hccld_revoked_unmap(void *base, uint64_t size)
{
	hccld_kernels_then(unmap, base, size);
}
