/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the key: who may have it, and how it is read. */
#include "cluster/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/test.h"

static const char sixteen[] = "0123456789abcdef";

static const char *key_write(const char *name, const void *data, size_t size, mode_t mode)
{
	const char *path = test_path(name);
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	check_ge_int(fd, 0);
	check_eq_int(write(fd, data, size), (ssize_t)size);
	check_eq_int(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

/* Reads it, and sees that nothing stays in a key that was refused. */
static int take(const char *path, struct key *key, char problem[512])
{
	static const struct key none;
	int r;

	memset(key, 0x55, sizeof(*key));
	problem[0] = '\0';
	r = key_read(path, key, problem, 512);
	if (r == 0) {
		check_eq_str(problem, "");
		return 0;
	}
	check_str_contains(problem, path);
	check(problem[strlen(problem) - 1] != '.');
	check_eq_mem(key, &none, sizeof(none));
	return r;
}

static void good(const void *data, size_t size, size_t expected)
{
	char problem[512];
	struct key key;

	check_eq_int(take(key_write("key", data, size, 0600), &key, problem), 0);
	check_eq_uint(key.size, expected);
	check_eq_mem(key.data, data, expected);
}

static void bad(const void *data, size_t size)
{
	char problem[512];
	struct key key;

	check_lt_int(take(key_write("key", data, size, 0600), &key, problem), 0);
	check_str_contains(problem, "a key has 16 to 4096 bytes");
}

TEST(sizes)
{
	static unsigned char bytes[KEY_BYTES_MAX + 100];

	memset(bytes, 'k', sizeof(bytes));
	good(bytes, KEY_BYTES_MIN, KEY_BYTES_MIN);
	good(bytes, 17, 17);
	good(bytes, 4095, 4095);
	good(bytes, KEY_BYTES_MAX, KEY_BYTES_MAX);
	bad(bytes, 0);
	bad(bytes, 1);
	bad(bytes, KEY_BYTES_MIN - 1);
	bad(bytes, KEY_BYTES_MAX + 1);
	bad(bytes, sizeof(bytes));
}

TEST(white_space_at_the_end)
{
	static char bytes[KEY_BYTES_MAX];

	good("0123456789abcdef\n", 17, 16);
	good("0123456789abcdef \t\r\n\n", 21, 16);
	good(" 0123456789abcdef\n", 18, 17);
	good("0123456 89abcdef\n", 17, 16);
	bad("0123456789abcde\n", 16);
	bad("0123456789abcde                 ", 32);
	memset(bytes, '\n', sizeof(bytes));
	bad(bytes, sizeof(bytes));
	memset(bytes, 'k', sizeof(bytes) - 1);
	good(bytes, sizeof(bytes), sizeof(bytes) - 1);
	/* bytes of any value count */
	good("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 16);
	good("\xff\xfe\0abc\n\n\n\x80\x81\x82\x83\x84\x85\x86", 16, 16);
}

TEST(modes)
{
	static const mode_t others[] = { 0604, 0602, 0601, 0640, 0620, 0610, 0644, 0666, 0660, 0777, 0004, 0040 };
	static const mode_t own[] = { 0600, 0400, 0700, 0500 };
	char problem[512], mode[16];
	struct key key;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		check_eq_int(take(key_write("key", sixteen, 16, own[i]), &key, problem), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		int r = take(key_write("key", sixteen, 16, others[i]), &key, problem);

		/* what its owner cannot read is not judged, but for root */
		if (geteuid() != 0 && !(others[i] & 0400)) {
			check_eq_int(r, -EACCES);
			continue;
		}
		check_eq_int(r, -EINVAL);
		snprintf(mode, sizeof(mode), "(mode %03o)", (unsigned)others[i]);
		check_str_contains(problem, mode);
		check_str_contains(problem, "chmod 600 ");
	}
}

TEST(owner)
{
	char problem[512];
	struct key key;
	const char *path;

	if (geteuid() != 0)
		test_skip("only root can give a file away");
	path = key_write("key", sixteen, 16, 0600);
	check_eq_int(chown(path, 1234, 0), 0);
	check_eq_int(take(path, &key, problem), -EINVAL);
	check_str_contains(problem, "belongs to uid 1234");
	/* it is that user's own */
	check_eq_int(chmod(test_path(""), 0755), 0);
	check_eq_int(seteuid(1234), 0);
	check_eq_int(take(path, &key, problem), 0);
	check_eq_int(seteuid(0), 0);
	check_eq_int(chown(path, 0, 1234), 0);
	check_eq_int(take(path, &key, problem), 0);
}

TEST(no_regular_files)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char problem[512];
	struct key key;
	const char *path = test_path("directory");
	int fd;

	check_eq_int(mkdir(path, 0700), 0);
	check_eq_int(take(path, &key, problem), -EINVAL);
	check_str_contains(problem, "is no regular file");
	/* nobody writes into it: it is not waited for */
	path = test_path("pipe");
	check_eq_int(mkfifo(path, 0600), 0);
	check_eq_int(take(path, &key, problem), -EINVAL);
	check_str_contains(problem, "is no regular file");
	check_eq_int(take("/dev/zero", &key, problem), -EINVAL);
	check_str_contains(problem, "is no regular file");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", test_path("socket"));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check_eq_int(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	check_lt_int(take(address.sun_path, &key, problem), 0);
	close(fd);
}

TEST(missing)
{
	char problem[512];
	struct key key;

	check_eq_int(take(test_path("missing"), &key, problem), -ENOENT);
	check_str_contains(problem, "No such file");
	check_eq_int(take(test_path("missing/key"), &key, problem), -ENOENT);
	key_write("file", sixteen, 16, 0600);
	check_eq_int(take(test_path("file/key"), &key, problem), -ENOTDIR);
	check_eq_int(symlink("nowhere", test_path("dangling")), 0);
	check_eq_int(take(test_path("dangling"), &key, problem), -ENOENT);
}

/* Its target is judged. */
TEST(symbolic_link)
{
	char problem[512];
	struct key key;

	key_write("target", sixteen, 16, 0600);
	check_eq_int(symlink("target", test_path("link")), 0);
	check_eq_int(take(test_path("link"), &key, problem), 0);
	check_eq_int(chmod(test_path("target"), 0644), 0);
	check_eq_int(take(test_path("link"), &key, problem), -EINVAL);
}

TEST(wiped)
{
	static const struct key none;
	char problem[512];
	struct key key;

	check_eq_int(take(key_write("key", sixteen, 16, 0600), &key, problem), 0);
	key_wipe(&key);
	check_eq_mem(&key, &none, sizeof(none));
}
