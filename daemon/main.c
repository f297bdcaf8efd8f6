/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/keeper.h"

#define EXIT_USAGE 2 /* wrong options or settings */

/* What is opened later must not become one of the standard descriptors. */
static void open_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* A limit of file sizes (ulimit -f) counts for shared memory, and for a file that takes the log: whatever is beyond it fails. */
static void survive_file_limit(void)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_FSIZE, &limit); /* then less fits, and is said */
}

int main(int argc, char **argv)
{
	struct config config;
	bool is_worker = false;
	int r;

	/* until it can be obeyed; the configuration is yet to be read anyway */
	signal(SIGHUP, SIG_IGN);
	survive_file_limit();
	/* of a keeper: not what the administrator wrote */
	if (getenv(CONFIG_WORKER) && argc > 1 && strcmp(argv[argc - 1], "--no-keeper") == 0) {
		is_worker = true;
		argv[--argc] = NULL;
	}
	open_standard_fds();
	r = config_parse(argc, argv, &config);
	if (r != 0)
		return r == -EINVAL ? EXIT_USAGE : r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	log_init((enum log_level)config.log_level);
	if (config.keeper && !is_worker) {
		const struct keeper_options options = { .socket_path = config.socket,
							.ready_fd = config.ready_fd,
							.argc = argc,
							.argv = argv };

		return keeper_run(&options);
	}
	return daemon_run(&config, argc, argv) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
