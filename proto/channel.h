/* SPDX-License-Identifier: Apache-2.0 */
/* Engines and protocols of channels: the values of CommEngine and CommProtocol, and what they are here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_ENGINES 6u	/* 0 to 5 */
#define CHANNEL_PROTOCOLS 10u	/* 0 to 9 */
#define CHANNEL_ENGINE_AIV 4u

/* "AIV", "UB_MEM"; "unknown". */
const char *channel_engine_name(uint32_t engine);
const char *channel_protocol_name(uint32_t protocol);
/* Is the peer's memory mapped, for load and store? Otherwise only tasks reach it, as over a network. */
bool channel_protocol_is_mapped(uint32_t protocol);
/* Is it one of Unified Bus? */
bool channel_protocol_is_ub(uint32_t protocol);
