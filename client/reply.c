/* SPDX-License-Identifier: Apache-2.0 */
#include "client/reply.h"

static const ProtobufCMessageDescriptor *expected = &hccld__control__reply__descriptor;

void hccld_reply_expect(const ProtobufCMessageDescriptor *descriptor)
{
	expected = descriptor;
}

Hccld__Control__Reply *hccld_reply_unpack(const struct packet *packet)
{
	return (Hccld__Control__Reply *)protobuf_c_message_unpack(expected, NULL, packet->size, packet->data);
}

void hccld_reply_free(Hccld__Control__Reply *reply)
{
	protobuf_c_message_free_unpacked(&reply->base, NULL);
}
