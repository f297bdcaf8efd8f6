/* SPDX-License-Identifier: Apache-2.0 */
/* Users and their turns. */
#include "control/user.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/loop.h"
#include "control/connection.h"
#include "control/control.h"
#include "proto/clock.h"

#define QUANTUM_NS 200000	/* of a user's turn */
#define TURNS_NS 1000000	/* of all turns between two looks at the loop */
#define WINDOW_NS 1000000u	/* in which a user may use a quantum without a turn */
#define PACKETS_AT_ONCE 16
#define PACKETS_PER_TURN 4	/* of one connection */
#define BURST_NS 500000000	/* after which a user is held back */
#define DEBT_NS 62500000	/* the most that it is in debt: a second of waiting */
#define REFILL_PART 16u		/* of the time that passes */
#define JOBS_PER_USER 2u	/* libuv has four threads for all */

struct job {
	struct list link;
	struct user *user;
	uint64_t ns; /* that it took */
	void (*run)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

struct user *user_find(const struct control *control, uint32_t uid)
{
	list_for_each(struct user, user, &control->users, link)
		if (user->uid == uid)
			return user;
	return NULL;
}

struct user *user_get(struct control *control, uint32_t uid)
{
	struct user *user = user_find(control, uid);

	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	list_init(&user->link);
	list_init(&user->ready);
	list_init(&user->turn);
	list_init(&user->queued_jobs);
	user->control = control;
	user->budget_ns = BURST_NS;
	user->refilled_ns = clock_now_ns();
	user->uid = uid;
	list_append(&control->users, &user->link);
	control->user_count++;
	return user;
}

void user_free(struct user *user)
{
	list_remove(&user->link);
	list_remove(&user->turn);
	user->control->user_count--;
	free(user);
}

void user_collect(struct user *user)
{
	if (!user->connections && !user->requests && !user->jobs && !user->retries)
		user_free(user);
}

bool user_is_special(const struct user *user)
{
	return user->uid == 0 || user->uid == geteuid();
}

void user_count_client(struct user *user, int change)
{
	if (user->clients == 0)
		user->control->client_users++;
	user->clients += (uint32_t)change;
	if (user->clients == 0)
		user->control->client_users--;
}

void user_charge(struct user *user, uint64_t ns)
{
	user->budget_ns -= (int64_t)ns;
	/* what it has used while it was alone is no debt for later */
	if (user->budget_ns < -DEBT_NS)
		user->budget_ns = -DEBT_NS;
}

/* 0: it may go on. Else in how many ms it may, because of others. */
static uint64_t user_delay_ms(struct user *user)
{
	const struct control *control = user->control;
	uint64_t now = clock_now_ns();

	user->budget_ns += (int64_t)((now - user->refilled_ns) / REFILL_PART);
	user->refilled_ns = now;
	if (user->budget_ns > BURST_NS)
		user->budget_ns = BURST_NS;
	if (user->budget_ns > 0 || control->client_users <= (user->clients > 0) ||
	    user_is_special(user))
		return 0;
	return (uint64_t)-user->budget_ns * REFILL_PART / 1000000 + 1;
}

/* ---- turns ---- */

/* True if there may be more to read. */
static bool user_read(struct connection *connection, int packets, uint64_t *ret_ns)
{
	uint64_t since = clock_now_ns();
	bool more = connection_read(connection, packets);

	*ret_ns = clock_now_ns() - since;
	user_charge(connection->user, *ret_ns);
	return more;
}

/* Nobody waits, and this user has not been here all the time: no need to queue. */
static bool user_is_free(struct user *user)
{
	struct control *control = user->control;
	uint64_t now;

	if (control->user_count == 1)
		return true;
	if (!list_is_empty(&control->turns) || user->credit_ns < 0 || user_delay_ms(user))
		return false;
	now = clock_now_ns();
	if (now - user->window_ns > WINDOW_NS) {
		user->window_ns = now;
		user->spent_ns = 0;
	}
	return user->spent_ns < QUANTUM_NS;
}

void user_readable(struct connection *connection)
{
	struct user *user = connection->user;
	uint64_t spent;

	if (user_is_free(user)) {
		user_read(connection, PACKETS_AT_ONCE, &spent);
		user->spent_ns += spent;
		return;
	}
	connection_set_queued(connection, true);
	list_append(&user->ready, &connection->ready);
	if (list_is_empty(&user->turn))
		list_append(&user->control->turns, &user->turn);
	loop_timer_start(user->control->turn_timer, 0, 0);
}

/* One turn: what the user's credit allows. */
static void user_take_turn(struct user *user)
{
	user->credit_ns += QUANTUM_NS;
	while (user->credit_ns > 0 && !list_is_empty(&user->ready)) {
		struct connection *connection =
			list_entry(user->ready.next, struct connection, ready);
		uint64_t spent;
		bool more;

		list_remove(&connection->ready);
		more = user_read(connection, PACKETS_PER_TURN, &spent);
		user->credit_ns -= (int64_t)spent;
		if (more)
			list_append(&user->ready, &connection->ready);
		else
			connection_set_queued(connection, false);
	}
	list_remove(&user->turn);
	if (!list_is_empty(&user->ready))
		list_append(&user->control->turns, &user->turn);
	else if (user->credit_ns > 0)
		user->credit_ns = 0; /* idling earns nothing */
}

void users_take_turns(void *data)
{
	struct control *control = data;
	uint64_t since = clock_now_ns(), soonest = UINT64_MAX;
	struct list held_back;
	bool is_over;

	list_init(&held_back);
	/* what is read in a turn may end any user, also one that waits: it leaves whatever list it is in */
	while (!list_is_empty(&control->turns) && clock_now_ns() - since < TURNS_NS) {
		struct user *user = list_entry(control->turns.next, struct user, turn);
		uint64_t delay = user_delay_ms(user);

		if (!delay) {
			user_take_turn(user);
			continue;
		}
		if (delay < soonest)
			soonest = delay;
		list_remove(&user->turn);
		list_append(&held_back, &user->turn);
	}
	is_over = list_is_empty(&control->turns);
	list_splice(&control->turns, &held_back);
	if (!list_is_empty(&control->turns))
		loop_timer_start(control->turn_timer, is_over ? soonest : 0, 0);
}

/* ---- jobs ---- */

static void job_start(struct job *job);

static void job_run(void *arg)
{
	struct job *job = arg;
	uint64_t since = clock_now_ns();

	job->run(job->arg);
	job->ns = clock_now_ns() - since;
}

static void job_done(void *arg)
{
	struct job *job = arg;
	struct user *user = job->user;

	user_charge(user, job->ns);
	job->done(job->arg);
	free(job);
	if (!list_is_empty(&user->queued_jobs)) {
		struct job *next = list_entry(user->queued_jobs.next, struct job, link);

		list_remove(&next->link);
		job_start(next);
		return;
	}
	user->jobs--;
	user_collect(user);
}

static void job_start(struct job *job)
{
	loop_job(job->user->control->loop, job_run, job_done, job);
}

void user_job(struct control *control, uint32_t uid, void (*run)(void *arg),
	      void (*done)(void *arg), void *arg)
{
	struct job *job = calloc(1, sizeof(*job));
	struct user *user = job ? user_get(control, uid) : NULL;

	if (!user) {
		free(job);
		loop_job(control->loop, run, done, arg);
		return;
	}
	*job = (struct job){ .user = user, .run = run, .done = done, .arg = arg };
	list_init(&job->link);
	if (user->jobs >= JOBS_PER_USER) {
		list_append(&user->queued_jobs, &job->link);
		return;
	}
	user->jobs++;
	job_start(job);
}
