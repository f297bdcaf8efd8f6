/* SPDX-License-Identifier: Apache-2.0 */
/* One connection, one request at a time, a time limit on each. One thread. */
#include "hcclctl/query.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/error.h"
#include "client/reply.h"
#include "hcclctl/command.h"
#include "hcclctl/late.h"
#include "hcclctl/text.h"
#include "proto/cleanup.h"

static uint32_t answer_timeout_ms = 10000;

struct query {
	struct hccld_connection *connection;
	struct hccld_call hello;
};

static bool socket_given;
static bool was_connected;
static bool is_quiet;
static char late_path[PATH_MAX], late_text[PATH_MAX + 256];
static size_t late_size;

bool query_set_socket(const char *path)
{
	/* of an empty variable; the default is hardly what was meant */
	if (!*path) {
		complain("--socket: the path is empty");
		return false;
	}
	setenv("HCCLD_SOCKET", path, 1);
	socket_given = true;
	return true;
}

bool query_socket_is_given(void)
{
	return socket_given;
}

static void socket_path(char path[PATH_MAX])
{
	if (hccld_socket_path(path, PATH_MAX) < 0)
		strcpy(path, "(unknown)");
}

static void answer_is_late(int signal)
{
	if (is_quiet)
		_exit(STATUS_STUCK);
	late_size = late_explain(late_path, late_text, late_size, sizeof(late_text));
	if (write(STDERR_FILENO, late_text, late_size) < 0)
		_exit(STATUS_STUCK);
	_exit(STATUS_STUCK);
}

static void time_limit_set(void)
{
	const struct itimerval limit = { .it_value = { .tv_sec = answer_timeout_ms / 1000,
						       .tv_usec = (suseconds_t)(answer_timeout_ms % 1000) * 1000 } };
	struct sigaction action = { .sa_handler = answer_is_late };

	socket_path(late_path);
	snprintf(late_text, sizeof(late_text), "hcclctl: the daemon at %s does not answer within %g s", late_path,
		 (double)answer_timeout_ms / 1000);
	late_size = strlen(late_text);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &limit, NULL);
}

static void time_limit_clear(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
}

void query_set_quiet(bool quiet)
{
	is_quiet = quiet;
}

void query_set_timeout(uint32_t timeout_ms)
{
	answer_timeout_ms = timeout_ms;
}

int query_open(struct query **ret_query)
{
	struct query *query = calloc(1, sizeof(*query));
	int r;

	if (!query)
		return -ENOMEM;
	time_limit_set();
	hccld_reply_expect(&hccld__control__reply__descriptor);
	r = hccld_connection_new(HCCLD__CONTROL__HELLO__ROLE__TOOL, &query->hello,
				 &query->connection);
	time_limit_clear();
	if (r < 0) {
		free(query);
		return r;
	}
	if (!query->hello.reply ||
	    query->hello.reply->body_case != HCCLD__CONTROL__REPLY__BODY_HELLO) {
		query_close(query);
		return -EPROTO;
	}
	was_connected = true;
	*ret_query = query;
	return 0;
}

struct query *query_close(struct query *query)
{
	if (!query)
		return NULL;
	hccld_call_end(&query->hello);
	hccld_connection_free(query->connection);
	free(query);
	return NULL;
}

const Hccld__Control__HelloReply *query_hello(const struct query *query)
{
	return query->hello.reply->hello;
}

bool query_lacks(const struct query *query, uint64_t feature, const char *what)
{
	CLEANUP(freep) char *version = NULL;

	if (query_hello(query)->features & feature)
		return false;
	version = text_clean(query_hello(query)->daemon);
	complain("hccld %s does not support %s: update hccld", version ? version : "?", what);
	return true;
}

struct hccld_connection *query_connection(const struct query *query)
{
	return query->connection;
}

/* Sends, waits, and checks that the answer is of the kind that was asked for. On success the caller ends @call. */
int query_ask(struct query *query, Hccld__Control__Request *request,
	      Hccld__Control__Reply__BodyCase body, struct hccld_call *call)
{
	int r;

	request->deadline_ms = answer_timeout_ms;
	time_limit_set();
	r = hccld_call_make(query->connection, request, call);
	if (r == 0 && (!call->reply || call->reply->body_case != body))
		r = -EPROTO;
	if (r < 0)
		hccld_call_end(call);
	time_limit_clear();
	return r;
}

