/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/daemon/scene.h"

#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

void scene_kill_worker(void)
{
	struct raw_reply reply;
	pid_t pid;

	raw_status(&reply);
	pid = (pid_t)reply.message->status->pid;
	raw_reply_free(&reply);
	check_eq_int(kill(pid, SIGKILL), 0);
	/* the socket is the same: this waits in its backlog */
	raw_status(&reply);
	check_ne_int((int)reply.message->status->pid, pid);
	raw_reply_free(&reply);
}

void scene_join(struct scene *scene)
{
	struct raw_root root;

	raw_root_info(&scene->clients[0], &root);
	for (uint32_t i = 0; i < scene->size; i++)
		raw_join_send(&scene->clients[i > 0], &root, i, scene->size, scene->contexts[i > 0], 20000);
	for (uint32_t i = 0; i < scene->size; i++) {
		struct raw_reply reply;

		check_eq_int(raw_receive(&scene->clients[i > 0], &reply), 0);
		check_msg(reply.message->cause == 0, "join: %s", reply.message->text);
		scene->ranks[i] = reply.message->join_comm->rank;
		if (i == 0)
			scene->region = mmap(NULL, comm_region_size(scene->size), PROT_READ, MAP_SHARED, reply.packet.fds[0], 0);
		raw_reply_free(&reply);
	}
	check(scene->region != MAP_FAILED);
}

void scene_start(struct scene *scene, uint32_t size, uint64_t features)
{
	static const char *const options[] = { "--keeper", NULL };

	check_eq_int(private_daemon_start(&scene->daemon, options, NULL), 0);
	scene->size = size;
	for (uint32_t i = 0; i < 2; i++) {
		raw_client_start_with(&scene->clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT, features);
		scene->contexts[i] = raw_open_context(&scene->clients[i], i);
	}
	scene_join(scene);
}

void scene_stop(struct scene *scene)
{
	munmap(scene->region, comm_region_size(scene->size));
	for (uint32_t i = 0; i < 2; i++)
		raw_client_stop(&scene->clients[i]);
	check_eq_int(private_daemon_stop(&scene->daemon), 0);
}

void scene_open_to_strangers(const struct scene *scene)
{
	chmod(scene->daemon.directory, 0755);
	chmod(scene->daemon.socket, 0666);
}

void scene_become_stranger(void)
{
	check(setgroups(0, NULL) == 0 && setresgid(STRANGER, STRANGER, STRANGER) == 0 && setresuid(STRANGER, STRANGER, STRANGER) == 0);
}
