/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounded string and memory functions of CANN's securec.h that programs use, as inline
 * functions: no library is needed. libc_sec.so has the same ones as symbols, for programs that were
 * built with another securec.h, and for -lc_sec. Behaviour is that of the original: sizes are bytes; nothing is
 * written beyond destMax; on an error the destination is cleared (memory) or made the empty string
 * (text) where it can be. Results: EOK, EINVAL (NULL), ERANGE (destMax 0 or too large), the same
 * plus 128 where the destination was reset; the printf functions return the length or -1.
 * The include guard is that of the original, so whichever comes first in a file is used.
 */
#ifndef SECUREC_H_5D13A042_DC3F_4ED9_A8D1_882811274C27
#define SECUREC_H_5D13A042_DC3F_4ED9_A8D1_882811274C27

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* libc_sec.so sets it to nothing. */
#ifndef HCCLD_SECUREC_FUNCTION
#define HCCLD_SECUREC_FUNCTION static inline
#endif

typedef int errno_t;

#ifndef EOK
#define EOK 0
#endif
#define EINVAL_AND_RESET (EINVAL | 128)
#define ERANGE_AND_RESET (ERANGE | 128)
#define EOVERLAP_AND_RESET 182

#define SECUREC_MEM_MAX_LEN 0x7fffffffUL
#define SECUREC_STRING_MAX_LEN 0x7fffffffUL

/* Sets count bytes to c; more than destMax: sets destMax bytes, ERANGE_AND_RESET. */
HCCLD_SECUREC_FUNCTION errno_t memset_s(void *dest, size_t destMax, int c, size_t count)
{
	if (destMax == 0 || destMax > SECUREC_MEM_MAX_LEN)
		return ERANGE;
	if (!dest)
		return EINVAL;
	if (count > destMax) {
		memset(dest, c, destMax);
		return ERANGE_AND_RESET;
	}
	memset(dest, c, count);
	return EOK;
}

/* Copies count bytes; the regions may overlap. */
HCCLD_SECUREC_FUNCTION errno_t memmove_s(void *dest, size_t destMax, const void *src, size_t count)
{
	if (destMax == 0 || destMax > SECUREC_MEM_MAX_LEN)
		return ERANGE;
	if (!dest)
		return EINVAL;
	if (!src || count > destMax) {
		memset(dest, 0, destMax);
		return src ? ERANGE_AND_RESET : EINVAL_AND_RESET;
	}
	memmove(dest, src, count);
	return EOK;
}

/* Copies count bytes; regions that overlap: EOVERLAP_AND_RESET. */
HCCLD_SECUREC_FUNCTION errno_t memcpy_s(void *dest, size_t destMax, const void *src, size_t count)
{
	const uintptr_t to = (uintptr_t)dest, from = (uintptr_t)src;

	if (dest && src && to != from && destMax != 0 && destMax <= SECUREC_MEM_MAX_LEN &&
	    count <= destMax && (to < from ? from - to : to - from) < count) {
		memset(dest, 0, destMax);
		return EOVERLAP_AND_RESET;
	}
	return memmove_s(dest, destMax, src, count);
}

/* Bytes before the NUL, at most limit. */
static inline size_t hccld_securec_length(const char *text, size_t limit)
{
	size_t length = 0;

	while (length < limit && text[length] != '\0')
		length++;
	return length;
}

/* Appends at most count bytes of src at strDest + used; what does not fit resets the text. */
static inline errno_t hccld_securec_append(char *strDest, size_t destMax, size_t used,
		const char *strSrc, size_t count)
{
	size_t length;

	if (!strSrc) {
		strDest[0] = '\0';
		return EINVAL_AND_RESET;
	}
	length = hccld_securec_length(strSrc, count < destMax ? count : destMax);
	if (length >= destMax - used) {
		strDest[0] = '\0';
		return ERANGE_AND_RESET;
	}
	if (length != 0 && strSrc < strDest + used + length + 1 && strDest < strSrc + length + 1 &&
	    strDest + used != strSrc) {
		strDest[0] = '\0';
		return EOVERLAP_AND_RESET;
	}
	memmove(strDest + used, strSrc, length);
	strDest[used + length] = '\0';
	return EOK;
}

/* Copies a text with its NUL. */
HCCLD_SECUREC_FUNCTION errno_t strcpy_s(char *strDest, size_t destMax, const char *strSrc)
{
	if (destMax == 0 || destMax > SECUREC_STRING_MAX_LEN)
		return ERANGE;
	if (!strDest)
		return EINVAL;
	return hccld_securec_append(strDest, destMax, 0, strSrc, SIZE_MAX);
}

/* Copies at most count bytes of a text and a NUL. */
HCCLD_SECUREC_FUNCTION errno_t strncpy_s(char *strDest, size_t destMax, const char *strSrc, size_t count)
{
	if (destMax == 0 || destMax > SECUREC_STRING_MAX_LEN)
		return ERANGE;
	if (!strDest)
		return EINVAL;
	return hccld_securec_append(strDest, destMax, 0, strSrc, count);
}

