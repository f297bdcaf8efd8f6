/* SPDX-License-Identifier: Apache-2.0 */
/* Command line, environment and files; the table of settings. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config.h"
#include "proto/yard.h"
#include "tests/support/test.h"

static struct config config;
static char told[65536];

static void tell(void *data, const char *problem)
{
	size_t length = strlen(told);

	(void)data;
	snprintf(told + length, sizeof(told) - length, "%s\n", problem);
}

/* Reads @text as file "f"; the number of problems, which are in told. */
static uint32_t read_text(const char *text)
{
	struct config_report report = { .say = tell };

	told[0] = 0;
	config_init(&config);
	config_read_text("f", text, strlen(text), &config, &report);
	return report.count;
}

static const struct origin *origin_of(const char *key)
{
	return config_origin(&config, config_find(NULL, key));
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	check_ptr(file);
	check_ge_int(fputs(text, file), 0);
	check_eq_int(fclose(file), 0);
}

/* Parses `hccld OPTIONS`; messages go nowhere. */
static int parse(const char *options)
{
	char line[256], *next = line, *argv[32] = { (char *)"hccld" };
	int saved = dup(2), null = open("/dev/null", O_WRONLY), argc = 1, r;

	strcpy(line, options);
	while (next && *next)
		argv[argc++] = strsep(&next, " ");
	dup2(null, 2);
	optind = 0;
	r = config_parse(argc, argv, &config);
	dup2(saved, 2);
	close(saved);
	close(null);
	return r;
}

TEST(defaults_serve_a_node)
{
	unsetenv("HCCLD_SOCKET");
	unsetenv("NOTIFY_SOCKET");
	setenv("XDG_RUNTIME_DIR", "/run/user/4711", 1);
	check_eq_int(parse(""), 0);
	check_eq_str(config.socket,
		     geteuid() == 0 ? "/run/hccld/hccld.sock" : "/run/user/4711/hccld/hccld.sock");
	check_eq_uint(config.devices, 8);
	check_eq_str(config.soc_name, "Ascend910_9391");
	check(config.keeper);
	check_gt_uint(config.device_memory, 0);
	check_eq_uint(config.device_memory % 4096, 0);
	setenv("NOTIFY_SOCKET", "@x", 1);
	setenv("HCCLD_SOCKET", "/tmp/s", 1);
	check_eq_int(parse(""), 0);
	check(!config.keeper);
	check_eq_str(config.socket, "/tmp/s");
}

TEST(options_count)
{
	check_eq_int(
		parse("--socket /tmp/x --devices 64 --device-memory 512M --soc-name Ascend910B1 --copy-threads 3 --keeper --no-keeper "
		      "--allow-duplicate-items --log-level debug --ready-fd 7"),
		0);
	check_eq_str(config.socket, "/tmp/x");
	check_eq_uint(config.devices, 64);
	check_eq_uint(config.device_memory, 512ull << 20);
	check_eq_str(config.soc_name, "Ascend910B1");
	check_eq_uint(config.copy_threads, 3);
	check(!config.keeper && config.allow_duplicate_items);
	check_eq_int(config.log_level, LOG_LEVEL_DEBUG);
	check_eq_int(config.ready_fd, 7);
	check_eq_int(parse("--device-memory 4GiB"), 0);
	check_eq_uint(config.device_memory, 4ull << 30);
	check_eq_int(parse("--device-memory 1"), 0);
	check_eq_uint(config.device_memory, 4096);
}

