/* SPDX-License-Identifier: Apache-2.0 */
/* Settings objects of channels. Handles are looked up, never followed. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/channel_acquire.h"
#include "client/error.h"

#define HANDLE_MARK 0x4347ull /* top 16 bits: no address of a program looks like this */

struct object {
	struct object *next;
	void *handle;
	struct hccld_channel_config config;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects; /* `mutex` */
static uint64_t next_number;   /* `mutex` */

/* With `mutex`: where it hangs, or NULL. */
static struct object **object_find(const void *handle)
{
	for (struct object **at = &objects; *at; at = &(*at)->next)
		if ((*at)->handle == handle)
			return at;
	return NULL;
}

static int unknown(const void *handle)
{
	return hccld_error(CAUSE_ARGUMENT, "config is %p: HcclChannelConfigCreate has made no such object, or it was destroyed", handle);
}

int hccld_channel_config_new(void **ret_config)
{
	struct object *object = calloc(1, sizeof(*object));

	if (!object)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for the settings of a channel");
	pthread_mutex_lock(&mutex);
	object->handle = (void *)(uintptr_t)(HANDLE_MARK << 48 | ++next_number);
	object->next = objects;
	objects = object;
	*ret_config = object->handle;
	pthread_mutex_unlock(&mutex);
	return 0;
}

int hccld_channel_config_end(void *config)
{
	struct object *found = NULL, **at;

	pthread_mutex_lock(&mutex);
	at = object_find(config);
	if (at) {
		found = *at;
		*at = found->next;
	}
	pthread_mutex_unlock(&mutex);
	free(found);
	return found ? 0 : unknown(config);
}

int hccld_channel_config_set_int(void *config, int32_t type, uint32_t value)
{
	struct object **at;

	if (type != HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE)
		return hccld_error(CAUSE_ARGUMENT, "HcclChannelConfigSetInt: type is %d; expected HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE (%d)", type,
				   HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE);
	if (value > 1)
		return hccld_error(CAUSE_ARGUMENT, "HcclChannelConfigSetInt: value is %u; expected 0 or 1", value);
	pthread_mutex_lock(&mutex);
	at = object_find(config);
	if (at)
		(*at)->config.is_shared = value;
	pthread_mutex_unlock(&mutex);
	return at ? 0 : unknown(config);
}

int hccld_channel_config_set_text(void *config, int32_t type, const char *value)
{
	const size_t length = strnlen(value, HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN + 1);
	struct object **at;

	if (type != HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG)
		return hccld_error(CAUSE_ARGUMENT, "HcclChannelConfigSetStr: type is %d; expected HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG (%d)", type,
				   HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG);
	if (!length || length > HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN)
		return hccld_error(CAUSE_ARGUMENT, "HcclChannelConfigSetStr: value has %s; expected 1 to %u bytes", length ? "more bytes" : "no bytes",
				   HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN);
	pthread_mutex_lock(&mutex);
	at = object_find(config);
	if (at)
		memcpy((*at)->config.tag, value, length + 1);
	pthread_mutex_unlock(&mutex);
	return at ? 0 : unknown(config);
}

int hccld_channel_config_read(void *config, struct hccld_channel_config *ret_config)
{
	struct object **at;

	*ret_config = (struct hccld_channel_config){ 0 };
	if (!config)
		return 0;
	pthread_mutex_lock(&mutex);
	at = object_find(config);
	if (at)
		*ret_config = (*at)->config;
	pthread_mutex_unlock(&mutex);
	return at ? 0 : unknown(config);
}
