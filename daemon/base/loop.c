/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop on libuv. Handles live on the heap because libuv ends them only in a later turn of
 * the loop.
 */
#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"

#define FDS_PREPARED 16384

struct loop {
	uv_loop_t uv;
	uint32_t jobs;
	bool draining;
};

struct loop_fd {
	uv_poll_t uv;
	void (*callback)(void *data, int events);
	void *data;
	int events;
};

struct loop_timer {
	uv_timer_t uv;
	void (*callback)(void *data);
	void *data;
};

struct loop_wake {
	uv_async_t uv;
	void (*callback)(void *data);
	void *data;
};

struct loop_signal {
	uv_signal_t uv;
	void (*callback)(void *data, int number);
	void *data;
};

struct job {
	uv_work_t uv;
	struct loop *loop;
	void (*run)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

/* every handle is the first member of its struct */
static void handle_closed(uv_handle_t *handle)
{
	free(handle);
}

static void *handle_free(void *handle)
{
	if (handle)
		uv_close(handle, handle_closed);
	return NULL;
}

static int loop_failed(const char *call, int r)
{
	log_error("%s failed: %s", call, uv_strerror(r));
	return r;
}

static void nothing_run(uv_work_t *work)
{
	(void)work;
}

static void nothing_done(uv_work_t *work, int status)
{
	(void)work;
	(void)status;
}

static void nothing_ready(uv_poll_t *handle, int status, int events)
{
	(void)handle;
	(void)status;
	(void)events;
}

/*
 * What libuv makes when it is first needed, and ends the process if it cannot: the threads for
 * jobs, and the table of watches by descriptor. Here a lack of memory is a failed start; later it
 * would be the end of a daemon that serves.
 */
static void loop_prepare(struct loop *loop)
{
	int event_fd = eventfd(0, EFD_CLOEXEC), last = FDS_PREPARED, high;
	struct rlimit limit;
	uv_work_t work;
	uv_poll_t poll;

	if (uv_queue_work(&loop->uv, &work, nothing_run, nothing_done) == 0)
		uv_run(&loop->uv, UV_RUN_DEFAULT);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= FDS_PREPARED)
		last = (int)limit.rlim_cur - 1;
	high = fcntl(event_fd, F_DUPFD_CLOEXEC, last);
	if (high >= 0 && uv_poll_init(&loop->uv, &poll, high) == 0) {
		uv_poll_start(&poll, UV_READABLE, nothing_ready);
		uv_close((uv_handle_t *)&poll, NULL);
		uv_run(&loop->uv, UV_RUN_DEFAULT);
	}
	if (high >= 0)
		close(high);
	if (event_fd >= 0)
		close(event_fd);
}

int loop_new(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int r;

	if (!loop)
		return -ENOMEM;
	r = uv_loop_init(&loop->uv);
	if (r < 0) {
		free(loop);
		return loop_failed("uv_loop_init", r);
	}
	loop_prepare(loop);
	*ret_loop = loop;
	return 0;
}

struct loop *loop_free(struct loop *loop)
{
	int r;

	if (!loop)
		return NULL;
	/* lets the closed handles go */
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	r = uv_loop_close(&loop->uv);
	assert(r == 0);
	(void)r;
	free(loop);
	return NULL;
}

void loop_run(struct loop *loop)
{
	uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
	uv_stop(&loop->uv);
}

static void fd_ready(uv_poll_t *handle, int status, int events)
{
	struct loop_fd *watch = (struct loop_fd *)handle;
	int ready = 0;

	/* EPOLLERR: libuv has stopped the watch. Whatever was waited for, reading or writing finds the error */
	if (status < 0) {
		ready = watch->events;
		watch->events = 0;
	}
	if (events & UV_READABLE)
		ready |= LOOP_READ;
	if (events & UV_WRITABLE)
		ready |= LOOP_WRITE;
	watch->callback(watch->data, ready);
}

int loop_fd_new(struct loop *loop, int fd, int events, void (*callback)(void *data, int events),
		void *data, struct loop_fd **ret_watch)
{
	struct loop_fd *watch = calloc(1, sizeof(*watch));
	int r;

	if (!watch)
		return -ENOMEM;
	r = uv_poll_init(&loop->uv, &watch->uv, fd);
	if (r < 0) {
		free(watch);
		return loop_failed("uv_poll_init", r);
	}
	watch->callback = callback;
	watch->data = data;
	loop_fd_set(watch, events);
	*ret_watch = watch;
	return 0;
}

