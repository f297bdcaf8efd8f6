/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of the calling thread's most recent error (aclGetRecentErrMsg) and the step from our errnos to result codes. Functions below
 * the API return negative errnos (proto/status.h); whoever finds an error sets the text, once; api_*.c turns the errno into a code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

struct fault;

/* Sets the text of this thread: "[PID: n] <time> <Title>(EI0003): <text>" and, for codes with one, a line "Solution: ...". Returns
 * status_error(@cause), so that `return hccld_error(CAUSE_NULL, "...")` reads well. */
int hccld_error(enum cause cause, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same from a fault; @comm_name may be NULL. */
int hccld_error_fault(const struct fault *fault, const char *comm_name);
/* The same, with words before it that say more: "stream 3 waits for ...: ". */
int hccld_error_fault_at(const struct fault *fault, const char *where);
/* Text of this thread or NULL; the next call gives NULL. Valid until the thread's next error. */
const char *hccld_error_take(void);
/* Which of this thread's texts the next call of hccld_error_take() gives; 0: none. */
uint64_t hccld_error_serial(void);
/* What was found wrong has been got over: the call succeeds, and leaves no text of it. */
void hccld_error_forget(void);
/* Until it is called with false: errors of this thread leave the text that is there. For what follows from an error. */
void hccld_error_mute(bool muted);
/*
 * Names of communicators for texts, by the daemon's id: several ranks of a communicator may live here, so names are counted. find: copies
 * the name, "" if unknown.
 */
void hccld_comm_name_add(uint64_t comm, const char *name);
void hccld_comm_name_drop(uint64_t comm);
void hccld_comm_name_find(uint64_t comm, char *buffer, size_t size);

/*
 * Result codes of an errno: 0 for 0. Sets a plain text if the errno came without one (a system call's). That of an HCCL call has a code
 * EIxxxx in any case.
 */
int hccld_acl_result(int error);
int hccld_hccl_result(int error);
/* The code of the last acl call of this thread that failed, 0: none. @forgets: none has from now on. */
int hccld_acl_last(bool forgets);

/* For functions this release does not build: HCCL_E_NOT_SUPPORT (5) and 207000, with a text that names @function. */
int hccld_unbuilt_hccl(const char *function);
int hccld_unbuilt_acl(const char *function);
