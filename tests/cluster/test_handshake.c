/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of a handshake without a socket between them, and what somebody in between can make of it. */
#include "cluster/handshake.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/key.h"
#include "proto/frame.h"
#include "tests/support/test.h"

#define GREETING sizeof(struct link_greeting)

static const struct key good = { .size = 20, .data = "this is a common key" };
static const struct key wrong = { .size = 20, .data = "this is another key." };

/* What both have said, in order. */
struct talk {
	struct handshake connector, acceptor;
	unsigned char greeting_c[GREETING], greeting_a[GREETING];
	unsigned char proof_c[LINK_PROOF_BYTES], proof_a[LINK_PROOF_BYTES];
};

static void take_bytes(struct handshake *to, const struct key *key, const unsigned char *in, size_t in_size, unsigned char *out, size_t out_size)
{
	unsigned char said[HANDSHAKE_OUT_MAX];
	size_t size = 99;

	check_eq_uint(handshake_need(to), in_size);
	check_eq_int(handshake_step(to, key, in, said, &size), 0);
	check_eq_uint(size, out_size);
	memcpy(out, said, size);
}

static void refused(struct handshake *to, const struct key *key, const unsigned char *in, int error)
{
	unsigned char said[HANDSHAKE_OUT_MAX];
	size_t size = 99;

	check_eq_int(handshake_step(to, key, in, said, &size), error);
	check(!to->is_done);
	if (error == -EACCES || error == -EPROTO)
		check_eq_uint(size, 0);
}

static void begin(struct talk *talk)
{
	unsigned char out[HANDSHAKE_OUT_MAX];
	size_t size = 99;

	check_ge_int(sodium_init(), 0);
	memset(talk, 0, sizeof(*talk));
	handshake_init(&talk->acceptor, false, out, &size);
	check_eq_uint(size, 0);
	handshake_init(&talk->connector, true, out, &size);
	check_eq_uint(size, GREETING);
	memcpy(talk->greeting_c, out, size);
}

/* As far as the proof of who has connected. */
static void greet(struct talk *talk, const struct key *of_connector, const struct key *of_acceptor)
{
	begin(talk);
	take_bytes(&talk->acceptor, of_acceptor, talk->greeting_c, GREETING, talk->greeting_a, GREETING);
	take_bytes(&talk->connector, of_connector, talk->greeting_a, GREETING, talk->proof_c, LINK_PROOF_BYTES);
	check(!talk->acceptor.is_done && !talk->connector.is_done);
}

static void finish(struct talk *talk)
{
	unsigned char none[1];

	greet(talk, &good, &good);
	take_bytes(&talk->acceptor, &good, talk->proof_c, LINK_PROOF_BYTES, talk->proof_a, LINK_PROOF_BYTES);
	check(talk->acceptor.is_done);
	take_bytes(&talk->connector, &good, talk->proof_a, LINK_PROOF_BYTES, none, 0);
	check(talk->connector.is_done);
}

static void proof_by_hand(const char *label, const struct talk *talk, unsigned char proof[LINK_PROOF_BYTES])
{
	crypto_auth_hmacsha256_state hmac;

	crypto_auth_hmacsha256_init(&hmac, good.data, good.size);
	crypto_auth_hmacsha256_update(&hmac, (const unsigned char *)label, strlen(label) + 1);
	crypto_auth_hmacsha256_update(&hmac, talk->greeting_c, GREETING);
	crypto_auth_hmacsha256_update(&hmac, talk->greeting_a, GREETING);
	crypto_auth_hmacsha256_final(&hmac, proof);
}

