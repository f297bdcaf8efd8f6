/* SPDX-License-Identifier: Apache-2.0 */
/* libc_sec.so: the functions of securec.h as symbols. They need nothing of ours. */
#define HCCLD_SECUREC_FUNCTION
#include <securec.h>
