/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS ", \t\n"

static int port_parse(const char *text, uint32_t *ret_port)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || port < 1 || port > 65535)
		return -EINVAL;
	*ret_port = (uint32_t)port;
	return 0;
}

static int host_set(char ret_host[ADDRESS_HOST_MAX], const char *text, size_t size)
{
	if (size == 0 || size >= ADDRESS_HOST_MAX || memchr(text, '[', size) || memchr(text, ']', size))
		return -EINVAL;
	memcpy(ret_host, text, size);
	ret_host[size] = '\0';
	return 0;
}

int address_split(const char *text, uint32_t default_port, char ret_host[ADDRESS_HOST_MAX], uint32_t *ret_port)
{
	const char *colon = strchr(text, ':'), *end;

	*ret_port = default_port;
	if (text[0] == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return -EINVAL;
		if (end[1] && port_parse(end + 2, ret_port) < 0)
			return -EINVAL;
		return host_set(ret_host, text + 1, (size_t)(end - text - 1));
	}
	/* two colons without brackets: an IPv6 address */
	if (!colon || strchr(colon + 1, ':'))
		return host_set(ret_host, text, strlen(text));
	if (port_parse(colon + 1, ret_port) < 0)
		return -EINVAL;
	return host_set(ret_host, text, (size_t)(colon - text));
}

int address_next(const char *list, size_t *position, char ret_text[ADDRESS_HOST_MAX + 8])
{
	const char *at = list + *position + strspn(list + *position, SEPARATORS);
	size_t size = strcspn(at, SEPARATORS);

	*position = (size_t)(at - list) + size;
	if (!size || strcmp(list, "none") == 0)
		return 0;
	if (size >= ADDRESS_HOST_MAX + 8)
		return -EINVAL;
	memcpy(ret_text, at, size);
	ret_text[size] = '\0';
	return 1;
}

bool address_list_check(const char *list)
{
	char text[ADDRESS_HOST_MAX + 8], host[ADDRESS_HOST_MAX];
	size_t position = 0;
	uint32_t port;
	int r;

	while ((r = address_next(list, &position, text)) > 0)
		if (address_split(text, 1, host, &port) < 0)
			return false;
	return r == 0;
}

int address_resolve(const char *host, uint32_t port, struct address *ret_addresses, size_t max, char *problem, size_t problem_size)
{
	bool is_any = strcmp(host, "*") == 0;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | (is_any ? AI_PASSIVE : 0) };
	struct addrinfo *found = NULL;
	char service[8];
	int count = 0, r;

	snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(is_any ? NULL : host, service, &hints, &found);
	if (r != 0) {
		snprintf(problem, problem_size, "%s: %s", host, r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
		return -ENOENT;
	}
	for (const struct addrinfo *each = found; each && (size_t)count < max; each = each->ai_next) {
		if (each->ai_family != AF_INET && each->ai_family != AF_INET6)
			continue;
		memset(&ret_addresses[count], 0, sizeof(ret_addresses[count]));
		memcpy(&ret_addresses[count].socket, each->ai_addr, each->ai_addrlen);
		ret_addresses[count++].size = each->ai_addrlen;
	}
	freeaddrinfo(found);
	if (count)
		return count;
	snprintf(problem, problem_size, "%s: no IPv4 or IPv6 address", host);
	return -ENOENT;
}

void address_text(const struct address *address, char ret_text[ADDRESS_TEXT_MAX])
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (!address->size || getnameinfo((const struct sockaddr *)&address->socket, address->size, host, sizeof(host), port, sizeof(port),
					  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(ret_text, ADDRESS_TEXT_MAX, "?");
	else
		snprintf(ret_text, ADDRESS_TEXT_MAX, address->socket.ss_family == AF_INET6 ? "[%.100s]:%.8s" : "%.100s:%.8s", host, port);
}

void address_unmap(struct address *address)
{
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr_in6 six;

	memcpy(&six, &address->socket, sizeof(six));
	if (!address->size || six.sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return;
	four.sin_port = six.sin6_port;
	memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof(four.sin_addr));
	memcpy(&address->socket, &four, sizeof(four));
	address->size = sizeof(four);
}

void address_text_of_peer(int fd, char ret_text[ADDRESS_TEXT_MAX])
{
	struct address address = { .size = sizeof(address.socket) };

	if (getpeername(fd, (struct sockaddr *)&address.socket, &address.size) < 0)
		address.size = 0;
	address_unmap(&address);
	address_text(&address, ret_text);
}

bool address_is_any(const struct address *address)
{
	if (address->socket.ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&address->socket)->sin6_addr);
	return ((const struct sockaddr_in *)&address->socket)->sin_addr.s_addr == htonl(INADDR_ANY);
}

uint32_t address_port(const struct address *address)
{
	if (address->socket.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&address->socket)->sin6_port);
	return ntohs(((const struct sockaddr_in *)&address->socket)->sin_port);
}

void address_set_port(struct address *address, uint32_t port)
{
	if (address->socket.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&address->socket)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)&address->socket)->sin_port = htons((uint16_t)port);
}