TEST(all_good)
{
	unsigned char expected[LINK_PROOF_BYTES];
	struct talk talk;

	finish(&talk);
	check_eq_uint(handshake_need(&talk.connector), 0);
	check_eq_uint(handshake_need(&talk.acceptor), 0);
	check_eq_uint(talk.connector.version, LINK_VERSION_HIGH);
	check_eq_uint(talk.acceptor.version, LINK_VERSION_HIGH);
	/* by the words of proto/link.h */
	check_eq_mem(talk.greeting_c, "hccldlnk\0\1\0\1\0\0\0\0", 16);
	check_eq_mem(talk.greeting_a, "hccldlnk\0\1\0\1\0\0\0\0", 16);
	proof_by_hand("hccld link: I have connected", &talk, expected);
	check_eq_mem(talk.proof_c, expected, LINK_PROOF_BYTES);
	proof_by_hand("hccld link: I have accepted", &talk, expected);
	check_eq_mem(talk.proof_a, expected, LINK_PROOF_BYTES);
}

TEST(nothing_is_said_twice)
{
	struct talk one, two;

	finish(&one);
	finish(&two);
	check(memcmp(one.greeting_c, one.greeting_a, GREETING) != 0);
	check(memcmp(one.greeting_c, two.greeting_c, GREETING) != 0);
	check(memcmp(one.greeting_a, two.greeting_a, GREETING) != 0);
	check(memcmp(one.proof_c, one.proof_a, LINK_PROOF_BYTES) != 0);
	check(memcmp(one.proof_c, two.proof_c, LINK_PROOF_BYTES) != 0);
	check(memcmp(one.proof_a, two.proof_a, LINK_PROOF_BYTES) != 0);
}

TEST(another_key)
{
	struct key longer = good;
	struct talk talk;

	greet(&talk, &wrong, &good);
	refused(&talk.acceptor, &good, talk.proof_c, -EACCES);
	greet(&talk, &good, &wrong);
	refused(&talk.acceptor, &wrong, talk.proof_c, -EACCES);
	/* the proof of who has accepted counts, too */
	greet(&talk, &good, &good);
	take_bytes(&talk.acceptor, &good, talk.proof_c, LINK_PROOF_BYTES, talk.proof_a, LINK_PROOF_BYTES);
	refused(&talk.connector, &wrong, talk.proof_a, -EACCES);
	/* the size of the key counts, too */
	longer.size++;
	longer.data[20] = 'x';
	greet(&talk, &longer, &good);
	refused(&talk.acceptor, &good, talk.proof_c, -EACCES);
}

/* Each bit of each byte of the greeting of who has connected: at the latest his proof is wrong. */
TEST(changed_greeting_of_connector)
{
	for (size_t at = 0; at < GREETING * 8; at++) {
		unsigned char said[HANDSHAKE_OUT_MAX];
		struct talk talk;
		size_t size;
		int r;

		begin(&talk);
		talk.greeting_c[at / 8] ^= (unsigned char)(1 << at % 8);
		r = handshake_step(&talk.acceptor, &good, talk.greeting_c, said, &size);
		check_eq_int(r == -EPROTO, at / 8 < LINK_MAGIC_BYTES);
		if (r < 0) {
			check(!talk.acceptor.is_done);
			check(r == -EPROTO || r == -EPROTONOSUPPORT);
			continue;
		}
		take_bytes(&talk.connector, &good, said, GREETING, talk.proof_c, LINK_PROOF_BYTES);
		refused(&talk.acceptor, &good, talk.proof_c, -EACCES);
	}
}

TEST(changed_greeting_of_acceptor)
{
	for (size_t at = 0; at < GREETING * 8; at++) {
		unsigned char said[HANDSHAKE_OUT_MAX];
		struct talk talk;
		size_t size;
		int r;

		begin(&talk);
		take_bytes(&talk.acceptor, &good, talk.greeting_c, GREETING, talk.greeting_a, GREETING);
		talk.greeting_a[at / 8] ^= (unsigned char)(1 << at % 8);
		r = handshake_step(&talk.connector, &good, talk.greeting_a, said, &size);
		check_eq_int(r == -EPROTO, at / 8 < LINK_MAGIC_BYTES);
		check(!talk.connector.is_done);
		/* no proof for whom it does not understand */
		check_eq_uint(size, r < 0 ? 0 : LINK_PROOF_BYTES);
		if (r < 0)
			continue;
		refused(&talk.acceptor, &good, said, -EACCES);
	}
}