void loop_fd_set(struct loop_fd *watch, int events)
{
	int wanted =
		(events & LOOP_READ ? UV_READABLE : 0) | (events & LOOP_WRITE ? UV_WRITABLE : 0);

	if (watch->events == events)
		return;
	watch->events = events;
	/* fails for descriptors that cannot be polled only, which uv_poll_init has refused */
	if (wanted)
		uv_poll_start(&watch->uv, wanted, fd_ready);
	else
		uv_poll_stop(&watch->uv);
}

struct loop_fd *loop_fd_free(struct loop_fd *watch)
{
	return handle_free(watch);
}

static void timer_due(uv_timer_t *handle)
{
	struct loop_timer *timer = (struct loop_timer *)handle;

	timer->callback(timer->data);
}

int loop_timer_new(struct loop *loop, void (*callback)(void *data), void *data,
		   struct loop_timer **ret_timer)
{
	struct loop_timer *timer = calloc(1, sizeof(*timer));

	if (!timer)
		return -ENOMEM;
	uv_timer_init(&loop->uv, &timer->uv);
	timer->callback = callback;
	timer->data = data;
	*ret_timer = timer;
	return 0;
}

void loop_timer_start(struct loop_timer *timer, uint64_t delay_ms, uint64_t repeat_ms)
{
	/* the loop's clock may be old when a callback took long */
	uv_update_time(timer->uv.loop);
	uv_timer_start(&timer->uv, timer_due, delay_ms, repeat_ms);
}

void loop_timer_stop(struct loop_timer *timer)
{
	uv_timer_stop(&timer->uv);
}

struct loop_timer *loop_timer_free(struct loop_timer *timer)
{
	return handle_free(timer);
}

static void wake_due(uv_async_t *handle)
{
	struct loop_wake *wake = (struct loop_wake *)handle;

	wake->callback(wake->data);
}

int loop_wake_new(struct loop *loop, void (*callback)(void *data), void *data,
		  struct loop_wake **ret_wake)
{
	struct loop_wake *wake = calloc(1, sizeof(*wake));
	int r;

	if (!wake)
		return -ENOMEM;
	r = uv_async_init(&loop->uv, &wake->uv, wake_due);
	if (r < 0) {
		free(wake);
		return loop_failed("uv_async_init", r);
	}
	wake->callback = callback;
	wake->data = data;
	*ret_wake = wake;
	return 0;
}

void loop_wake(struct loop_wake *wake)
{
	uv_async_send(&wake->uv);
}

struct loop_wake *loop_wake_free(struct loop_wake *wake)
{
	return handle_free(wake);
}

static void signal_due(uv_signal_t *handle, int number)
{
	struct loop_signal *signal = (struct loop_signal *)handle;

	signal->callback(signal->data, number);
}

int loop_signal_new(struct loop *loop, int number, void (*callback)(void *data, int number),
		    void *data, struct loop_signal **ret_signal)
{
	struct loop_signal *signal = calloc(1, sizeof(*signal));
	int r;

	if (!signal)
		return -ENOMEM;
	r = uv_signal_init(&loop->uv, &signal->uv);
	if (r < 0) {
		free(signal);
		return loop_failed("uv_signal_init", r);
	}
	signal->callback = callback;
	signal->data = data;
	r = uv_signal_start(&signal->uv, signal_due, number);
	if (r < 0) {
		handle_free(signal);
		return loop_failed("uv_signal_start", r);
	}
	*ret_signal = signal;
	return 0;
}

struct loop_signal *loop_signal_free(struct loop_signal *signal)
{
	return handle_free(signal);
}

static void job_run(uv_work_t *work)
{
	struct job *job = (struct job *)work;

	job->run(job->arg);
}

static void job_done(uv_work_t *work, int status)
{
	struct job *job = (struct job *)work;

	(void)status; /* never cancelled */
	job->loop->jobs--;
	job->done(job->arg);
	free(job);
}

void loop_job(struct loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
	struct job *job = loop->draining ? NULL : calloc(1, sizeof(*job));

	if (job) {
		*job = (struct job){ .loop = loop, .run = run, .done = done, .arg = arg };
		if (uv_queue_work(&loop->uv, &job->uv, job_run, job_done) == 0) {
			loop->jobs++;
			return;
		}
		free(job);
	}
	run(arg);
	done(arg);
}

void loop_drain(struct loop *loop)
{
	loop->draining = true;
	while (loop->jobs)
		uv_run(&loop->uv, UV_RUN_ONCE);
}
