/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and end of acl, error text, versions; includes the runtime. Libraries libascendcl.so and
 * libacl_rt.so. Functions may be called from any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"
#include "acl_mdl.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 17
#define ACL_PATCH_VERSION 0

#define ACL_PKG_VERSION_MAX_SIZE 128
#define ACL_PKG_VERSION_PARTS_MAX_SIZE 64

typedef enum aclCANNPackageName {
	ACL_PKG_NAME_CANN = 0,
	ACL_PKG_NAME_RUNTIME = 1,
	ACL_PKG_NAME_COMPILER = 2,
	ACL_PKG_NAME_HCCL = 3,
	ACL_PKG_NAME_TOOLKIT = 4,
	ACL_PKG_NAME_OPP = 5,
	ACL_PKG_NAME_OPP_KERNEL = 6,
	ACL_PKG_NAME_DRIVER = 7,
} aclCANNPackageName;

typedef struct aclCANNPackageVersion {
	char version[ACL_PKG_VERSION_MAX_SIZE];
	char majorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char minorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char releaseVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char patchVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
	char reserved[ACL_PKG_VERSION_MAX_SIZE];
} aclCANNPackageVersion;

typedef aclError (*aclInitCallbackFunc)(const char *configStr, size_t len, void *userData);
typedef aclError (*aclFinalizeCallbackFunc)(void *userData);

/*
 * Starts acl in this process. @configPath: a JSON file, or NULL. ACL_ERROR_REPEAT_INITIALIZE:
 * started before; counted all the same. ACL_ERROR_INVALID_FILE, ACL_ERROR_PARSE_FILE: the file
 * cannot be read, or is no JSON. Other calls work without it.
 */
aclError aclInit(const char *configPath);

/* Ends acl. ACL_ERROR_REPEAT_FINALIZE: ended before. Devices need not be reset first. */
aclError aclFinalize(void);
/* Takes back one aclInit; *refCount, unless NULL, is the number that remain. */
aclError aclFinalizeReference(uint64_t *refCount);

/*
 * Text of the calling thread's last error, or NULL; reading takes it away. The string stays valid
 * until the thread's next call of this function. Inline functions of these headers (HcclChannelDescInit
 * and others that fill a structure) work without the library and leave no text: one that is there
 * after their HCCL_E_PTR is of an earlier call.
 */
const char *aclGetRecentErrMsg(void);

/* Version of a CANN package. */
aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version);
/* Version of a package as a number. */
aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum);
/* Version of a package as text; @versionStr has ACL_PKG_VERSION_MAX_SIZE bytes. */
aclError aclsysGetVersionStr(char *pkgName, char *versionStr);

#ifdef __cplusplus
}
#endif
