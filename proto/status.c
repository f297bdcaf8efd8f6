/* SPDX-License-Identifier: Apache-2.0 */
/* The table of causes and the texts of faults. Pure functions. */
#include "proto/status.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "proto/notify.h"
#include "proto/ring.h"

#define INVALID "Invalid_Argument_Collective_Communication_Operator"
#define TRANSPORT "Communication_Error_Initialize_Transport"
#define RESOURCE "Resource_Error"

static const struct status table[CAUSE_COUNT] = {
	/* cause, name, errno, acl, hccl, code, title, text */
	{ CAUSE_NONE, "ok", 0, 0, 0, "", "", "no error" },
	{ CAUSE_ARGUMENT, "argument", EINVAL, 107000, 1, "EI0003", INVALID, "an argument is out of range" },
	{ CAUSE_NULL, "null", EFAULT, 100000, 2, "EI0003", INVALID, "a pointer is NULL" },
	{ CAUSE_ENVIRONMENT, "environment", EBADMSG, 107000, 1, "EI0001", "Config_Error_Invalid_Environment_Variable",
	  "the value of an environment variable is invalid" },
	{ CAUSE_NOT_DEVICE_MEMORY, "not-device-memory", ESPIPE, 107000, 1, "EI0003", INVALID,
	  "the buffer is no device memory, or no longer: it was freed or unmapped, or who shared it has ended" },
	{ CAUSE_UNBUILT, "not-supported", EOPNOTSUPP, 207000, 5, "", "", "not supported by this release of hccld" },
	{ CAUSE_NOT_FOUND, "not-found", ENOENT, 107017, 6, "", "", "no such object" },
	{ CAUSE_NO_DEVICE, "no-device", ENODEV, 107001, 1, "EL0002", "Invalid_Device_Id", "there is no such device" },
	{ CAUSE_NO_CONTEXT, "no-context", ENXIO, 107002, 15, "", "",
	  "this thread has no current device; call aclrtSetDevice first" },
	{ CAUSE_FORKED, "forked", ECHILD, 107002, 7, "", "",
	  "forked: the child of a fork has no session with hccld; start the work in a process of its own (fork and exec)" },
	{ CAUSE_BAD_HANDLE, "bad-handle", EBADF, 107017, 1, "EI0003", INVALID, "the handle is unknown or was destroyed" },
	{ CAUSE_MEMORY, "memory", ENOMEM, 207001, 24, "EI0011", "Resource_Error_Insufficient_Device_Memory",
	  "device memory is exhausted" },
	{ CAUSE_HOST_MEMORY, "host-memory", ENOBUFS, 207001, 3, "EI0007", RESOURCE, "host memory is exhausted" },
	{ CAUSE_STREAMS, "streams", ENOSR, 207008, 7, "EI0007", RESOURCE, "the streams of this process are used up" },
	{ CAUSE_NOTIFIES, "notifies", ENOSPC, 207009, 7, "EI0007", RESOURCE, "the notifies of the device are used up" },
	{ CAUSE_LIMIT, "limit", EDQUOT, 207012, 7, "EI0007", RESOURCE, "a limit of the daemon is reached" },
	{ CAUSE_MISMATCH, "mismatch", EILSEQ, 107000, 1, "EI0005", "Invalid_Argument",
	  "a send and its receive disagree on the number of bytes" },
	{ CAUSE_PEER_DEAD, "peer-dead", ECONNRESET, 507057, 21, "EI0009", TRANSPORT, "the process of a peer rank has ended" },
	{ CAUSE_PEER_LEFT, "peer-left", ESHUTDOWN, 507057, 21, "EI0009", TRANSPORT,
	  "a peer rank has destroyed the communicator" },
	{ CAUSE_PEER_MEMORY, "peer-memory", ESTALE, 507057, 21, "EI0009", TRANSPORT,
	  "the peer rank freed the memory it was sending" },
	{ CAUSE_PEER_GAVE_UP, "peer-gave-up", EPIPE, 507057, 21, "EI0009", TRANSPORT,
	  "the peer rank has ended this operation with an error" },
	{ CAUSE_EXEC_TIMEOUT, "exec-timeout", ETIME, 507048, 9, "EI0002", "Communication_Error_Timeout",
	  "the operation did not finish within HCCL_EXEC_TIMEOUT" },
	{ CAUSE_INIT_TIMEOUT, "init-timeout", ETIMEDOUT, 507048, 9, "EI0015", "Communication_Error_Ranktable_Detect",
	  "not all ranks joined the communicator within HCCL_CONNECT_TIMEOUT" },
	{ CAUSE_SYNC_TIMEOUT, "sync-timeout", ETOOMANYREFS, 507046, 9, "", "", "the stream did not finish within the given time" },
	{ CAUSE_SUSPENDED, "suspended", EBUSY, 107023, 22, "", "", "the communicator is suspended" },
	{ CAUSE_ABORTED, "aborted", ECANCELED, 107022, 7, "", "", "the operation was taken down before it finished" },
	{ CAUSE_DAEMON_GONE, "daemon-gone", ENOTCONN, 507010, 7, "EI0006", "Communication_Error_Get_Socket",
	  "hccld does not answer" },
	{ CAUSE_VERSION, "version", EPROTONOSUPPORT, 507000, 7, "EI0008", "Package_Error_Incorrect_HCCL_Version",
	  "client library and daemon are too far apart in version" },
	{ CAUSE_PROTOCOL, "protocol", EPROTO, 507000, 4, "EI9999", "Internal_Error", "a message or shared memory is malformed" },
	{ CAUSE_MEMORY_FAULT, "memory-fault", EIO, 507053, 3, "EI0012", "Execution_Error_SDMA",
	  "the memory of a buffer could not be read or written" },
	{ CAUSE_PERMISSION, "permission", EACCES, 207006, 7, "EL0007", "No_Permission", "permission denied" },
	{ CAUSE_BUSY, "busy", EAGAIN, 507000, 20, "", "", "busy, try again" },
	{ CAUSE_INTERNAL, "internal", ENOTRECOVERABLE, 507000, 4, "EI9999", "Internal_Error", "internal error" },
	{ CAUSE_SYSTEM_CALL, "system-call", EREMOTEIO, 507000, 8, "EI9999", "Internal_Error", "a system call failed" },
	{ CAUSE_NOT_SUPPORTED, "argument-not-supported", EPROTOTYPE, 207000, 5, "EI0003", INVALID,
	  "the operator does not support this argument" },
	{ CAUSE_TABLE_FILE, "rank-table-file", ENOEXEC, 107009, 10, "EI0004", "File_Operation_Error_Parse",
	  "the rank table cannot be read" },
	{ CAUSE_TABLE_PARSE, "rank-table-parse", EUCLEAN, 107000, 1, "EI0004", "File_Operation_Error_Parse",
	  "the rank table is no JSON" },
	{ CAUSE_TABLE_VALUE, "rank-table-value", EDOM, 107000, 1, "EI0014", "Config_Error_Ranktable",
	  "a value in the rank table is wrong" },
	{ CAUSE_TABLE_ITEM, "rank-table-item", ENODATA, 107000, 1, "EI0017", "Config_Error_Ranktable",
	  "an item of the rank table is missing" },
	{ CAUSE_EVENT_TIMEOUT, "event-timeout", EALREADY, 507047, 9, "", "", "what was waited for did not come within the given time" },
	{ CAUSE_HOST_WAIT, "host-wait", EDEADLK, 107003, 7, "", "", "a host function cannot wait for work that comes after it" },
	{ CAUSE_TASK_ABORTED, "task-aborted", EOWNERDEAD, 107022, 7, "", "", "the work of the device was ended by aclrtDeviceTaskAbort" },
	{ CAUSE_STREAM_ABORTED, "stream-aborted", EHOSTDOWN, 107023, 7, "", "", "the work of the stream was ended by aclrtStreamAbort" },
	{ CAUSE_TIMESTAMP, "timestamp", EL2NSYNC, 107006, 1, "", "", "the event has no time: it was not recorded, or is not complete" },
	{ CAUSE_TIME_REVERSED, "time-reversed", EL3RST, 107007, 1, "", "", "the end was recorded before the start" },
	{ CAUSE_REPORT_TIMEOUT, "report-timeout", ENONET, 507012, 9, "", "", "no callback became due within the given time" },
	{ CAUSE_NOT_SUBSCRIBED, "not-subscribed", EUNATCH, 107012, 1, "", "", "the thread processes the reports of no stream" },
	{ CAUSE_SUBSCRIBED, "subscribed", ENOCSI, 107011, 1, "", "", "the stream has a thread for its reports" },
	{ CAUSE_EVENTS, "events", ENOANO, 207007, 7, "EI0007", RESOURCE, "the events of this process are used up" },
	{ CAUSE_HOST_REGISTERED, "host-registered", EEXIST, 507910, 1, "", "", "the host memory is registered already" },
	{ CAUSE_HOST_NOT_REGISTERED, "host-not-registered", ENOMEDIUM, 507911, 1, "", "", "the host memory is not registered" },
	{ CAUSE_CORES, "cores", EXFULL, 207005, 7, "EI0007", RESOURCE, "the vector cores of the device are in use" },
	{ CAUSE_CHANNEL_TIMEOUT, "channel-timeout", ENOLINK, 507048, 9, "EI0006", "Communication_Error_Get_Socket",
	  "not all peers acquired their ends of the channels within HCCL_CONNECT_TIMEOUT" },
	{ CAUSE_NO_PATH, "no-path", EHOSTUNREACH, 107000, 1, "EI0010", "Communication_Error_P2P",
	  "the ranks cannot reach each other by the protocol of the channel" },
};

