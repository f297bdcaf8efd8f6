/* SPDX-License-Identifier: Apache-2.0 */
/* Lines to stderr. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic(enum log_level) threshold = LOG_LEVEL_INFO;
static bool is_journal;

static const char *const names[] = { [LOG_LEVEL_ERROR] = "error",
				     [LOG_LEVEL_WARNING] = "warning",
				     [LOG_LEVEL_NOTICE] = "notice",
				     [LOG_LEVEL_INFO] = "info",
				     [LOG_LEVEL_DEBUG] = "debug" };

void log_init(enum log_level level)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	threshold = level;
	is_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		     fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_set_level(enum log_level level)
{
	threshold = level;
}

int log_level_parse(const char *name, enum log_level *ret_level)
{
	for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

void log_write(enum log_level level, const char *format, ...)
{
	char line[2048];
	va_list args;
	int saved = errno;
	int prefix, n;

	if (level > threshold)
		return;
	if (is_journal)
		prefix = snprintf(line, sizeof(line), "<%d>", level);
	else
		prefix = snprintf(line, sizeof(line), "hccld[%d]: %s: ", getpid(), names[level]);
	va_start(args, format);
	n = vsnprintf(line + prefix, sizeof(line) - (size_t)prefix - 1, format, args);
	va_end(args);
	if (n < 0)
		return;
	n += prefix;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	/* what clients sent may be part of the text: one line stays one line */
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < 0x20)
			line[i] = ' ';
	line[n++] = '\n';
	/* nobody can be told when stderr is gone */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		errno = saved;
	errno = saved;
}
