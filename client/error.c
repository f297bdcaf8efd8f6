/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts, one per thread, and the names of communicators that stand in them. Any thread; locks nothing that is held elsewhere. */
#include "client/error.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/ring.h"

/* Head (process, time, title), text, solution. */
#define TEXT_SIZE (HCCLD_TEXT_MAX + 768u)

struct error_text {
	char text[TEXT_SIZE];
	bool set;    /* not taken yet */
	bool muted;
	bool has_code; /* EI0003, say */
	size_t head;   /* bytes in front of title or text */
	uint64_t serial; /* of the text, in this thread */
	int pending; /* errno of the last text that no result code was made of yet */
};

static _Thread_local struct error_text current;
static _Thread_local int last_acl; /* code of the last acl call that failed */

/* Causes that stand for several situations: what the text says tells which. Some of the texts are the daemon's, of this release or another. */
static const struct {
	enum cause cause;
	const char *phrase, *solution;
} situations[] = {
	{ CAUSE_DAEMON_GONE, "ended by an administrator", "Ask that user why; a new start of the program connects again." },
	{ CAUSE_PEER_DEAD, "ended by an administrator", "Ask that user why; a new start of the job connects again." },
	{ CAUSE_PEER_LEFT, "has closed its end",
	  "Let both ranks be done with a channel before one of them closes it; HcclChannelDestroy at both, then HcclChannelAcquire, gives a new one." },
	{ CAUSE_PEER_LEFT, "the other end of the channel",
	  "Let the rank at the other end record it before it closes the channel or destroys the communicator; HcclChannelDestroy at both, then HcclChannelAcquire, gives a new one." },
	{ CAUSE_STREAMS, "a communicator has at most",
	  "Acquire threads once, and use them again: they go with the communicator (HcclCommDestroy), not one by one. hcclctl threads shows them." },
	{ CAUSE_NOTIFIES, "those of a communicator have at most",
	  "Acquire threads once, with no more notifies than their operators use: they go with the communicator (HcclCommDestroy), not one by one. hcclctl threads shows them." },
	{ CAUSE_NOTIFIES, "ask for all at the first call", "Ask for as many notifies as the largest operator uses when the thread is first acquired." },
	{ CAUSE_PEER_MEMORY, ", which has ended", "Look at the output of that process; its end is the cause." },
	{ CAUSE_PEER_MEMORY, "has closed its end",
	  "Let both ranks be done with a channel before one of them closes it; HcclChannelDestroy at both, then HcclChannelAcquire, gives a new one." },
	{ CAUSE_DAEMON_GONE, "being stopped", "Start the program again once hccld runs again (systemctl start hccld, say)." },
	{ CAUSE_DAEMON_GONE, "was stopped", "Start hccld again (systemctl start hccld, say), then the program." },
	{ CAUSE_DAEMON_GONE, "has ended the session", "hccld's log says more; a new start of the program connects again." },
	{ CAUSE_DAEMON_GONE, "has ended, or", "Look into its log; if it does not run start it, then the program again." },
	{ CAUSE_DAEMON_GONE, "does not answer a request", "hcclctl ping says what of it hangs; its log may say why." },
	{ CAUSE_DAEMON_GONE, "that is no socket", "Set HCCLD_SOCKET to the daemon's socket, or unset it to get the default." },
	{ CAUSE_DAEMON_GONE, "is longer than", "Set HCCLD_SOCKET to a shorter path, and start hccld there." },
	{ CAUSE_ARGUMENT, "joins with a size of", "Give all ranks the same number of ranks: check RANK_SIZE, or what else the program takes it from." },
	{ CAUSE_ARGUMENT, "is complete, another one needs", "Give each process a rank of its own, and call HcclGetRootInfo for each communicator." },
	{ CAUSE_ARGUMENT, "is already taken by pid", "Give each process a rank of its own: check RANK_ID, or what else the program takes it from." },
	{ CAUSE_LIMIT, "being drained", "Use another node, or start the program again after hcclctl undrain; hcclctl status shows a drain." },
	{ CAUSE_LIMIT, "this process has as many files open", "Close files that are not needed, or raise the limit (ulimit -n)." },
	{ CAUSE_NOT_DEVICE_MEMORY, "was freed", "Free memory only when nothing uses it any more, and after its streams were synchronized." },
	{ CAUSE_MEMORY, "--device-memory",
	  "Free memory that is not needed (hcclctl mem shows who holds how much), use another device, which may have room, or raise [devices] device_memory (option --device-memory)." },
	{ CAUSE_MEMORY, "memory_per_tenant",
	  "Free memory that is not needed (hcclctl mem shows who holds how much), or raise [limits] memory_per_tenant." },
	{ CAUSE_HOST_MEMORY, "memory_per_tenant",
	  "Free memory that is not needed (hcclctl mem shows who holds how much), or raise [limits] memory_per_tenant." },
	{ CAUSE_MEMORY, "HCCL_BUFFSIZE", "Use smaller HCCL buffers (HCCL_BUFFSIZE, hcclBufferSize), or destroy communicators that are not needed." },
	{ CAUSE_MEMORY, "than any device has", "Ask for no more than a device has; hcclctl devices shows how much that is." },
};

