/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another process, or of a device that is reset, that this one has mapped and may not touch any more. Host kernels that run may
 * still do so, and neither reach its owner by that nor crash: what they find there are zeros of this process, until they have ended. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Puts zeros of this process in the place of what is mapped at @base, whole pages. When it returns no thread of this process can load or
 * store anything of the owner through these addresses. @is_device: hccld_strict_protect() was called for it.
 */
void hccld_revoke(void *base, uint64_t size, bool is_device);
/* Unmaps what came from hccld_mapping_new(), when no host kernel that has been launched by now can touch them any more. */
void hccld_revoked_unmap(void *base, uint64_t size);
