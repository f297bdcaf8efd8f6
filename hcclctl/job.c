/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of `hcclctl run`. Phases: ranks run; all have ended and their pipes are read out; the private daemon stops; our own outputs are
 * written out. One thread; signals come through a signalfd.
 */
#include "hcclctl/job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hcclctl/output.h"
#include "proto/cleanup.h"
#include "proto/clock.h"

#define DAEMON_TIMEOUT_MS 30000
/* A process that a rank left behind may hold its pipes; so long silent, they are given up. */
#define DRAIN_TIMEOUT_MS 1000
#define NEVER INT64_MAX

enum { SLOT_SIGNAL, SLOT_REPORT, SLOT_OUT, SLOT_ERR, SLOT_LOG, SLOT_SOURCES };

struct job {
	struct launch launch;
	bool keep_going;
	uint32_t grace_s;

	struct rank *ranks;
	struct source *sources; /* out and err of each rank */
	uint32_t started, running;
	struct sink out, err;
	struct guard guard;
	struct source log;
	bool daemon_ready, daemon_failed, guard_running;

	int status;	    /* exit status so far */
	bool failed;	    /* a rank has failed; status is its own */
	int64_t end_at_ms;  /* when those that a signal has not ended are told to end */
	bool ending;	    /* the ranks were told to end */
	int64_t kill_at_ms; /* when those that did not are killed */
	uint32_t signals;   /* how often we were told to end */
	int64_t drain_until_ms;

	int signal_fd;
	struct pollfd *fds;
	struct source **polled; /* what each of fds is for, from SLOT_SOURCES on */
};

/* In order with what the ranks print. */
static void say(struct job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct job *job, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	sink_add(&job->err, "hcclctl: ", 9);
	sink_add(&job->err, line, strlen(line));
	sink_add(&job->err, "\n", 1);
}

static void signal_ranks(struct job *job, int signal)
{
	for (uint32_t i = 0; i < job->started; i++)
		launch_signal(&job->ranks[i], signal);
}

static void end_ranks(struct job *job)
{
	if (job->ending)
		return;
	job->ending = true;
	job->kill_at_ms = (int64_t)clock_now_ms() + (int64_t)job->grace_s * 1000;
	signal_ranks(job, SIGTERM);
}

static void kill_ranks(struct job *job)
{
	job->ending = true;
	job->kill_at_ms = NEVER;
	if (!job->running)
		return;
	say(job, "killing %" PRIu32 " rank%s that did not end", job->running,
	    job->running == 1 ? "" : "s");
	signal_ranks(job, SIGKILL);
}

/* ---- ends of processes ---- */

static bool has_failed(int status)
{
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static int exit_status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void report_failure(struct job *job, const struct rank *rank)
{
	char others[64] = "", how[128];

	if (!job->keep_going && job->running && !job->signals)
		snprintf(others, sizeof(others), "; ending the other %" PRIu32, job->running);
	if (WIFEXITED(rank->status))
		snprintf(how, sizeof(how), "ended with exit status %d", WEXITSTATUS(rank->status));
	else
		snprintf(how, sizeof(how), "was killed by signal %d (%s)%s", WTERMSIG(rank->status),
			 sigdescr_np(WTERMSIG(rank->status)) ? sigdescr_np(WTERMSIG(rank->status))
							     : "?",
			 WCOREDUMP(rank->status) ? ", core dumped" : "");
	say(job, "rank %" PRIu32 " (pid %d) %s%s", rank->number, (int)rank->pid, how, others);
}

static struct rank *find_rank(struct job *job, pid_t pid)
{
	for (uint32_t i = 0; i < job->started; i++)
		if (job->ranks[i].pid == pid && job->ranks[i].running)
			return &job->ranks[i];
	return NULL;
}

static void reap_rank(struct job *job, struct rank *rank)
{
	/* While its leader is not reaped nobody else can get the number of the group. */
	if (job->ending)
		launch_signal(rank, SIGKILL);
	waitpid(rank->pid, &rank->status, 0);
	rank->running = false;
	job->running--;
	if (job->running == 0)
		job->drain_until_ms = (int64_t)clock_now_ms() + DRAIN_TIMEOUT_MS;
}

/* Ranks that ended since the last look, in no known order: one that was killed is rather the cause than one that exited. */
static void judge(struct job *job, struct rank **ended, size_t count)
{
	struct rank *first = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!has_failed(ended[i]->status))
			continue;
		if (!first || (WIFSIGNALED(ended[i]->status) && !WIFSIGNALED(first->status)))
			first = ended[i];
		if (job->keep_going)
			report_failure(job, ended[i]);
	}
	if (!first || job->failed)
		return;
	job->failed = true;
	job->status = exit_status_of(first->status);
	if (job->keep_going)
		return;
	if (!job->ending)
		report_failure(job, first);
	/* After a ^C all are ending, each at its own pace: a SIGTERM on top would cut that short. */
	if (job->signals)
		job->end_at_ms = (int64_t)clock_now_ms() + (int64_t)job->grace_s * 1000;
	else
		end_ranks(job);
}