TEST(changed_proofs)
{
	for (size_t at = 0; at < LINK_PROOF_BYTES * 8; at++) {
		struct talk talk;

		greet(&talk, &good, &good);
		talk.proof_c[at / 8] ^= (unsigned char)(1 << at % 8);
		refused(&talk.acceptor, &good, talk.proof_c, -EACCES);

		greet(&talk, &good, &good);
		take_bytes(&talk.acceptor, &good, talk.proof_c, LINK_PROOF_BYTES, talk.proof_a, LINK_PROOF_BYTES);
		talk.proof_a[at / 8] ^= (unsigned char)(1 << at % 8);
		refused(&talk.connector, &good, talk.proof_a, -EACCES);
	}
}

/* Who does not know the key says what he hears. */
TEST(reflection)
{
	unsigned char greeting[GREETING], proof[LINK_PROOF_BYTES];
	struct talk talk;

	/* to who has connected: his own greeting, then his own proof */
	begin(&talk);
	take_bytes(&talk.connector, &good, talk.greeting_c, GREETING, proof, LINK_PROOF_BYTES);
	refused(&talk.connector, &good, proof, -EACCES);
	/* two that have connected, to each other */
	begin(&talk);
	handshake_init(&talk.acceptor, true, greeting, &(size_t){ 0 });
	take_bytes(&talk.connector, &good, greeting, GREETING, talk.proof_c, LINK_PROOF_BYTES);
	take_bytes(&talk.acceptor, &good, talk.greeting_c, GREETING, talk.proof_a, LINK_PROOF_BYTES);
	refused(&talk.connector, &good, talk.proof_a, -EACCES);
	refused(&talk.acceptor, &good, talk.proof_c, -EACCES);
	/* to who has accepted: his greeting is known only when it is too late, and no proof fits */
	greet(&talk, &good, &good);
	proof_by_hand(LINK_LABEL_ACCEPTOR, &talk, proof);
	refused(&talk.acceptor, &good, proof, -EACCES);
	greet(&talk, &good, &good);
	proof_by_hand(LINK_LABEL_CONNECTOR, &talk, proof);
	refused(&talk.connector, &good, proof, -EACCES);
}

TEST(replay)
{
	struct talk old, talk;

	finish(&old);
	/* of all that the connector has said */
	begin(&talk);
	take_bytes(&talk.acceptor, &good, old.greeting_c, GREETING, talk.greeting_a, GREETING);
	refused(&talk.acceptor, &good, old.proof_c, -EACCES);
	/* of all that the acceptor has said */
	begin(&talk);
	take_bytes(&talk.connector, &good, old.greeting_a, GREETING, talk.proof_c, LINK_PROOF_BYTES);
	refused(&talk.connector, &good, old.proof_a, -EACCES);
	/* in the other direction */
	greet(&talk, &good, &good);
	refused(&talk.acceptor, &good, old.proof_a, -EACCES);
}

static void version_of(bool is_connector, uint32_t low, uint32_t high, int expected)
{
	struct link_greeting greeting = { .magic = LINK_MAGIC };
	unsigned char said[HANDSHAKE_OUT_MAX];
	struct handshake handshake;
	size_t size;

	greeting.version_low[0] = (unsigned char)(low >> 8);
	greeting.version_low[1] = (unsigned char)low;
	greeting.version_high[0] = (unsigned char)(high >> 8);
	greeting.version_high[1] = (unsigned char)high;
	handshake_init(&handshake, is_connector, said, &size);
	check_eq_int(handshake_step(&handshake, &good, (const unsigned char *)&greeting, said, &size), expected);
	check_eq_uint(handshake.their_low, low);
	check_eq_uint(handshake.their_high, high);
	check(!handshake.is_done);
	/* who has connected proves nothing then; who has accepted says which versions he speaks */
	check_eq_uint(size, !is_connector ? GREETING : expected < 0 ? 0 : LINK_PROOF_BYTES);
	if (expected == 0)
		check_eq_uint(handshake.version, high < LINK_VERSION_HIGH ? high : LINK_VERSION_HIGH);
}

