/* SPDX-License-Identifier: Apache-2.0 */
/* Every setting of the daemon, in one table. man/hccld.conf.5.scd and systemd/hccld.conf list the same; a test compares them. */
#include "daemon/config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cluster/address.h"
#include "proto/limits.h"
#include "proto/spelling.h"
#include "proto/yard.h"

#define WIDTH 100 /* of the help */
#define PROBLEMS_TOLD_MAX 100u /* a file of nonsense does not flood the log */

/* Where a field is, if it has the right type. */
#define AT(ctype, field) \
	_Generic(((struct config *)0)->field, ctype : offsetof(struct config, field))
#define SIZE(field) sizeof(((struct config *)0)->field)

#define ROW(kind, ctype, section_, key_, field_, initial_, ...)                                \
	{                                                                                      \
		.section = #section_, .key = #key_, .type = kind, .offset = AT(ctype, field_), \
		.size = SIZE(field_), .initial = initial_, __VA_ARGS__                         \
	}
/* (section, key, default, then .help, and what else there is to say) */
#define BOOL(section, key, initial, ...) \
	ROW(SETTING_BOOL, bool, section, key, key, initial, __VA_ARGS__)
#define INTEGER(section, key, low_, high_, initial, ...)                                       \
	ROW(SETTING_INTEGER, uint32_t, section, key, key, initial, .low = low_, .high = high_, \
	    __VA_ARGS__)
#define BYTES(section, key, low_, high_, initial, ...)                                       \
	ROW(SETTING_BYTES, uint64_t, section, key, key, initial, .low = low_, .high = high_, \
	    __VA_ARGS__)
/* in ms; the field is key_ms */
#define DURATION(section, key, low_, high_, initial, ...)                             \
	ROW(SETTING_DURATION, uint32_t, section, key, key##_ms, initial, .low = low_, \
	    .high = high_, __VA_ARGS__)
#define CHOICE(section, key, choices_, initial, ...) \
	ROW(SETTING_CHOICE, uint32_t, section, key, key, initial, .choices = choices_, __VA_ARGS__)
#define TEXT(section, key, initial, ...)                                                       \
	ROW(SETTING_TEXT, char *, section, key, key, initial, .low = 1, .high = SIZE(key) - 1, \
	    __VA_ARGS__)
#define PATH(section, key, initial, ...)                                                       \
	ROW(SETTING_PATH, char *, section, key, key, initial, .low = 1, .high = SIZE(key) - 1, \
	    __VA_ARGS__)
#define RELOADABLE .is_reloadable = true

static const struct setting_choice log_levels[] = {
	{ "error", LOG_LEVEL_ERROR },	{ "warning", LOG_LEVEL_WARNING },
	{ "notice", LOG_LEVEL_NOTICE }, { "info", LOG_LEVEL_INFO },
	{ "debug", LOG_LEVEL_DEBUG },	{ NULL, 0 },
};

static const struct setting_choice tenant_rules[] = {
	{ "uid", TENANT_UID },
	{ "uid+cgroup", TENANT_UID_CGROUP },
	{ NULL, 0 },
};

static const struct setting_choice local_paths[] = {
	{ "direct", PATH_DIRECT },
	{ "engine", PATH_ENGINE },
	{ NULL, 0 },
};

