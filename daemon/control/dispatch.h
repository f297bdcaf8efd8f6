/* SPDX-License-Identifier: Apache-2.0 */
/* From a packet to its handler. The only place where errors become replies. */
#pragma once

#include <stdbool.h>

struct connection;
struct packet;
struct request;

void dispatch_packet(struct connection *connection, const struct packet *packet);
/* One that retry.h has held. */
void dispatch_again(struct request *request);
/* It begins something new; the rest ends or looks at what there is. */
bool dispatch_begins(const struct request *request);

/* Of a request for vector cores that is held: there are as many now. False of all others. */
bool cores_are_free(const struct request *request);
/* Of a request for vector cores that was refused: its like is about to be given back. */
bool cores_are_coming(const struct request *request);

/* Handlers: request.h says what they may do. */
int handle_hello(struct request *request);
int handle_open_context(struct request *request);
int handle_close_context(struct request *request);
int handle_create_stream(struct request *request);
int handle_destroy_stream(struct request *request);
int handle_allocate_segment(struct request *request);
int handle_free_segment(struct request *request);
int handle_memory_info(struct request *request);
int handle_get_root_info(struct request *request);
int handle_join_comm(struct request *request);
int handle_leave_comm(struct request *request);
int handle_open_pairs(struct request *request);
int handle_map_peer(struct request *request);
int handle_grow_comm(struct request *request);
int handle_cancel_join(struct request *request);
int handle_suspend_comm(struct request *request);
int handle_resume_comm(struct request *request);
int handle_abort_tasks(struct request *request);
int handle_export_memory(struct request *request);
int handle_allow_import(struct request *request);
int handle_import_memory(struct request *request);
int handle_end_export(struct request *request);
int handle_list_lost(struct request *request);
int handle_describe_device(struct request *request);
int handle_create_notifies(struct request *request);
int handle_free_notifies(struct request *request);
int handle_reset_notifies(struct request *request);
int handle_take_cores(struct request *request);
int handle_give_cores(struct request *request);
int handle_keep_cores(struct request *request);
int handle_register_memory(struct request *request);
int handle_unregister_memory(struct request *request);
int handle_offer_channels(struct request *request);
int handle_await_channels(struct request *request);
int handle_describe_channel(struct request *request);
int handle_close_channels(struct request *request);
int handle_map_import(struct request *request);
int handle_create_thread(struct request *request);
int handle_destroy_thread(struct request *request);
int handle_status(struct request *request);
int handle_list(struct request *request);
int handle_get_config(struct request *request);
int handle_set_log_level(struct request *request);
int handle_kill_session(struct request *request);
int handle_drain(struct request *request);
int handle_ping(struct request *request);
int handle_monitor(struct request *request);
