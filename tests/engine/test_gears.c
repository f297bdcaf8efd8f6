/* SPDX-License-Identifier: Apache-2.0 */
/* The engine thread: when it looks by itself, and that what is PATIENT is done by nobody's further doing. */
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "client/handover.h"
#include "proto/clock.h"
#include "scheduler/scheduler.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define LIMIT_NS 20000000000u

struct gears {
	struct rig *rig;
	struct beacon beacon;
	struct scheduler *scheduler;
	int event_fd;
};

static void notify(void *data)
{
}

static void liar(void *data, uint64_t session, const char *what)
{
	test_fail(__FILE__, __LINE__, "session %llu: %s", (unsigned long long)session, what);
}

static void type_mismatch(void *data, uint64_t comm, uint32_t source, uint32_t destination, uint8_t source_type, uint8_t destination_type)
{
}

static void gears_start_with(struct gears *gears, struct view_share *share)
{
	struct scheduler_options options = { .beacon = &gears->beacon, .notify = notify, .liar = liar, .type_mismatch = type_mismatch };

	memset(gears, 0, sizeof(*gears));
	gears->rig = rig_new(2, false);
	gears->rig->view.share = share;
	gears->event_fd = options.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	check(gears->event_fd >= 0);
	check_eq_int(scheduler_new(&options, &gears->scheduler), 0);
	scheduler_yard_add(gears->scheduler, &gears->rig->view);
	check_eq_int(scheduler_start(gears->scheduler), 0);
	scheduler_set_path(gears->scheduler, PATH_DIRECT);
}

static void gears_start(struct gears *gears)
{
	gears_start_with(gears, NULL);
}

