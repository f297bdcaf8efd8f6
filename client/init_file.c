/* SPDX-License-Identifier: Apache-2.0 */
/* The file of aclInit. Nothing in it matters here; that it is one is checked, as mistakes in it would show with CANN only. */
#include "client/init_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acl/acl.h"
#include "client/error.h"
#include "proto/cleanup.h"

#define FILE_BYTES_MAX (10u << 20)

static int failure(int code, const char *path, const char *what)
{
	hccld_error(CAUSE_NONE, "aclInit: %.256s %s", path, what);
	return code;
}

int hccld_init_file_check(const char *path)
{
	CLEANUP(close_fdp) int fd = -1;
	CLEANUP(freep) char *text = NULL;
	struct stat st;
	cJSON *root;
	ssize_t n;

	/* O_NONBLOCK: a FIFO must not make us wait for its writer */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0) {
		hccld_error(CAUSE_NONE, "aclInit: cannot read %.256s: %s", path, strerror(errno));
		return ACL_ERROR_INVALID_FILE;
	}
	if (!S_ISREG(st.st_mode))
		return failure(ACL_ERROR_INVALID_FILE, path, "is no regular file");
	if (st.st_size > FILE_BYTES_MAX)
		return failure(ACL_ERROR_INVALID_FILE, path, "has more than 10 MiB");
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return hccld_acl_result(hccld_error(CAUSE_HOST_MEMORY, "no memory to read %.256s", path));
	n = read(fd, text, (size_t)st.st_size);
	if (n < 0) {
		hccld_error(CAUSE_NONE, "aclInit: cannot read %.256s: %s", path, strerror(errno));
		return ACL_ERROR_INVALID_FILE;
	}
	root = cJSON_ParseWithLength(text, (size_t)n);
	if (!root)
		return failure(ACL_ERROR_PARSE_FILE, path, "is no JSON; with nothing to set, write {} into it, or pass NULL");
	cJSON_Delete(root);
	return 0;
}