/* Appends at most count bytes of a text and a NUL; no NUL in strDest: EINVAL_AND_RESET. */
HCCLD_SECUREC_FUNCTION errno_t strncat_s(char *strDest, size_t destMax, const char *strSrc, size_t count)
{
	size_t used;

	if (destMax == 0 || destMax > SECUREC_STRING_MAX_LEN)
		return ERANGE;
	if (!strDest)
		return EINVAL;
	used = hccld_securec_length(strDest, destMax);
	if (used == destMax) {
		strDest[0] = '\0';
		return EINVAL_AND_RESET;
	}
	return hccld_securec_append(strDest, destMax, used, strSrc, count);
}

/* Appends a text. */
HCCLD_SECUREC_FUNCTION errno_t strcat_s(char *strDest, size_t destMax, const char *strSrc)
{
	return strncat_s(strDest, destMax, strSrc, SIZE_MAX);
}

/* Prints at most count bytes and a NUL; -1: cut there, or reset because destMax is too small. */
__attribute__((format(printf, 4, 0)))
HCCLD_SECUREC_FUNCTION int vsnprintf_s(char *strDest, size_t destMax, size_t count, const char *format,
		va_list argList)
{
	const size_t room = count < destMax ? count + 1 : destMax;
	int length;

	if (!strDest || !format || destMax == 0 || destMax > SECUREC_STRING_MAX_LEN) {
		if (strDest && destMax != 0 && destMax <= SECUREC_STRING_MAX_LEN)
			strDest[0] = '\0';
		return -1;
	}
	length = vsnprintf(strDest, room, format, argList);
	if (length >= 0 && (size_t)length < room)
		return length;
	if (length < 0 || count >= destMax)
		strDest[0] = '\0';
	return -1;
}

/* Prints a text with its NUL; -1 and the empty text if it does not fit. */
__attribute__((format(printf, 3, 0)))
HCCLD_SECUREC_FUNCTION int vsprintf_s(char *strDest, size_t destMax, const char *format, va_list argList)
{
	return vsnprintf_s(strDest, destMax, SIZE_MAX, format, argList);
}

/* As vsnprintf_s. */
__attribute__((format(printf, 4, 5)))
HCCLD_SECUREC_FUNCTION int snprintf_s(char *strDest, size_t destMax, size_t count, const char *format, ...)
{
	va_list argList;
	int r;

	va_start(argList, format);
	r = vsnprintf_s(strDest, destMax, count, format, argList);
	va_end(argList);
	return r;
}

/* As vsprintf_s. */
__attribute__((format(printf, 3, 4)))
HCCLD_SECUREC_FUNCTION int sprintf_s(char *strDest, size_t destMax, const char *format, ...)
{
	va_list argList;
	int r;

	va_start(argList, format);
	r = vsnprintf_s(strDest, destMax, SIZE_MAX, format, argList);
	va_end(argList);
	return r;
}

/* Prints what fits and a NUL: the length of that; -1 and the empty text on an error. */
__attribute__((format(printf, 3, 0)))
HCCLD_SECUREC_FUNCTION int vsnprintf_truncated_s(char *strDest, size_t destMax, const char *format,
		va_list argList)
{
	int length = -1;

	if (strDest && format && destMax != 0 && destMax <= SECUREC_STRING_MAX_LEN)
		length = vsnprintf(strDest, destMax, format, argList);
	if (length >= 0)
		return (size_t)length < destMax ? length : (int)(destMax - 1);
	if (strDest && destMax != 0 && destMax <= SECUREC_STRING_MAX_LEN)
		strDest[0] = '\0';
	return -1;
}

/* As vsnprintf_truncated_s. */
__attribute__((format(printf, 3, 4)))
HCCLD_SECUREC_FUNCTION int snprintf_truncated_s(char *strDest, size_t destMax, const char *format,
		...)
{
	va_list argList;
	int r;

	va_start(argList, format);
	r = vsnprintf_truncated_s(strDest, destMax, format, argList);
	va_end(argList);
	return r;
}

/* Splits a text in place as strtok_r does. */
HCCLD_SECUREC_FUNCTION char *strtok_s(char *strToken, const char *strDelimit, char **context)
{
	char *start;

	if (!strDelimit || !context || (!strToken && !*context))
		return NULL;
	start = strToken ? strToken : *context;
	start += strspn(start, strDelimit);
	if (*start == '\0') {
		*context = NULL;
		return NULL;
	}
	*context = start + strcspn(start, strDelimit);
	if (**context == '\0')
		*context = NULL;
	else
		*(*context)++ = '\0';
	return start;
}

#ifdef __cplusplus
}
#endif

#endif
