/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of peers that clients map to copy from it themselves: which, who, and what they hear when it goes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/feature.h"
#include "proto/status.h"
#include "tests/daemon/scene.h"
#include "tests/support/test.h"

#define FEATURES (HCCLD_FEATURE_DIRECT | HCCLD_FEATURE_MEMORY | HCCLD_FEATURE_RESOURCES)

static uint32_t retired(const struct scene *scene, uint32_t rank)
{
	return atomic_load(&scene->region->members[rank].retired);
}

/* The cause; *@ret_fd, if not NULL, is the descriptor of a success. */
static uint32_t map_peer_for(struct raw_client *client, uint64_t rank, uint32_t peer, uint64_t segment, bool writable, int *ret_fd)
{
	Hccld__Control__MapPeer map = HCCLD__CONTROL__MAP_PEER__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint32_t cause;

	map.rank = rank;
	map.peer = peer;
	map.segment = segment;
	map.writable = writable;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_MAP_PEER;
	request.map_peer = &map;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	check_eq_uint(reply.packet.fd_count, cause == 0);
	if (!cause) {
		struct stat st;

		check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_MAP_PEER);
		check_eq_int(fstat(reply.packet.fds[0], &st), 0);
		check_eq_uint((uint64_t)st.st_size, reply.message->map_peer->bytes);
		check_eq_uint(st.st_mode & 0777, 0);
	}
	if (!cause && ret_fd) {
		*ret_fd = reply.packet.fds[0];
		reply.packet.fds[0] = -1;
	}
	raw_reply_free(&reply);
	return cause;
}

/* What may not be mapped to be read may not be mapped to be written, for the same reason. */
static uint32_t map_peer(struct raw_client *client, uint64_t rank, uint32_t peer, uint64_t segment, int *ret_fd)
{
	uint32_t cause = map_peer_for(client, rank, peer, segment, false, ret_fd);

	check_eq_uint(map_peer_for(client, rank, peer, segment, true, NULL), cause);
	return cause;
}

static uint64_t allocate(struct raw_client *client, uint64_t context, uint32_t kind, uint64_t lazy_rank)
{
	Hccld__Control__AllocateSegment body = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint64_t segment;

	body.context = context;
	body.kind = (Hccld__Control__AllocateSegment__Kind)kind;
	body.bytes = 65536;
	body.lazy_rank = lazy_rank;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request.allocate_segment = &body;
	raw_call(client, &request, &reply);
	check_msg(reply.message->cause == 0, "AllocateSegment: %s", reply.message->text);
	segment = reply.message->allocate_segment->segment;
	raw_reply_free(&reply);
	return segment;
}

static uint64_t create_notifies(struct raw_client *client, uint64_t context)
{
	Hccld__Control__CreateNotifies body = HCCLD__CONTROL__CREATE_NOTIFIES__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint64_t segment;

	body.context = context;
	body.count = 1;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_NOTIFIES;
	request.create_notifies = &body;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	segment = reply.message->create_notifies->segment;
	raw_reply_free(&reply);
	return segment;
}

