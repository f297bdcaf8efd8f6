/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of communicators that are texts, in environment variables and in HcclCommConfig, and the setting of the whole process
 * (HcclSetConfig). The parsers are pure functions: false is for a text that is wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/region.h"

/* For messages: what is expected. */
#define HCCLD_RETRY_ENABLE_FORM "\"L0:x, L1:x, L2:x\" with x 0 or 1, each level at most once"
#define HCCLD_RETRY_PARAMS_FORM \
	"\"MaxCnt:n, HoldTime:ms, IntervalTime:ms\" with n from 1 to 10 and times from 0 to 60000, each at most once"
#define HCCLD_ALGO_FORM \
	"\"level0:NA;level1:<algorithm>\", or for each operator \"allreduce=level0:NA;level1:<algorithm>/...\" with an algorithm out of ring, H-D_R, NHR, NHR_V1, NB, AHC, pipeline, pairwise"
#define HCCLD_EXPANSION_FORM "one of AI_CPU, AICPU_TS, AICPU_CacheDisable, AIV, HOST, HOST_TS, CCU_MS, CCU_SCHED"
#define HCCLD_DETERMINISTIC_FORM "one of false, true, strict"

/* HCCL_OP_RETRY_ENABLE, hcclRetryEnable: bit i of *@ret_levels is level i. */
bool hccld_retry_enable_parse(const char *text, uint8_t *ret_levels);
/* HCCL_OP_RETRY_PARAMS, hcclRetryParams: overwrites what the text names. */
bool hccld_retry_params_parse(const char *text, struct comm_settings *settings);
/* HCCL_ALGO, hcclAlgo. Point-to-point operators have no use for it: it is only checked. */
bool hccld_algo_check(const char *text);
/* HCCL_OP_EXPANSION_MODE: *@ret_mode as hcclOpExpansionMode. */
bool hccld_expansion_parse(const char *text, uint8_t *ret_mode);
/* HCCL_DETERMINISTIC: 0 to 2. */
bool hccld_deterministic_parse(const char *text, uint8_t *ret_value);

/* Does this kind of device have the strict order of reductions? *@ret_soc_name may be NULL. Negative errno without a daemon, text set. */
int hccld_strict_is_known(bool *ret_known, const char **ret_soc_name);
/* HcclSetConfig(HCCL_DETERMINISTIC): nothing happens when the environment has the variable. */
void hccld_deterministic_set(uint8_t value);
uint8_t hccld_deterministic(void);

/* What hcclQos is, on this kind of device, of a communicator that does not say. */
uint8_t hccld_qos_default(const char *soc_name);
