/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs have in common that hcclctl looks at. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

#define TRY(call)                                                                      \
	do {                                                                           \
		int code_ = (int)(call);                                               \
		if (code_) {                                                           \
			fprintf(stderr, "%s: %d %s\n", #call, code_, aclGetRecentErrMsg()); \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

static const char *step_path;

/* Until the test has made the file of step @number. */
static inline void wait_for_step(unsigned long number)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.step%lu", step_path, number);
	while (access(path, F_OK) < 0)
		usleep(5000);
}

/* Rank 0 makes the root info; the file @path takes it to the others. */
static inline void share(HcclRootInfo *root, uint32_t rank, const char *path)
{
	char part[4096];
	FILE *file;

	snprintf(part, sizeof(part), "%s.part", path);
	if (rank == 0) {
		TRY(HcclGetRootInfo(root));
		file = fopen(part, "wb");
		if (!file || fwrite(root, sizeof(*root), 1, file) != 1 || fclose(file) || rename(part, path))
			exit(1);
		return;
	}
	while (!(file = fopen(path, "rb")))
		usleep(10000);
	if (fread(root, sizeof(*root), 1, file) != 1)
		exit(1);
	fclose(file);
}