/* What failed is gone from hcclctl status, but the next such wait is not. */
#define WAITS_ARE_SHOWN "hcclctl status shows such waits while they last"

/* "rank 3": other texts name a pid, or nobody. */
static bool names_rank(const char *text)
{
	for (const char *at = strstr(text, "rank "); at; at = strstr(at + 1, "rank "))
		if (at[5] >= '0' && at[5] <= '9')
			return true;
	return false;
}

/* About a peer, by what it did: a text may name several ranks. NULL: the cause is about none. */
static const char *peer_solution_of(enum cause cause, bool is_named)
{
	switch (cause) {
	case CAUSE_PEER_LEFT:
		return is_named ? "Let the rank that left keep the communicator, and its device, until all ranks are done with it." :
				  "Let all ranks keep the communicator, and its device, until all are done with it.";
	case CAUSE_PEER_GAVE_UP:
		return is_named ? "Look at the error of the rank that gave up: it is the cause." :
				  "Look at the errors of the other ranks: one of them is the cause.";
	case CAUSE_PEER_MEMORY:
		return is_named ? "Let the rank whose memory it was free its buffers after its streams were synchronized." :
				  "Let the process whose memory it is keep it until the others are done with it.";
	case CAUSE_PEER_DEAD:
		return is_named ? "Look at the output of the rank that ended; its end is the cause." :
				  "Look at the output of the other ranks; the end of one of them is the cause.";
	case CAUSE_EXEC_TIMEOUT:
		return is_named ? "Look at what the rank that is waited for does (its output, or a debugger); " WAITS_ARE_SHOWN "." :
				  "Look at what the other ranks do (their output, or a debugger); " WAITS_ARE_SHOWN ".";
	default:
		return NULL;
	}
}

/* What the user can do, for causes where that can be said without knowing more. */
static const char *solution_of(enum cause cause, const char *text)
{
	for (size_t i = 0; i < sizeof(situations) / sizeof(situations[0]); i++)
		if (situations[i].cause == cause && strstr(text, situations[i].phrase))
			return situations[i].solution;
	switch (cause) {
	case CAUSE_ENVIRONMENT:
		return "Correct the variable, or unset it to get the default.";
	case CAUSE_NOT_DEVICE_MEMORY:
		return "Allocate the buffer with aclrtMalloc, and free it after its stream was synchronized. Memory of malloc is of no use here; that of aclrtMallocHost cannot be sent or received.";
	case CAUSE_NO_DEVICE:
		return "Use an id below aclrtGetDeviceCount; ASCEND_RT_VISIBLE_DEVICES limits and renumbers the devices.";
	case CAUSE_NO_CONTEXT:
		return "Call aclrtSetDevice in this thread first.";
	case CAUSE_FORKED:
		return "Start the work in a process of its own (fork and exec), or fork before the first acl or Hccl call.";
	case CAUSE_MEMORY:
		return "Free memory that is not needed; hcclctl mem shows who holds how much.";
	case CAUSE_NOTIFIES:
		return "Release what is not needed; hcclctl notifies shows who has them, hcclctl limits how much each user may have.";
	case CAUSE_STREAMS:
		return "Release what is not needed; hcclctl limits shows who holds how much.";
	case CAUSE_LIMIT:
		return "hcclctl limits shows who holds how much, and how much it may hold.";
	case CAUSE_MISMATCH:
		return "Make both ranks pass the same count and data type.";
	case CAUSE_INIT_TIMEOUT:
		return "Look at what the processes of the missing ranks do (their output, or a debugger); " WAITS_ARE_SHOWN ".";
	case CAUSE_DAEMON_GONE:
		return "If none runs, start hccld (HCCLD_SOCKET names a socket other than the default), or run the program under a private daemon: hcclctl run --private -n 1 -- PROGRAM.";
	case CAUSE_VERSION:
		return "Install daemon and client library of the same release.";
	default:
		return peer_solution_of(cause, names_rank(text));
	}
}