static void gears_stop(struct gears *gears)
{
	scheduler_free(gears->scheduler);
	rig_free(gears->rig);
	close(gears->event_fd);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

#define WAIT_FOR(truth)                                                              \
	for (uint64_t since_ = clock_now_ns(); !(truth); nap())                      \
		check_lt_uint(clock_now_ns() - since_, (uint64_t)LIMIT_NS)

static uint32_t awake(struct gears *gears)
{
	return atomic_load(&gears->beacon.awake);
}

/* Threads of the client: one submits, and rings only who does nothing by himself. */
static void submit_patiently(struct gears *gears, uint32_t rank)
{
	struct view_context *context = &gears->rig->contexts[rank];
	uint64_t state = atomic_load(&context->words->state);

	rig_put(gears->rig, rank, 0, (struct rig_item[]){ { ITEM_FILL, 7, 0, 100, 7 } }, 1, 0);
	check(yard_is_free(state));
	check(atomic_compare_exchange_strong(&context->words->state, &state, yard_next(state, CONTEXT_CLIENT)));
	state = yard_next(state, CONTEXT_CLIENT);
	atomic_store(&context->words->state, yard_next(state, CONTEXT_PATIENT));
	atomic_fetch_or(context->bit_word, context->bit);
	if (awake(gears) == BEACON_ASLEEP)
		check_eq_int(eventfd_write(gears->event_fd, 1), 0);
}

TEST(what_is_patient_is_done_without_a_call)
{
	struct gears gears;

	gears_start(&gears);
	WAIT_FOR(atomic_load(&gears.beacon.local_path) == PATH_DIRECT);
	for (int i = 0; i < 50; i++) {
		submit_patiently(&gears, 0);
		WAIT_FOR(rig_is_done(gears.rig, 0, 0));
		WAIT_FOR(yard_kind(atomic_load(&gears.rig->contexts[0].words->state)) == CONTEXT_IDLE);
		if (i % 10 == 9)
			WAIT_FOR(awake(&gears) == BEACON_ASLEEP);
	}
	check_eq_int(gears.rig->ranks[0].memory[99], 7);
	gears_stop(&gears);
}

/* It patrols while there is something PATIENT or was lately, is woken for all else, and sleeps in the end. */
TEST(patrol_and_sleep)
{
	struct gears gears;
	struct view_context *context;
	struct hccld_handover handover;

	gears_start(&gears);
	WAIT_FOR(awake(&gears) == BEACON_ASLEEP);
	for (int i = 0; i < 5; i++) {
		submit_patiently(&gears, 0);
		WAIT_FOR(awake(&gears) == BEACON_PATROL);
		WAIT_FOR(rig_is_done(gears.rig, 0, 0));
		/* from the other process, which does not drive */
		context = &gears.rig->contexts[1];
		handover = (struct hccld_handover){ context->words, context->bit_word, context->bit, &gears.beacon, gears.event_fd };
		rig_put(gears.rig, 1, 0, (struct rig_item[]){ { ITEM_FILL, 8, 0, 100, 7 } }, 1, 0);
		hccld_handover_tell(&handover);
		WAIT_FOR(rig_is_done(gears.rig, 1, 0));
		WAIT_FOR(awake(&gears) == BEACON_ASLEEP);
	}
	gears_stop(&gears);
}

/*
 * A tenant of which a context is PATIENT, and nothing else, takes no turns from another one. Tried again if the engine has taken that context
 * meanwhile: then there was work.
 */
static bool patient_neighbour(int64_t *ret_steps)
{
	struct view_share shares[2] = { 0 };
	struct rig *other = rig_new(2, false);
	struct hccld_handover handover;
	struct view_context *context, *patient = &other->contexts[0];
	struct gears gears;
	uint64_t state;
	bool was_left_alone;

	gears_start_with(&gears, &shares[0]);
	other->view.share = &shares[1];
	scheduler_yard_add(gears.scheduler, &other->view);
	WAIT_FOR(atomic_load(&gears.beacon.local_path) == PATH_DIRECT);
	context = &gears.rig->contexts[1];
	handover = (struct hccld_handover){ context->words, context->bit_word, context->bit, &gears.beacon, gears.event_fd };
	rig_put(other, 0, 0, (struct rig_item[]){ { ITEM_RECEIVE, 1, 0, 100, 7 } }, 1, 0);
	state = yard_next(yard_next(atomic_load(&patient->words->state), CONTEXT_CLIENT), CONTEXT_PATIENT);
	atomic_store(&patient->words->state, state);
	atomic_fetch_or(patient->bit_word, patient->bit);
	for (int i = 0; i < 10; i++) {
		rig_put(gears.rig, 1, 0, (struct rig_item[]){ { ITEM_FILL, 8, 0, 100, 7 } }, 1, 0);
		hccld_handover_tell(&handover);
		for (uint64_t since = clock_now_ns(); !rig_is_done(gears.rig, 1, 0);)
			check_lt_uint(clock_now_ns() - since, (uint64_t)LIMIT_NS);
	}
	was_left_alone = atomic_load(&patient->words->state) == state;
	scheduler_free(gears.scheduler);
	*ret_steps = shares[0].steps;
	rig_free(gears.rig);
	rig_free(other);
	close(gears.event_fd);
	return was_left_alone;
}

TEST(who_is_patient_shortens_no_turns)
{
	int64_t steps = 0;
	uint32_t tries = 0;

	while (!patient_neighbour(&steps))
		check_lt_uint(++tries, 2000);
	check_gt_int(steps, 1000);
}

/* The client is back before the second look, every time: it is never the engine's. */
TEST(who_comes_back_keeps_his_context)
{
	struct gears gears;
	struct view_context *context;
	uint32_t taken = 0;

	gears_start(&gears);
	WAIT_FOR(atomic_load(&gears.beacon.local_path) == PATH_DIRECT);
	context = &gears.rig->contexts[0];
	rig_put(gears.rig, 0, 0, (struct rig_item[]){ { ITEM_RECEIVE, 1, 0, 100, 7 } }, 1, 0);
	for (int i = 0; i < 2000; i++) {
		uint64_t state = atomic_load(&context->words->state), client;

		/* the machine may be so busy that a tick or two pass */
		taken += yard_kind(state) == CONTEXT_ENGINE || yard_kind(state) == CONTEXT_PARKED;
		if (!yard_is_free(state) || !atomic_compare_exchange_strong(&context->words->state, &state, yard_next(state, CONTEXT_CLIENT)))
			continue;
		client = yard_next(state, CONTEXT_CLIENT);
		atomic_store(&context->words->asleep, 0);
		check_eq_uint(atomic_load(&context->words->state), client);
		atomic_store(&context->words->state, yard_next(client, CONTEXT_PATIENT));
		atomic_fetch_or(context->bit_word, context->bit);
		if (awake(&gears) == BEACON_ASLEEP)
			check_eq_int(eventfd_write(gears.event_fd, 1), 0);
	}
	check_lt_uint(taken, 1000);
	/* and when he does not come back, it is */
	WAIT_FOR(yard_kind(atomic_load(&context->words->state)) == CONTEXT_PARKED);
	WAIT_FOR(awake(&gears) == BEACON_ASLEEP);
	gears_stop(&gears);
}

TEST(the_path_is_stored_by_the_engine_thread)
{
	struct gears gears;

	gears_start(&gears);
	for (int i = 0; i < 20; i++) {
		enum beacon_path path = i % 2 ? PATH_DIRECT : PATH_ENGINE;

		scheduler_set_path(gears.scheduler, path);
		WAIT_FOR(atomic_load(&gears.beacon.local_path) == (uint32_t)path);
	}
	gears_stop(&gears);
}