/* @importer's import of @segment of @owner. */
static uint64_t import(struct raw_client *owner, uint64_t segment, struct raw_client *importer, uint64_t context)
{
	Hccld__Control__ExportMemory export = HCCLD__CONTROL__EXPORT_MEMORY__INIT;
	Hccld__Control__ImportMemory body = HCCLD__CONTROL__IMPORT_MEMORY__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply exported, reply;
	uint64_t id;

	export.segment = segment;
	export.bytes = 4096;
	export.key_bytes = HCCLD_KEY_BYTES_MAX;
	export.any_process = true;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_EXPORT_MEMORY;
	request.export_memory = &export;
	raw_call(owner, &request, &exported);
	check_eq_uint(exported.message->cause, 0);
	body.key = exported.message->export_memory->key;
	body.context = context;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_IMPORT_MEMORY;
	request.import_memory = &body;
	raw_call(importer, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	id = reply.message->import_memory->segment;
	raw_reply_free(&reply);
	raw_reply_free(&exported);
	return id;
}

/* By a user that may not do everything. */
static void check_only_readable(int fd)
{
	char path[64];
	pid_t pid;
	int status;

	check(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	check_eq_int(errno, EACCES);
	check_eq_int((int)pwrite(fd, "x", 1, 0), -1);
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0)
			scene_become_stranger();
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		check_eq_int(open(path, O_RDWR | O_CLOEXEC), -1);
		check_eq_int(errno, EACCES);
		check_eq_int(open(path, O_WRONLY | O_CLOEXEC), -1);
		check_eq_int(errno, EACCES);
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
}

/* Plain memory of a rank's context is its peers' to read, with what is written later. */
TEST_TIMEOUT(peers_read_memory, 60)
{
	struct scene scene;
	uint64_t device, host;
	unsigned char *own;
	const unsigned char *seen;
	int fd;

	scene_start(&scene, 2, FEATURES);
	device = raw_allocate(&scene.clients[1], scene.contexts[1], 1 << 20, (void **)&own);
	host = allocate(&scene.clients[1], scene.contexts[1], HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__HOST, 0);
	own[5] = 77;
	check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, host, NULL), 0);
	check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, device, &fd), 0);
	check_only_readable(fd);
	seen = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
	check(seen != MAP_FAILED);
	check_eq_int(seen[5], 77);
	own[999999] = 88;
	check_eq_int(seen[999999], 88);
	close(fd);
	/* of the same rank, too, and again after a restart */
	scene_kill_worker();
	check_eq_uint(map_peer(&scene.clients[1], scene.ranks[1], 1, device, NULL), 0);
	check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, device, NULL), 0);
	/* it goes whoever maps it */
	raw_free(&scene.clients[1], device);
	check_eq_int(seen[5], 0);
	check_eq_int(seen[999999], 0);
	munmap((void *)seen, 1 << 20);
	munmap(own, 1 << 20);
	scene_stop(&scene);
}

/* For copies that the engine has opened; nobody else's descriptor of it can be written by. */
TEST_TIMEOUT(peers_write_memory, 60)
{
	struct scene scene;
	unsigned char *own, *theirs;
	uint32_t generation;
	uint64_t device;
	int fd, read_only;

	scene_start(&scene, 2, FEATURES);
	device = raw_allocate(&scene.clients[1], scene.contexts[1], 1 << 20, (void **)&own);
	check_eq_uint(map_peer_for(&scene.clients[0], scene.ranks[0], 1, device, true, &fd), 0);
	theirs = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(theirs != MAP_FAILED);
	theirs[7] = 99;
	check_eq_int(own[7], 99);
	close(fd);
	check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, device, &read_only), 0);
	check_only_readable(read_only);
	close(read_only);
	/* its peers hear of it before it goes, and what is written later reaches nobody */
	generation = retired(&scene, 1);
	raw_free(&scene.clients[1], device);
	check_gt_uint(retired(&scene, 1), generation);
	theirs[7] = 98;
	munmap(theirs, 1 << 20);
	munmap(own, 1 << 20);
	scene_stop(&scene);
}

TEST_TIMEOUT(other_memory_is_not_for_peers, 60)
{
	struct scene scene;
	struct raw_client *owner = &scene.clients[1], *asker = &scene.clients[0];
	uint64_t kept, refused[8], other;
	uint32_t count = 0;

	scene_start(&scene, 2, FEATURES);
	kept = raw_allocate(owner, scene.contexts[1], 4096, NULL);
	refused[count++] = allocate(owner, scene.contexts[1], HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__SIDE, 0);
	refused[count++] = allocate(owner, scene.contexts[1], HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__EVENT, 0);
	refused[count++] = create_notifies(owner, scene.contexts[1]);
	refused[count++] = allocate(owner, scene.contexts[1], HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE, scene.ranks[1]);
	refused[count++] = import(asker, raw_allocate(asker, scene.contexts[0], 4096, NULL), owner, scene.contexts[1]);
	/* of another context of the same process, and of nobody */
	other = raw_open_context(owner, 2);
	refused[count++] = raw_allocate(owner, other, 4096, NULL);
	refused[count++] = 0;
	for (uint32_t i = 0; i < count; i++)
		check_msg(map_peer(asker, scene.ranks[0], 1, refused[i], NULL) == CAUSE_NOT_FOUND, "memory %" PRIu32 " is mapped", i);
	check_eq_uint(map_peer(asker, scene.ranks[0], 1, kept + 1, NULL), CAUSE_NOT_FOUND);
	check_eq_uint(map_peer(asker, scene.ranks[0], 2, kept, NULL), CAUSE_ARGUMENT);
	check_eq_uint(map_peer(asker, scene.ranks[0] + (1 << 16), 1, kept, NULL), CAUSE_BAD_HANDLE);
	check_eq_uint(map_peer(asker, 0, 1, kept, NULL), CAUSE_BAD_HANDLE);
	/* for as long as both are there */
	check_eq_uint(map_peer(asker, scene.ranks[0], 1, kept, NULL), 0);
	raw_leave(owner, scene.ranks[1]);
	check_eq_uint(map_peer(asker, scene.ranks[0], 1, kept, NULL), CAUSE_NOT_FOUND);
	raw_leave(asker, scene.ranks[0]);
	check_eq_uint(map_peer(asker, scene.ranks[0], 1, kept, NULL), CAUSE_BAD_HANDLE);
	scene_stop(&scene);
}