/* gmtime_r() without its lock: the calendar of the seconds since 1970. Years count from March, so that the leap day is their last. */
static void civil_time(time_t seconds, struct tm *ret_tm)
{
	int64_t days = seconds / 86400 + 719468; /* since 0000-03-01 */
	int64_t era = days / 146097, day = days % 146097;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t month;

	day -= year * 365 + year / 4 - year / 100;
	month = (5 * day + 2) / 153;
	*ret_tm = (struct tm){
		.tm_sec = (int)(seconds % 60),
		.tm_min = (int)(seconds / 60 % 60),
		.tm_hour = (int)(seconds / 3600 % 24),
		.tm_mday = (int)(day - (153 * month + 2) / 5 + 1),
		.tm_mon = (int)((month + 2) % 12),
		.tm_year = (int)(era * 400 + year + (month >= 10) - 1900),
	};
}

/*
 * The child of a fork may find the lock of the C library's time zone held for ever, by a thread that it does not have. So there the zone
 * is what it was last known to be: seconds east of UTC.
 */
static pid_t loaded_by;
static _Atomic long zone;

static void local_time(time_t now, struct tm *ret_tm)
{
	if (getpid() == loaded_by) {
		localtime_r(&now, ret_tm);
		atomic_store_explicit(&zone, ret_tm->tm_gmtoff, memory_order_relaxed);
		return;
	}
	now += atomic_load_explicit(&zone, memory_order_relaxed);
	civil_time(now, ret_tm);
}

__attribute__((constructor)) static void remember_zone(void)
{
	struct tm tm;

	loaded_by = getpid();
	local_time(time(NULL), &tm);
}

/* "2026-01-31-17:05:59.123.456" */
static void time_text(char *buffer, size_t size)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	local_time(now.tv_sec, &tm);
	snprintf(buffer, size, "%04d-%02d-%02d-%02d:%02d:%02d.%03ld.%03ld", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
		 tm.tm_hour, tm.tm_min, tm.tm_sec, now.tv_nsec / 1000000, now.tv_nsec / 1000 % 1000);
}

/* Appends, cutting at the end of the buffer. Returns the new length. */
static size_t append(size_t length, const char *format, va_list args)
{
	int n = vsnprintf(current.text + length, TEXT_SIZE - length, format, args);

	if (n < 0)
		return length;
	return length + (size_t)n < TEXT_SIZE ? length + (size_t)n : TEXT_SIZE - 1;
}

__attribute__((format(printf, 2, 3))) static size_t append_text(size_t length, const char *format,
								...)
{
	va_list args;

	va_start(args, format);
	length = append(length, format, args);
	va_end(args);
	return length;
}

/* The same; control bytes, of a tag or name of the program, as "\\x1b". */
static size_t append_escaped(size_t length, const char *format, va_list args)
{
	char raw[TEXT_SIZE];

	if (vsnprintf(raw, sizeof(raw), format, args) < 0)
		return length;
	for (const char *at = raw; *at; at++)
		length = append_text(length, (unsigned char)*at < ' ' || *at == 0x7f ? "\\x%02x" : "%c", (unsigned char)*at);
	return length;
}