static void reap(struct job *job)
{
	struct rank *ended[64];
	size_t count;

	do {
		for (count = 0; count < 64; count++) {
			siginfo_t info = { .si_pid = 0 };
			struct rank *rank;

			if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
			    info.si_pid == 0)
				break;
			rank = find_rank(job, info.si_pid);
			if (!rank) {
				waitpid(info.si_pid, NULL, 0);
				if (info.si_pid == job->guard.pid)
					job->guard_running = false;
				count--;
				continue;
			}
			reap_rank(job, rank);
			ended[count] = rank;
		}
		judge(job, ended, count);
	} while (count == 64);
}

/* ---- signals ---- */

/* The first goes to the ranks as it is; who asks again means it. */
static void pass_on(struct job *job, int signal)
{
	job->signals++;
	if (job->signals == 1 && !job->ending) {
		signal_ranks(job, signal);
	} else if (job->signals <= 2 && !job->ending) {
		say(job, "signal %d again: ending the ranks, killing them in %" PRIu32 " s", signal,
		    job->grace_s);
		end_ranks(job);
	} else {
		kill_ranks(job);
	}
}

static void handle_signal(struct job *job, int signal)
{
	switch (signal) {
	case SIGCHLD:
		reap(job);
		break;
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		pass_on(job, signal);
		break;
	case SIGTSTP:
		/* ^Z at the terminal stops all of us; fg goes on */
		signal_ranks(job, SIGSTOP);
		raise(SIGSTOP);
		signal_ranks(job, SIGCONT);
		break;
	case SIGCONT:
		break;
	default:
		signal_ranks(job, signal);
	}
}

static void read_signals(struct job *job)
{
	struct signalfd_siginfo infos[16];
	ssize_t n = read(job->signal_fd, infos, sizeof(infos));

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(infos[0]); i++)
		handle_signal(job, (int)infos[i].ssi_signo);
}

/* ---- the daemon ---- */

static void read_report(struct job *job)
{
	struct guard_report report;
	ssize_t n = read(job->guard.report_fd, &report, sizeof(report));

	if (n != (ssize_t)sizeof(report)) {
		close(take_fd(&job->guard.report_fd));
		if (!job->daemon_ready)
			job->daemon_failed = true;
		return;
	}
	switch (report.event) {
	case GUARD_READY:
		job->daemon_ready = true;
		break;
	case GUARD_FAILED:
		say(job, "cannot run the daemon: %s", strerror(report.value));
		job->daemon_failed = true;
		break;
	default:
		say(job, "the private daemon (pid %d) ended with %s %d", (int)report.daemon,
		    WIFEXITED(report.value) ? "exit status" : "signal",
		    WIFEXITED(report.value) ? WEXITSTATUS(report.value) : WTERMSIG(report.value));
		job->daemon_failed = true;
	}
}

/* ---- the loop ---- */

static void lose_sink(struct job *job, struct sink *sink, const char *name)
{
	bool open = false;

	/* The ranks get what they would have got from the lost reader themselves: SIGPIPE or EPIPE. */
	for (uint32_t i = 0; i < 2 * job->started; i++) {
		if (job->sources[i].sink != sink || job->sources[i].fd < 0)
			continue;
		open = true;
		source_close(&job->sources[i]);
	}
	if (open && sink->error != EPIPE) {
		say(job, "cannot write to standard %s: %s", name, strerror(sink->error));
		if (!job->failed)
			job->status = JOB_FAILED;
	}
}

static bool ranks_are_drained(struct job *job)
{
	if (job->running)
		return false;
	for (uint32_t i = 0; i < 2 * job->started; i++)
		if (job->sources[i].fd >= 0)
			return false;
	return true;
}

static void give_up_sources(struct job *job)
{
	for (uint32_t i = 0; i < 2 * job->started; i++)
		source_close(&job->sources[i]);
}

