/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: all forms, and what is none. */
#include "cluster/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

TEST(forms)
{
	static const struct {
		const char *text, *host;
		uint32_t port;
	} cases[] = {
		{ "10.0.0.1", "10.0.0.1", 7 },
		{ "10.0.0.1:80", "10.0.0.1", 80 },
		{ "node2", "node2", 7 },
		{ "node2.example.org:65535", "node2.example.org", 65535 },
		{ "n:1", "n", 1 },
		{ "::", "::", 7 },
		{ "::1", "::1", 7 },
		{ "fd00::1:7411", "fd00::1:7411", 7 },
		{ "[fd00::1]", "fd00::1", 7 },
		{ "[fd00::1]:7411", "fd00::1", 7411 },
		{ "[::]:1", "::", 1 },
		{ "fe80::1%eth0", "fe80::1%eth0", 7 },
		{ "[fe80::1%eth0]:9", "fe80::1%eth0", 9 },
		{ "::ffff:10.0.0.1", "::ffff:10.0.0.1", 7 },
		{ "[10.0.0.1]:9", "10.0.0.1", 9 },
		{ "*", "*", 7 },
		{ "*:7000", "*", 7000 },
		{ "node:007", "node", 7 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char host[ADDRESS_HOST_MAX];
		uint32_t port = 0;

		check_msg(address_split(cases[i].text, 7, host, &port) == 0, "%s is an address", cases[i].text);
		check_eq_str(host, cases[i].host);
		check_eq_uint(port, cases[i].port);
		check_msg(address_list_check(cases[i].text), "%s is a list", cases[i].text);
	}
}

TEST(wrong_forms)
{
	static const char *const wrong[] = {
		"", ":", ":80", "node:", "node:0", "node:65536", "node:-1", "node:+1", "node: 1", "node:1 ", "node:80x", "node:0x50", "node:http",
		"node:99999999999999999999", "[", "[]", "[]:80", "[::1", "[::1]80", "[::1]:", "[::1]:0", "[::1]:65536", "[::1]:x", "[::1]]", "[[::1]]",
		"::1]", "::1]:80", "no]de", "no[de", "no[de:80", "[::1]:80:90", "[::1] :80", "[::1]x80",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char host[ADDRESS_HOST_MAX];
		uint32_t port;

		check_msg(address_split(wrong[i], 7, host, &port) == -EINVAL, "\"%s\" is none", wrong[i]);
	}
}

TEST(long_hosts)
{
	char text[ADDRESS_HOST_MAX + 16], host[ADDRESS_HOST_MAX];
	uint32_t port;

	memset(text, 'a', sizeof(text));
	text[ADDRESS_HOST_MAX - 1] = '\0';
	check_eq_int(address_split(text, 7, host, &port), 0);
	check_eq_uint(strlen(host), ADDRESS_HOST_MAX - 1);
	check(address_list_check(text));
	snprintf(text + ADDRESS_HOST_MAX - 1, 8, ":65535");
	check_eq_int(address_split(text, 7, host, &port), 0);
	check_eq_uint(strlen(host), ADDRESS_HOST_MAX - 1);
	check_eq_uint(port, 65535);
	check(address_list_check(text));
	text[ADDRESS_HOST_MAX - 1] = 'a';
	text[ADDRESS_HOST_MAX] = '\0';
	check_eq_int(address_split(text, 7, host, &port), -EINVAL);
	check(!address_list_check(text));
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	check(!address_list_check(text));
}

static void list_is(const char *list, uint32_t count, const char *const *expected)
{
	char text[ADDRESS_HOST_MAX + 8];
	size_t position = 0;

	for (uint32_t i = 0; i < count; i++) {
		check_msg(address_next(list, &position, text) == 1, "\"%s\" has more than %u", list, i);
		check_eq_str(text, expected[i]);
	}
	check_eq_int(address_next(list, &position, text), 0);
	check_eq_int(address_next(list, &position, text), 0);
	check_msg(address_list_check(list), "\"%s\" is right", list);
}

TEST(lists)
{
	static const char *const three[] = { "a", "b:80", "[::1]:9" };
	static const char *const one[] = { "a" };

	list_is("none", 0, NULL);
	list_is("", 0, NULL);
	list_is(" , ,\t\n", 0, NULL);
	list_is("a", 1, one);
	list_is(" ,a, ", 1, one);
	list_is("a b:80 [::1]:9", 3, three);
	list_is("a,b:80,[::1]:9", 3, three);
	list_is("a, b:80 ,\t[::1]:9\n", 3, three);
	/* among others it is a name */
	list_is("none a", 2, (const char *const[]){ "none", "a" });
	check(!address_list_check("a b:0"));
	check(!address_list_check("a, [::1"));
	check(!address_list_check("a [::1]x"));
	check(!address_list_check("a;b:c"));
}

static void resolve(const char *host, uint32_t port, const char *expected)
{
	struct address addresses[4];
	char problem[64] = "", text[ADDRESS_TEXT_MAX];

	check_msg(address_resolve(host, port, addresses, 4, problem, sizeof(problem)) == 1, "%s: %s", host, problem);
	address_text(&addresses[0], text);
	check_eq_str(text, expected);
	check_eq_uint(address_port(&addresses[0]), port);
	address_set_port(&addresses[0], 9);
	check_eq_uint(address_port(&addresses[0]), 9);
}

TEST(numbers_are_resolved)
{
	resolve("127.0.0.1", 80, "127.0.0.1:80");
	resolve("10.1.2.3", 65535, "10.1.2.3:65535");
	resolve("::1", 1, "[::1]:1");
	resolve("fd00:0::1", 7411, "[fd00::1]:7411");
	resolve("::ffff:10.0.0.1", 5, "[::ffff:10.0.0.1]:5");
}

TEST(problems_are_told)
{
	struct address addresses[4];
	char problem[256] = "";

	check_eq_int(address_resolve("300.1.1.1.", 80, addresses, 4, problem, sizeof(problem)), -ENOENT);
	check_str_contains(problem, "300.1.1.1.: ");
	problem[0] = '\0';
	check_eq_int(address_resolve("::1::", 80, addresses, 4, problem, sizeof(problem)), -ENOENT);
	check_str_contains(problem, "::1::: ");
	/* a small one is filled as far as it goes */
	check_eq_int(address_resolve("::1::", 80, addresses, 4, problem, 4), -ENOENT);
	check_eq_str(problem, "::1");
}

TEST(any)
{
	struct address addresses[4];
	char problem[64];
	int count = address_resolve("*", 7411, addresses, 4, problem, sizeof(problem));

	check_ge_int(count, 1);
	for (int i = 0; i < count; i++) {
		check(address_is_any(&addresses[i]));
		check_eq_uint(address_port(&addresses[i]), 7411);
	}
	check_eq_int(address_resolve("*", 7411, addresses, 1, problem, sizeof(problem)), 1);
	check_eq_int(address_resolve("127.0.0.1", 7411, addresses, 4, problem, sizeof(problem)), 1);
	check(!address_is_any(&addresses[0]));
	check_eq_int(address_resolve("::1", 7411, addresses, 4, problem, sizeof(problem)), 1);
	check(!address_is_any(&addresses[0]));
}

TEST(mapped_becomes_four)
{
	struct address address;
	char problem[64], text[ADDRESS_TEXT_MAX];

	check_eq_int(address_resolve("::ffff:10.0.0.1", 80, &address, 1, problem, sizeof(problem)), 1);
	address_unmap(&address);
	check_eq_int(address.socket.ss_family, AF_INET);
	address_text(&address, text);
	check_eq_str(text, "10.0.0.1:80");
	address_unmap(&address);
	address_text(&address, text);
	check_eq_str(text, "10.0.0.1:80");
	check_eq_int(address_resolve("::1", 80, &address, 1, problem, sizeof(problem)), 1);
	address_unmap(&address);
	address_text(&address, text);
	check_eq_str(text, "[::1]:80");
	address = (struct address){ 0 };
	address_unmap(&address);
	check_eq_uint(address.size, 0);
	address_text(&address, text);
	check_eq_str(text, "?");
}

TEST(peers_of_sockets)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[ADDRESS_TEXT_MAX], expected[ADDRESS_TEXT_MAX];
	socklen_t size = sizeof(here);

	check_eq_int(bind(listener, (struct sockaddr *)&here, sizeof(here)), 0);
	check_eq_int(listen(listener, 1), 0);
	check_eq_int(getsockname(listener, (struct sockaddr *)&here, &size), 0);
	address_text_of_peer(fd, text);
	check_eq_str(text, "?");
	check_eq_int(connect(fd, (struct sockaddr *)&here, sizeof(here)), 0);
	address_text_of_peer(fd, text);
	snprintf(expected, sizeof(expected), "127.0.0.1:%u", ntohs(here.sin_port));
	check_eq_str(text, expected);
	close(fd);
	close(listener);
	address_text_of_peer(-1, text);
	check_eq_str(text, "?");
}
