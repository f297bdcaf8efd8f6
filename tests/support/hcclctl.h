/* SPDX-License-Identifier: Apache-2.0 */
/* What hcclctl (HCCLCTL_BINARY) says of the test's daemon. */
#pragma once

/* Asks again and again until @part is in the output of `hcclctl @arguments`. */
void hcclctl_expect(const char *arguments, const char *part);
