/* SPDX-License-Identifier: Apache-2.0 */
/* Command line and environment. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config.h"
#include "tests/support/test.h"

static struct config config;

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
	check_eq_str(config.socket_path,
		     geteuid() == 0 ? "/run/hccld/hccld.sock" : "/run/user/4711/hccld/hccld.sock");
	check_eq_uint(config.device_count, 8);
	check_eq_str(config.soc_name, "Ascend910_9391");
	check(config.use_keeper);
	check_gt_uint(config.device_memory, 0);
	check_eq_uint(config.device_memory % 4096, 0);
	setenv("NOTIFY_SOCKET", "@x", 1);
	setenv("HCCLD_SOCKET", "/tmp/s", 1);
	check_eq_int(parse(""), 0);
	check(!config.use_keeper);
	check_eq_str(config.socket_path, "/tmp/s");
}

TEST(options_count)
{
	check_eq_int(
		parse("--socket /tmp/x --devices 64 --device-memory 512M --soc-name Ascend910B1 --copy-threads 3 --keeper --no-keeper "
		      "--allow-duplicate-items --log-level debug --ready-fd 7"),
		0);
	check_eq_str(config.socket_path, "/tmp/x");
	check_eq_uint(config.device_count, 64);
	check_eq_uint(config.device_memory, 512ull << 20);
	check_eq_str(config.soc_name, "Ascend910B1");
	check_eq_uint(config.copy_threads, 3);
	check(!config.use_keeper && config.allow_duplicate_items);
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
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		check_msg(parse(lines[i]) == -EINVAL, "'%s' is accepted", lines[i]);
}
