/* SPDX-License-Identifier: Apache-2.0 */
/* Offers of a pair ring, as a source that is not to be trusted could write them. */
#include "tests/fuzz/engine_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	engine_case(data, size, TARGET_OFFERS);
	return 0;
}