int query_status(struct query *query, struct hccld_call *ret_call)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Status status = HCCLD__CONTROL__STATUS__INIT;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_STATUS;
	request.status = &status;
	return query_ask(query, &request, HCCLD__CONTROL__REPLY__BODY_STATUS, ret_call);
}

int query_list_filtered(struct query *query, const Hccld__Control__List *filter,
			int (*page)(const Hccld__Control__ListReply *list, void *arg), void *arg)
{
	uint64_t after = 0;
	int r;

	do {
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
		Hccld__Control__List list = *filter;
		struct hccld_call call;
		uint64_t next;

		list.after = after;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
		request.list = &list;
		r = query_ask(query, &request, HCCLD__CONTROL__REPLY__BODY_LIST, &call);
		if (r < 0)
			return r;
		next = call.reply->list->next;
		r = page(call.reply->list, arg);
		hccld_call_end(&call);
		if (r == 0 && next && next <= after)
			r = -EPROTO; /* it would never end */
		after = next;
	} while (r == 0 && after);
	return r;
}

int query_list(struct query *query, Hccld__Control__List__Kind kind,
	       int (*page)(const Hccld__Control__ListReply *list, void *arg), void *arg)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;

	list.kind = kind;
	return query_list_filtered(query, &list, page, arg);
}

/* What the library says, without the decoration of CANN's texts: "[PID: n] <time> <Title>(<code>): text", newline, solution. */
static const char *error_text(char buffer[HCCLD_TEXT_MAX])
{
	const char *text = hccld_error_take();
	size_t word;

	if (!text)
		return NULL;
	if (!strncmp(text, "[PID: ", 6) && strstr(text, "] ")) {
		text = strstr(text, "] ") + 2;
		text += strcspn(text, " ");
		text += *text == ' ';
	}
	word = strcspn(text, " ");
	if (word > 3 && !strncmp(text + word - 2, "):", 2) && text[word])
		text += word + 1;
	snprintf(buffer, HCCLD_TEXT_MAX, "%.*s", (int)strcspn(text, "\n"), text);
	return buffer;
}

static bool is_too_long(const char *path)
{
	return strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path);
}

/* A daemon could listen at @path. */
static bool is_free(const char *path)
{
	struct stat status;

	return !is_too_long(path) && (stat(path, &status) == 0 ? S_ISSOCK(status.st_mode) : errno != ENOTDIR);
}

/* Where hccld listens if it is not told. */
static bool has_default_socket(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	return geteuid() == 0 || (runtime && *runtime);
}

/* No daemon: how to get one. */
static void advise(void)
{
	CLEANUP(freep) char *quoted = NULL;
	const char *given = getenv("HCCLD_SOCKET");
	char path[PATH_MAX];

	if ((!given || !*given) && !has_default_socket()) {
		fputs("Start one by: hccld --socket /absolute/path\n"
		      "and name that with --socket or HCCLD_SOCKET; 'hcclctl run' brings a private one along.\n",
		      stderr);
		return;
	}
	if (given && *given && !is_free(given)) {
		fputs("Name the daemon's socket with --socket or HCCLD_SOCKET.\n", stderr);
		return;
	}
	if (!given || !*given) {
		fputs("Start one with 'hccld', or name another with --socket or HCCLD_SOCKET;\n"
		      "'hcclctl run' brings a private one along.\n",
		      stderr);
		return;
	}
	socket_path(path);
	quoted = text_shell_quote(path);
	fprintf(stderr,
		"Start one by: hccld --socket %s%s\nor name another with --socket or HCCLD_SOCKET.\n",
		*path == '/' ? "" : "\"$PWD\"/", /* hccld takes absolute paths only */
		quoted ? quoted : path);
}

int query_complain(int error)
{
	char buffer[HCCLD_TEXT_MAX];
	const char *text = error_text(buffer);

	if (socket_given && is_too_long(getenv("HCCLD_SOCKET")))
		text = "the path behind --socket is too long for a socket";
	complain("%s", text ? text : status_of(status_cause(error))->text);
	if (was_connected)
		return error == -ENOTCONN ? STATUS_NO_DAEMON : STATUS_STUCK;
	if (error == -ENOTCONN)
		advise();
	return error == -ENOTCONN || error == -EACCES || error == -EPROTONOSUPPORT
		       ? STATUS_NO_DAEMON
		       : STATUS_STUCK;
}
