/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/handshake.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "cluster/key.h"

_Static_assert(crypto_auth_hmacsha256_BYTES == LINK_PROOF_BYTES, "the whole of it");

static void number_write(unsigned char at[2], uint32_t number)
{
	at[0] = (unsigned char)(number >> 8);
	at[1] = (unsigned char)number;
}

static uint32_t number_read(const unsigned char at[2])
{
	return (uint32_t)at[0] << 8 | at[1];
}

void handshake_init(struct handshake *handshake, bool is_connector, unsigned char ret_out[HANDSHAKE_OUT_MAX], size_t *ret_size)
{
	*handshake = (struct handshake){ .is_connector = is_connector };
	memcpy(handshake->mine.magic, LINK_MAGIC, LINK_MAGIC_BYTES);
	number_write(handshake->mine.version_low, LINK_VERSION_LOW);
	number_write(handshake->mine.version_high, LINK_VERSION_HIGH);
	randombytes_buf(handshake->mine.nonce, LINK_NONCE_BYTES);
	*ret_size = is_connector ? sizeof(handshake->mine) : 0;
	memcpy(ret_out, &handshake->mine, *ret_size);
}

size_t handshake_need(const struct handshake *handshake)
{
	if (handshake->is_done)
		return 0;
	return handshake->has_greeting ? LINK_PROOF_BYTES : sizeof(struct link_greeting);
}

static void proof_make(const struct handshake *handshake, bool of_connector, const struct key *key, unsigned char ret_proof[LINK_PROOF_BYTES])
{
	const char *label = of_connector ? LINK_LABEL_CONNECTOR : LINK_LABEL_ACCEPTOR;
	const struct link_greeting *connector = handshake->is_connector ? &handshake->mine : &handshake->theirs;
	const struct link_greeting *acceptor = handshake->is_connector ? &handshake->theirs : &handshake->mine;
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, key->data, key->size);
	/* with its NUL: no label is the beginning of another one */
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)label, strlen(label) + 1);
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)connector, sizeof(*connector));
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)acceptor, sizeof(*acceptor));
	crypto_auth_hmacsha256_final(&state, ret_proof);
	sodium_memzero(&state, sizeof(state));
}

static int greeting_take(struct handshake *handshake, const unsigned char *in)
{
	uint32_t low, high;

	memcpy(&handshake->theirs, in, sizeof(handshake->theirs));
	if (memcmp(handshake->theirs.magic, LINK_MAGIC, LINK_MAGIC_BYTES) != 0)
		return -EPROTO;
	handshake->has_greeting = true;
	low = handshake->their_low = number_read(handshake->theirs.version_low);
	high = handshake->their_high = number_read(handshake->theirs.version_high);
	handshake->version = high < LINK_VERSION_HIGH ? high : LINK_VERSION_HIGH;
	return handshake->version < low || handshake->version < LINK_VERSION_LOW ? -EPROTONOSUPPORT : 0;
}

int handshake_step(struct handshake *handshake, const struct key *key, const unsigned char *in, unsigned char ret_out[HANDSHAKE_OUT_MAX],
		   size_t *ret_size)
{
	unsigned char proof[LINK_PROOF_BYTES];
	int r;

	*ret_size = 0;
	if (!handshake->has_greeting) {
		r = greeting_take(handshake, in);
		if (r == -EPROTO)
			return r;
		/* also if no version fits: it says so to its own people */
		if (!handshake->is_connector) {
			*ret_size = sizeof(handshake->mine);
			memcpy(ret_out, &handshake->mine, *ret_size);
		} else if (r == 0) {
			*ret_size = LINK_PROOF_BYTES;
			proof_make(handshake, true, key, ret_out);
		}
		return r;
	}
	proof_make(handshake, !handshake->is_connector, key, proof);
	if (sodium_memcmp(proof, in, sizeof(proof)) != 0)
		return -EACCES;
	handshake->is_done = true;
	if (!handshake->is_connector) {
		*ret_size = LINK_PROOF_BYTES;
		proof_make(handshake, false, key, ret_out);
	}
	return 0;
}
