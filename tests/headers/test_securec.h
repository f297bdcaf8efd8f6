/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of securec.h in libc_sec.so: the same checks as for the inline ones. As C and as C++. Argument: the library. */
#pragma once

#include <dlfcn.h>

#include "public.h"

#define FUNCTIONS(X)                                                                                                   \
	X(memset_s) X(memmove_s) X(memcpy_s) X(strcpy_s) X(strncpy_s) X(strcat_s) X(strncat_s) X(sprintf_s) X(snprintf_s) \
	X(vsprintf_s) X(vsnprintf_s) X(snprintf_truncated_s) X(vsnprintf_truncated_s) X(strtok_s)

#define DECLARE(name) static __typeof__(&name) library_##name;
FUNCTIONS(DECLARE)

/* The number that are missing. */
static inline int load_all(void *library)
{
	int missing = 0;

#define LOAD(name) \
	library_##name = (__typeof__(&name))dlsym(library, #name); \
	missing += !library_##name;
	FUNCTIONS(LOAD)
	return missing;
}

#define memset_s library_memset_s
#define memmove_s library_memmove_s
#define memcpy_s library_memcpy_s
#define strcpy_s library_strcpy_s
#define strncpy_s library_strncpy_s
#define strcat_s library_strcat_s
#define strncat_s library_strncat_s
#define sprintf_s library_sprintf_s
#define snprintf_s library_snprintf_s
#define vsprintf_s library_vsprintf_s
#define vsnprintf_s library_vsnprintf_s
#define snprintf_truncated_s library_snprintf_truncated_s
#define vsnprintf_truncated_s library_vsnprintf_truncated_s
#define strtok_s library_strtok_s
#include "init_checks.h"

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;

	CHECK(library);
	CHECK(load_all(library) == 0);
	check_securec_memory();
	check_securec_text();
	check_securec_printing();
	return dlclose(library);
}
