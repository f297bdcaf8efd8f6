/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops one thread of another process, as a debugger does, and holds it until killed.
 *   freeze PID NAME     writes "frozen" when it is
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t find(const char *pid, const char *wanted)
{
	char path[512], name[64];
	struct dirent *entry;
	DIR *directory;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		snprintf(path, sizeof(path), "/proc/%s/task/%.32s/comm", pid, entry->d_name);
		file = fopen(path, "re");
		name[0] = 0;
		if (file && fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = 0;
		if (file)
			fclose(file);
		if (entry->d_name[0] != '.' && strcmp(name, wanted) == 0)
			return atoi(entry->d_name);
	}
	return -1;
}

int main(int argc, char **argv)
{
	pid_t thread;
	int status;

	if (argc != 3)
		return 2;
	thread = find(argv[1], argv[2]);
	if (thread < 0 || ptrace(PTRACE_SEIZE, thread, NULL, NULL) < 0 ||
	    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) < 0 || waitpid(thread, &status, __WALL) != thread) {
		perror("freeze");
		return 1;
	}
	puts("frozen");
	fflush(stdout);
	/* a thread that is killed stays until its tracer has waited for it, and its process with it */
	while (waitpid(thread, &status, __WALL) == thread && !WIFEXITED(status) && !WIFSIGNALED(status))
		;
	return 0;
}