const struct status *status_of(uint32_t cause)
{
	return &table[cause < CAUSE_COUNT ? cause : CAUSE_INTERNAL];
}

enum cause status_cause(int error)
{
	if (error >= 0)
		return CAUSE_NONE;
	for (unsigned int i = 1; i < CAUSE_COUNT; i++)
		if (table[i].error == -error)
			return table[i].cause;
	return CAUSE_SYSTEM_CALL;
}

int status_error(enum cause cause)
{
	return -status_of(cause)->error;
}

static const struct {
	const char *name;
	uint32_t size;
} types[] = {
	[0] = { "int8", 1 }, [1] = { "int16", 2 }, [2] = { "int32", 4 }, [3] = { "fp16", 2 }, [4] = { "fp32", 4 },
	[5] = { "int64", 8 }, [6] = { "uint64", 8 }, [7] = { "uint8", 1 }, [8] = { "uint16", 2 }, [9] = { "uint32", 4 },
	[10] = { "fp64", 8 }, [11] = { "bfp16", 2 }, [12] = { "int128", 16 }, [14] = { "hif8", 1 }, [15] = { "fp8e4m3", 1 },
	[16] = { "fp8e5m2", 1 }, [17] = { "fp8e8m0", 1 },
};

uint32_t data_type_size(uint32_t data_type)
{
	return data_type < sizeof(types) / sizeof(types[0]) ? types[data_type].size : 0;
}

