/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One setting: its name, what it may be, where its value lies, and how that looks as text. The rows are in config_table.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum setting_type {
	SETTING_BOOL,	  /* bool */
	SETTING_INTEGER,  /* uint32_t */
	SETTING_BYTES,	  /* uint64_t; 512M */
	SETTING_DURATION, /* uint32_t, ms; 500ms, 10s, 5min, 1h; a number alone is seconds */
	SETTING_CHOICE,	  /* uint32_t */
	SETTING_TEXT,	  /* char[]; low and high: bytes */
	SETTING_PATH,	  /* char[]; absolute */
};

struct setting_choice {
	const char *name; /* NULL: the end of the list */
	uint32_t value;
};

struct setting {
	const char *section, *key; /* the option of the command line is --KEY with dashes */
	enum setting_type type;
	size_t offset, size; /* in struct config */
	uint64_t low, high;
	const struct setting_choice *choices;
	bool (*check)(const char *text); /* of a text that is more than any, and */
	const char *form;		 /* what it is to be */
	const char *initial; /* the default, as text */
	/* A word instead of a value, such as "auto" or "unlimited": numbers are all ones then, until config_complete() finds better. */
	const char *word;
	const char *environment; /* a variable that sets it, too; or NULL */
	bool is_reloadable;	 /* SIGHUP changes it in a running daemon */
	const char *help;	 /* for --help and manual: a line, lower case, no full stop */
};

#define SETTING_TEXT_MAX 256u

/*
 * Sets the value in @base (a struct config) to what @text says. An empty text is the default. @ret_is_word: it is setting->word.
 * -EINVAL: no such value, nothing is changed.
 */
int setting_parse(const struct setting *setting, const char *text, void *base, bool *ret_is_word);
/* The value in @base as one would write it. @size up to SETTING_TEXT_MAX. */
void setting_format(const struct setting *setting, const void *base, char *buffer, size_t size);
/* "a whole number from 1 to 64": what values are allowed. */
void setting_describe(const struct setting *setting, char *buffer, size_t size);
/* The name of its option without the leading dashes. */
void setting_option(const struct setting *setting, char *buffer, size_t size);
