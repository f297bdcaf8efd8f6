/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/key.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/cleanup.h"

static int key_judge(const struct stat *st, const char *path, char *problem, size_t size)
{
	if (!S_ISREG(st->st_mode))
		snprintf(problem, size, "%s is no regular file", path);
	else if (st->st_uid != 0 && st->st_uid != geteuid())
		snprintf(problem, size, "%s belongs to uid %u: it must be root's, or that of hccld's user", path, st->st_uid);
	else if (st->st_mode & 077)
		snprintf(problem, size, "%s can be read or written by others (mode %03o): chmod 600 %s", path, st->st_mode & 0777, path);
	else
		return 0;
	return -EINVAL;
}

static int key_take(int fd, struct key *key)
{
	unsigned char more;
	ssize_t size;

	while ((size = read(fd, key->data + key->size, sizeof(key->data) - key->size)) > 0)
		key->size += (size_t)size;
	if (size < 0)
		return -errno;
	/* white space at its end is what an editor has left; a full buffer may hide more */
	if (key->size == sizeof(key->data) && read(fd, &more, 1) != 0)
		return -EFBIG;
	while (key->size && isspace(key->data[key->size - 1]))
		key->size--;
	return 0;
}

int key_read(const char *path, struct key *ret_key, char *problem, size_t problem_size)
{
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int r;

	*ret_key = (struct key){ 0 };
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		snprintf(problem, problem_size, "%s: %s", path, strerror(errno));
		return r;
	}
	r = key_judge(&st, path, problem, problem_size);
	if (r < 0)
		return r;
	r = key_take(fd, ret_key);
	if (r == 0 && ret_key->size >= KEY_BYTES_MIN)
		return 0;
	if (r == 0 || r == -EFBIG)
		snprintf(problem, problem_size, "%s: a key has %u to %u bytes; make one with: head -c 32 /dev/urandom | base64 >%s", path, KEY_BYTES_MIN,
			 KEY_BYTES_MAX, path);
	else
		snprintf(problem, problem_size, "%s: %s", path, strerror(-r));
	key_wipe(ret_key);
	return r ? r : -EINVAL;
}

void key_wipe(struct key *key)
{
	sodium_memzero(key, sizeof(*key));
}