TEST(memory_of_the_dead_is_not_mapped)
{
	struct scene scene;
	uint64_t segment;

	scene_start(&scene, 2, FEATURES);
	segment = raw_allocate(&scene.clients[1], scene.contexts[1], 4096, NULL);
	check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, segment, NULL), 0);
	/* its process lives, but not its session */
	raw_client_stop(&scene.clients[1]);
	while (atomic_load(&scene.region->members[1].word) == MEMBER_ALIVE)
		usleep(1000);
	check_eq_uint(atomic_load(&scene.region->members[1].word), MEMBER_DEAD);
	check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, segment, NULL), CAUSE_NOT_FOUND);
	scene_stop(&scene);
}

/* Whoever knows the numbers is no rank of the communicator for that: neither as another user, nor as another process of this one. */
static void ask_as_stranger(const struct scene *scene, uint64_t segment)
{
	struct raw_client own;
	struct raw_root root;
	struct raw_reply reply;
	uint64_t rank;

	raw_client_start_with(&own, HCCLD__CONTROL__HELLO__ROLE__CLIENT, FEATURES);
	check_eq_uint(map_peer(&own, scene->ranks[0], 1, segment, NULL), CAUSE_BAD_HANDLE);
	check_eq_uint(map_peer(&own, scene->ranks[1], 1, segment, NULL), CAUSE_BAD_HANDLE);
	raw_root_info(&own, &root);
	raw_join_send(&own, &root, 0, 1, raw_open_context(&own, 0), 10000);
	check_eq_int(raw_receive(&own, &reply), 0);
	check_eq_uint(reply.message->cause, 0);
	rank = reply.message->join_comm->rank;
	raw_reply_free(&reply);
	check_eq_uint(map_peer(&own, rank, 0, segment, NULL), CAUSE_NOT_FOUND);
	check_eq_uint(map_peer(&own, rank, 1, segment, NULL), CAUSE_ARGUMENT);
	raw_client_stop(&own);
}

TEST_TIMEOUT(strangers_map_nothing, 60)
{
	struct scene scene;
	uint64_t segment;
	int status;
	pid_t pid;

	scene_start(&scene, 2, FEATURES);
	segment = raw_allocate(&scene.clients[1], scene.contexts[1], 4096, NULL);
	ask_as_stranger(&scene, segment);
	if (geteuid() != 0) {
		scene_stop(&scene);
		test_skip("only root can become another user");
	}
	scene_open_to_strangers(&scene);
	pid = fork();
	if (pid == 0) {
		scene_become_stranger();
		ask_as_stranger(&scene, segment);
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	scene_stop(&scene);
}

/* Nothing is charged, and no descriptor stays in the daemon. */
TEST_TIMEOUT(a_mapping_costs_nobody, 60)
{
	struct scene scene;
	uint64_t segment, free_bytes;

	scene_start(&scene, 2, FEATURES);
	segment = raw_allocate(&scene.clients[1], scene.contexts[1], 4096, NULL);
	free_bytes = raw_free_memory(&scene.clients[0], scene.contexts[0], NULL);
	/* more than it may have open files */
	for (uint32_t i = 0; i < 70000; i++)
		check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, segment, NULL), 0);
	check_eq_uint(raw_free_memory(&scene.clients[0], scene.contexts[0], NULL), free_bytes);
	scene_stop(&scene);
}