TEST(nonsense_is_refused)
{
	static const char *const lines[] = {
		"--devices 0",
		"--devices 65",
		"--devices x",
		"--devices -1",
		"--devices",
		"--device-memory 0",
		"--device-memory 4X",
		"--device-memory 99999999T",
		"--device-memory 18446744073709551615",
		"--device-memory -1",
		"--socket relative",
		"--log-level loud",
		"--ready-fd 1",
		"--soc-name 0123456789012345678901234567890123456789012345678901234567890123456789",
		"--unknown",
		"argument",
		"--copy-threads 1000",
		"--config /nonexistent/hccld.conf",
		"--no-devices",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		check_msg(parse(lines[i]) == -EINVAL, "'%s' is accepted", lines[i]);
}

TEST(every_row_of_the_table_is_complete)
{
	for (size_t i = 0; i < config_setting_count; i++) {
		const struct setting *setting = &config_settings[i];
		char text[SETTING_TEXT_MAX], allowed[256];
		bool is_word = false;

		check_eq_ptr(config_find(setting->section, setting->key), setting);
		check_eq_ptr(config_find(NULL, setting->key),
			     setting); /* keys are options: none twice */
		check_eq_int(strspn(setting->key, "abcdefghijklmnopqrstuvwxyz_"),
			     strlen(setting->key));
		check_msg(setting->help && *setting->help, "%s has no help", setting->key);
		check(setting->help[strlen(setting->help) - 1] != '.');
		config_init(&config);
		check_eq_int(setting_parse(setting, setting->initial, &config, &is_word), 0);
		check_eq_int(is_word,
			     setting->word && strcmp(setting->word, setting->initial) == 0);
		setting_describe(setting, allowed, sizeof(allowed));
		check(strlen(allowed) > 5);
		if (is_word)
			continue;
		setting_format(setting, &config, text, sizeof(text));
		check_eq_str(text, setting->initial); /* as hcclctl config shows it */
	}
}

TEST(a_file_sets_what_it_says)
{
	check_eq_uint(read_text("# comment\n"
				"; another = one\n"
				"\n"
				"[daemon]\r\n"
				"  socket=/tmp/from-file ; and why\r\n"
				"\tallow_duplicate_items = YES\n"
				"copy_threads = auto\n"
				"[devices]\n"
				"devices = 4\n"
				"device_memory = 512M\n"
				"[log] # loud\n"
				"log_level = debug"),
		      0);
	check_eq_str(told, "");
	check_eq_str(config.socket, "/tmp/from-file");
	check(config.allow_duplicate_items);
	check_eq_uint(config.devices, 4);
	check_eq_uint(config.device_memory, 512ull << 20);
	check_eq_uint(config.log_level, LOG_LEVEL_DEBUG);
	check_eq_int(origin_of("devices")->kind, ORIGIN_FILE);
	check_eq_str(origin_of("devices")->where, "f:9");
	check_eq_str(origin_of("log_level")->where, "f:12");
	check_eq_int(origin_of("soc_name")->kind, ORIGIN_DEFAULT);
	check(origin_of("copy_threads")->is_word);
}

TEST(an_empty_value_is_the_default)
{
	struct config_report report = { .say = tell };
	static const char again[] = "[devices]\ndevices =\nsoc_name=\n";

	check_eq_uint(read_text("[devices]\ndevices = 4\nsoc_name = x\n"), 0);
	config_read_text("g", again, strlen(again), &config, &report);
	check_eq_uint(report.count, 0);
	check_eq_uint(config.devices, 8);
	check_eq_str(config.soc_name, "Ascend910_9391");
	check_eq_int(origin_of("devices")->kind, ORIGIN_DEFAULT);
}

/* All of them are told, each with its line and what would be right. */
TEST(problems_of_a_file_are_told)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "[devices]\ndevices = 0\n",
		  "f:2: devices is '0', but must be a whole number from 1 to 64\n" },
		{ "[devices]\n\n\ndevices = many\n", "f:4: devices is 'many', but must be" },
		{ "[devices]\ndevice_memory = 4X\n",
		  "f:2: device_memory is '4X', but must be a size such as" },
		{ "[devices]\ndevice_memory = 0\n", "from 1 to 128T, or auto" },
		{ "[devices]\ndevice_memory = 99999999999T\n", "f:2: device_memory" },
		{ "[daemon]\nsocket = here\n",
		  "but must be an absolute path of at most 107 bytes, or auto" },
		{ "[daemon]\nkeeper = perhaps\n", "but must be yes, no or auto" },
		{ "[log]\nlog_level = loud\n",
		  "but must be one of error, warning, notice, info or debug" },
		{ "[daemon]\nkeper = yes\n",
		  "f:2: there is no setting 'keper'; did you mean 'keeper'?\n" },
		{ "[log]\nsocet = /x\n", "did you mean 'socket' of section [daemon]?" },
		{ "[log]\nzzz = 1\n", "there is no setting 'zzz'; man hccld.conf lists" },
		{ "[Log]\nlog_level = info\n",
		  "f:1: there is no section 'Log'; there are [daemon], [devices]" },
		{ "[log]\ndevices = 4\n",
		  "f:2: section [log] has no 'devices': it belongs into [devices]\n" },
		{ "devices = 4\n", "f:1: a [section] must come before 'devices'" },
		{ "[devices]\ndevices = 4\ndevices = 4\n",
		  "f:3: devices was set before, in line 2\n" },
		{ "[devices]\nnonsense\n", "f:2: expected [section] or key = value\n" },
		{ "[devices]\nnonsense", "f:2: expected [section] or key = value\n" },
		{ "[devices\ndevices = 4\n", "f:1: this is no section header: '[devices'" },
		{ "[devices] devices = 4\n", "f:1: this is no section header" },
		{ "[devices]\nsoc_name = \033[2J\n", "soc_name is '?[2J'" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_ne_int((int)read_text(cases[i].text), 0);
		check_str_contains(told, cases[i].says);
	}
	/* each once, and the right ones count */
	check_eq_uint(
		read_text(
			"[devices]\ndevices = 0\nsoc_name = x\njunk\n[log]\nlog_level = 1\n[no]\na = 1\nb = 2\n"),
		4);
	check_eq_str(config.soc_name, "x");
}

