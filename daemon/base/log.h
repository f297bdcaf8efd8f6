/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log. With the journal behind stderr (JOURNAL_STREAM) each line goes there with its fields, else to stderr. Any thread; nothing
 * here blocks: what nobody takes in time is dropped and counted. Never called by the engine thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/event.h"

enum log_level {
	LOG_LEVEL_ERROR = 3, /* syslog's numbers */
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* What a line is about: fields of the journal. What is 0 or NULL is left out. */
struct log_fields {
	enum event event; /* MESSAGE_ID= */
	uint64_t session; /* HCCLD_SESSION= */
	int32_t pid;	  /* HCCLD_PID=: the client's */
	const char *comm; /* HCCLD_COMM=: its name */
	bool has_rank, has_uid;
	uint32_t rank; /* HCCLD_RANK= */
	uint32_t uid;  /* HCCLD_UID=: who did it */
	/* Clients can make any number of them: ten in a second are written, the rest is counted and told. */
	bool is_frequent;
};

void log_init(enum log_level level);
/* From then on; an administrator's acts (EVENT_ADMINISTRATION) are logged at any level. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* -EINVAL: no such name ("error", "warning", "notice", "info", "debug"). */
int log_level_parse(const char *name, enum log_level *ret_level);
const char *log_level_name(enum log_level level);
/* Lines that nobody has taken: a full or closed pipe, a journal that does not read, a full disk. */
uint64_t log_lost(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* For tests: lines go to the journal at this socket. */
void log_use_journal(const char *path);
void log_close(void);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
