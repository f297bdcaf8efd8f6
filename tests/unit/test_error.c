/* SPDX-License-Identifier: Apache-2.0 */
#include "client/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/ring.h"
#include "tests/support/test.h"

TEST(error_text_has_the_form_of_cann)
{
	int pid, year, month, day, hour, minute, second, milli, micro;
	char rest[128];
	const char *text;

	check_eq_int(hccld_error(CAUSE_ARGUMENT, "count is %d", 7), -EINVAL);
	text = hccld_error_take();
	check_ptr(text);
	check_eq_int(sscanf(text, "[PID: %d] %4d-%2d-%2d-%2d:%2d:%2d.%3d.%3d %127[^\n]", &pid,
			    &year, &month, &day, &hour, &minute, &second, &milli, &micro, rest),
		     10);
	check_eq_int(pid, getpid());
	check_eq_str(rest,
		     "Invalid_Argument_Collective_Communication_Operator(EI0003): count is 7");
}

TEST(error_without_code_has_neither_title_nor_parentheses)
{
	hccld_error(CAUSE_NO_CONTEXT, "no device");
	check_str_lacks(hccld_error_take(), "(");
}

TEST(error_of_every_cause_has_a_code_in_hccl_calls)
{
	char *text = malloc(100000);

	for (uint32_t cause = 1; cause < CAUSE_COUNT; cause++) {
		int result = hccld_hccl_result(hccld_error((enum cause)cause, "something %u", cause));
		const char *got = hccld_error_take();

		check_eq_int(result, status_of(cause)->hccl);
		check_str_contains(got, "(EI");
		check_str_contains(got, "): something");
	}
	/* an acl call has its own */
	hccld_acl_result(hccld_error(CAUSE_SUSPENDED, "something"));
	check_str_lacks(hccld_error_take(), "(");
	/* in the room there is */
	check_ptr(text);
	memset(text, 'x', 99999);
	text[99999] = '\0';
	check_eq_int(hccld_hccl_result(hccld_error(CAUSE_SUSPENDED, "%s", text)), 22);
	check_str_contains(hccld_error_take(), "(EI0009): xxx");
	free(text);
}

TEST(error_text_tells_what_to_do)
{
	hccld_error(CAUSE_DAEMON_GONE, "nobody");
	check_str_contains(hccld_error_take(),
			   "\n        Solution: If none runs, start hccld");
}

static void check_solution(enum cause cause, const char *text, const char *solution)
{
	const char *got;

	hccld_error(cause, "%s", text);
	got = hccld_error_take();
	check_ptr(got);
	got = strstr(got, "\n        Solution: ");
	check_ptr(got);
	check_str_contains(got, solution);
	check_str_lacks(got, "If none runs");
}

TEST(error_text_tells_what_to_do_in_this_situation)
{
	check_solution(CAUSE_DAEMON_GONE, "hccld at /s has ended the session of this process: session ended by an administrator (uid 0)",
		       "Ask that user");
	check_solution(CAUSE_PEER_DEAD, "rank 1, pid 7, session ended by an administrator (uid 0)", "Ask that user");
	check_solution(CAUSE_PEER_DEAD, "communicator c: rank 0 cannot reach memory of rank 1: rank 1, pid 7, killed by signal 9",
		       "output of the rank that ended;");
	check_solution(CAUSE_DAEMON_GONE, "hccld at /s was stopped by SIGTERM (systemctl stop, say)", "Start hccld again");
	check_solution(CAUSE_DAEMON_GONE, "no hccld answers at /etc/passwd: that is no socket", "unset it to get the default");
	check_solution(CAUSE_PEER_GAVE_UP, "rank 1 has ended this operation with an error", "error of the rank that gave up");
	check_solution(CAUSE_PEER_MEMORY, "rank 1 freed the memory it was sending",
		       "the rank whose memory it was free its buffers after its streams were synchronized");
	check_solution(CAUSE_PEER_LEFT, "rank 1 was destroyed with HcclCommDestroy while it was created", "the rank that left keep the communicator");
	check_solution(CAUSE_MEMORY, "memory of uid 1000: 1 GiB of 1 GiB used; raise [limits] memory_per_tenant",
		       "Free memory that is not needed (hcclctl mem shows who holds how much), or raise [limits] memory_per_tenant.");
	check_solution(CAUSE_HOST_MEMORY, "memory of uid 1000: 1 GiB of 1 GiB used; raise [limits] memory_per_tenant",
		       "or raise [limits] memory_per_tenant.");
	check_solution(CAUSE_MEMORY, "device 1 has 64 MiB; raise [devices] device_memory (option --device-memory)",
		       "use another device, which may have room, or raise [devices] device_memory (option --device-memory).");
	check_solution(CAUSE_MEMORY, "one user may have 8192; use smaller ones (HCCL_BUFFSIZE)", "Use smaller HCCL buffers");
	check_solution(CAUSE_MEMORY, "9 bytes are more than any device has", "Ask for no more than a device has");
	/* no limit is known, and none is said to be */
	check_solution(CAUSE_MEMORY, "the node is out of memory", "Free memory that is not needed; hcclctl mem shows who holds how much.");
	check_solution(CAUSE_ARGUMENT, "pid 7 cannot join as rank 1: it joins with a size of 4 ranks", "check RANK_SIZE");
	check_solution(CAUSE_ARGUMENT, "pid 7 cannot join as rank 1: rank 1 is already taken by pid 6", "check RANK_ID");
	check_solution(CAUSE_ARGUMENT, "rank 1 is already taken by pid 6: communicator c is complete, another one needs a new root info",
		       "HcclGetRootInfo");
	check_solution(CAUSE_EXEC_TIMEOUT, "rank 0 waited 9 ms to send to rank 1: it did not post its side",
		       "what the rank that is waited for does");
	/* no rank is named */
	check_solution(CAUSE_PEER_MEMORY, "the memory was imported from pid 4, which has freed it", "the process whose memory it is");
	check_solution(CAUSE_PEER_DEAD, "the process of a peer rank has ended", "of the other ranks");
	check_solution(CAUSE_PEER_LEFT, "gone", "Let all ranks keep");
	check_solution(CAUSE_PEER_GAVE_UP, "gone", "of the other ranks");
	check_solution(CAUSE_EXEC_TIMEOUT, "a stream waits", "what the other ranks do");
	check_solution(CAUSE_PEER_LEFT, "rank 1, pid 4, has closed its end", "gives a new one");
	check_solution(CAUSE_INIT_TIMEOUT, "rank 1 is missing", "processes of the missing ranks");
	check_solution(CAUSE_LIMIT, "sessions of uid 1000: 3 of 3 used", "how much it may hold.");
	hccld_error(CAUSE_MEMORY, "memory of uid 1000: 1 GiB of 1 GiB used");
	check_str_lacks(hccld_error_take(), "device, which");
	hccld_error(CAUSE_MEMORY, "memory of uid 1000: 1 GiB of 1 GiB used");
	check_str_lacks(hccld_error_take(), "above");
}

