/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of causes. One cause always gives the same errno, acl code, HCCL code and EI code, whoever reports it. The enumerator is
 * the value on the wire and in shared memory: never renumber.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct fault;

enum cause {
	CAUSE_NONE = 0,
	CAUSE_ARGUMENT = 1,		/* value out of range, bad combination */
	CAUSE_NULL = 2,
	CAUSE_ENVIRONMENT = 3,		/* value of an environment variable */
	CAUSE_NOT_DEVICE_MEMORY = 4,
	CAUSE_UNBUILT = 5,		/* function or feature that this build does not have */
	CAUSE_NOT_FOUND = 6,
	CAUSE_NO_DEVICE = 7,		/* device id that does not exist */
	CAUSE_NO_CONTEXT = 8,		/* no current device in this thread */
	CAUSE_FORKED = 9,		/* the child of a fork has no session */
	CAUSE_BAD_HANDLE = 10,
	CAUSE_MEMORY = 11,		/* device memory exhausted */
	CAUSE_HOST_MEMORY = 12,
	CAUSE_STREAMS = 13,		/* streams exhausted */
	CAUSE_NOTIFIES = 14,
	CAUSE_LIMIT = 15,		/* another limit; the text names it */
	CAUSE_MISMATCH = 16,		/* byte counts of a send and its receive differ */
	CAUSE_PEER_DEAD = 17,		/* process of the peer ended */
	CAUSE_PEER_LEFT = 18,		/* peer destroyed its communicator */
	CAUSE_PEER_MEMORY = 19,		/* peer freed the memory of an offer */
	CAUSE_PEER_GAVE_UP = 20,	/* the other end of the operation failed or timed out */
	CAUSE_EXEC_TIMEOUT = 21,	/* HCCL_EXEC_TIMEOUT */
	CAUSE_INIT_TIMEOUT = 22,	/* ranks missing at the creation of a communicator */
	CAUSE_SYNC_TIMEOUT = 23,	/* aclrtSynchronizeStreamWithTimeout */
	CAUSE_SUSPENDED = 24,
	CAUSE_ABORTED = 25,		/* stream, communicator or device was taken down with the operation in flight */
	CAUSE_DAEMON_GONE = 26,		/* no daemon, or it went for good */
	CAUSE_VERSION = 27,		/* client and daemon have no protocol version in common */
	CAUSE_PROTOCOL = 28,		/* malformed message or shared memory */
	CAUSE_MEMORY_FAULT = 29,	/* SIGBUS on memory of a segment */
	CAUSE_PERMISSION = 30,
	CAUSE_BUSY = 31,
	CAUSE_INTERNAL = 32,
	CAUSE_SYSTEM_CALL = 33,
	CAUSE_NOT_SUPPORTED = 34,	/* an argument asks for what the operator cannot do (a data type, say) */
	CAUSE_TABLE_FILE = 35,		/* rank table: the file cannot be read */
	CAUSE_TABLE_PARSE = 36,		/* it is no JSON */
	CAUSE_TABLE_VALUE = 37,		/* a value is wrong, or does not fit another or this process */
	CAUSE_TABLE_ITEM = 38,		/* an item is missing */
	CAUSE_EVENT_TIMEOUT = 39,	/* the time given to wait for an event, or for a value, is over */
	CAUSE_HOST_WAIT = 40,		/* a host function waits for what can only come after it */
	CAUSE_TASK_ABORTED = 41,	/* aclrtDeviceTaskAbort */
	CAUSE_STREAM_ABORTED = 42,	/* aclrtStreamAbort */
	CAUSE_TIMESTAMP = 43,		/* an event has no time yet, or never */
	CAUSE_TIME_REVERSED = 44,	/* the end was recorded before the start */
	CAUSE_REPORT_TIMEOUT = 45,	/* aclrtProcessReport: no host function became due */
	CAUSE_NOT_SUBSCRIBED = 46,	/* this thread processes reports of no stream */
	CAUSE_SUBSCRIBED = 47,		/* the stream has a thread for its reports, or another one */
	CAUSE_EVENTS = 48,		/* events exhausted */
	CAUSE_HOST_REGISTERED = 49,	/* aclrtHostRegister of memory that is registered */
	CAUSE_HOST_NOT_REGISTERED = 50,
	CAUSE_CORES = 51,		/* vector cores of the device are in use */
	CAUSE_CHANNEL_TIMEOUT = 52,	/* HcclChannelAcquire: peers did not come */
	CAUSE_NO_PATH = 53,		/* the protocol of a channel cannot be used between these ranks */
	CAUSE_COUNT
};

struct status {
	enum cause cause;
	const char *name;	/* short, for tools and --json */
	int error;		/* positive errno, unique in the table */
	int acl;
	int hccl;
	const char *code;	/* "EI0009", "" for none */
	const char *title;	/* CANN's name of the code */
	const char *text;	/* what it means, for texts without detail */
};

/* Never NULL: an unknown cause gives the row of CAUSE_INTERNAL. */
const struct status *status_of(uint32_t cause);

/* @error: 0 or a negative errno as our functions return it. A foreign errno gives CAUSE_SYSTEM_CALL. */
enum cause status_cause(int error);

/* The negative errno of a cause: what functions return and dispatch turns back. */
int status_error(enum cause cause);

/* Size in bytes of one element of an HcclDataType, 0 if there is no such type. */
uint32_t data_type_size(uint32_t data_type);
const char *data_type_name(uint32_t data_type);

/*
 * How a process has ended: a wait status, -1 when that is not known, or that an administrator of user @uid has ended its session. Older
 * releases take such a value for one that is not known.
 */
static inline int32_t exit_by_administrator(uint32_t uid)
{
	return uid < 0x7ffffff0u ? -2 - (int32_t)uid : -1;
}

/* "killed by signal 9", "exited with status 1", "session ended by an administrator (uid 0)", "ended" */
void exit_text(int32_t exit, char *buffer, size_t size);

/* Why memory, or a notify, that a process has of another one is gone. */
enum loss {
	LOSS_UNKNOWN = 0,	/* freed, or its process has ended: the daemon is of release 0.2, or was restarted since */
	LOSS_FREED = 1,
	LOSS_CLOSED = 2,	/* the other end of the channel is closed; the memory may still be there */
	LOSS_LEFT = 3,		/* the rank at the other end has destroyed the communicator */
	LOSS_RESET = 4,		/* its device was reset */
	LOSS_ENDED = 5,		/* its process has */
};

/*
 * "has closed its end of the channel", "has ended": of the one whose it is. NULL: freed, or not known, for which there are several words.
 * Safe in a signal handler.
 */
const char *loss_word(uint32_t loss);

/*
 * "has freed it", "has closed its end of the channel", "has ended (killed by signal 9)": of the one whose it is. @freed: what that is called
 * ("freed", "destroyed").
 */
void loss_text(uint32_t loss, int32_t exit, const char *freed, char *buffer, size_t size);

/* One line that says who, what, why and what to do, without the EI code. @comm_name may be NULL. Returns the length. */
size_t fault_text(const struct fault *fault, const char *comm_name, char *buffer, size_t size);

/* Of a fault without communicator: "memory that was imported from pid 4711 is gone: pid 4711 has freed it". */
void fault_memory_text(const struct fault *fault, char *buffer, size_t size);