TEST(versions)
{
	static const struct {
		uint32_t low, high;
		int expected;
	} cases[] = {
		{ LINK_VERSION_LOW, LINK_VERSION_HIGH, 0 },
		{ 0, LINK_VERSION_LOW, 0 },
		{ 0, 65535, 0 },
		{ LINK_VERSION_HIGH, 65535, 0 },
		{ LINK_VERSION_HIGH, LINK_VERSION_HIGH + 1, 0 },
		{ LINK_VERSION_HIGH, 0x100 + LINK_VERSION_HIGH, 0 },
		{ LINK_VERSION_HIGH + 1, LINK_VERSION_HIGH + 1, -EPROTONOSUPPORT },
		{ LINK_VERSION_HIGH + 1, 65535, -EPROTONOSUPPORT },
		{ 0x100, 0x1ff, -EPROTONOSUPPORT },
		{ 0, LINK_VERSION_LOW - 1, -EPROTONOSUPPORT },
		{ 65535, 0, -EPROTONOSUPPORT },
		{ LINK_VERSION_HIGH + 1, LINK_VERSION_LOW, -EPROTONOSUPPORT },
	};

	check_ge_int(sodium_init(), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int is_connector = 0; is_connector < 2; is_connector++)
			version_of(is_connector, cases[i].low, cases[i].high, cases[i].expected);
}

/* One end of a socket pair, as a wire has it, but read in pieces. False: it wants more bytes. */
static bool step_over(int fd, size_t piece, struct frame_reader *reader, struct handshake *handshake)
{
	unsigned char out[HANDSHAKE_OUT_MAX], bytes[GREETING];
	const unsigned char *in;
	size_t size;
	int r = frame_next_bytes(reader, handshake_need(handshake), &in);

	check_ge_int(r, 0);
	if (r == 0) {
		ssize_t got = recv(fd, bytes, piece, MSG_DONTWAIT);

		if (got > 0) {
			/* into the reader by a socket of its own, which holds no more than the piece */
			int inner[2];

			check_eq_int(socketpair(AF_UNIX, SOCK_STREAM, 0, inner), 0);
			check_eq_int(send(inner[0], bytes, (size_t)got, 0), got);
			check_eq_int(frame_read(reader, inner[1]), (int)got);
			close(inner[0]);
			close(inner[1]);
		}
		return got > 0;
	}
	check_eq_int(handshake_step(handshake, &good, in, out, &size), 0);
	check_eq_int(send(fd, out, size, 0), (ssize_t)size);
	return true;
}

TEST(in_pieces)
{
	check_ge_int(sodium_init(), 0);
	for (size_t piece = 1; piece <= GREETING; piece++) {
		struct frame_reader readers[2] = { { .limit = 65536 }, { .limit = 65536 } };
		struct handshake handshakes[2];
		unsigned char out[HANDSHAKE_OUT_MAX];
		size_t size;
		int fds[2];

		check_eq_int(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		handshake_init(&handshakes[1], false, out, &size);
		handshake_init(&handshakes[0], true, out, &size);
		check_eq_int(send(fds[0], out, size, 0), (ssize_t)size);
		for (int i = 0; i < 1000 && (handshake_need(&handshakes[0]) || handshake_need(&handshakes[1])); i++)
			for (int side = 0; side < 2; side++)
				if (handshake_need(&handshakes[side]))
					step_over(fds[side], piece, &readers[side], &handshakes[side]);
		check(handshakes[0].is_done && handshakes[1].is_done);
		for (int side = 0; side < 2; side++)
			check_eq_int(recv(fds[side], out, 1, MSG_DONTWAIT), -1);
		for (int side = 0; side < 2; side++) {
			frame_reader_deinit(&readers[side]);
			close(fds[side]);
		}
	}
}
