/* SPDX-License-Identifier: Apache-2.0 */
/* Replies, unpacked. */
#pragma once

#include "proto/control.pb-c.h"
#include "proto/packet.h"

/*
 * A tool, before its first connection: replies are read with @descriptor, that of all there are. The library's own leaves out what no client
 * asks for (proto/client_proto.py).
 */
void hccld_reply_expect(const ProtobufCMessageDescriptor *descriptor);
/* NULL: malformed, or no memory. */
Hccld__Control__Reply *hccld_reply_unpack(const struct packet *packet);
void hccld_reply_free(Hccld__Control__Reply *reply);