/* A tag or name of the program does not move the cursor, or look like a line of ours. */
TEST(error_text_escapes_control_bytes)
{
	hccld_error(CAUSE_ARGUMENT, "tag \"%s\" of %s", "x\n\033[31mred\x7f", "\xc3\xa9t\xc3\xa9");
	check_str_contains(hccld_error_take(), "tag \"x\\x0a\\x1b[31mred\\x7f\" of \xc3\xa9t\xc3\xa9");
}

TEST(error_text_says_what_this_release_has)
{
	const char *got;

	check_eq_int(hccld_unbuilt_hccl("HcclAllReduce"), 5);
	got = hccld_error_take();
	check_str_contains(got, " Not_Supported(EI0003): HcclAllReduce is not supported by this release of hccld\n        Solution: Use HcclSend");
	check_eq_int(hccld_unbuilt_hccl("HcommMemReg"), 5);
	check_str_contains(hccld_error_take(), "Solution: Use HcclCommMemReg and HcclChannelAcquire");
	check_eq_int(hccld_unbuilt_acl("aclrtCreateNotify"), 207000);
	check_str_contains(hccld_error_take(), "Solution: hccld(7) says");
}

TEST(error_text_names_the_peer_to_look_at)
{
	struct fault fault = { .cause = CAUSE_PEER_LEFT, .comm = 1, .rank = 0, .peer = 1, .peer_pid = 7, .direction = ITEM_RECEIVE };

	hccld_error_fault(&fault, "world");
	check_str_contains(hccld_error_take(), "rank 1 (pid 7) has destroyed the communicator before this was sent\n"
					       "        Solution: rank 1's list lacks the send, or it called HcclCommDestroy too early");
	fault.first_cause = CAUSE_PEER_DEAD;
	fault.first_rank = 3;
	hccld_error_fault(&fault, "world");
	check_str_contains(hccld_error_take(), "Solution: Look at rank 3 first: the cause is there.");
	fault = (struct fault){ .cause = CAUSE_EXEC_TIMEOUT, .comm = 1, .peer = 1, .peer_pid = 7, .direction = ITEM_RECEIVE };
	hccld_error_fault(&fault, "world");
	check_str_contains(hccld_error_take(), "Solution: Look at what pid 7 does (its output, or gdb -p 7); hcclctl status shows such");
}

TEST(error_text_is_taken_once_and_belongs_to_its_thread)
{
	check_null(hccld_error_take());
	hccld_error(CAUSE_ARGUMENT, "first");
	hccld_error(CAUSE_ARGUMENT, "second");
	check_str_contains(hccld_error_take(), "second");
	check_null(hccld_error_take());
}

static void *other_thread(void *arg)
{
	check_null(hccld_error_take());
	hccld_error(CAUSE_ARGUMENT, "of the other thread");
	return arg;
}