const char *data_type_name(uint32_t data_type)
{
	return data_type_size(data_type) ? types[data_type].name : "unknown";
}

void exit_text(int32_t exit, char *buffer, size_t size)
{
	if (exit <= -2)
		snprintf(buffer, size, "session ended by an administrator (uid %d)", -2 - exit);
	else if (exit >= 0 && WIFSIGNALED(exit))
		snprintf(buffer, size, "killed by signal %d", WTERMSIG(exit));
	else if (exit >= 0 && WIFEXITED(exit))
		snprintf(buffer, size, "exited with status %d", WEXITSTATUS(exit));
	else
		snprintf(buffer, size, "ended");
}

const char *loss_word(uint32_t loss)
{
	switch (loss) {
	case LOSS_CLOSED:
		return "has closed its end of the channel";
	case LOSS_LEFT:
		return "has destroyed the communicator";
	case LOSS_RESET:
		return "has reset the device that it was on";
	case LOSS_ENDED:
		return "has ended";
	default:
		return NULL;
	}
}

void loss_text(uint32_t loss, int32_t exit, const char *freed, char *buffer, size_t size)
{
	const char *word = loss_word(loss);
	char how[64];

	exit_text(exit, how, sizeof(how));
	if (!word)
		snprintf(buffer, size, loss == LOSS_FREED ? "has %s it" : "has %s it or ended", freed);
	else if (loss == LOSS_ENDED && exit != -1)
		snprintf(buffer, size, "%s (%s)", word, how);
	else
		snprintf(buffer, size, "%s", word);
}

