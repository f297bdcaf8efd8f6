/* SPDX-License-Identifier: Apache-2.0 */
/* The log: fields for the journal, lines for stderr, and readers that do not read. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/support/test.h"

static int saved_stderr = -1;

static void redirect_stderr(int fd)
{
	if (saved_stderr < 0)
		saved_stderr = dup(STDERR_FILENO);
	check_ge_int(dup2(fd, STDERR_FILENO), 0);
}

static void restore_stderr(void)
{
	check_ge_int(dup2(saved_stderr, STDERR_FILENO), 0);
	close(saved_stderr);
	saved_stderr = -1;
}

static int journal_make(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	check_eq_int(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static const char *journal_read(int fd)
{
	static char buffer[8192];
	ssize_t n = recv(fd, buffer, sizeof(buffer) - 1, 0);

	if (n < 0)
		return NULL;
	buffer[n] = 0;
	return buffer;
}

TEST(the_journal_gets_fields)
{
	static const struct log_fields fields = { .event = EVENT_COMM_FAILED,
						  .session = 77,
						  .pid = 4711,
						  .comm = "two\nlines",
						  .has_rank = true,
						  .has_uid = true,
						  .uid = 1000 };
	const char *path = test_path("journal"), *message;
	int fd = journal_make(path);

	log_use_journal(path);
	errno = EPROTO;
	log_event(LOG_LEVEL_NOTICE, &fields, "it %s\nand more", "failed");
	check_eq_int(errno, EPROTO);
	message = journal_read(fd);
	check_str_contains(message, "SYSLOG_IDENTIFIER=hccld\nPRIORITY=5\nMESSAGE_ID=");
	check_str_contains(
		message,
		"\nHCCLD_SESSION=77\nHCCLD_PID=4711\nHCCLD_COMM=two lines\nHCCLD_RANK=0\nHCCLD_UID=1000\n");
	check_str_contains(message, "\nMESSAGE=it failed and more\n");
	log_warning("plain");
	message = journal_read(fd);
	check_eq_str(message, "SYSLOG_IDENTIFIER=hccld\nPRIORITY=4\nMESSAGE=plain\n");
	log_debug("not at this level");
	check_null(journal_read(fd));
	check_eq_uint(log_lost(), 0);
	close(fd);
	log_close();
}

/* Every byte of a line that is too long stays within its field. */
TEST(long_lines_are_cut)
{
	static char text[8192];
	const char *path = test_path("journal"), *message;
	int fd = journal_make(path);

	memset(text, 'x', sizeof(text) - 1);
	log_use_journal(path);
	log_info("%s", text);
	message = journal_read(fd);
	check_ptr(message);
	check_gt_uint(strlen(message), 2000);
	check_eq_int(message[strlen(message) - 1], '\n');
	close(fd);
	log_close();
}

TEST(without_a_journal_lines_go_to_stderr)
{
	char buffer[512] = "";
	int fds[2];

	check_eq_int(pipe(fds), 0);
	log_use_journal(test_path("nobody"));
	redirect_stderr(fds[1]);
	log_error("hello");
	restore_stderr();
	check_gt_int(read(fds[0], buffer, sizeof(buffer) - 1), 0);
	check_eq_str(buffer, "<3>hello\n");
	close(fds[0]);
	close(fds[1]);
	log_close();
}

/* 30 s, the limit of the case, is when a write that waits would be found out. */
TEST(a_journal_that_does_not_read_is_not_waited_for)
{
	const char *path = test_path("journal");
	int fd = journal_make(path), fds[2];

	check_eq_int(pipe(fds), 0);
	log_use_journal(path);
	redirect_stderr(fds[1]);
	for (int i = 0; i < 20000; i++)
		log_info("line %d of many, with some more words in it", i);
	restore_stderr();
	check_gt_uint(log_lost(), 1000);
	close(fds[0]);
	close(fds[1]);
	close(fd);
	log_close();
}

