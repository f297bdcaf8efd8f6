/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of RDMA devices. Only asks, registers nothing. HCCLD_HAS_VERBS comes from the build. */
#include "hcclctl/nic.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#ifdef HCCLD_HAS_VERBS
#include <endian.h>
#include <infiniband/verbs.h>

/* The first network interface of an RDMA device, from sysfs. */
static void find_interface(const struct ibv_device *device, char *interface, size_t size)
{
	char path[PATH_MAX];
	DIR *directory;
	struct dirent *entry;

	interface[0] = '\0';
	snprintf(path, sizeof(path), "%s/device/net", device->ibdev_path);
	directory = opendir(path);
	if (!directory) {
		/* soft-RoCE: no device below it, but a file that names the interface */
		FILE *file;

		snprintf(path, sizeof(path), "%s/parent", device->ibdev_path);
		file = fopen(path, "re");
		if (file) {
			if (fgets(interface, (int)size, file))
				interface[strcspn(interface, "\n")] = '\0';
			fclose(file);
		}
		return;
	}
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(interface, size, "%.*s", (int)size - 1, entry->d_name);
		break;
	}
	closedir(directory);
}

static void list_device(struct ibv_device *device,
			void (*each)(const struct nic_port *port, void *arg), void *arg)
{
	struct nic_port port = { .device = ibv_get_device_name(device),
				 .state = "",
				 .link_layer = "" };
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_device_attr attributes;
	char interface[64];

	find_interface(device, interface, sizeof(interface));
	port.interface = interface;
	port.guid = be64toh(ibv_get_device_guid(device));
	if (!context || ibv_query_device(context, &attributes)) {
		each(&port, arg);
		if (context)
			ibv_close_device(context);
		return;
	}
	for (uint32_t i = 1; i <= attributes.phys_port_cnt; i++) {
		struct ibv_port_attr port_attributes;

		memset(&port_attributes, 0, sizeof(port_attributes));
		if (ibv_query_port(context, (uint8_t)i, &port_attributes))
			continue;
		port.port = i;
		port.state = ibv_port_state_str(port_attributes.state);
		port.link_layer = port_attributes.link_layer == IBV_LINK_LAYER_ETHERNET
					  ? "Ethernet"
					  : "InfiniBand";
		port.mtu = 128u << port_attributes.active_mtu;
		each(&port, arg);
	}
	ibv_close_device(context);
}

bool nic_is_supported(void)
{
	return true;
}

int nic_list(void (*each)(const struct nic_port *port, void *arg), void *arg)
{
	struct ibv_device **devices;
	int count;

	errno = 0;
	devices = ibv_get_device_list(&count);
	if (!devices)
		return errno == ENOSYS || errno == 0 ? 0
						     : -errno; /* ENOSYS: the kernel has no RDMA */
	for (int i = 0; i < count; i++)
		list_device(devices[i], each, arg);
	ibv_free_device_list(devices);
	return 0;
}
#else
bool nic_is_supported(void)
{
	return false;
}

int nic_list(void (*each)(const struct nic_port *port, void *arg), void *arg)
{
	return -EOPNOTSUPP;
}
#endif
