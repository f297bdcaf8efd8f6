/* SPDX-License-Identifier: Apache-2.0 */
/* The messages as the client library has them: its structs are those of all messages, and what it leaves out does no harm. */
#include "proto/control.pb-c.h"
#include "tests/support/test.h"

TEST(structs_are_the_same)
{
	check_eq_uint(hccld__control__request__descriptor.sizeof_message, sizeof(Hccld__Control__Request));
	check_eq_uint(hccld__control__reply__descriptor.sizeof_message, sizeof(Hccld__Control__Reply));
	check_ptr(protobuf_c_message_descriptor_get_field(&hccld__control__reply__descriptor, 98));
	check_null(protobuf_c_message_descriptor_get_field(&hccld__control__reply__descriptor, 30));
	check_null(protobuf_c_message_descriptor_get_field(&hccld__control__request__descriptor, 93));
	for (unsigned int i = 0; i < hccld__control__reply__descriptor.n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &hccld__control__reply__descriptor.fields[i];

		if (field->id < 10)
			continue;
		check_eq_uint(field->offset, offsetof(Hccld__Control__Reply, hello));
		check_eq_uint(field->quantifier_offset, offsetof(Hccld__Control__Reply, body_case));
	}
}

TEST(replies_are_read)
{
	/* id 7, create_stream { stream 5 } */
	static const uint8_t known[] = { 8, 7, 13 << 3 | 2, 2, 8, 5 };
	/* id 7, status { } with a field of its own */
	static const uint8_t unknown[] = { 8, 7, 0xf2, 1, 2, 8, 5 };
	Hccld__Control__Reply *reply;

	reply = hccld__control__reply__unpack(NULL, sizeof(known), known);
	check_ptr(reply);
	check_eq_uint(reply->id, 7);
	check_eq_int(reply->body_case, HCCLD__CONTROL__REPLY__BODY_CREATE_STREAM);
	check_eq_uint(reply->create_stream->stream, 5);
	hccld__control__reply__free_unpacked(reply, NULL);
	reply = hccld__control__reply__unpack(NULL, sizeof(unknown), unknown);
	check_ptr(reply);
	check_eq_uint(reply->id, 7);
	check_eq_int(reply->body_case, HCCLD__CONTROL__REPLY__BODY__NOT_SET);
	hccld__control__reply__free_unpacked(reply, NULL);
}
