/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of daemon/base/loop.h for one thread that turns the loop by hand: no libuv, no threads, and time passes when the
 * fuzzer says so. Jobs run at once.
 */
#include "tests/fuzz/inline_loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/loop.h"
#include "tests/fuzz/input.h"

#define FDS_MAX 256

struct loop {
	struct list fds, timers, wakes;
};

struct loop_fd {
	struct list link;
	int fd, events;
	void (*callback)(void *data, int events);
	void *data;
	bool is_dead;
};

struct loop_timer {
	struct list link;
	void (*callback)(void *data);
	void *data;
	bool is_started, is_dead, is_due;
};

struct loop_wake {
	struct list link;
	void (*callback)(void *data);
	void *data;
	bool is_set, is_dead;
};

int loop_new(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	insist(loop);
	list_init(&loop->fds);
	list_init(&loop->timers);
	list_init(&loop->wakes);
	*ret_loop = loop;
	return 0;
}

/* Handles that were freed in a callback. */
static void loop_reap(struct loop *loop)
{
	list_for_each(struct loop_fd, watch, &loop->fds, link) {
		if (!watch->is_dead)
			continue;
		list_remove(&watch->link);
		free(watch);
	}
	list_for_each(struct loop_timer, timer, &loop->timers, link) {
		if (!timer->is_dead)
			continue;
		list_remove(&timer->link);
		free(timer);
	}
	list_for_each(struct loop_wake, wake, &loop->wakes, link) {
		if (!wake->is_dead)
			continue;
		list_remove(&wake->link);
		free(wake);
	}
}

struct loop *loop_free(struct loop *loop)
{
	if (!loop)
		return NULL;
	loop_reap(loop);
	insist(list_is_empty(&loop->fds) && list_is_empty(&loop->timers) && list_is_empty(&loop->wakes));
	free(loop);
	return NULL;
}

void loop_run(struct loop *loop)
{
	(void)loop;
}

void loop_stop(struct loop *loop)
{
	(void)loop;
}

int loop_fd_new(struct loop *loop, int fd, int events, void (*callback)(void *data, int events), void *data,
		struct loop_fd **ret_watch)
{
	struct loop_fd *watch = calloc(1, sizeof(*watch));

	insist(watch && fd >= 0);
	*watch = (struct loop_fd){ .fd = fd, .events = events, .callback = callback, .data = data };
	list_append(&loop->fds, &watch->link);
	*ret_watch = watch;
	return 0;
}

void loop_fd_set(struct loop_fd *watch, int events)
{
	insist(!watch->is_dead);
	watch->events = events;
}

struct loop_fd *loop_fd_free(struct loop_fd *watch)
{
	if (watch) {
		insist(!watch->is_dead);
		watch->is_dead = true;
		watch->events = 0;
	}
	return NULL;
}

int loop_timer_new(struct loop *loop, void (*callback)(void *data), void *data, struct loop_timer **ret_timer)
{
	struct loop_timer *timer = calloc(1, sizeof(*timer));

	insist(timer);
	*timer = (struct loop_timer){ .callback = callback, .data = data };
	list_append(&loop->timers, &timer->link);
	*ret_timer = timer;
	return 0;
}

void loop_timer_start(struct loop_timer *timer, uint64_t delay_ms, uint64_t repeat_ms)
{
	(void)delay_ms;
	(void)repeat_ms;
	insist(!timer->is_dead);
	timer->is_started = true;
}

void loop_timer_stop(struct loop_timer *timer)
{
	timer->is_started = false;
}

struct loop_timer *loop_timer_free(struct loop_timer *timer)
{
	if (timer) {
		insist(!timer->is_dead);
		timer->is_dead = true;
		timer->is_started = false;
	}
	return NULL;
}

int loop_wake_new(struct loop *loop, void (*callback)(void *data), void *data, struct loop_wake **ret_wake)
{
	struct loop_wake *wake = calloc(1, sizeof(*wake));

	insist(wake);
	*wake = (struct loop_wake){ .callback = callback, .data = data };
	list_append(&loop->wakes, &wake->link);
	*ret_wake = wake;
	return 0;
}

void loop_wake(struct loop_wake *wake)
{
	insist(!wake->is_dead);
	wake->is_set = true;
}

struct loop_wake *loop_wake_free(struct loop_wake *wake)
{
	if (wake) {
		wake->is_dead = true;
		wake->is_set = false;
	}
	return NULL;
}

int loop_signal_new(struct loop *loop, int number, void (*callback)(void *data, int number), void *data,
		    struct loop_signal **ret_signal)
{
	return -ENOTSUP;
}

struct loop_signal *loop_signal_free(struct loop_signal *signal)
{
	return NULL;
}

void loop_job(struct loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
	(void)loop;
	run(arg);
	done(arg);
}

void loop_drain(struct loop *loop)
{
	(void)loop;
}

static bool turn_wakes(struct loop *loop)
{
	bool worked = false;

	list_for_each(struct loop_wake, wake, &loop->wakes, link) {
		if (!wake->is_set || wake->is_dead)
			continue;
		wake->is_set = false;
		wake->callback(wake->data);
		worked = true;
	}
	return worked;
}

/* As libuv tells it: an error ends the watch, a hang-up alone is whatever was waited for. */
static int fd_events(struct loop_fd *watch, short found)
{
	int events = 0;

	if (found & POLLERR) {
		events = watch->events;
		watch->events = 0;
		return events;
	}
	if ((found & (POLLIN | POLLHUP)) && (watch->events & LOOP_READ))
		events |= LOOP_READ;
	if ((found & (POLLOUT | POLLHUP)) && (watch->events & LOOP_WRITE))
		events |= LOOP_WRITE;
	return events;
}

static bool turn_fds(struct loop *loop)
{
	struct pollfd polled[FDS_MAX];
	struct loop_fd *watches[FDS_MAX];
	nfds_t count = 0;
	bool worked = false;

	list_for_each(struct loop_fd, watch, &loop->fds, link) {
		if (watch->is_dead || !watch->events || count == FDS_MAX)
			continue;
		polled[count] = (struct pollfd){ .fd = watch->fd,
						 .events = (short)((watch->events & LOOP_READ ? POLLIN : 0) |
								   (watch->events & LOOP_WRITE ? POLLOUT : 0)) };
		watches[count++] = watch;
	}
	if (poll(polled, count, 0) <= 0)
		return false;
	for (nfds_t i = 0; i < count; i++) {
		int events;

		if (!polled[i].revents || watches[i]->is_dead || !watches[i]->events)
			continue;
		events = fd_events(watches[i], polled[i].revents);
		if (!events)
			continue;
		watches[i]->callback(watches[i]->data, events);
		worked = true;
	}
	return worked;
}

bool loop_turn(struct loop *loop)
{
	bool worked = turn_wakes(loop);

	worked |= turn_fds(loop);
	loop_reap(loop);
	return worked;
}

void loop_advance(struct loop *loop)
{
	list_for_each(struct loop_timer, timer, &loop->timers, link)
		timer->is_due = timer->is_started;
	list_for_each(struct loop_timer, due, &loop->timers, link) {
		if (!due->is_due || !due->is_started || due->is_dead)
			continue;
		due->is_started = false;
		due->callback(due->data);
	}
	loop_reap(loop);
}
