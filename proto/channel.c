/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/channel.h"

static const char *const engines[CHANNEL_ENGINES] = { "CPU", "CPU_TS", "AICPU", "AICPU_TS", "AIV", "CCU" };

static const struct {
	const char *name;
	bool is_mapped, is_ub;
} protocols[CHANNEL_PROTOCOLS] = {
	{ "HCCS", true, false },   { "ROCE", false, false }, { "PCIE", true, false },	{ "SIO", true, false },
	{ "UBC_CTP", false, true }, { "UBC_TP", false, true }, { "UB_MEM", true, true }, { "UBOE", false, true },
	{ "HCCS_ONLY", true, false }, { "UB_RTP", false, true },
};

const char *channel_engine_name(uint32_t engine)
{
	return engine < CHANNEL_ENGINES ? engines[engine] : "unknown";
}

const char *channel_protocol_name(uint32_t protocol)
{
	return protocol < CHANNEL_PROTOCOLS ? protocols[protocol].name : "unknown";
}

bool channel_protocol_is_mapped(uint32_t protocol)
{
	return protocol < CHANNEL_PROTOCOLS && protocols[protocol].is_mapped;
}

bool channel_protocol_is_ub(uint32_t protocol)
{
	return protocol < CHANNEL_PROTOCOLS && protocols[protocol].is_ub;
}