/* @solution: NULL for that of the cause. */
static int error_set(enum cause cause, const char *solution, const char *format, va_list args)
{
	const struct status *status = status_of(cause);
	int saved = errno;
	char when[64];
	size_t length;

	if (current.muted)
		return status_error(cause);
	time_text(when, sizeof(when));
	length = current.head = append_text(0, "[PID: %d] %s ", (int)getpid(), when);
	current.has_code = strncmp(status->code, "EI", 2) == 0;
	if (*status->code)
		length = append_text(length, "%s(%s): ", status->title, status->code);
	length = append_escaped(length, format, args);
	if (!solution)
		solution = solution_of(cause, current.text + current.head);
	if (solution)
		append_text(length, "\n        Solution: %s", solution);
	current.set = true;
	current.serial++;
	current.pending = status_error(cause);
	errno = saved;
	return status_error(cause);
}

int hccld_error(enum cause cause, const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = error_set(cause, NULL, format, args);
	va_end(args);
	return r;
}

__attribute__((format(printf, 3, 4))) static int error_solved(enum cause cause, const char *solution, const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = error_set(cause, solution, format, args);
	va_end(args);
	return r;
}

/* What the user can do about a fault of a transfer or barrier: more than about its cause alone, or NULL. */
static const char *fault_solution(const struct fault *fault, char *buffer, size_t size)
{
	const char *lacks = fault->direction == ITEM_RECEIVE ? "send" : fault->direction ? "receive" : "barrier";

	if ((fault->cause == CAUSE_PEER_LEFT || fault->cause == CAUSE_PEER_GAVE_UP) && fault->first_cause) {
		snprintf(buffer, size, "Look at rank %u first: the cause is there.", fault->first_rank);
		return buffer;
	}
	if (fault->cause == CAUSE_EXEC_TIMEOUT && fault->peer_pid > 0) {
		snprintf(buffer, size, "Look at what pid %d does (its output, or gdb -p %d); " WAITS_ARE_SHOWN ".", fault->peer_pid,
			 fault->peer_pid);
		return buffer;
	}
	if (fault->cause != CAUSE_PEER_LEFT || fault->direction >= ITEM_COPY)
		return NULL;
	snprintf(buffer, size,
		 "rank %u's list lacks the %s, or it called HcclCommDestroy too early: let it post the %s, and synchronize its streams before it destroys the communicator.",
		 fault->peer, lacks, lacks);
	return buffer;
}

static int error_fault(const struct fault *fault, const char *where, const char *comm_name)
{
	const struct status *status = status_of(fault->cause);
	char name[HCCLD_COMM_NAME_MAX], text[HCCLD_TEXT_MAX], solution[256];

	if (!fault->comm && (fault->direction == ITEM_COPY || fault->direction == ITEM_FILL)) {
		fault_memory_text(fault, text, sizeof(text));
		return hccld_error(status->cause, "%s of %" PRIu64 " bytes in a stream failed: %s",
				   fault->direction == ITEM_COPY ? "aclrtMemcpyAsync"
								 : "aclrtMemsetAsync",
				   fault->local_bytes,
				   fault->cause == CAUSE_NOT_DEVICE_MEMORY ? "its memory was freed before it ran" :
				   fault->cause == CAUSE_PEER_MEMORY	   ? text :
									     status->text);
	}
	if (!comm_name) {
		hccld_comm_name_find(fault->comm, name, sizeof(name));
		comm_name = name;
	}
	fault_text(fault, comm_name, text, sizeof(text));
	return error_solved(status->cause, fault_solution(fault, solution, sizeof(solution)), "%s%s", where, text);
}

int hccld_error_fault(const struct fault *fault, const char *comm_name)
{
	return error_fault(fault, "", comm_name);
}

int hccld_error_fault_at(const struct fault *fault, const char *where)
{
	return error_fault(fault, where, NULL);
}

const char *hccld_error_take(void)
{
	if (!current.set)
		return NULL;
	current.set = false;
	return current.text;
}

uint64_t hccld_error_serial(void)
{
	return current.set ? current.serial : 0;
}

void hccld_error_mute(bool muted)
{
	current.muted = muted;
}

void hccld_error_forget(void)
{
	if (current.muted)
		return;
	current.set = false;
	current.pending = 0;
}

/* The row of @error, with a text in any case: one that was set on the way here, or the table's. */
static const struct status *result_status(int error)
{
	enum cause cause = status_cause(error);

	if (error < 0 && current.pending != error) {
		if (cause == CAUSE_SYSTEM_CALL && -error != status_of(CAUSE_SYSTEM_CALL)->error)
			hccld_error(cause, "a system call failed: %s", strerror(-error));
		else
			hccld_error(cause, "%s", status_of(cause)->text);
	}
	current.pending = 0;
	return status_of(cause);
}

