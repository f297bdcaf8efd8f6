/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices of this machine, as libibverbs finds them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nic_port {
	const char *device;    /* valid during the callback */
	const char *interface; /* of the network, "" if none is known */
	uint32_t port;	       /* 0: the device could not be opened; the fields below say nothing */
	const char *state, *link_layer;
	uint32_t mtu; /* bytes */
	uint64_t guid;
};

/* Was this build made with libibverbs? */
bool nic_is_supported(void);
/* Calls @each for every port. Negative errno if they cannot be listed; -EOPNOTSUPP without libibverbs. */
int nic_list(void (*each)(const struct nic_port *port, void *arg), void *arg);
