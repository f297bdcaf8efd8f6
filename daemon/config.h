/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the administrator has decided: configuration files, environment, command line; later ones win. A new setting is a field of
 * struct config and a row of the table in config_table.c; its option, its key in the files, its place in --help and in
 * `hcclctl config` follow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "cluster/cluster.h"
#include "control/control.h"
#include "daemon/setting.h"
#include "proto/limits.h"
#include "registry/weights.h"

#define CONFIG_SETTINGS_MAX HCCLD_SETTINGS_MAX

/* A variable that the keeper gives to the daemon it starts, besides the option --no-keeper at the end of the command line. */
#define CONFIG_WORKER "HCCLD_WORKER"

enum origin_kind {
	ORIGIN_DEFAULT,
	ORIGIN_FILE,
	ORIGIN_ENVIRONMENT,
	ORIGIN_COMMAND_LINE,
	ORIGIN_REQUEST, /* `hcclctl log` */
};

/* What makes a tenant, beside the user namespace. */
enum tenant_rule {
	TENANT_UID,
	TENANT_UID_CGROUP,
};

/* Where a value comes from. */
struct origin {
	enum origin_kind kind;
	bool is_word;	 /* setting->word stands there; the value was found by config_complete() */
	char where[256]; /* file:line, variable, option, uid */
};

struct config {
	/* settings: named as their keys; a duration has _ms behind its key */
	char socket[108]; /* sun_path */
	uint32_t devices;
	uint64_t device_memory; /* of each device; whole pages */
	uint32_t notifies_per_device;
	char soc_name[64];
	uint32_t vector_cores_per_device;
	uint32_t copy_threads;
	bool allow_duplicate_items;
	bool keeper;
	uint32_t local_path; /* enum beacon_path */
	uint32_t stop_grace_ms;
	uint32_t log_level; /* enum log_level */
	uint32_t tenant;    /* enum tenant_rule */
	uint64_t memory_per_tenant, pending_per_tenant;
	uint32_t sessions_per_tenant, streams_per_tenant, notifies_per_tenant;
	uint32_t communicators_per_tenant, descriptors_per_tenant;
	uint32_t registrations_per_tenant, channels_per_tenant;
	uint32_t connections_per_user, requests_per_user;
	char tenant_weights[WEIGHTS_MAX];
	char listen[ADDRESS_LIST_MAX], peers[ADDRESS_LIST_MAX];
	uint32_t port;
	char key_file[4096];
	char node_name[CLUSTER_NAME_MAX];
	uint32_t keepalive_ms, peer_timeout_ms;

	/* the rest */
	uint64_t host_memory; /* for all devices together */
	int ready_fd;	      /* --ready-fd; -1: none */
	struct origin origins[CONFIG_SETTINGS_MAX];
	char files[2048]; /* that were read, a line each */
};

/* The table. */
extern const struct setting config_settings[];
extern const size_t config_setting_count;

/* Where problems go, one sentence each, with file:line if there is one. */
struct config_report {
	void (*say)(void *data, const char *problem);
	void *data;
	uint32_t count; /* of problems */
	/* Problems of files are told and not counted: what is wrong there is left out. */
	bool is_lenient;
};

/*
 * For main(): the command line with all it leads to. Problems go to stderr, all of them. 0: go on. 1: everything was said (--help,
 * --version, --check-config). -EINVAL: wrong options or settings. -EBADMSG: --check-config has found something.
 */
int config_parse(int argc, char **argv, struct config *ret_config);
/* The same without a word, for a reload. -EINVAL: @report was told why; @ret_config is unchanged. */
int config_load(int argc, char **argv, struct config_report *report, struct config *ret_config);

/*
 * Loads again, and changes in @config what may change at run time; the log tells all of it. How many settings have changed, or -EINVAL
 * and nothing has.
 */
int config_reload(int argc, char **argv, struct config *config);

/* What requests about settings get to see and to change (struct config as data). */
struct control_hooks config_hooks(struct config *config);

/* --- parts, each without side effects; config_file.c, config_table.c --- */

/* All settings at their defaults. */
void config_init(struct config *config);
/* Reads the text of one file, called @name in problems. What is right in it is set in any case. */
void config_read_text(const char *name, const char *text, size_t size, struct config *config,
		      struct config_report *report);
/* A file. @may_miss: it need not exist. */
void config_read_file(const char *path, bool may_miss, struct config *config,
		      struct config_report *report);
/* *.conf in a directory, in the order of their names; it need not exist. */
void config_read_directory(const char *path, struct config *config, struct config_report *report);
/* One setting; @kind and @where: its origin. -EINVAL, with a report, and the value stays. */
int config_set(struct config *config, const struct setting *setting, const char *value,
	       enum origin_kind kind, const char *where, struct config_report *report);
/* By section and key, or by key alone (@section NULL). NULL: none. */
const struct setting *config_find(const char *section, const char *key);
/* The key that @key was probably meant to be, or NULL. */
const struct setting *config_guess(const char *key);
/* Is there such a section? */
bool config_has_section(const char *section);
/* "[daemon], [devices] or [log]" */
void config_name_sections(char *buffer, size_t size);
struct origin *config_origin(struct config *config, const struct setting *setting);
void config_complain(struct config_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes the options that set settings, for --help. */
void config_print_options(void);
