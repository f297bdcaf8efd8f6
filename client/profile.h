/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of profiling calls, and stamps. No profile is written: there is no device whose counters could be read, and hcclctl shows what
 * happens. Calls are checked as if there were one, so that programs that profile run. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>


/* What it says was checked, and is not kept. */
struct hccld_profile_config {
	struct hccld_profile_config *next;
};

/* The results of these are acl codes; text set. */
int hccld_profile_init(const char *path, size_t length);
int hccld_profile_finalize(void);
int hccld_profile_start(const struct hccld_profile_config *config);
int hccld_profile_stop(const struct hccld_profile_config *config);
/* NULL: something is wrong with the arguments. */
struct hccld_profile_config *hccld_profile_config_new(const uint32_t *devices, uint32_t count, uint64_t data);
int hccld_profile_config_free(const struct hccld_profile_config *config);
bool hccld_profile_is_running(void);

/* Stamps; @function names the caller in texts. NULL: profiling does not run, or no memory. */
void *hccld_profile_stamp_new(void);
void hccld_profile_stamp_free(void *handle);
int hccld_profile_stamp_check(const char *function, const void *handle);
/* @stream: of the program. */
int hccld_profile_mark(size_t length, void *stream);
int hccld_profile_push(const void *handle);
int hccld_profile_pop(void);
int hccld_profile_range_start(const void *handle, uint32_t *ret_range);
int hccld_profile_range_stop(uint32_t range);
