/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables as files, and whether they fit this machine. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/error.h"
#include "client/rank_table.h"
#include "proto/cleanup.h"

static int file_open(const char *path, int *ret_fd, size_t *ret_size)
{
	CLEANUP(close_fdp) int fd = -1;
	struct stat st;

	if (strnlen(path, HCCLD_RANK_TABLE_PATH_MAX + 1) > HCCLD_RANK_TABLE_PATH_MAX)
		return hccld_error(CAUSE_TABLE_PARSE, "the path of the rank table is longer than %u bytes: %.64s...",
				   HCCLD_RANK_TABLE_PATH_MAX, path);
	/* O_NONBLOCK: a FIFO must not make us wait for its writer */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return hccld_error(CAUSE_TABLE_FILE, "rank table %s cannot be opened: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return hccld_error(CAUSE_TABLE_FILE, "rank table %s is no regular file", path);
	if (st.st_size >= HCCLD_RANK_TABLE_BYTES_MAX)
		return hccld_error(CAUSE_TABLE_PARSE, "rank table %s has %lld bytes; expected less than %u MiB", path,
				   (long long)st.st_size, HCCLD_RANK_TABLE_BYTES_MAX >> 20);
	*ret_size = (size_t)st.st_size;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* What is there when it is read: a file that has shrunk since is what it is now. */
static int file_read(const char *path, char **ret_text, size_t *ret_size)
{
	CLEANUP(close_fdp) int fd = -1;
	CLEANUP(freep) char *text = NULL;
	size_t size = 0, length = 0;
	ssize_t n = 1;
	int r = file_open(path, &fd, &size);

	if (r < 0)
		return r;
	text = malloc(size + 1);
	if (!text)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to read rank table %s", path);
	while (length < size && n > 0) {
		n = read(fd, text + length, size - length);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			length += (size_t)n;
	}
	if (n < 0)
		return hccld_error(CAUSE_TABLE_FILE, "rank table %s cannot be read: %s", path, strerror(errno));
	*ret_text = take_ptr(&text);
	*ret_size = length;
	return 0;
}

int hccld_rank_table_load(const char *path, struct hccld_rank_table **ret_table)
{
	struct hccld_rank_table_error error;
	CLEANUP(freep) char *text = NULL;
	size_t size = 0;
	int r = file_read(path, &text, &size);

	if (r < 0)
		return r;
	r = hccld_rank_table_parse(text, size, ret_table, &error);
	return r < 0 ? hccld_error(error.cause, "rank table %s: %s", path, error.text) : 0;
}

static bool is_own_address(const char *text, const struct ifaddrs *interfaces)
{
	struct in6_addr address6;
	struct in_addr address4;
	bool is_4 = inet_pton(AF_INET, text, &address4) == 1, is_6 = !is_4 && inet_pton(AF_INET6, text, &address6) == 1;

	for (const struct ifaddrs *i = interfaces; i && (is_4 || is_6); i = i->ifa_next) {
		if (!i->ifa_addr)
			continue;
		if (is_4 && i->ifa_addr->sa_family == AF_INET &&
		    memcmp(&((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr, &address4, sizeof(address4)) == 0)
			return true;
		if (is_6 && i->ifa_addr->sa_family == AF_INET6 &&
		    memcmp(&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr, &address6, sizeof(address6)) == 0)
			return true;
	}
	return false;
}

/* Servers that are this machine under several names are one node. NULL: all are; else one that is not. */
static const char *find_other_node(const struct hccld_rank_table *table)
{
	char name[HOST_NAME_MAX + 1] = "";
	struct ifaddrs *interfaces = NULL;
	const char *other = NULL;

	if (table->server_count == 1)
		return NULL;
	gethostname(name, sizeof(name) - 1);
	if (getifaddrs(&interfaces) < 0)
		interfaces = NULL;
	for (uint32_t i = 0; i < table->server_count && !other; i++) {
		const struct hccld_rank_table_server *server = &table->servers[i];

		if (strcmp(server->id, name) != 0 && !is_own_address(server->id, interfaces) &&
		    !(server->host_ip && is_own_address(server->host_ip, interfaces)))
			other = server->id;
	}
	if (interfaces)
		freeifaddrs(interfaces);
	return other;
}

int hccld_rank_table_check(const struct hccld_rank_table *table, const char *path, uint32_t rank, uint32_t device)
{
	const char *other;

	if (rank >= table->rank_count)
		return hccld_error(CAUSE_TABLE_VALUE, "rank table %s: rank is %" PRIu32 ", but the table has %" PRIu32
				   " ranks; expected 0 to %" PRIu32,
				   path, rank, table->rank_count, table->rank_count - 1);
	other = find_other_node(table);
	if (other)
		return hccld_error(CAUSE_UNBUILT,
				   "rank table %s has %" PRIu32 " servers, of which \"%.64s\" is not this machine; this release of hccld has no links between nodes, put all ranks on one server",
				   path, table->server_count, other);
	if (table->ranks[rank].device != device)
		return hccld_error(CAUSE_TABLE_VALUE,
				   "rank table %s: rank %" PRIu32 " is on device_id %" PRIu32 ", this thread is on device %" PRIu32
				   " of the node; call aclrtSetDevice for the rank's device (ASCEND_RT_VISIBLE_DEVICES renumbers devices), or pass another rank",
				   path, rank, table->ranks[rank].device, device);
	return 0;
}
