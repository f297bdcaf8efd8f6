/* SPDX-License-Identifier: Apache-2.0 */
/* Files, environment and command line become one configuration. */
#include "daemon/config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/process.h"
#include "base/text.h"
#include "proto/spelling.h"

#define SYSTEM_SOCKET "/run/hccld/hccld.sock"
#define SYSTEM_FILE HCCLD_SYSCONFDIR "/hccld/hccld.conf"
#define OPTIONS_MAX (2 * CONFIG_SETTINGS_MAX + 8)
#define PATH_SIZE 4096

enum option_id {
	OPTION_CONFIG = 1,
	OPTION_CHECK_CONFIG,
	OPTION_READY_FD,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_SETTING = 1000, /* and the index of the setting */
	OPTION_NO_SETTING = 2000,
};

#define DESCRIPTORS_MAX 16384u /* whose names fit into the environment of the next process */

static const struct option fixed_options[] = {
	{ "config", required_argument, NULL, OPTION_CONFIG },
	{ "check-config", no_argument, NULL, OPTION_CHECK_CONFIG },
	{ "ready-fd", required_argument, NULL, OPTION_READY_FD },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, OPTION_HELP },
};
#define FIXED_COUNT (sizeof(fixed_options) / sizeof(fixed_options[0]))

/* What getopt_long() needs, and the names it points to. */
struct option_table {
	struct option options[OPTIONS_MAX];
	char names[2 * CONFIG_SETTINGS_MAX][64];
};

/* The command line, taken apart; texts are argv's. */
struct command_line {
	const char *values[CONFIG_SETTINGS_MAX]; /* NULL: not given */
	const char *file;			 /* --config */
	int ready_fd;
	bool is_check, is_version, is_help;
	char **arguments; /* after the options */
	int argument_count;
};

static void option_table_init(struct option_table *table)
{
	size_t n = 0;

	memset(table, 0, sizeof(*table));
	for (; n < FIXED_COUNT; n++)
		table->options[n] = fixed_options[n];
	for (size_t i = 0; i < config_setting_count; i++) {
		bool is_bool = config_settings[i].type == SETTING_BOOL;
		char *name = table->names[2 * i], *no_name = table->names[2 * i + 1];

		setting_option(&config_settings[i], name, sizeof(table->names[0]));
		table->options[n++] =
			(struct option){ name, is_bool ? no_argument : required_argument, NULL,
					 OPTION_SETTING + (int)i };
		if (!is_bool)
			continue;
		snprintf(no_name, sizeof(table->names[0]), "no-%.60s", name);
		table->options[n++] =
			(struct option){ no_name, no_argument, NULL, OPTION_NO_SETTING + (int)i };
	}
}

/* The option that @given, which there is not, was probably meant to be, or NULL. */
static const char *option_guess(const struct option_table *table, const char *given)
{
	const size_t length = strncmp(given, "--", 2) == 0 ? strcspn(given + 2, "=") : 0;
	const char *best = NULL;
	unsigned int best_distance = 4;
	char name[64];

	if (!length || length >= sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)length, given + 2);
	for (const struct option *option = table->options; option->name; option++) {
		unsigned int distance = spelling_distance(name, option->name);

		if (strncmp(option->name, name, length) == 0)
			return NULL; /* there is, or there are several that begin so: getopt has said what is wrong */
		if (distance < best_distance && 2 * distance <= strlen(option->name)) {
			best_distance = distance;
			best = option->name;
		}
	}
	return best;
}

static int parse_ready_fd(const char *text, int *ret_fd)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || number < 3 || number > 1 << 20)
		return -EINVAL;
	*ret_fd = (int)number;
	return 0;
}

static void command_line_take(struct command_line *line, int id, const char *argument,
			      struct config_report *report)
{
	switch (id) {
	case OPTION_CONFIG:
		line->file = argument;
		return;
	case OPTION_CHECK_CONFIG:
		line->is_check = true;
		return;
	case OPTION_READY_FD:
		if (parse_ready_fd(argument, &line->ready_fd) < 0)
			config_complain(report,
					"--ready-fd is '%s', but must be the number of an open "
					"descriptor, 3 or more",
					argument);
		return;
	case OPTION_VERSION:
		line->is_version = true;
		return;
	case OPTION_HELP:
		line->is_help = true;
		return;
	}
	if (id >= OPTION_NO_SETTING)
		line->values[id - OPTION_NO_SETTING] = "no";
	else
		line->values[id - OPTION_SETTING] = argument ? argument : "yes";
}

