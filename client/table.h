/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For variables that are large and zero, of which most processes touch a page or none. They lie behind all small ones (meson.build: the linker
 * sorts by section), which then share few pages, and not one between each two tables.
 */
#pragma once

#ifdef __SANITIZE_ADDRESS__ /* which looks after no variable in a section of its own */
#define HCCLD_TABLE
#else
#define HCCLD_TABLE __attribute__((section(".bss.tables")))
#endif
