/* SPDX-License-Identifier: Apache-2.0 */
/* Two honest processes, and what a daemon holds. */
#include "tests/fuzz/bystander.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/raw_client.h"
#include "tests/support/test.h"

static void honest_exec(uint32_t rank, uint32_t limit_ms, const char *path, int input, int output)
{
	const char *binary = getenv("HONEST_BINARY");
	char number[16], limit[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(number, sizeof(number), "%u", rank);
	snprintf(limit, sizeof(limit), "%u", limit_ms);
	setenv("RANK_ID", number, 1);
	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	execl(binary, binary, path, limit, NULL);
	fprintf(stderr, "%s: %s\n", binary, strerror(errno));
	_exit(127);
}

void bystander_start(struct bystander *bystander, uint32_t limit_ms)
{
	int input[2], output[2];
	const char *path = test_path("root-info");
	char line[6];

	check_eq_int(pipe2(input, O_CLOEXEC), 0);
	check_eq_int(pipe2(output, O_CLOEXEC), 0);
	for (uint32_t i = 0; i < 2; i++) {
		bystander->pids[i] = fork();
		if (bystander->pids[i] == 0)
			honest_exec(i, limit_ms * test_timeout_scale(), path, input[0], output[1]);
		check_gt_int(bystander->pids[i], 0);
	}
	close(input[0]);
	close(output[1]);
	for (uint32_t i = 0; i < 2; i++)
		for (size_t got = 0; got < sizeof(line);) {
			ssize_t n = read(output[0], line, sizeof(line) - got);

			check_msg(n > 0, "an honest rank did not start");
			got += (size_t)n;
		}
	close(output[0]);
	bystander->input = input[1];
}

void bystander_stop(struct bystander *bystander)
{
	close(bystander->input);
	for (uint32_t i = 0; i < 2; i++) {
		int status;

		check_eq_int(waitpid(bystander->pids[i], &status, 0), bystander->pids[i]);
		check_msg(status == 0, "honest rank %u ended with wait status %#x", i, (unsigned)status);
	}
}

struct holdings holdings_of(pid_t pid)
{
	struct holdings holdings = { 0 };
	char path[64], line[512];
	FILE *file;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	check_msg(dir, "%s: %s", path, strerror(errno));
	while (readdir(dir))
		holdings.fds++;
	closedir(dir);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	check_ptr(file);
	while (fgets(line, sizeof(line), file))
		if (strstr(line, "memfd:hccld"))
			holdings.maps++;
	fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	check_ptr(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmRSS: %ld", &holdings.rss_kib) == 1)
			break;
	fclose(file);
	return holdings;
}

/* What is left, or NULL. */
static const char *left_over(pid_t pid, const struct holdings *before)
{
	static char text[256];
	struct holdings now = holdings_of(pid);
	const Hccld__Control__StatusReply *status;
	struct raw_reply reply;
	uint64_t memory = 0;
	bool is_empty;

	raw_status(&reply);
	status = reply.message->status;
	for (size_t i = 0; i < status->n_devices; i++)
		memory += status->devices[i]->memory_used;
	is_empty = !status->sessions && !status->comms && !status->streams && !memory && now.fds <= before->fds &&
		   now.maps <= before->maps;
	snprintf(text, sizeof(text),
		 "%u sessions, %u communicators, %u streams, %llu bytes of devices, %d descriptors (%d before), %d mappings (%d before)",
		 status->sessions, status->comms, status->streams, (unsigned long long)memory, now.fds, before->fds, now.maps,
		 before->maps);
	raw_reply_free(&reply);
	return is_empty ? NULL : text;
}

void holdings_settle(pid_t pid, const struct holdings *before)
{
	const char *left = left_over(pid, before);

	for (unsigned tries = 0; left && tries < 100 * test_timeout_scale(); tries++) {
		usleep(50000);
		left = left_over(pid, before);
	}
	check_msg(!left, "the daemon still has %s", left);
}