/* getopt said what @given lacks. */
static void command_line_refuse(const struct option_table *table, const char *given, struct config_report *report)
{
	const char *guess = option_guess(table, given);

	if (guess)
		config_complain(report, "did you mean --%s? The options are listed by hccld --help", guess);
	else
		config_complain(report, "the options are listed by hccld --help");
}

static void command_line_parse(int argc, char **argv, struct config_report *report,
			       struct command_line *line)
{
	struct option_table table;
	int id;

	option_table_init(&table);
	*line = (struct command_line){ .ready_fd = -1 };
	optind = 0;
	opterr = report->say != NULL;
	while ((id = getopt_long(argc, argv, "", table.options, NULL)) != -1) {
		if (id == '?')
			command_line_refuse(&table, argv[optind - 1], report);
		else
			command_line_take(line, id, optarg, report);
	}
	line->arguments = argv + optind;
	line->argument_count = argc - optind;
	/* behind an option that there is not it may be that one's value */
	if (line->argument_count && !line->is_check && !report->count)
		config_complain(report,
				"'%s': there are no arguments without option; see hccld --help",
				argv[optind]);
}

static const char *variable(const struct setting *setting)
{
	const char *value = setting->environment ? getenv(setting->environment) : NULL;

	return value && *value ? value : NULL;
}

/* Where clients connect if nobody says otherwise. Empty: that is not known. */
static void default_socket(char *path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	path[0] = 0;
	if (geteuid() == 0)
		snprintf(path, size, "%s", SYSTEM_SOCKET);
	else if (runtime && *runtime)
		snprintf(path, size, "%s/hccld/hccld.sock", runtime);
}

/*
 * A private daemon has a socket of its own, and reads no file unless told. What the file says about the socket cannot matter here.
 */
static bool is_private(const struct command_line *line)
{
	const struct setting *setting = config_find("daemon", "socket");
	const char *given = line->values[setting - config_settings];
	char path[PATH_SIZE];

	if (!given)
		given = variable(setting);
	default_socket(path, sizeof(path));
	if (!given || strcmp(given, "auto") == 0)
		given = path;
	return *given && strcmp(given, SYSTEM_SOCKET) != 0;
}

static void read_files(const struct command_line *line, struct config *config,
		       struct config_report *report)
{
	const char *file = line->file;
	char directory[PATH_SIZE + 2], absolute[PATH_SIZE];

	if (!file && !line->is_check && is_private(line))
		return;
	if (!file)
		file = SYSTEM_FILE;
	/* who is told of it later, by hcclctl config or the log, is elsewhere; who checks a file is here */
	if (*file != '/' && !line->is_check && getcwd(directory, PATH_SIZE) &&
	    (size_t)snprintf(absolute, sizeof(absolute), "%s/%s", directory, file) < sizeof(absolute))
		file = absolute;
	/* an administrator who is content with the defaults may remove it, also if the unit names it */
	config_read_file(file, strcmp(file, SYSTEM_FILE) == 0, config, report);
	snprintf(directory, sizeof(directory), "%s.d", file);
	config_read_directory(directory, config, report);
}

/* Three quarters of the open files we may have, or of what a descriptor store can name. */
static uint32_t default_descriptors(void)
{
	uint64_t most = DESCRIPTORS_MAX;
	struct rlimit limit;

	/* daemon.c raises the soft limit */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < most)
		most = limit.rlim_max;
	return (uint32_t)(most / 4 * 3);
}

/* What stands for a better value gets it. */
static void config_complete(struct config *config, struct config_report *report)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t memory = memory_total();

	if (!config->socket[0]) {
		default_socket(config->socket, sizeof(config->socket));
		if (!config->socket[0])
			config_complain(report, "neither --socket, the configuration, HCCLD_SOCKET "
						"nor XDG_RUNTIME_DIR says where to listen; use --socket /absolute/path");
	}
	if (config_origin(config, config_find("daemon", "keeper"))->is_word)
		config->keeper = !getenv("NOTIFY_SOCKET") || getenv(CONFIG_WORKER);
	if (config->copy_threads == UINT32_MAX)
		config->copy_threads = cores >= 16  ? 4
				       : cores >= 4 ? (uint32_t)cores / 4
						    : cores >= 2;
	config->host_memory = memory == UINT64_MAX ? 4ull << 30 : memory / 2;
	if (config->device_memory == UINT64_MAX)
		config->device_memory = config->host_memory / config->devices;
	if (config->descriptors_per_tenant == UINT32_MAX)
		config->descriptors_per_tenant = default_descriptors();
	/* whole pages */
	config->device_memory = (config->device_memory + 4095) & ~4095ull;
}

