/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies on each device by an engine thread, executor and copy workers like those that clients get, before
 * anybody is told that the daemon is ready. A scheduler of its own, so that nothing of it stays behind.
 */
#pragma once

#include <stdint.h>

/*
 * 0, or a negative errno with a line in the log that names the device: -ENOMEM and others when there
 * is no memory or thread, -EIO when bytes are wrong or the engine reports an error, -ETIMEDOUT.
 */
int selftest_run(uint32_t device_count, uint32_t copy_threads);