TEST(lines_of_any_length_and_content)
{
	char text[1024] = "[devices]\n#";
	struct config_report report = { .say = tell };
	static const char zero[] = "[devices]\ndev\0ices = 4\nsoc_name = y\n";

	memset(text + strlen(text), 'x', 400);
	strcat(text, "\nsoc_name = ");
	memset(text + strlen(text), 'y', 400);
	strcat(text, "\ndevices = 4\n");
	check_eq_uint(read_text(text), 1);
	check_str_contains(told, "f:3: the line has more than 190 bytes");
	check_eq_uint(config.devices, 4);
	told[0] = 0;
	config_init(&config);
	config_read_text("f", zero, sizeof(zero) - 1, &config, &report);
	check_eq_uint(report.count, 1);
	check_eq_str(told, "f:2: there is a zero byte in this line\n");
	check_eq_str(config.soc_name, "y");
	check_eq_uint(read_text("\xEF\xBB\xBF[devices]\ndevices = 4\n"), 0);
	check_eq_uint(read_text(""), 0);
	check_eq_uint(read_text("\n\n"), 0);
}

/* A file of nonsense is told to be one in a bounded number of sentences; names of any length leave the line readable. */
TEST(many_problems_and_long_names)
{
	static char text[64000], name[3000];
	struct config_report report = { .say = tell };
	size_t lines = 0;

	strcpy(text, "[daemon]\n");
	for (int i = 0; i < 2000; i++)
		strcat(text, "junk\n");
	memset(name, 'n', sizeof(name) - 1);
	told[0] = 0;
	config_init(&config);
	config_read_text(name, text, strlen(text), &config, &report);
	check_eq_uint(report.count, 2000);
	for (const char *p = told; *p; p++)
		lines += *p == '\n';
	check_lt_uint(lines, 102);
	check_eq_uint(read_text(""), 0);
	report.count = 0;
	strcpy(text, "[log]\nlog_level = debug\n");
	config_read_text(name, text, strlen(text), &config, &report);
	check_eq_uint(report.count, 0);
	check_str_contains(origin_of("log_level")->where, "nnn:2");
}

