/* SPDX-License-Identifier: Apache-2.0 */
#include "hcclctl/late.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NUMBER_SIZE 16

/* Without the locks that printf() may take. */
static const char *number_text(unsigned int number, char buffer[NUMBER_SIZE])
{
	char *at = buffer + NUMBER_SIZE - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	return at;
}

static size_t append(char *text, size_t length, size_t size, const char *more)
{
	while (*more && length + 1 < size)
		text[length++] = *more++;
	text[length] = '\0';
	return length;
}

/* Who listens there, as the kernel says; 0: not known. A connection of its own: the one that waits may still be the library's. */
static pid_t listener_pid(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred credentials = { .pid = 0 };
	socklen_t size = sizeof(credentials);
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return 0;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return 0;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		credentials.pid = 0;
	close(fd);
	return credentials.pid;
}

static bool is_stopped(pid_t pid)
{
	char path[64] = "", line[1024], number[NUMBER_SIZE];
	size_t length = append(path, 0, sizeof(path), "/proc/");
	const char *name_end;
	ssize_t n;
	int fd;

	length = append(path, length, sizeof(path), number_text((unsigned int)pid, number));
	append(path, length, sizeof(path), "/stat");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	line[n > 0 ? n : 0] = '\0';
	/* the name in parentheses may have some of its own */
	name_end = strrchr(line, ')');
	return name_end && name_end[1] == ' ' && (name_end[2] == 'T' || name_end[2] == 't');
}

size_t late_explain(const char *path, char *text, size_t length, size_t size)
{
	pid_t pid = listener_pid(path);
	char number[NUMBER_SIZE];

	if (pid <= 0 || !is_stopped(pid))
		return append(text, length, size, "; its log says more\n");
	length = append(text, length, size, ": pid ");
	length = append(text, length, size, number_text((unsigned int)pid, number));
	length = append(text, length, size, " is stopped (SIGSTOP or a debugger): kill -CONT ");
	length = append(text, length, size, number_text((unsigned int)pid, number));
	return append(text, length, size, ", or the debugger, lets it go on\n");
}
