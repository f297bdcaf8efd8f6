/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a stream ring and items of a side buffer, which a client can write at any time. */
#include "tests/fuzz/engine_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	engine_case(data, size, TARGET_SLOTS);
	return 0;
}
