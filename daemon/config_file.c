/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files: INI as systemd's, read by libinih. That tells neither line numbers nor more than the first syntax error, so lines
 * are counted, and looked at, as they are handed to it.
 */
#include "daemon/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "proto/cleanup.h"

#define FILE_SIZE_MAX (1u << 20)
#define NAME_MAX_BYTES 220u
#define LINE_MAX_BYTES 190 /* libinih has room for no more than INI_MAX_LINE in all */

struct reader {
	const char *name, *next, *end;
	struct config *config;
	struct config_report *report;
	uint32_t line;
	bool awaits_value; /* the line handed over last must lead to a call of read_value() */
	bool is_known;	   /* the section */
	char section[64];
	uint32_t lines[CONFIG_SETTINGS_MAX]; /* where each setting was set, 0: not here */
};

static void reader_complain(struct reader *reader, const char *what, const char *foreign,
			    const char *advice)
{
	char clean[128];

	text_clean(clean, sizeof(clean), foreign);
	config_complain(reader->report, "%s:%" PRIu32 ": %s '%s'%s", reader->name, reader->line,
			what, clean, advice);
}

static void check_section(struct reader *reader, const char *line)
{
	const char *end = strchr(line, ']');
	const char *rest = end ? end + 1 + strspn(end + 1, " \t\r") : "";
	char advice[256], sections[200];

	reader->is_known = false;
	if (!end || (*rest && *rest != ';' && *rest != '#')) {
		reader_complain(reader, "this is no section header:", line, "; expected [section]");
		return;
	}
	snprintf(reader->section, sizeof(reader->section), "%.*s", (int)(end - line - 1), line + 1);
	reader->is_known = config_has_section(reader->section);
	if (reader->is_known)
		return;
	config_name_sections(sections, sizeof(sections));
	snprintf(advice, sizeof(advice), "; there are %s", sections);
	reader_complain(reader, "there is no section", reader->section, advice);
}

/* The line handed over last was neither empty nor a comment nor a section, and there was no value in it. */
static void check_previous(struct reader *reader)
{
	if (reader->awaits_value)
		config_complain(reader->report, "%s:%" PRIu32 ": expected [section] or key = value",
				reader->name, reader->line);
	reader->awaits_value = false;
}

/* One line without what surrounds it into @buffer; what libinih need not see becomes an empty one. */
static void read_line(struct reader *reader, const char *begin, size_t length, char *buffer)
{
	while (length && (*begin == ' ' || *begin == '\t')) {
		begin++;
		length--;
	}
	while (length && strchr(" \t\r", begin[length - 1]))
		length--;
	buffer[0] = 0;
	if (!length || *begin == '#' || *begin == ';')
		return;
	if (memchr(begin, 0, length)) {
		config_complain(reader->report, "%s:%" PRIu32 ": there is a zero byte in this line",
				reader->name, reader->line);
		return;
	}
	if (length > LINE_MAX_BYTES) {
		config_complain(reader->report, "%s:%" PRIu32 ": the line has more than %d bytes",
				reader->name, reader->line, LINE_MAX_BYTES);
		return;
	}
	memcpy(buffer, begin, length);
	buffer[length] = 0;
	if (*begin == '[')
		check_section(reader, buffer);
	else
		reader->awaits_value = true;
}

/* For libinih, as fgets(). */
static char *reader_gets(char *buffer, int size, void *stream)
{
	struct reader *reader = stream;
	const char *begin = reader->next, *newline;
	size_t left = (size_t)(reader->end - begin);

	check_previous(reader);
	if (!left || size < LINE_MAX_BYTES + 3)
		return NULL;
	newline = memchr(begin, '\n', left);
	reader->line++;
	reader->next = newline ? newline + 1 : reader->end;
	read_line(reader, begin, newline ? (size_t)(newline - begin) : left, buffer);
	strcat(buffer, "\n");
	return buffer;
}