/* Programs look for a code in the text of every Hccl call that fails; some causes have one of their own in acl calls only, or none. */
static void code_add(const struct status *status)
{
	const char *title = status->hccl == 9 ? "Communication_Error_Timeout(EI0002): " :
			    status->hccl == 7 || status->hccl == 22 ? "Communication_Error_Initialize_Transport(EI0009): " :
			    status->hccl == 5 ? "Not_Supported(EI0003): " :
			    status->hccl == 20 ? "Resource_Error(EI0007): " :
						 "Invalid_Argument_Collective_Communication_Operator(EI0003): ";
	const size_t size = strlen(title), room = TEXT_SIZE - 1 - current.head - size;
	size_t rest = strlen(current.text) - current.head;

	if (rest > room)
		rest = room;
	memmove(current.text + current.head + size, current.text + current.head, rest);
	memcpy(current.text + current.head, title, size);
	current.text[current.head + size + rest] = '\0';
	current.has_code = true;
}

int hccld_acl_result(int error)
{
	int code = result_status(error)->acl;

	if (code)
		last_acl = code;
	return code;
}

int hccld_acl_last(bool forgets)
{
	int code = last_acl;

	if (forgets)
		last_acl = 0;
	return code;
}

int hccld_hccl_result(int error)
{
	const struct status *status = result_status(error);

	if (status->hccl && current.set && !current.has_code)
		code_add(status);
	return status->hccl;
}

static const char *unbuilt_solution(const char *function)
{
	/* endpoints and what belongs to them: the same is there for communicators */
	if (strncmp(function, "Hcomm", 5) == 0)
		return "Use HcclCommMemReg and HcclChannelAcquire, by which ranks of a communicator reach each other's memory; hccld(7) says what this release lacks.";
	return "Use HcclSend, HcclRecv, HcclBatchSendRecv and HcclBarrier, which this release has; hccld(7) says what it lacks.";
}

int hccld_unbuilt_hccl(const char *function)
{
	return hccld_hccl_result(error_solved(CAUSE_UNBUILT, unbuilt_solution(function), "%s is not supported by this release of hccld", function));
}

int hccld_unbuilt_acl(const char *function)
{
	return hccld_acl_result(error_solved(
		CAUSE_UNBUILT, "hccld(7) says what this release lacks.", "%s is not supported by this release of hccld", function));
}

/* ---- names of communicators ---- */

struct comm_name {
	struct comm_name *next;
	uint64_t comm;
	uint32_t references;
	char name[HCCLD_COMM_NAME_MAX];
};

static pthread_mutex_t names_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct comm_name *names;

static struct comm_name **name_slot(uint64_t comm)
{
	struct comm_name **slot = &names;

	while (*slot && (*slot)->comm != comm)
		slot = &(*slot)->next;
	return slot;
}

void hccld_comm_name_add(uint64_t comm, const char *name)
{
	struct comm_name **slot;

	pthread_mutex_lock(&names_mutex);
	slot = name_slot(comm);
	if (!*slot) {
		*slot = calloc(1, sizeof(**slot));
		if (*slot) {
			(*slot)->comm = comm;
			snprintf((*slot)->name, sizeof((*slot)->name), "%s", name);
		}
	}
	/* without memory the texts have no name: nothing else depends on it */
	if (*slot)
		(*slot)->references++;
	pthread_mutex_unlock(&names_mutex);
}

void hccld_comm_name_drop(uint64_t comm)
{
	struct comm_name **slot;

	pthread_mutex_lock(&names_mutex);
	slot = name_slot(comm);
	if (*slot && --(*slot)->references == 0) {
		struct comm_name *gone = *slot;

		*slot = gone->next;
		free(gone);
	}
	pthread_mutex_unlock(&names_mutex);
}

void hccld_comm_name_find(uint64_t comm, char *buffer, size_t size)
{
	struct comm_name *found;

	pthread_mutex_lock(&names_mutex);
	found = *name_slot(comm);
	snprintf(buffer, size, "%s", found ? found->name : "");
	pthread_mutex_unlock(&names_mutex);
}
