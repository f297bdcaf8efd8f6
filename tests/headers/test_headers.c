/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts and values at compile time, initialisers at run time. */
#include "public.h"
#include "layout_checks.h"
#include "value_checks.h"
#include "init_checks.h"

int main(void)
{
	check_all();
	return 0;
}