/* What overrides the files. */
static void apply_overrides(const struct command_line *line, struct config *config,
			    struct config_report *report)
{
	for (size_t i = 0; i < config_setting_count; i++) {
		const struct setting *setting = &config_settings[i];
		char option[64], where[80];

		/* a variable that the command line overrides may say anything */
		if (!line->values[i] && variable(setting))
			config_set(config, setting, variable(setting), ORIGIN_ENVIRONMENT,
				   setting->environment, report);
		if (!line->values[i])
			continue;
		setting_option(setting, option, sizeof(option));
		snprintf(where, sizeof(where), "--%s%s",
			 setting->type == SETTING_BOOL && strcmp(line->values[i], "no") == 0 ? "no-"
											     : "",
			 option);
		config_set(config, setting, line->values[i], ORIGIN_COMMAND_LINE, where, report);
	}
}

static void config_build(const struct command_line *line, struct config *config,
			 struct config_report *report)
{
	config_init(config);
	config->ready_fd = line->ready_fd;
	read_files(line, config, report);
	apply_overrides(line, config, report);
	config_complete(config, report);
}

int config_load(int argc, char **argv, struct config_report *report, struct config *ret_config)
{
	struct command_line line;
	struct config config;

	command_line_parse(argc, argv, report, &line);
	config_build(&line, &config, report);
	if (report->count)
		return -EINVAL;
	*ret_config = config;
	return 0;
}

static void say_on_stderr(void *data, const char *problem)
{
	(void)data;
	fprintf(stderr, "hccld: %s\n", problem);
}

static void print_help(void)
{
	fputs("Usage: hccld [OPTION...]\n"
	      "       hccld --check-config [--config FILE | FILE...]\n"
	      "The daemon behind HCCL programs on this node: device memory, streams and communicators.\n"
	      "\n"
	      "Settings, also for the configuration file, with _ for - (man hccld.conf):\n",
	      stdout);
	config_print_options();
	fputs("\n"
	      "Other options:\n"
	      "  --config FILE\n"
	      "      read FILE, then FILE.d/*.conf (default for a daemon on " SYSTEM_SOCKET ":\n"
	      "      " SYSTEM_FILE "; for others: none)\n"
	      "  --check-config [FILE...]\n"
	      "      check FILEs, or what would be read, tell all errors, and exit: 0 if there are none, else 1\n"
	      "  --ready-fd N\n"
	      "      write a line to descriptor N, and close it, when serving\n"
	      "  --version, --help\n",
	      stdout);
}

/* --check-config: 1 if all is well. */
static int config_check(const struct command_line *line, struct config_report *report)
{
	struct config config;

	config_init(&config);
	if (!line->argument_count) {
		read_files(line, &config, report);
		apply_overrides(line, &config, report);
	}
	for (int i = 0; i < line->argument_count; i++) {
		/* each by itself: they need not belong together */
		config_init(&config);
		config_read_file(line->arguments[i], false, &config, report);
	}
	if (report->count) {
		fprintf(stderr, "hccld: %u error%s\n", report->count,
			report->count == 1 ? "" : "s");
		return -EBADMSG;
	}
	printf("the configuration is valid%s\n",
	       line->argument_count || config.files[0] ? "" : ": there is no file, defaults apply");
	return 1;
}

/* Descriptors of an earlier process wait for us, and with them its clients. */
static bool is_restart(void)
{
	const char *names = getenv("LISTEN_FDNAMES");

	return names && strstr(names, "registry");
}

int config_parse(int argc, char **argv, struct config *ret_config)
{
	struct config_report report = { .say = say_on_stderr };
	struct command_line line;
	struct config config;

	command_line_parse(argc, argv, &report, &line);
	if (report.count)
		return -EINVAL;
	if (line.is_help)
		print_help();
	else if (line.is_version)
		puts("hccld " HCCLD_VERSION);
	if (line.is_help || line.is_version)
		return 1;
	if (line.is_check)
		return config_check(&line, &report);
	/* what somebody wrote into a file must not keep clients from their daemon after a crash */
	report.is_lenient = is_restart();
	config_build(&line, &config, &report);
	if (report.count)
		return -EINVAL;
	*ret_config = config;
	return 0;
}
