/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines to stderr, with a priority prefix when that is the journal. Any thread; one write per line.
 * Never called by the engine thread.
 */
#pragma once

enum log_level {
	LOG_LEVEL_ERROR = 3, /* syslog's numbers */
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

void log_init(enum log_level level);
void log_set_level(enum log_level level);
/* -EINVAL: no such name ("error", "warning", "notice", "info", "debug"). */
int log_level_parse(const char *name, enum log_level *ret_level);
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