static size_t fill_fds(struct job *job)
{
	size_t count = SLOT_SOURCES;

	job->fds[SLOT_SIGNAL] = (struct pollfd){ .fd = job->signal_fd, .events = POLLIN };
	job->fds[SLOT_REPORT] = (struct pollfd){ .fd = job->guard.report_fd, .events = POLLIN };
	job->fds[SLOT_OUT] = (struct pollfd){ .fd = sink_is_empty(&job->out) ? -1 : job->out.fd,
					      .events = POLLOUT };
	job->fds[SLOT_ERR] = (struct pollfd){ .fd = sink_is_empty(&job->err) ? -1 : job->err.fd,
					      .events = POLLOUT };
	job->fds[SLOT_LOG] = (struct pollfd){ .fd = sink_is_full(&job->err) ? -1 : job->log.fd,
					      .events = POLLIN };
	for (uint32_t i = 0; i < 2 * job->started; i++) {
		struct source *source = &job->sources[i];

		if (source->fd < 0 || sink_is_full(source->sink))
			continue;
		job->fds[count] = (struct pollfd){ .fd = source->fd, .events = POLLIN };
		job->polled[count] = source;
		count++;
	}
	return count;
}

static int poll_timeout(const struct job *job, int64_t until_ms)
{
	int64_t left;

	if (job->ending && job->running && job->kill_at_ms < until_ms)
		until_ms = job->kill_at_ms;
	if (!job->ending && job->running && job->end_at_ms < until_ms)
		until_ms = job->end_at_ms;
	if (!job->running && job->started && job->drain_until_ms < until_ms)
		until_ms = job->drain_until_ms;
	if (until_ms == NEVER)
		return -1;
	left = until_ms - (int64_t)clock_now_ms();
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* Waits for something to happen, at most until @until_ms, and deals with it. */
static void step(struct job *job, int64_t until_ms)
{
	size_t count = fill_fds(job);

	if (poll(job->fds, count, poll_timeout(job, until_ms)) < 0)
		return;
	sink_write(&job->out);
	sink_write(&job->err);
	for (size_t i = SLOT_SOURCES; i < count; i++) {
		if (!job->fds[i].revents || sink_is_full(job->polled[i]->sink))
			continue;
		source_read(job->polled[i]);
		if (!job->running)
			job->drain_until_ms = (int64_t)clock_now_ms() + DRAIN_TIMEOUT_MS;
	}
	if (job->fds[SLOT_LOG].revents)
		source_read(&job->log);
	if (job->fds[SLOT_REPORT].revents)
		read_report(job);
	/* After the output: what a rank said last stands before what we say about its end. */
	if (job->fds[SLOT_SIGNAL].revents)
		read_signals(job);
	if (job->out.error)
		lose_sink(job, &job->out, "output");
	if (job->err.error)
		lose_sink(job, &job->err, "error");
	if (job->running && (int64_t)clock_now_ms() >= job->end_at_ms)
		end_ranks(job);
	if (job->ending && job->running && (int64_t)clock_now_ms() >= job->kill_at_ms)
		kill_ranks(job);
}

bool job_start_daemon(struct job *job, const struct guard_options *options)
{
	int64_t until_ms = (int64_t)clock_now_ms() + DAEMON_TIMEOUT_MS;
	int r = guard_start(options, &job->guard);

	if (r < 0) {
		job->guard.report_fd = job->guard.log_fd = job->guard.life_fd = -1;
		say(job, "cannot start a private daemon: %s", strerror(-r));
		return false;
	}
	job->guard_running = true;
	source_init(&job->log, job->guard.log_fd, &job->err, "[hccld] ");
	while (!job->daemon_ready && !job->daemon_failed && !job->signals && (int64_t)clock_now_ms() < until_ms)
		step(job, until_ms);
	if (!job->daemon_ready) {
		if (!job->daemon_failed && !job->signals)
			say(job, "the private daemon was not ready within %d s",
			    DAEMON_TIMEOUT_MS / 1000);
		return false;
	}
	job->launch.socket = job->guard.socket;
	return true;
}

/* Stops the daemon and writes out what is left. */
static void finish(struct job *job)
{
	uint32_t signals = job->signals;

	job->drain_until_ms = NEVER;
	guard_release(&job->guard);
	while (job->guard_running)
		step(job, NEVER);
	source_read(&job->log);
	source_close(&job->log);
	/* A reader that does not read can be left by ^C. */
	while ((!sink_is_empty(&job->out) || !sink_is_empty(&job->err)) && job->signals == signals)
		step(job, NEVER);
}

static void start_ranks(struct job *job)
{
	for (uint32_t i = 0; i < job->launch.rank_count && !job->ending; i++) {
		struct rank *rank = &job->ranks[i];
		int out_fd, err_fd, r;
		char prefix[16];
		bool executed;

		rank->number = i;
		r = launch_rank(&job->launch, rank, &out_fd, &err_fd, &executed);
		if (r < 0) {
			say(job, "cannot start rank %" PRIu32 " (%s): %s", i,
			    job->launch.program[0], strerror(-r));
			job->status = !executed ? JOB_FAILED : r == -ENOENT ? 127 : 126;
			job->failed = true;
			end_ranks(job);
			return;
		}
		snprintf(prefix, sizeof(prefix), "[%" PRIu32 "] ", i);
		source_init(&job->sources[2 * i], out_fd, &job->out, prefix);
		source_init(&job->sources[2 * i + 1], err_fd, &job->err, prefix);
		job->started++;
		job->running++;
		/* Those that already run may print, end, or be told to end. */
		if (i % 16 == 15)
			step(job, 0);
	}
}

int job_run(struct job *job)
{
	start_ranks(job);
	while (!ranks_are_drained(job)) {
		step(job, NEVER);
		if (!job->running && (int64_t)clock_now_ms() >= job->drain_until_ms)
			give_up_sources(job);
	}
	finish(job);
	return job->status;
}

const struct guard *job_guard(const struct job *job)
{
	return &job->guard;
}

/* Missing standard descriptors would make pipes of ours look like them. */
static void open_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Two pipes of each rank, and some. */
static int raise_file_limit(struct job *job)
{
	rlim_t needed = 2 * (rlim_t)job->launch.rank_count + 64;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &job->launch.file_limit) < 0)
		return -errno;
	limit = job->launch.file_limit;
	if (limit.rlim_cur >= needed)
		return 0;
	limit.rlim_cur = needed;
	if (limit.rlim_max < needed)
		return -EMFILE;
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