void fault_memory_text(const struct fault *fault, char *buffer, size_t size)
{
	char how[96];

	loss_text(fault->loss, fault->peer_exit, "freed", how, sizeof(how));
	if (fault->loss)
		snprintf(buffer, size, "memory that was imported from pid %d is gone: pid %d %s", fault->peer_pid, fault->peer_pid, how);
	else
		snprintf(buffer, size, "memory of another process is gone: that process %s", how);
}

/* "rank 3, pid 4711, killed by signal 9" */
static void death_text(uint32_t rank, int32_t pid, int32_t exit, char *buffer, size_t size)
{
	char how[64];

	exit_text(exit, how, sizeof(how));
	snprintf(buffer, size, "rank %u, pid %d, %s", rank, pid, how);
}

/* "; first cause: rank 3, pid 4711, killed by signal 9", or nothing */
static void first_text(const struct fault *fault, char *buffer, size_t size)
{
	char death[128];

	buffer[0] = '\0';
	if (fault->first_cause == CAUSE_PEER_DEAD) {
		death_text(fault->first_rank, fault->first_pid, fault->first_exit, death, sizeof(death));
		snprintf(buffer, size, "; first cause: %s", death);
	} else if (fault->first_cause) {
		snprintf(buffer, size, "; first cause: %s (rank %u)", status_of(fault->first_cause)->text, fault->first_rank);
	}
}

static void amount_text(uint64_t bytes, uint8_t type, char *buffer, size_t size)
{
	uint32_t width = data_type_size(type);

	if (!width)
		width = 1;
	snprintf(buffer, size, "%" PRIu64 " bytes (%" PRIu64 " x %s)", bytes, bytes / width, data_type_name(type));
}

/* What a wait was for; a plain notify is recorded, that is all. */
static void wish_text(const struct fault *fault, char *buffer, size_t size)
{
	uint32_t operand = (uint32_t)fault->local_bytes, mask = (uint32_t)(fault->local_bytes >> 32), value = (uint32_t)fault->remote_bytes;
	uint32_t compare = fault->local_type - 1u;

	if (!fault->local_type || (compare == NOTIFY_EQUAL && operand == 1 && value == 0))
		snprintf(buffer, size, "was not recorded");
	else if (compare == NOTIFY_EQUAL_MASKED)
		snprintf(buffer, size, "did not become %#" PRIx32 " in the bits %#" PRIx32 " (it is %#" PRIx32 ")", operand & mask, mask, value);
	else
		snprintf(buffer, size, "did not become %s%" PRIu32 "%s (it is %" PRIu32 ")",
			 compare == NOTIFY_LESS ? "less than " : compare == NOTIFY_BIGGER ? "more than " : "", operand,
			 compare == NOTIFY_BIGGER_OR_EQUAL ? " or more" : "", value);
}

static int notify_time_out_text(const struct fault *fault, const char *name, char *buffer, size_t size)
{
	bool is_whole = fault->waited_ms % 1000 == 0;
	char wish[96];

	wish_text(fault, wish, sizeof(wish));
	return snprintf(buffer, size, "%s %s within %" PRIu64 " %s; the call that waits for it sets the limit, 0 means never", name, wish,
			is_whole ? fault->waited_ms / 1000 : fault->waited_ms, is_whole ? "s" : "ms");
}