/* clang-format off */
const struct setting config_settings[] = {
	PATH(daemon, socket, "auto", .word = "auto", .environment = "HCCLD_SOCKET",
	     .help = "where clients connect; auto: /run/hccld/hccld.sock for root, else $XDG_RUNTIME_DIR/hccld/hccld.sock"),
	BOOL(daemon, keeper, "auto", .word = "auto",
	     .help = "hold the state in a process of its own, so that the daemon can be restarted; auto: unless a service manager does"),
	INTEGER(daemon, copy_threads, 0, 64, "auto", .word = "auto",
		.help = "threads that copy beside the engine; auto: a quarter of the cores, at most 4"),
	CHOICE(daemon, local_path, local_paths, "direct", RELOADABLE, .environment = "HCCLD_LOCAL_PATH",
	       .help = "who moves bytes between processes of a tenant: they themselves while they submit or wait, and else the daemon (direct), or the daemon alone (engine), as it does also while pending_per_tenant is not unlimited"),
	DURATION(daemon, stop_grace, 0, 3600000, "10s", RELOADABLE,
		 .help = "from SIGTERM on, how long operations in flight may take to finish"),
	BOOL(daemon, allow_duplicate_items, "no", RELOADABLE, .environment = "HCCLD_ALLOW_DUPLICATE_ITEMS",
	     .help = "several items for one peer in a batch go in list order instead of failing"),
	INTEGER(devices, devices, 1, HCCLD_DEVICES_MAX, "8",
		.help = "number of devices"),
	BYTES(devices, device_memory, 1, 1ull << 47, "auto", .word = "auto",
	      .help = "memory of each device; auto: half of the node's memory, or of what the control group may have, shared by all devices"),
	INTEGER(devices, notifies_per_device, 1, HCCLD_NOTIFIES_MAX, "8192",
		.help = "notifies of each device, of all processes together"),
	TEXT(devices, soc_name, "Ascend910_9391",
	     .help = "what aclrtGetSocName answers"),
	INTEGER(devices, vector_cores_per_device, 1, 65536, "48",
		.help = "vector cores of each device: blocks of host kernels that may be queued or run on it at a time"),
	CHOICE(limits, tenant, tenant_rules, "uid", RELOADABLE,
	       .help = "whose processes may share memory, and share these limits: those of a user, or of a user in one pod, job or login session"),
	BYTES(limits, memory_per_tenant, 1, 1ull << 47, "unlimited", .word = "unlimited", RELOADABLE,
	      .help = "memory that hccld holds for a tenant: device and host memory, streams, communicators"),
	INTEGER(limits, sessions_per_tenant, 1, HCCLD_SESSIONS_MAX, "3072", .word = "unlimited", RELOADABLE,
		.help = "processes of a tenant"),
	INTEGER(limits, streams_per_tenant, 1, 1u << 18, "65536", .word = "unlimited", RELOADABLE,
		.help = "streams of a tenant"),
	INTEGER(limits, notifies_per_tenant, 1, 1u << 24, "65536", .word = "unlimited", RELOADABLE,
		.help = "notifies of a tenant"),
	INTEGER(limits, communicators_per_tenant, 1, 1u << 16, "16384", .word = "unlimited", RELOADABLE,
		.help = "communicators of a tenant"),
	INTEGER(limits, descriptors_per_tenant, 16, 1u << 20, "auto", .word = "auto", RELOADABLE,
		.help = "descriptors that hccld holds for a tenant: of processes, segments, communicators; auto: three quarters of what hccld can have"),
	INTEGER(limits, registrations_per_tenant, 1, HCCLD_REGISTRATIONS_MAX, "16384", .word = "unlimited", RELOADABLE,
		.help = "regions of memory that ranks of a tenant have registered (HcclCommMemReg)"),
	INTEGER(limits, channels_per_tenant, 1, HCCLD_CHANNELS_MAX, "16384", .word = "unlimited", RELOADABLE,
		.help = "ends of channels of a tenant (HcclChannelAcquire): a channel has two"),
	BYTES(limits, pending_per_tenant, 1, 1ull << 47, "unlimited", .word = "unlimited", RELOADABLE,
	      .help = "bytes that ranks of a tenant have sent and nobody has received; further sends wait until their receives are posted, or others are received; unless it is unlimited hccld moves all bytes itself, as with local_path = engine"),
	TEXT(limits, tenant_weights, "equal", .check = weights_check, .form = WEIGHTS_FORM, RELOADABLE,
	     .help = "who has more of the daemon where tenants wait for it: 1000=4 /slurm=2, say, gives user 1000 four turns, and with tenant = uid+cgroup each tenant below /slurm two; one that is not named has one"),
	INTEGER(limits, connections_per_user, 1, HCCLD_CONNECTIONS_MAX, "3328", RELOADABLE,
		.help = "connections of a user other than root and the daemon's"),
	INTEGER(limits, requests_per_user, 16, 1u << 24, "32768", RELOADABLE,
		.help = "requests of such a user that wait for an answer"),
	TEXT(links, listen, "none", .check = address_list_check, .form = ADDRESS_LIST_FORM,
	     .help = "where daemons of other nodes connect: addresses of this node, or * for all; none: they do not"),
	INTEGER(links, port, 1, 65535, "7411",
		.help = "TCP port of addresses that name none"),
	TEXT(links, peers, "none", .check = address_list_check, .form = ADDRESS_LIST_FORM,
	     .help = "other nodes that are linked from the start; others are found when a communicator needs them"),
	PATH(links, key_file, HCCLD_SYSCONFDIR "/hccld/link.key",
	     .help = "the key that all nodes share, in a file that root or hccld's user alone can read; without it there are no links"),
	TEXT(links, node_name, "auto",
	     .help = "what other nodes call this one; auto: its host name"),
	DURATION(links, keepalive, 10, 60000, "1s",
		 .help = "how often a link is tried; one that is silent for five times as long has lost its connection"),
	DURATION(links, peer_timeout, 10, 3600000, "30s",
		 .help = "how long a link without connection is tried again before what was under way fails"),
	CHOICE(log, log_level, log_levels, "info", RELOADABLE,
	       .help = "what is less important than this is not logged"),
};
/* clang-format on */

const size_t config_setting_count = sizeof(config_settings) / sizeof(config_settings[0]);
static_assert(sizeof(config_settings) / sizeof(config_settings[0]) <= CONFIG_SETTINGS_MAX,
	      "struct config has no room for so many origins");

