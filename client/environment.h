/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables of communicators. Read once per process, by the first communicator call; what is wrong then stays wrong, and
 * every communicator call says so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/digest.h"
#include "proto/region.h"

struct hccld_environment {
	uint32_t exec_timeout_ms;    /* HCCL_EXEC_TIMEOUT; 0: never */
	uint32_t connect_timeout_ms; /* HCCL_CONNECT_TIMEOUT, or HCCLD_CONNECT_TIMEOUT_MS */
	uint32_t buffer_mb;	     /* HCCL_BUFFSIZE: each of the two buffers of a communicator */
	bool is_connect_ms;	     /* ... the latter */
	bool intra_roce;	     /* HCCL_INTRA_ROCE_ENABLE and HCCL_INTRA_PCIE_ENABLE: ranks of a server use RoCE */
	bool entry_log;		     /* HCCL_ENTRY_LOG_ENABLE */
	bool allow_duplicate_items;  /* HCCLD_ALLOW_DUPLICATE_ITEMS */
	bool has_deterministic;	     /* HCCL_DETERMINISTIC is set */
	struct comm_settings settings; /* HCCL_OP_EXPANSION_MODE, HCCL_OP_RETRY_*, HCCL_DETERMINISTIC, HCCL_BUFFSIZE */
};

/* Parses and checks; @lookup is getenv or a test's. -EBADMSG, text set (EI0001: variable, value, range); @ret_environment is untouched. */
int hccld_environment_read(char *(*lookup)(const char *name),
			   struct hccld_environment *ret_environment);

/* 0 or -EBADMSG, the same in every thread and call; text set. */
int hccld_environment_check(void);
/* The process's settings; defaults if they are malformed. */
uint32_t hccld_environment_exec_timeout_ms(void);
uint32_t hccld_environment_connect_timeout_ms(void);
/* HCCLD_CONNECT_TIMEOUT_MS sets it, not HCCL_CONNECT_TIMEOUT. */
bool hccld_environment_connect_is_ms(void);
uint32_t hccld_environment_buffer_mb(void);
/* What communicators start from; HcclSetConfig is not in it. */
struct comm_settings hccld_environment_settings(void);
/* False: HCCL_DETERMINISTIC is not set. */
bool hccld_environment_deterministic(uint8_t *ret_value);
/*
 * Which job this process belongs to: HCCLD_JOB, else what its launcher has given it (PMIX_NAMESPACE, SLURM_JOB_ID, MASTER_PORT and so on).
 * Ranks of different jobs do not meet, though their rank tables are the same.
 */
void hccld_environment_job(struct digest *digest);
/* Ranks of one server use RoCE, and do not reach each other's memory by load and store. */
bool hccld_environment_intra_roce(void);
bool hccld_environment_entry_log(void);
bool hccld_environment_allow_duplicate_items(void);
/* One line to stderr for a call of an operator, if HCCL_ENTRY_LOG_ENABLE is 1. Cheap if it is not. */
void hccld_environment_log_entry(const char *format, ...) __attribute__((format(printf, 1, 2)));
