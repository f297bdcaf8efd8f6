/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines to the journal, by its native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL), or to stderr. libsystemd's sd_journal_send()
 * waits for a journal that does not read, and would hold up the daemon with it.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "proto/cleanup.h"
#include "proto/clock.h"

#define LINE_SIZE 2048
#define FREQUENT_PER_S 10

static _Atomic(enum log_level) threshold = LOG_LEVEL_INFO;
static bool is_journal; /* stderr is */
static int journal_fd = -1;
static struct sockaddr_un journal_address = { .sun_family = AF_UNIX };
static _Atomic(uint64_t) lost, lost_untold;

static pthread_mutex_t frequent_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct frequent {
	uint64_t since_ns;
	uint32_t written, left_out;
} frequents[EVENT_COUNT];

static const char *const names[] = { [LOG_LEVEL_ERROR] = "error",
				     [LOG_LEVEL_WARNING] = "warning",
				     [LOG_LEVEL_NOTICE] = "notice",
				     [LOG_LEVEL_INFO] = "info",
				     [LOG_LEVEL_DEBUG] = "debug" };

static const char *const event_ids[] = { [EVENT_NONE] = NULL,
#define EVENT_ID(name, id, text) [EVENT_##name] = id,
					 EVENT_TABLE(EVENT_ID)
#undef EVENT_ID
};

void log_use_journal(const char *path)
{
	is_journal = true;
	snprintf(journal_address.sun_path, sizeof(journal_address.sun_path), "%s", path);
	if (journal_fd < 0)
		journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void log_close(void)
{
	close_fdp(&journal_fd);
	is_journal = false;
}

void log_init(enum log_level level)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	threshold = level;
	if (stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	    fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode)
		log_use_journal("/run/systemd/journal/socket");
}

void log_set_level(enum log_level level)
{
	threshold = level;
}

enum log_level log_get_level(void)
{
	return threshold;
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

const char *log_level_name(enum log_level level)
{
	return level >= LOG_LEVEL_ERROR && level <= LOG_LEVEL_DEBUG ? names[level] : "?";
}

uint64_t log_lost(void)
{
	return lost;
}

/* What clients sent may be part of it: one line stays one line. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20)
			*text = ' ';
}

static void add_fields(struct text *text, const struct log_fields *fields)
{
	char comm[192];

	if (fields->event)
		text_add(text, "MESSAGE_ID=%s\n", event_ids[fields->event]);
	if (fields->session)
		text_add(text, "HCCLD_SESSION=%" PRIu64 "\n", fields->session);
	if (fields->pid)
		text_add(text, "HCCLD_PID=%" PRId32 "\n", fields->pid);
	if (fields->comm) {
		snprintf(comm, sizeof(comm), "%s", fields->comm);
		make_plain(comm);
		text_add(text, "HCCLD_COMM=%s\n", comm);
	}
	if (fields->has_rank)
		text_add(text, "HCCLD_RANK=%" PRIu32 "\n", fields->rank);
	if (fields->has_uid)
		text_add(text, "HCCLD_UID=%" PRIu32 "\n", fields->uid);
}

/* 0, or a negative errno: stderr may do better. */
static int journal_write(enum log_level level, const struct log_fields *fields, const char *message)
{
	char buffer[LINE_SIZE + 1024];
	struct text text;

	if (journal_fd < 0)
		return -EBADF;
	text_init(&text, buffer, sizeof(buffer) - 1);
	text_add(&text, "SYSLOG_IDENTIFIER=hccld\nPRIORITY=%d\n", level);
	add_fields(&text, fields);
	text_add(&text, "MESSAGE=%s", message);
	buffer[text.length] = '\n'; /* there is room, also if the text was cut */
	/* to an address, each time: journald may be another one by now, and descriptors of a forked child others */
	if (sendto(journal_fd, buffer, text.length + 1, MSG_DONTWAIT | MSG_NOSIGNAL,
		   (struct sockaddr *)&journal_address, sizeof(journal_address)) < 0)
		return -errno;
	return 0;
}

/* stderr's mode is shared with others: it stays, and is asked before. A write of up to a page fits then. */
static int stderr_write(const char *line, size_t size)
{
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
		return -EAGAIN;
	return write(STDERR_FILENO, line, size) < 0 ? -errno : 0;
}

static int line_write(enum log_level level, const struct log_fields *fields, const char *message)
{
	char line[LINE_SIZE + 64];
	int n;

	if (is_journal && journal_write(level, fields, message) == 0)
		return 0;
	if (is_journal)
		n = snprintf(line, sizeof(line), "<%d>%s\n", level, message);
	else
		n = snprintf(line, sizeof(line), "hccld[%d]: %s: %s\n", getpid(), names[level],
			     message);
	return stderr_write(line, (size_t)n);
}

/* False: too many of this event in this second. @ret_left_out: how many there were in an earlier one. */
static bool frequent_may(enum event event, uint32_t *ret_left_out)
{
	struct frequent *frequent = &frequents[event];
	uint64_t now = clock_now_ns();
	bool may;

	pthread_mutex_lock(&frequent_mutex);
	if (now - frequent->since_ns >= 1000000000u) {
		*ret_left_out = frequent->left_out;
		*frequent = (struct frequent){ .since_ns = now };
	}
	may = frequent->written < FREQUENT_PER_S;
	if (may)
		frequent->written++;
	else
		frequent->left_out++;
	pthread_mutex_unlock(&frequent_mutex);
	return may;
}

/* A line that says how many are missing. */
static void tell_missing(uint64_t count, const char *why)
{
	static const struct log_fields none = { 0 };
	char message[128];

	snprintf(message, sizeof(message), "%" PRIu64 " lines %s", count, why);
	(void)line_write(LOG_LEVEL_WARNING, &none, message);
}

static void log_message(enum log_level level, const struct log_fields *fields, const char *format,
			va_list args)
{
	char foreign[LINE_SIZE], message[LINE_SIZE];
	uint32_t left_out = 0;
	uint64_t untold;

	if (level > threshold && fields->event != EVENT_ADMINISTRATION)
		return;
	if (fields->is_frequent && !frequent_may(fields->event, &left_out))
		return;
	if (vsnprintf(foreign, sizeof(foreign), format, args) < 0)
		return;
	make_plain(foreign);
	/* of a line that is not UTF-8, or was cut in a character, the journal shows nothing */
	text_clean(message, sizeof(message), foreign);
	if (left_out)
		tell_missing(left_out, "like the next one were left out");
	if (line_write(level, fields, message) < 0) {
		lost++;
		lost_untold++;
		return;
	}
	untold = atomic_exchange(&lost_untold, 0);
	if (untold)
		tell_missing(untold, "before this one could not be written");
}

void log_write(enum log_level level, const char *format, ...)
{
	static const struct log_fields none = { 0 };
	int saved = errno;
	va_list args;

	va_start(args, format);
	log_message(level, &none, format, args);
	va_end(args);
	errno = saved;
}

void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	log_message(level, fields, format, args);
	va_end(args);
	errno = saved;
}
