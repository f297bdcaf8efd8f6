/* SPDX-License-Identifier: Apache-2.0 */
/* What cJSON lacks. Without memory a field is missing or json_print() says so. */
#include "hcclctl/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hcclctl/command.h"
#include "hcclctl/text.h"
#include "proto/cleanup.h"

/* cJSON's numbers are doubles, our ids have 64 bits. */
void json_number(cJSON *object, const char *name, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	cJSON_AddRawToObject(object, name, digits);
}

void json_text(cJSON *object, const char *name, const char *text)
{
	CLEANUP(freep) char *clean = text_clean(text);

	cJSON_AddStringToObject(object, name, clean ? clean : "");
}

void json_append(cJSON *array, cJSON *item)
{
	if (!cJSON_AddItemToArray(array, item))
		cJSON_Delete(item);
}

void json_append_number(cJSON *array, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	json_append(array, cJSON_CreateRaw(digits));
}

static int print_text(cJSON *root, char *text)
{
	cJSON_Delete(root);
	if (!text) {
		complain("out of memory");
		return STATUS_STUCK;
	}
	puts(text);
	free(text);
	return STATUS_OK;
}

int json_print(cJSON *root)
{
	return print_text(root, root ? cJSON_Print(root) : NULL);
}

int json_print_line(cJSON *root)
{
	int status = print_text(root, root ? cJSON_PrintUnformatted(root) : NULL);

	return output_flush() < 0 ? STATUS_STUCK : status;
}