static int open_signals(struct job *job)
{
	static const int handled[] = { SIGCHLD, SIGINT,	 SIGTERM, SIGHUP, SIGQUIT,
				       SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		sigaddset(&set, handled[i]);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit statuses away */
	if (sigprocmask(SIG_BLOCK, &set, &job->launch.signal_mask) < 0)
		return -errno;
	job->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return job->signal_fd < 0 ? -errno : 0;
}

/* In two containers the pid may be the same. */
static void name_job(struct job *job)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
		number = clock_now_ns();
	snprintf(job->launch.job, sizeof(job->launch.job), "hcclctl-%d-%016" PRIx64, (int)getpid(), number);
}

int job_new(const struct launch *launch, bool keep_going, uint32_t grace_s, struct job **ret_job)
{
	struct job *job;
	int r;

	open_standard_fds();
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->launch = *launch;
	name_job(job);
	job->keep_going = keep_going;
	job->grace_s = grace_s;
	job->kill_at_ms = job->end_at_ms = NEVER;
	job->signal_fd = job->log.fd = -1;
	job->guard.report_fd = job->guard.life_fd = job->guard.log_fd = -1;
	sink_init(&job->out, STDOUT_FILENO);
	sink_init(&job->err, STDERR_FILENO);
	job->ranks = calloc(launch->rank_count, sizeof(*job->ranks));
	job->sources = calloc(2 * (size_t)launch->rank_count, sizeof(*job->sources));
	job->fds = calloc(2 * (size_t)launch->rank_count + SLOT_SOURCES, sizeof(*job->fds));
	job->polled = calloc(2 * (size_t)launch->rank_count + SLOT_SOURCES, sizeof(*job->polled));
	r = job->ranks && job->sources && job->fds && job->polled ? raise_file_limit(job) : -ENOMEM;
	if (r == 0)
		r = open_signals(job);
	if (r < 0) {
		job_free(job);
		return r;
	}
	*ret_job = job;
	return 0;
}

struct job *job_free(struct job *job)
{
	if (!job)
		return NULL;
	finish(job); /* nothing but what a daemon that did not come up has left */
	sink_deinit(&job->out);
	sink_deinit(&job->err);
	if (job->guard.report_fd >= 0)
		close(job->guard.report_fd);
	if (job->signal_fd >= 0)
		close(job->signal_fd);
	free(job->ranks);
	free(job->sources);
	free(job->fds);
	free(job->polled);
	free(job);
	return NULL;
}
