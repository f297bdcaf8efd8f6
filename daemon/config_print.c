/* SPDX-License-Identifier: Apache-2.0 */
/* For the build: writes the table of settings as an example file ("example") or as a part of hccld.conf(5) ("manual"). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config.h"

/* "socket path" becomes "# Socket path." in lines of at most 100 columns. */
static void print_wrapped(const char *prefix, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t length = strcspn(text, " ");

		if (column && column + 1 + length > 97) {
			putchar('\n');
			column = 0;
		}
		if (column)
			putchar(' ');
		else
			fputs(prefix, stdout);
		printf("%.*s", (int)length, text);
		column += length + 1;
		text += length;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void sentence(const struct setting *setting, char *buffer, size_t size)
{
	char allowed[256];

	setting_describe(setting, allowed, sizeof(allowed));
	snprintf(buffer, size, "%c%s. %c%s. Default: %s. %s", toupper(setting->help[0]),
		 setting->help + 1, toupper(allowed[0]), allowed + 1, setting->initial,
		 setting->is_reloadable ? "Can be reloaded." : "Needs a restart.");
}

static void print_example(void)
{
	const char *section = "";
	char text[1024];

	puts("# hccld's settings at their defaults: see hccld.conf(5). `hccld --check-config` checks the file,\n"
	     "# `systemctl reload hccld` (or SIGHUP) makes a running daemon read it.");
	for (size_t i = 0; i < config_setting_count; i++) {
		const struct setting *setting = &config_settings[i];

		if (strcmp(section, setting->section) != 0)
			printf("\n[%s]\n", setting->section);
		section = setting->section;
		sentence(setting, text, sizeof(text));
		putchar('\n');
		print_wrapped("# ", text);
		printf("#%s = %s\n", setting->key, setting->initial);
	}
}

/* As text of scdoc: underscores and stars are literal. */
static void print_escaped(const char *text)
{
	for (; *text; text++) {
		if (strchr("_*\\", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void print_manual(void)
{
	const char *section = "";
	char text[1024], option[64];

	for (size_t i = 0; i < config_setting_count; i++) {
		const struct setting *setting = &config_settings[i];

		if (strcmp(section, setting->section) != 0)
			printf("# SECTION [%s]\n\n", setting->section);
		section = setting->section;
		putchar('*');
		print_escaped(setting->key);
		printf("*\n\t");
		sentence(setting, text, sizeof(text));
		print_escaped(text);
		setting_option(setting, option, sizeof(option));
		if (setting->type == SETTING_BOOL)
			printf(" Options *--%s*, *--no-%s*", option, option);
		else
			printf(" Option *--%s*", option);
		if (setting->environment)
			printf(", variable *%s*", setting->environment);
		printf(".\n\n");
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "example") == 0)
		print_example();
	else if (argc == 2 && strcmp(argv[1], "manual") == 0)
		print_manual();
	else
		return 2;
	return fflush(stdout) != 0 || ferror(stdout);
}