/* default < files in order < environment < command line */
TEST(later_sources_win)
{
	const char *file = test_path("hccld.conf"), *directory = test_path("hccld.conf.d");
	char line[512];

	unsetenv("HCCLD_ALLOW_DUPLICATE_ITEMS");
	unsetenv("HCCLD_LOCAL_PATH");
	setenv("HCCLD_SOCKET", "/tmp/s", 1);
	write_file(
		file,
		"[devices]\ndevices = 2\nsoc_name = one\n[daemon]\nallow_duplicate_items = yes\nsocket = /tmp/file\ncopy_threads = 5\n");
	check_eq_int(mkdir(directory, 0700), 0);
	write_file(test_path("hccld.conf.d/20-b.conf"), "[devices]\nsoc_name = three\n");
	write_file(test_path("hccld.conf.d/10-a.conf"), "[devices]\nsoc_name = two\ndevices = 3\n");
	write_file(test_path("hccld.conf.d/30-c.conf.bak"), "nonsense");
	write_file(test_path("hccld.conf.d/.30-d.conf"), "nonsense");
	snprintf(line, sizeof(line), "--config %s --copy-threads 6", file);
	check_eq_int(parse(line), 0);
	check_eq_uint(config.devices, 3);
	check_eq_str(config.soc_name, "three");
	check(config.allow_duplicate_items);
	check_eq_str(config.socket, "/tmp/s");
	check_eq_uint(config.copy_threads, 6);
	check_eq_str(origin_of("socket")->where, "HCCLD_SOCKET");
	check_eq_str(origin_of("copy_threads")->where, "--copy-threads");
	check_str_contains(origin_of("soc_name")->where, "hccld.conf.d/20-b.conf:2");
	check_str_contains(config.files, "hccld.conf\n");
	check_eq_uint(config.local_path, PATH_DIRECT);
	setenv("HCCLD_ALLOW_DUPLICATE_ITEMS", "0", 1);
	setenv("HCCLD_LOCAL_PATH", "engine", 1);
	check_eq_int(parse(line), 0);
	check(!config.allow_duplicate_items);
	check_eq_uint(config.local_path, PATH_ENGINE);
	setenv("HCCLD_ALLOW_DUPLICATE_ITEMS", "perhaps", 1);
	check_eq_int(parse(line), -EINVAL);
	strcat(line, " --allow-duplicate-items");
	check_eq_int(parse(line), 0);
	check(config.allow_duplicate_items);
}

/* A daemon that takes over clients starts, whatever a file says. */
TEST(a_restart_leaves_out_what_is_wrong)
{
	const char *file = test_path("hccld.conf");
	char line[512];

	setenv("HCCLD_SOCKET", "/tmp/s", 1);
	write_file(file, "[devices]\ndevices = 99\nsoc_name = one\n");
	snprintf(line, sizeof(line), "--config %s", file);
	check_eq_int(parse(line), -EINVAL);
	setenv("LISTEN_FDNAMES", "listen:registry:beacon", 1);
	check_eq_int(parse(line), 0);
	check_eq_uint(config.devices, 8);
	check_eq_str(config.soc_name, "one");
	strcat(line, " --devices 99");
	check_eq_int(parse(line), -EINVAL);
}

TEST(values_look_as_one_writes_them)
{
	static const struct {
		enum setting_type type;
		uint64_t high;
		const char *text, *shown; /* NULL: refused */
	} cases[] = {
		{ SETTING_DURATION, 1000000000, "90", "90s" },
		{ SETTING_DURATION, 1000000000, "120s", "2min" },
		{ SETTING_DURATION, 1000000000, "1500ms", "1500ms" },
		{ SETTING_DURATION, 1000000000, "2 h", "2h" },
		{ SETTING_DURATION, 1000000000, "60min", "1h" },
		{ SETTING_DURATION, 1000000000, "0", "0s" },
		{ SETTING_DURATION, 1000, "2s", NULL },
		{ SETTING_DURATION, 1000, "1 fortnight", NULL },
		{ SETTING_DURATION, 1000, "", NULL },
		{ SETTING_DURATION, 1000, "-1s", NULL },
		{ SETTING_INTEGER, 4000000000, "4000000000", "4000000000" },
		{ SETTING_INTEGER, 10, "1 ", NULL },
		{ SETTING_INTEGER, 10, "+1", NULL },
		{ SETTING_INTEGER, 10, "0x1", NULL },
		{ SETTING_INTEGER, 10, "11", NULL },
		{ SETTING_INTEGER, 10, "none", "none" },
		{ SETTING_INTEGER, 10, "NONE", "none" },
		{ SETTING_INTEGER, 10, "99999999999999999999", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct setting setting = { .key = "k",
						 .type = cases[i].type,
						 .size = 4,
						 .high = cases[i].high,
						 .initial = "?",
						 .word = "none" };
		uint32_t value = 4711;
		char text[SETTING_TEXT_MAX];
		bool is_word;
		int r = setting_parse(&setting, cases[i].text, &value, &is_word);

		check_msg((r == 0) == (cases[i].shown != NULL), "'%s': %d", cases[i].text, r);
		if (r < 0) {
			check_eq_uint(value, 4711);
			continue;
		}
		setting_format(&setting, &value, text, sizeof(text));
		check_eq_str(text, cases[i].shown);
	}
}