static int notify_text(const struct fault *fault, char *buffer, size_t size)
{
	char name[32] = "the notify of another process", how[96];

	if (fault->number)
		snprintf(name, sizeof(name), "notify %" PRIu64, fault->number - 1);
	if (fault->cause == CAUSE_EXEC_TIMEOUT)
		return notify_time_out_text(fault, name, buffer, size);
	if (fault->cause == CAUSE_PEER_MEMORY) {
		loss_text(fault->loss, fault->peer_exit, "destroyed", how, sizeof(how));
		return fault->loss ? snprintf(buffer, size, "%s is gone: pid %d %s", name, fault->peer_pid, how)
				   : snprintf(buffer, size, "%s is gone: that process %s", name, how);
	}
	if (fault->cause == CAUSE_PEER_DEAD || fault->cause == CAUSE_PEER_LEFT)
		return snprintf(buffer, size, "%s will not be recorded: the %s of the channel that it belongs to has %s", name,
				fault->cause == CAUSE_PEER_DEAD ? "process at the other end" : "other end",
				fault->cause == CAUSE_PEER_DEAD ? "ended" : "been closed");
	return snprintf(buffer, size, "%s was freed (by aclrtDestroyNotify, or with its thread, channel, communicator or device) before a queued task that names it was done",
			fault->number ? name : "a notify");
}

static int reduction_text(const struct fault *fault, char *buffer, size_t size)
{
	char amount[96], gone[192];

	amount_text(fault->local_bytes, fault->local_type, amount, sizeof(amount));
	fault_memory_text(fault, gone, sizeof(gone));
	return snprintf(buffer, size, "a reduction of %s was not done: %s", amount,
			fault->cause == CAUSE_PEER_MEMORY ? gone : status_of(fault->cause)->text);
}

/* Memory or notifies that a channel has brought are gone; -1: it is not about these. */
static int channel_text(const struct fault *fault, const char *comm, char *buffer, size_t size)
{
	char peer[128], how[96];

	if (!fault->comm || fault->direction < ITEM_COPY)
		return -1;
	death_text(fault->peer, fault->peer_pid, fault->peer_exit, peer, sizeof(peer));
	if (fault->cause == CAUSE_PEER_DEAD)
		return snprintf(buffer, size, "communicator %s: rank %u cannot reach memory of rank %u: %s", comm, fault->rank, fault->peer, peer);
	if (fault->cause != CAUSE_PEER_LEFT && fault->cause != CAUSE_PEER_MEMORY)
		return -1;
	loss_text(fault->cause == CAUSE_PEER_LEFT ? LOSS_LEFT : fault->loss, -1, "freed", how, sizeof(how));
	return snprintf(buffer, size, "communicator %s: rank %u cannot reach memory of rank %u: rank %u, pid %d, %s", comm, fault->rank, fault->peer,
			fault->peer, fault->peer_pid, fault->cause == CAUSE_PEER_MEMORY && !fault->loss ? "has freed it, or closed its end of the channel" : how);
}

/* Of what has no communicator; -1: it has. */
static int alone_text(const struct fault *fault, char *buffer, size_t size)
{
	if (fault->direction == ITEM_PLACE)
		return notify_text(fault, buffer, size);
	if (fault->direction == ITEM_REDUCE)
		return reduction_text(fault, buffer, size);
	if (!fault->comm && fault->cause == CAUSE_ABORTED)
		return snprintf(buffer, size, "an operation was not done when its communicator or device was taken down: synchronize its stream before");
	if (!fault->comm && fault->cause >= CAUSE_EVENT_TIMEOUT)
		return snprintf(buffer, size, "%s", status_of(fault->cause)->text);
	return -1;
}

