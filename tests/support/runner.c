/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main() of every test program: forks a process per case, watches its time and what it leaves behind. One thread; the
 * cases are registered by constructors before main().
 */
#include "tests/support/runner.h"

#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#define DEFAULT_TIMEOUT_S 30

enum outcome { PASSED, FAILED, SKIPPED };

/* Shared with the process of the running case. */
static struct {
	char skip_reason[512];
	char directory[512];
} * report;

static struct test_case *cases, **cases_end = &cases;

void test_register(struct test_case *test_case)
{
	*cases_end = test_case;
	cases_end = &test_case->next;
}

void runner_report_skip(const char *format, va_list args)
{
	vsnprintf(report->skip_reason, sizeof(report->skip_reason), format, args);
}

const char *runner_directory(void)
{
	const char *parent = getenv("TMPDIR");

	if (!report->directory[0]) {
		snprintf(report->directory, sizeof(report->directory), "%s/hccld-test-XXXXXX",
			 parent ? parent : "/tmp");
		if (!mkdtemp(report->directory))
			test_fail(__FILE__, __LINE__, "mkdtemp %s: %s", report->directory,
				  strerror(errno));
	}
	return report->directory;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	return remove(path);
}

static void remove_directory(void)
{
	if (report->directory[0])
		nftw(report->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	report->directory[0] = '\0';
}

/* The process of a case. Does not return. */
static _Noreturn void run_case(const struct test_case *test_case)
{
	int before, after;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	before = test_fd_count();
	test_case->run();
	after = test_fd_count();
	if (after != before)
		test_fail(test_case->name, 0, "%d descriptors open before the case, %d after it",
			  before, after);
	/* A child of the case that has ended without being waited for counts as well. */
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		test_fail(test_case->name, 0, "the case left a child process behind");
	fflush(NULL);
	/* exit() and not _exit(): a leak checker looks now. It changes the status when it finds something. */
	exit(CASE_PASSED);
}

static bool ends_in_time(pid_t pid, unsigned timeout_s)
{
	struct pollfd pidfd = { .events = POLLIN };
	bool in_time;
	int r;

	pidfd.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd.fd < 0) {
		fprintf(stderr, "pidfd_open: %s\n", strerror(errno));
		exit(1);
	}
	do
		r = poll(&pidfd, 1, (int)timeout_s * 1000);
	while (r < 0 && errno == EINTR);
	in_time = r == 1;
	close(pidfd.fd);
	return in_time;
}

/*
 * Kills and reaps what is left of a case. Processes that lost their parent are ours (PR_SET_CHILD_SUBREAPER), so this
 * finds those that made a process group or a session of their own.
 */
static void kill_leftovers(void)
{
	char path[64], children[4096];
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		FILE *file = fopen(path, "re");
		char *position = children;

		if (!file)
			return;
		children[fread(children, 1, sizeof(children) - 1, file)] = '\0';
		fclose(file);
		while ((pid = (pid_t)strtol(position, &position, 10)) > 0)
			kill(pid, SIGKILL);
		poll(NULL, 0, 1);
	}
}

static enum outcome judge(int status, bool in_time, unsigned timeout_s, char *text, size_t size)
{
	if (!in_time) {
		snprintf(text, size, "not done after %u s", timeout_s);
		return FAILED;
	}
	if (WIFSIGNALED(status)) {
		snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
		return FAILED;
	}
	switch (WEXITSTATUS(status)) {
	case CASE_PASSED:
		return PASSED;
	case CASE_SKIPPED:
		snprintf(text, size, "%.400s", report->skip_reason);
		return SKIPPED;
	case CASE_FAILED:
		snprintf(text, size, "see above");
		return FAILED;
	default:
		snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
		return FAILED;
	}
}

static enum outcome run(const struct test_case *test_case)
{
	unsigned timeout_s = test_case->timeout_s ? test_case->timeout_s : DEFAULT_TIMEOUT_S;
	enum outcome outcome;
	char text[512] = "";
	bool in_time;
	pid_t pid;
	int status;

	/* A case that must fail may as well fail for being slow. */
	if (!test_case->must_fail)
		timeout_s *= test_timeout_scale();
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		fprintf(stderr, "fork: %s\n", strerror(errno));
		return FAILED;
	}
	if (pid == 0)
		run_case(test_case);
	setpgid(pid, pid);

	in_time = ends_in_time(pid, timeout_s);
	/* The case is not waited for yet: its number is still its own, and so is its group's. */
	kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kill_leftovers();
	outcome = judge(status, in_time, timeout_s, text, sizeof(text));
	remove_directory();

	if (test_case->must_fail && outcome != SKIPPED) {
		outcome = outcome == FAILED ? PASSED : FAILED;
		fprintf(stderr, "%s %s: it had to fail: %s\n", outcome == PASSED ? "pass" : "FAIL",
			test_case->name, text[0] ? text : "it passed");
		return outcome;
	}
	fprintf(stderr, "%s %s%s%s\n",
		outcome == PASSED    ? "pass"
		: outcome == SKIPPED ? "skip"
				     : "FAIL",
		test_case->name, text[0] ? ": " : "", text);
	return outcome;
}

static bool is_wanted(const struct test_case *test_case, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], test_case->name))
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	unsigned count[3] = { 0 };
	char skip_reason[512] = "";

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (struct test_case *i = cases; i; i = i->next)
			puts(i->name);
		return 0;
	}
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (report == MAP_FAILED) {
		fprintf(stderr, "mmap: %s\n", strerror(errno));
		return 1;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (struct test_case *i = cases; i; i = i->next) {
		enum outcome outcome;

		if (!is_wanted(i, argc, argv))
			continue;
		outcome = run(i);
		count[outcome]++;
		if (outcome == SKIPPED)
			snprintf(skip_reason, sizeof(skip_reason), "%s", report->skip_reason);
	}
	munmap(report, sizeof(*report));
	fprintf(stderr, "%u cases passed, %u failed, %u skipped\n", count[PASSED], count[FAILED],
		count[SKIPPED]);
	/* A misspelt name must not look like a success. */
	if (count[PASSED] + count[FAILED] + count[SKIPPED] < (argc > 1 ? (unsigned)argc - 1 : 1)) {
		fprintf(stderr, "%s: a case that was asked for does not exist; --list names them\n",
			argv[0]);
		return 2;
	}
	if (count[FAILED])
		return 1;
	if (count[SKIPPED]) {
		fprintf(stderr, "%s\n", skip_reason);
		return 77;
	}
	return 0;
}