TEST(error_texts_of_threads_do_not_mix)
{
	pthread_t thread;

	hccld_error(CAUSE_ARGUMENT, "of this thread");
	check_eq_int(pthread_create(&thread, NULL, other_thread, NULL), 0);
	pthread_join(thread, NULL);
	check_str_contains(hccld_error_take(), "of this thread");
}

TEST(error_of_a_system_call_gets_a_text)
{
	check_eq_int(hccld_acl_result(-EMFILE), 507000);
	check_str_contains(hccld_error_take(), strerror(EMFILE));
	check_eq_int(hccld_hccl_result(-EMFILE), 8);
	hccld_error_take();
	/* one that has a text keeps it */
	hccld_error(CAUSE_MEMORY, "device 3 is full");
	check_eq_int(hccld_acl_result(-ENOMEM), 207001);
	check_str_contains(hccld_error_take(), "device 3 is full");
	/* and one that came later without does not get the old one */
	check_eq_int(hccld_hccl_result(-ENOMEM), 24);
	check_str_lacks(hccld_error_take(), "device 3");
	check_eq_int(hccld_acl_result(0), 0);
	check_null(hccld_error_take());
}

TEST(error_longer_than_its_buffer_is_cut)
{
	char *text = malloc(100000);

	check_ptr(text);
	memset(text, 'x', 99999);
	text[99999] = '\0';
	hccld_error(CAUSE_ARGUMENT, "%s", text);
	check_lt_uint(strlen(hccld_error_take()), 4096);
	free(text);
}

TEST(error_of_a_fault_names_communicator_ranks_and_cause)
{
	struct fault fault = { .cause = CAUSE_PEER_DEAD,
			       .rank = 1,
			       .peer = 3,
			       .peer_pid = 4711,
			       .peer_exit = 9,
			       .direction = ITEM_RECEIVE,
			       .comm = 42 };
	const char *text;

	hccld_comm_name_add(42, "world");
	hccld_comm_name_add(42, "world");
	hccld_comm_name_drop(42);
	check_eq_int(hccld_error_fault(&fault, NULL), -ECONNRESET);
	check_eq_int(hccld_acl_result(-ECONNRESET), 507057);
	text = hccld_error_take();
	check_str_contains(text, "communicator world");
	check_str_contains(text, "EI0009");
	check_str_contains(text, "rank 3, pid 4711, killed by signal 9");
	hccld_comm_name_drop(42);
	hccld_error_fault(&fault, NULL);
	check_str_lacks(hccld_error_take(), "world");
	/* a cause nobody knows is an internal error, not a crash */
	fault.cause = 4000000;
	check_eq_int(hccld_error_fault(&fault, NULL), -ENOTRECOVERABLE);
}

TEST(error_of_a_copy_names_no_communicator)
{
	struct fault fault = { .cause = CAUSE_MEMORY_FAULT,
			       .direction = ITEM_COPY,
			       .local_bytes = 4096 };

	check_eq_int(hccld_error_fault(&fault, NULL), -EIO);
	check_str_contains(hccld_error_take(), "aclrtMemcpyAsync of 4096 bytes");
}

TEST(error_of_the_unbuilt_names_the_function)
{
	check_eq_int(hccld_unbuilt_acl("aclrtNoSuch"), 207000);
	check_str_contains(hccld_error_take(), "aclrtNoSuch");
	check_eq_int(hccld_unbuilt_hccl("HcclNoSuch"), 5);
	check_str_contains(hccld_error_take(), "HcclNoSuch");
}

static _Atomic int finished;

static void *make_errors(void *data)
{
	while (!atomic_load(&finished))
		hccld_error(CAUSE_ARGUMENT, "of another thread");
	return NULL;
}

/* The time of a text, without the fractions of its second. */
static time_t time_of(const char *text)
{
	struct tm tm = { .tm_isdst = -1 };
	int pid;

	check_eq_int(sscanf(text, "[PID: %d] %d-%d-%d-%d:%d:%d.", &pid, &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
			    &tm.tm_sec),
		     7);
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return mktime(&tm);
}

/* Whatever other threads of the parent were doing. */
TEST(error_in_the_child_of_a_fork)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		check_eq_int(pthread_create(&threads[i], NULL, make_errors, NULL), 0);
	for (int i = 0; i < 300; i++) {
		int status;
		pid_t pid = fork();

		check_ge_int(pid, 0);
		if (pid == 0) {
			alarm(10);
			hccld_error(CAUSE_ARGUMENT, "of the child");
			_exit(0);
		}
		check_eq_int(waitpid(pid, &status, 0), pid);
		check_eq_int(status, 0);
	}
	atomic_store(&finished, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* Local, too. */
TEST(error_time_in_the_child_of_a_fork)
{
	int status;
	pid_t pid;

	hccld_error(CAUSE_ARGUMENT, "of the parent");
	check_le_int(labs((long)(time_of(hccld_error_take()) - time(NULL))), 5);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		hccld_error(CAUSE_ARGUMENT, "of the child");
		check_le_int(labs((long)(time_of(hccld_error_take()) - time(NULL))), 5);
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
}