static void unknown_key(struct reader *reader, const char *key)
{
	const struct setting *setting = config_find(NULL, key);
	char advice[256] = "; man hccld.conf lists the settings", what[96];

	if (setting) {
		snprintf(advice, sizeof(advice), ": it belongs into [%s]", setting->section);
		snprintf(what, sizeof(what), "section [%s] has no", reader->section);
		reader_complain(reader, what, key, advice);
		return;
	}
	setting = config_guess(key);
	if (setting && strcmp(setting->section, reader->section) == 0)
		snprintf(advice, sizeof(advice), "; did you mean '%s'?", setting->key);
	else if (setting)
		snprintf(advice, sizeof(advice), "; did you mean '%s' of section [%s]?",
			 setting->key, setting->section);
	reader_complain(reader, "there is no setting", key, advice);
}

/* For libinih. */
static int read_value(void *user, const char *section, const char *key, const char *value)
{
	struct reader *reader = user;
	const struct setting *setting;
	char where[240];
	uint32_t *line;

	(void)section; /* cut at 49 bytes; ours is not */
	reader->awaits_value = false;
	if (!reader->section[0]) {
		reader_complain(reader, "a [section] must come before", key, "");
		return 1;
	}
	if (!reader->is_known)
		return 1; /* said at its header */
	setting = config_find(reader->section, key);
	if (!setting) {
		unknown_key(reader, key);
		return 1;
	}
	line = &reader->lines[setting - config_settings];
	snprintf(where, sizeof(where), "%s:%" PRIu32, reader->name, reader->line);
	if (*line)
		config_complain(reader->report, "%s: %s was set before, in line %" PRIu32, where,
				key, *line);
	else if (!*value)
		config_set(reader->config, setting, value, ORIGIN_DEFAULT, "", reader->report);
	else
		config_set(reader->config, setting, value, ORIGIN_FILE, where, reader->report);
	*line = reader->line;
	return 1;
}

void config_read_text(const char *name, const char *text, size_t size, struct config *config,
		      struct config_report *report)
{
	size_t length = strlen(name);
	/* the end of a long path says more than its begin, and leaves room for the line */
	struct reader reader = {
		.name = length > NAME_MAX_BYTES ? name + length - NAME_MAX_BYTES : name,
		.next = text, .end = text + size, .config = config, .report = report
	};
	uint32_t count = report->count;

	if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
		reader.next += 3;
	ini_parse_stream(reader_gets, &reader, read_value, &reader);
	if (report->is_lenient)
		report->count = count;
}

static int file_load(const char *path, char **ret_text, size_t *ret_size)
{
	CLEANUP(freep)
	char *text = malloc(FILE_SIZE_MAX + 1);
	CLEANUP(close_fdp)
	int fd = -1;
	size_t size = 0;
	ssize_t n;

	if (!text)
		return -ENOMEM;
	/* a FIFO by this name does not keep us */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, text + size, FILE_SIZE_MAX + 1 - size)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		size += (size_t)n;
		if (size > FILE_SIZE_MAX)
			return -EFBIG;
	}
	*ret_text = take_ptr(&text);
	*ret_size = size;
	return 0;
}

void config_read_file(const char *path, bool may_miss, struct config *config,
		      struct config_report *report)
{
	CLEANUP(freep)
	char *content = NULL;
	uint32_t count = report->count;
	size_t length = strlen(config->files), size = 0;
	int r;

	r = file_load(path, &content, &size);
	if (r == -ENOENT && may_miss)
		return;
	if (r < 0) {
		config_complain(report, "%s: cannot be read: %s", path, strerror(-r));
		if (report->is_lenient)
			report->count = count;
		return;
	}
	if (length + strlen(path) + sizeof("\n...\n") < sizeof(config->files))
		snprintf(config->files + length, sizeof(config->files) - length, "%s%s",
			 length ? "\n" : "", path);
	else if (!length || config->files[length - 1] != '.')
		strcat(config->files, "\n...");
	config_read_text(path, content, size, config, report);
}

static int is_conf(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 5 &&
	       strcmp(entry->d_name + length - 5, ".conf") == 0;
}

/* By bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void config_read_directory(const char *path, struct config *config, struct config_report *report)
{
	struct dirent **entries = NULL;
	uint32_t count = report->count;
	int n = scandir(path, &entries, is_conf, by_name);

	if (n < 0 && errno != ENOENT && errno != ENOTDIR) {
		config_complain(report, "%s: cannot be read: %s", path, strerror(errno));
		if (report->is_lenient)
			report->count = count;
	}
	for (int i = 0; i < n; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
		config_read_file(file, true, config, report);
		free(entries[i]);
	}
	free(entries);
}