struct origin *config_origin(struct config *config, const struct setting *setting)
{
	return &config->origins[setting - config_settings];
}

void config_init(struct config *config)
{
	*config = (struct config){ .ready_fd = -1 };
	for (size_t i = 0; i < config_setting_count; i++) {
		int r = setting_parse(&config_settings[i], config_settings[i].initial, config,
				      &config->origins[i].is_word);

		assert(r == 0);
		(void)r;
	}
}

const struct setting *config_find(const char *section, const char *key)
{
	for (size_t i = 0; i < config_setting_count; i++) {
		const struct setting *setting = &config_settings[i];

		if (strcmp(setting->key, key) == 0 &&
		    (!section || strcmp(setting->section, section) == 0))
			return setting;
	}
	return NULL;
}

const struct setting *config_guess(const char *key)
{
	const struct setting *best = NULL;
	unsigned int best_distance = 4;

	for (size_t i = 0; i < config_setting_count; i++) {
		const char *candidate = config_settings[i].key;
		unsigned int distance = spelling_distance(key, candidate);

		if (distance < best_distance && distance < strlen(candidate) / 2) {
			best_distance = distance;
			best = &config_settings[i];
		}
	}
	return best;
}

/* The first row of its section. */
static bool is_first(size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (strcmp(config_settings[i].section, config_settings[index].section) == 0)
			return false;
	return true;
}

bool config_has_section(const char *section)
{
	for (size_t i = 0; i < config_setting_count; i++)
		if (strcmp(config_settings[i].section, section) == 0)
			return true;
	return false;
}

void config_name_sections(char *buffer, size_t size)
{
	struct text text;

	text_init(&text, buffer, size);
	for (size_t i = 0; i < config_setting_count; i++)
		if (is_first(i))
			text_add(&text, "%s[%s]", i ? ", " : "", config_settings[i].section);
}

void config_complain(struct config_report *report, const char *format, ...)
{
	char problem[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(problem, sizeof(problem), format, args);
	va_end(args);
	report->count++;
	if (report->say && report->count <= PROBLEMS_TOLD_MAX)
		report->say(report->data, problem);
	else if (report->say && report->count == PROBLEMS_TOLD_MAX + 1)
		report->say(report->data, "there are more, which are not listed");
}

int config_set(struct config *config, const struct setting *setting, const char *value,
	       enum origin_kind kind, const char *where, struct config_report *report)
{
	struct origin *origin = config_origin(config, setting);
	char allowed[256], clean[128];
	int r;

	r = setting_parse(setting, value, config, &origin->is_word);
	if (r < 0) {
		setting_describe(setting, allowed, sizeof(allowed));
		text_clean(clean, sizeof(clean), value);
		config_complain(report, "%s: %s is '%s', but must be %s", where, setting->key,
				clean, allowed);
		return r;
	}
	/* an empty value in a file gives the default back */
	origin->kind = kind;
	snprintf(origin->where, sizeof(origin->where), "%s", where);
	return 0;
}

static const char *argument_name(const struct setting *setting)
{
	switch (setting->type) {
	case SETTING_BOOL:
		return "";
	case SETTING_INTEGER:
		return " N";
	case SETTING_BYTES:
		return " SIZE";
	case SETTING_DURATION:
		return " TIME";
	case SETTING_CHOICE:
		return " NAME";
	case SETTING_TEXT:
		return " TEXT";
	case SETTING_PATH:
		return " PATH";
	}
	return "";
}

/* Indented, wrapped at WIDTH columns. */
static void print_wrapped(const char *text)
{
	const int indent = 6;
	int column = 0;

	while (*text) {
		int length = (int)strcspn(text, " ");

		if (column && column + 1 + length > WIDTH) {
			putchar('\n');
			column = 0;
		}
		column += column ? printf(" %.*s", length, text) : printf("%*s%.*s", indent, "", length, text);
		text += length;
		text += strspn(text, " ");
	}
	putchar('\n');
}

void config_print_options(void)
{
	for (size_t i = 0; i < config_setting_count; i++) {
		const struct setting *setting = &config_settings[i];
		char option[64], left[160], allowed[256], text[1024];
		bool is_told = setting->type == SETTING_INTEGER || setting->type == SETTING_CHOICE;

		setting_option(setting, option, sizeof(option));
		setting_describe(setting, allowed, sizeof(allowed));
		if (setting->type == SETTING_BOOL)
			snprintf(left, sizeof(left), "--%s, --no-%s", option, option);
		else
			snprintf(left, sizeof(left), "--%s%s", option, argument_name(setting));
		printf("  %s\n", left);
		snprintf(text, sizeof(text), "%s%s%s (default: %s)", setting->help, is_told ? "; " : "", is_told ? allowed : "",
			 setting->initial);
		print_wrapped(text);
	}
}
