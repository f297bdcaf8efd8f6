/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop of the control thread; the only user of libuv. Everything is for that thread, but
 * loop_wake(). Callbacks must not block. Everything made here is freed by its own _free (which
 * takes NULL and returns NULL) before loop_free().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_fd;
struct loop_timer;
struct loop_wake;
struct loop_signal;

enum {
	LOOP_READ = 1, /* also a hang-up or an error: the next read or write tells; then loop_fd_set() again */
	LOOP_WRITE = 2,
};

int loop_new(struct loop **ret_loop);
struct loop *loop_free(struct loop *loop);
/* Runs until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* @fd stays the caller's and is made non-blocking; it may be closed right after loop_fd_free(). */
int loop_fd_new(struct loop *loop, int fd, int events, void (*callback)(void *data, int events),
		void *data, struct loop_fd **ret_watch);
/* 0 pauses. */
void loop_fd_set(struct loop_fd *watch, int events);
struct loop_fd *loop_fd_free(struct loop_fd *watch);

int loop_timer_new(struct loop *loop, void (*callback)(void *data), void *data,
		   struct loop_timer **ret_timer);
/* Starts or moves it. @repeat_ms 0: once. */
void loop_timer_start(struct loop_timer *timer, uint64_t delay_ms, uint64_t repeat_ms);
void loop_timer_stop(struct loop_timer *timer);
struct loop_timer *loop_timer_free(struct loop_timer *timer);

int loop_wake_new(struct loop *loop, void (*callback)(void *data), void *data,
		  struct loop_wake **ret_wake);
/* Any thread. Several wakes may become one callback. */
void loop_wake(struct loop_wake *wake);
struct loop_wake *loop_wake_free(struct loop_wake *wake);

int loop_signal_new(struct loop *loop, int number, void (*callback)(void *data, int number),
		    void *data, struct loop_signal **ret_signal);
struct loop_signal *loop_signal_free(struct loop_signal *signal);

/*
 * @run(@arg) in a worker thread, then @done(@arg) on the loop. Without memory, or after
 * loop_drain(), both run at once.
 */
void loop_job(struct loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg);
/* Runs the loop until no job is left; the caller has freed its watches. */
void loop_drain(struct loop *loop);