/* What of the owner's memory is mapped, as tools see it. */
static uint64_t listed_mapped(uint64_t session)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_client tool;
	struct raw_reply reply;
	uint64_t mapped = UINT64_MAX;

	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	list.kind = HCCLD__CONTROL__LIST__KIND__MEMORY;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	raw_call(&tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	for (size_t i = 0; i < reply.message->list->n_memory; i++)
		if (reply.message->list->memory[i]->id == session)
			mapped = reply.message->list->memory[i]->mapped;
	raw_reply_free(&reply);
	raw_client_stop(&tool);
	return mapped;
}

TEST_TIMEOUT(tools_see_what_is_mapped, 60)
{
	struct scene scene;
	struct raw_client *owner = &scene.clients[1];
	uint64_t segments[2];

	scene_start(&scene, 2, FEATURES);
	for (uint32_t i = 0; i < 2; i++)
		segments[i] = raw_allocate(owner, scene.contexts[1], 8192, NULL);
	check_eq_uint(listed_mapped(owner->session), 0);
	for (uint32_t i = 0; i < 2; i++)
		check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, segments[1], NULL), 0);
	check_eq_uint(listed_mapped(owner->session), 8192);
	check_eq_uint(listed_mapped(scene.clients[0].session), 0);
	raw_free(owner, segments[1]);
	check_eq_uint(listed_mapped(owner->session), 0);
	scene_stop(&scene);
}

/* ---- what peers have mapped goes ---- */

/* The owner's rank says so before the memory goes, in each communicator that it is in, and only then. */
TEST_TIMEOUT(retired_counts_what_peers_have_mapped, 60)
{
	struct scene scene, other;
	struct raw_client *owner = &scene.clients[1];
	uint64_t mapped[2], unmapped, lazy;

	scene_start(&scene, 2, FEATURES);
	other = scene;
	scene_join(&other);
	for (uint32_t i = 0; i < 2; i++) {
		mapped[i] = raw_allocate(owner, scene.contexts[1], 4096, NULL);
		check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, mapped[i], NULL), 0);
	}
	unmapped = raw_allocate(owner, scene.contexts[1], 4096, NULL);
	raw_free(owner, unmapped);
	check_eq_uint(retired(&scene, 1), 0);
	raw_free(owner, mapped[0]);
	check_eq_uint(retired(&scene, 1), 1);
	check_eq_uint(retired(&other, 1), 1);
	check_eq_uint(retired(&scene, 0), 0);
	/* the next process takes all that can be mapped for mapped, but not what it has made itself */
	unmapped = raw_allocate(owner, scene.contexts[1], 4096, NULL);
	lazy = allocate(owner, scene.contexts[1], HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE, scene.ranks[1]);
	scene_kill_worker();
	check_eq_uint(retired(&scene, 1), 1);
	raw_free(owner, lazy);
	check_eq_uint(retired(&scene, 1), 1);
	raw_free(owner, mapped[1]);
	check_eq_uint(retired(&scene, 1), 2);
	raw_free(owner, unmapped);
	check_eq_uint(retired(&scene, 1), 3);
	raw_free(owner, raw_allocate(owner, scene.contexts[1], 4096, NULL));
	check_eq_uint(retired(&scene, 1), 3);
	munmap(other.region, comm_region_size(2));
	scene_stop(&scene);
}

/* A device that is reset: its ranks have left when its memory goes. */
TEST(ranks_have_left_when_their_memory_goes)
{
	struct scene scene;
	uint64_t segment;
	int fd;
	unsigned char *own;
	const unsigned char *seen;

	scene_start(&scene, 2, FEATURES);
	segment = raw_allocate(&scene.clients[1], scene.contexts[1], 4096, (void **)&own);
	own[9] = 9;
	check_eq_uint(map_peer(&scene.clients[0], scene.ranks[0], 1, segment, &fd), 0);
	seen = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	check(seen != MAP_FAILED);
	close(fd);
	raw_close_context(&scene.clients[1], scene.contexts[1]);
	check_eq_uint(atomic_load(&scene.region->members[1].word), MEMBER_LEFT);
	check_eq_int(seen[9], 0);
	munmap((void *)seen, 4096);
	munmap(own, 4096);
	scene_stop(&scene);
}
