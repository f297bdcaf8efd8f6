/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and their replies. */
#include "control/request.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/monitor.h"
#include "control/user.h"
#include "proto/cleanup.h"
#include "registry/session.h"

/* What an -EDQUOT without words is about. */
static const char out_of_descriptors[] =
	"hccld has no descriptors left; its limit of open files (ulimit -n) is too low for all that is asked of it";

struct request_memory {
	struct request_memory *next;
	_Alignas(16) unsigned char data[];
};

struct request *request_new(struct connection *connection, Hccld__Control__Request *message,
			    size_t unpacked)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	list_init(&request->held);
	request->control = connection->control;
	request->connection = connection;
	request->user = connection->user;
	request->user->requests++;
	request->message = message;
	request->unpacked = unpacked;
	connection->unpacked += unpacked;
	hccld__control__reply__init(&request->reply);
	request->reply.id = message->id;
	list_append(&connection->requests, &request->link);
	connection->request_count++;
	return request;
}

static void close_fds(struct request *request)
{
	while (request->fd_count)
		close_fdp(&request->fds[--request->fd_count]);
}

void request_forget(struct request *request)
{
	*request->text = '\0';
	close_fds(request);
}

struct request *request_free(struct request *request)
{
	if (!request)
		return NULL;
	list_remove(&request->link);
	if (request->connection) {
		request->connection->request_count--;
		request->connection->unpacked -= request->unpacked;
	}
	while (request->memory) {
		struct request_memory *memory = request->memory;

		request->memory = memory->next;
		free(memory);
	}
	close_fds(request);
	hccld__control__request__free_unpacked(request->message, NULL);
	request->user->requests--;
	user_collect(request->user);
	free(request);
	return NULL;
}

struct session *request_session(const struct request *request)
{
	/*
	 * a handler runs while its connection is there, and dispatch lets only clients with a
	 * session ask for one
	 */
	return request->connection->session;
}

int request_add_fd(struct request *request, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	assert(request->fd_count < HCCLD_PACKET_FDS_MAX);
	if (copy < 0) {
		log_warning("out of descriptors: %s", strerror(errno));
		return request_fail(request, CAUSE_LIMIT, "%s", out_of_descriptors);
	}
	request->fds[request->fd_count++] = copy;
	return 0;
}

void *request_alloc(struct request *request, size_t size)
{
	struct request_memory *memory = calloc(1, sizeof(*memory) + size);

	if (!memory)
		return NULL;
	memory->next = request->memory;
	request->memory = memory;
	return memory->data;
}

char *request_string(struct request *request, const char *string)
{
	size_t size = strlen(string) + 1;
	char *copy = request_alloc(request, size);

	return copy ? memcpy(copy, string, size) : NULL;
}

int request_fail(struct request *request, enum cause cause, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(request->text, sizeof(request->text), format, args);
	va_end(args);
	return status_error(cause);
}

static void request_log_refusal(const struct request *request)
{
	const struct connection *connection = request->connection;
	const struct log_fields fields = { .event = EVENT_LIMIT_REFUSED,
					   .session = connection->session ? connection->session->view.id : 0,
					   .pid = connection->peer.pid,
					   .has_uid = true,
					   .uid = connection->peer.uid,
					   .is_frequent = true };

	log_event(LOG_LEVEL_NOTICE, &fields, "%s was refused: %s", connection_name(connection),
		  request->text);
}

static void request_set_error(struct request *request, int r)
{
	Hccld__Control__Reply *reply = &request->reply;

	reply->cause = status_cause(r);
	reply->body_case = HCCLD__CONTROL__REPLY__BODY__NOT_SET;
	close_fds(request);
	if (!*request->text && reply->cause == CAUSE_MEMORY)
		snprintf(request->text, sizeof(request->text), "the node is out of memory");
	else if (!*request->text && reply->cause == CAUSE_LIMIT)
		snprintf(request->text, sizeof(request->text), "%s", out_of_descriptors);
	else if (!*request->text && reply->cause == CAUSE_SYSTEM_CALL)
		snprintf(request->text, sizeof(request->text), "hccld: %s", strerror(-r));
	else if (!*request->text)
		snprintf(request->text, sizeof(request->text), "%s", status_of(reply->cause)->text);
	reply->text = request->text;
	if (reply->cause == CAUSE_LIMIT || reply->cause == CAUSE_MEMORY ||
	    reply->cause == CAUSE_STREAMS || reply->cause == CAUSE_NOTIFIES)
		request_log_refusal(request);
	monitor_refused(request, reply->cause, request->text);
}

void request_finish(struct request *request, int r)
{
	assert(r <= 0);
	if (!request->connection) {
		request_free(request);
		return;
	}
	if (r < 0)
		request_set_error(request, r);
	connection_send(request->connection, request);
}