TEST(a_full_pipe_loses_lines_and_says_so)
{
	static char buffer[1 << 20];
	ssize_t n;
	int fds[2];

	check_eq_int(pipe(fds), 0);
	redirect_stderr(fds[1]);
	for (int i = 0; i < 20000; i++)
		log_info("line %d", i);
	check_gt_uint(log_lost(), 1000);
	n = read(fds[0], buffer, sizeof(buffer) - 1);
	check_gt_int(n, 0);
	check_eq_int(buffer[n - 1], '\n');
	log_info("room again");
	n = read(fds[0], buffer, sizeof(buffer) - 1);
	restore_stderr();
	check_gt_int(n, 0);
	buffer[n] = 0;
	check_str_contains(buffer, "info: room again\n");
	check_str_contains(buffer, " lines before this one could not be written\n");
	close(fds[0]);
	close(fds[1]);
}

TEST(a_closed_pipe_is_no_signal)
{
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	check_eq_int(pipe(fds), 0);
	close(fds[0]);
	redirect_stderr(fds[1]);
	for (int i = 0; i < 100; i++)
		log_info("line %d", i);
	restore_stderr();
	check_eq_uint(log_lost(), 100);
	close(fds[1]);
}

TEST(what_clients_can_repeat_is_counted)
{
	static const struct log_fields fields = { .event = EVENT_LIMIT_REFUSED,
						  .is_frequent = true };
	const char *path = test_path("journal"), *message;
	int fd = journal_make(path);
	unsigned long written = 0, left_out = 0;

	log_use_journal(path);
	for (int i = 0; i < 1001; i++) {
		if (i == 1000)
			usleep(1100000);
		log_event(LOG_LEVEL_NOTICE, &fields, "refused");
		while ((message = journal_read(fd))) {
			if (strstr(message, "like the next one were left out"))
				left_out += strtoul(strstr(message, "MESSAGE=") + 8, NULL, 10);
			else
				written++;
		}
	}
	/* 10 a second; the loop may have taken some seconds */
	check_lt_uint(written, 1000);
	check_eq_uint(written + left_out, 1001);
	close(fd);
	log_close();
}

TEST(administrators_are_logged_at_any_level)
{
	static const struct log_fields act = { .event = EVENT_ADMINISTRATION, .has_uid = true };
	const char *path = test_path("journal");
	int fd = journal_make(path);
	enum log_level level;

	log_use_journal(path);
	log_set_level(LOG_LEVEL_ERROR);
	log_warning("no");
	check_null(journal_read(fd));
	log_event(LOG_LEVEL_NOTICE, &act, "yes");
	check_str_contains(journal_read(fd), "HCCLD_UID=0");
	check_eq_int(log_level_parse("warning", &level), 0);
	check_eq_int(level, LOG_LEVEL_WARNING);
	check_eq_int(log_level_parse("loud", &level), -EINVAL);
	check_eq_str(log_level_name(log_get_level()), "error");
	close(fd);
	log_close();
}

/* hccld(8) lists what people may look for. */
TEST(the_manual_has_every_event)
{
	static const char *const ids[] = {
#define EVENT_ID(name, id, text) id,
		EVENT_TABLE(EVENT_ID)
	};
	static char manual[1 << 16];
	FILE *file = fopen(SOURCE_ROOT "/man/hccld.8.scd", "r");

	check_ptr(file);
	check_gt_uint(fread(manual, 1, sizeof(manual) - 1, file), 0);
	fclose(file);
	check_eq_uint(sizeof(ids) / sizeof(ids[0]), EVENT_COUNT - 1);
	for (size_t i = 0; i < EVENT_COUNT - 1; i++) {
		check_eq_uint(strspn(ids[i], "0123456789abcdef"), 32);
		check_eq_uint(strlen(ids[i]), 32);
		check_str_contains(manual, ids[i]);
		for (size_t k = 0; k < i; k++)
			check_ne_str(ids[i], ids[k]);
	}
}
