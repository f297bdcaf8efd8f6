/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring in the way of frameworks that link nothing: libhccl.so is opened by name, and every function, acl ones too, is looked up through
 * that one handle. One process per rank (hcclctl run); FILE takes the root info from rank 0 to the others.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

static void *library;

static void *look_up(const char *name)
{
	void *function = dlsym(library, name);

	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return function;
}

#define CALL(name, ...)                                                    \
	do {                                                               \
		__typeof__(&name) call_ = (__typeof__(&name))look_up(#name); \
		int code_ = (int)call_(__VA_ARGS__);                       \
		if (code_) {                                               \
			fprintf(stderr, "%s: %d\n", #name, code_);         \
			exit(1);                                           \
		}                                                          \
	} while (0)

static void share(HcclRootInfo *root, unsigned int rank, const char *path)
{
	char part[4096];
	FILE *file;

	if (rank == 0) {
		CALL(HcclGetRootInfo, root);
		snprintf(part, sizeof(part), "%s.part", path);
		file = fopen(part, "wb");
		if (!file || fwrite(root, sizeof(*root), 1, file) != 1 || fclose(file) || rename(part, path))
			exit(2);
		return;
	}
	while (!(file = fopen(path, "rb")))
		usleep(2000);
	if (fread(root, sizeof(*root), 1, file) != 1)
		exit(2);
	fclose(file);
}

int main(int argc, char **argv)
{
	unsigned int rank = (unsigned int)atoi(getenv("RANK_ID")), size = (unsigned int)atoi(getenv("RANK_SIZE"));
	unsigned int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	void *out = NULL, *in = NULL;
	HcclRootInfo root;
	HcclComm comm = NULL;
	aclrtStream stream = NULL;
	int value, got, wrong = 0;

	library = argc == 2 ? dlopen("libhccl.so", RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: ring FILE");
		return 2;
	}
	CALL(aclrtSetDevice, atoi(getenv("DEVICE_ID")));
	share(&root, rank, argv[1]);
	CALL(HcclCommInitRootInfo, size, &root, rank, &comm);
	CALL(aclrtCreateStream, &stream);
	CALL(aclrtMalloc, &out, sizeof(value), ACL_MEM_MALLOC_HUGE_FIRST);
	CALL(aclrtMalloc, &in, sizeof(value), ACL_MEM_MALLOC_HUGE_FIRST);
	for (int round = 0; round < 50; round++) {
		HcclSendRecvItem items[2] = { { HCCL_SEND, out, 1, HCCL_DATA_TYPE_INT32, next },
					      { HCCL_RECV, in, 1, HCCL_DATA_TYPE_INT32, previous } };

		value = (int)rank * 1000 + round;
		CALL(aclrtMemcpy, out, sizeof(value), &value, sizeof(value), ACL_MEMCPY_HOST_TO_DEVICE);
		CALL(HcclBatchSendRecv, items, 2, comm, stream);
		CALL(aclrtSynchronizeStream, stream);
		CALL(aclrtMemcpy, &got, sizeof(got), in, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST);
		wrong += got != (int)previous * 1000 + round;
	}
	CALL(HcclCommDestroy, comm);
	printf("rank %u: %s\n", rank, wrong ? "WRONG" : "ok");
	return wrong != 0;
}
