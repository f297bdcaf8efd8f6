/* SPDX-License-Identifier: Apache-2.0 */
/* Where daemons are found on the network: "HOST", "HOST:PORT", "[IPV6]:PORT", "IPV6"; HOST may be a name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_HOST_MAX 256u  /* bytes with the NUL: a name of the domain system */
#define ADDRESS_TEXT_MAX 128u  /* "[ipv6%interface]:port" */
#define ADDRESS_LIST_MAX 256u  /* bytes of several, between commas or spaces, with the NUL */

struct address {
	socklen_t size; /* 0: none */
	struct sockaddr_storage socket;
};

/* @ret_host is without brackets. -EINVAL. */
int address_split(const char *text, uint32_t default_port, char ret_host[ADDRESS_HOST_MAX], uint32_t *ret_port);
/* The next of a list of addresses ("none": there are none), from *@position on, which moves on. 1; 0: there are no more; -EINVAL: too long. */
int address_next(const char *list, size_t *position, char ret_text[ADDRESS_HOST_MAX + 8]);
/* Is each of a list right in form? "none" is an empty one. */
bool address_list_check(const char *list);
#define ADDRESS_LIST_FORM "none, or addresses such as 10.0.0.1 node2:7411 [fd00::1]:7411"
/*
 * The addresses of @host, at most @max of them; blocks while a name is looked up. @host "*": all of this machine, to listen on. How many, or
 * -ENOENT with the reason in @problem.
 */
int address_resolve(const char *host, uint32_t port, struct address *ret_addresses, size_t max, char *problem, size_t problem_size);
/* "10.0.0.1:7411", "[fd00::1]:7411" */
void address_text(const struct address *address, char ret_text[ADDRESS_TEXT_MAX]);
/* The same as one end of a socket has it; "?" if it has none. */
void address_text_of_peer(int fd, char ret_text[ADDRESS_TEXT_MAX]);
/* An IPv4 address that has come to a socket of both families becomes one. */
void address_unmap(struct address *address);
/* 0.0.0.0 or :: */
bool address_is_any(const struct address *address);
uint32_t address_port(const struct address *address);
void address_set_port(struct address *address, uint32_t port);
