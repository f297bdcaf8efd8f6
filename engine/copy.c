/* SPDX-License-Identifier: Apache-2.0 */
/* Copies past the cache, for what is too large to stay in it. Portable form; x86-64 has streaming stores. */
#include "engine/copy.h"

#include <stdio.h>
#include <string.h>

#include "proto/limits.h"

/* The kernel's word for it: sysconf and cpuid count the caches of other sockets in on virtual machines. */
uint64_t copy_cache(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
	unsigned long kib = 0;

	if (file) {
		if (fscanf(file, "%luK", &kib) != 1)
			kib = 0;
		fclose(file);
	}
	return kib ? (uint64_t)kib * 1024 : HCCLD_CACHE;
}

#ifdef __x86_64__
#include <immintrin.h>

__attribute__((target("avx512f"))) static void copy_stream_512(unsigned char *to, const unsigned char *from, size_t bytes)
{
	for (; bytes >= 256; bytes -= 256, to += 256, from += 256) {
		__m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 64);
		__m512i c = _mm512_loadu_si512(from + 128), d = _mm512_loadu_si512(from + 192);

		_mm512_stream_si512((void *)to, a);
		_mm512_stream_si512((void *)(to + 64), b);
		_mm512_stream_si512((void *)(to + 128), c);
		_mm512_stream_si512((void *)(to + 192), d);
	}
	memmove(to, from, bytes);
}

static void copy_stream_128(unsigned char *to, const unsigned char *from, size_t bytes)
{
	for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
		const __m128i *f = (const __m128i *)from;
		__m128i *t = (__m128i *)to;
		__m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1), c = _mm_loadu_si128(f + 2), d = _mm_loadu_si128(f + 3);

		_mm_stream_si128(t, a);
		_mm_stream_si128(t + 1, b);
		_mm_stream_si128(t + 2, c);
		_mm_stream_si128(t + 3, d);
	}
	memmove(to, from, bytes);
}

void copy_non_temporal(void *destination, const void *source, size_t bytes)
{
	unsigned char *to = destination;
	const unsigned char *from = source;
	size_t head = (size_t)(-(uintptr_t)to & 63);

	if (bytes < 1024) {
		memmove(to, from, bytes);
		return;
	}
	memmove(to, from, head);
	if (__builtin_cpu_supports("avx512f"))
		copy_stream_512(to + head, from + head, bytes - head);
	else
		copy_stream_128(to + head, from + head, bytes - head);
	_mm_sfence();	/* streaming stores are not ordered by a later release store */
}
#else
void copy_non_temporal(void *destination, const void *source, size_t bytes)
{
	memmove(destination, source, bytes);
}
#endif