/* @local, @remote: what the two had */
static int mismatch_text(const struct fault *fault, const char *comm, const char *local, const char *remote, char *buffer, size_t size)
{
	const bool receives = fault->direction == ITEM_RECEIVE;

	if (fault->was_earlier)
		return snprintf(buffer, size, "communicator %s: rank %u cannot %s rank %u since an earlier operation of theirs failed: rank %u had %s, rank %u had %s; after HcclCommSuspend and HcclCommResume at both it can",
				comm, fault->rank, receives ? "receive from" : "send to", fault->peer, fault->rank, local, fault->peer, remote);
	return snprintf(buffer, size, "communicator %s: rank %u %s rank %u: item %u has %s, rank %u has %s; both ends must name the same number of bytes",
			comm, fault->rank, receives ? "receives from" : "sends to", fault->peer, fault->item, local, fault->peer, remote);
}

size_t fault_text(const struct fault *fault, const char *comm_name, char *buffer, size_t size)
{
	const char *verb = fault->direction == ITEM_RECEIVE ? "receive from" : fault->direction ? "send to" : "leave a barrier with";
	const char *comm = comm_name && *comm_name ? comm_name : "?";
	char peer[128], local[96], remote[96], first[256];
	int n;

	n = channel_text(fault, comm, buffer, size);
	if (n < 0)
		n = alone_text(fault, buffer, size);
	if (n >= 0)
		return (size_t)n < size ? (size_t)n : size - 1;
	death_text(fault->peer, fault->peer_pid, fault->peer_exit, peer, sizeof(peer));
	first_text(fault, first, sizeof(first));
	amount_text(fault->local_bytes, fault->local_type, local, sizeof(local));
	amount_text(fault->remote_bytes, fault->remote_type, remote, sizeof(remote));
	switch (fault->cause) {
	case CAUSE_MISMATCH:
		n = mismatch_text(fault, comm, local, remote, buffer, size);
		break;
	case CAUSE_PEER_DEAD:
		n = snprintf(buffer, size, "communicator %s: rank %u cannot %s rank %u: %s", comm, fault->rank, verb,
			     fault->peer, peer);
		break;
	case CAUSE_PEER_LEFT:
		n = snprintf(buffer, size, "communicator %s: rank %u cannot %s rank %u: rank %u (pid %d) has destroyed the communicator before %s%s",
			     comm, fault->rank, verb, fault->peer, fault->peer, fault->peer_pid,
			     fault->direction == ITEM_RECEIVE ? "this was sent" : fault->direction ? "this was received" : "it had entered it", first);
		break;
	case CAUSE_EXEC_TIMEOUT:
		if (!fault->direction) {
			n = snprintf(buffer, size, "communicator %s: rank %u waited %" PRIu64 " ms in a barrier for rank %u, pid %d: it has not entered; HCCL_EXEC_TIMEOUT sets the limit, 0 means never",
				     comm, fault->rank, fault->waited_ms, fault->peer, fault->peer_pid);
			break;
		}
		n = snprintf(buffer, size, "communicator %s: rank %u waited %" PRIu64 " ms to %s rank %u (item %u, %s), pid %d: it did not post its side; HCCL_EXEC_TIMEOUT sets the limit, 0 means never",
			     comm, fault->rank, fault->waited_ms, verb, fault->peer, fault->item, local, fault->peer_pid);
		break;
	case CAUSE_SUSPENDED:
		n = snprintf(buffer, size, "communicator %s: rank %u cannot %s rank %u: HcclCommSuspend was called at one of them; HcclCommResume makes the communicator usable again",
			     comm, fault->rank, verb, fault->peer);
		break;
	case CAUSE_MEMORY_FAULT:
	case CAUSE_NOT_DEVICE_MEMORY:
	case CAUSE_ABORTED:
		n = snprintf(buffer, size, "communicator %s: rank %u, item %u (%s rank %u): %s", comm, fault->rank, fault->item,
			     verb, fault->peer, status_of(fault->cause)->text);
		break;
	default:
		n = snprintf(buffer, size, "communicator %s: rank %u cannot %s rank %u, pid %d: %s%s", comm, fault->rank, verb,
			     fault->peer, fault->peer_pid, status_of(fault->cause)->text, first);
	}
	if (n < 0)
		return 0;
	return (size_t)n < size ? (size_t)n : size - 1;
}
