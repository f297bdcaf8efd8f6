/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for daemon and engine in tests of the client's streams and memory: sessions, requests and segments are answered in this
 * process, and a thread runs copy and fill tasks, when it is let. It defines functions of client/session.h, connection.h and segment.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/session.h"
#include "proto/ring.h"

/* The one context there is. */
struct hccld_context *fake_context(void);
/* Starts the engine thread; @held: it does nothing until fake_engine_hold(false). */
void fake_engine_start(bool held);
void fake_engine_stop(void);
void fake_engine_hold(bool held);
/* The next task ends with this fault. */
void fake_engine_fail(const struct fault *fault);
/* Tasks done so far. */
uint64_t fake_engine_tasks(void);
/* Segments that exist, bytes in those of device memory. */
uint32_t fake_segments(void);
uint64_t fake_device_bytes(void);
/* Allocations beyond fail with -ENOMEM. */
void fake_device_limit(uint64_t bytes);
/* As if the daemon had hung up. */
void fake_hang_up(void);
