/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of --json: objects with lower_case names, 64-bit numbers with all their digits, text that is valid UTF-8. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

void json_number(cJSON *object, const char *name, uint64_t value);
void json_text(cJSON *object, const char *name, const char *text);
/* Adds @item to @array, or frees it when that fails. */
void json_append(cJSON *array, cJSON *item);
void json_append_number(cJSON *array, uint64_t value);
/* Prints and frees. Returns the exit status. */
int json_print(cJSON *root);
/* The same in one line, written at once. */
int json_print_line(cJSON *root);
