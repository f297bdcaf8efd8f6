/* SPDX-License-Identifier: Apache-2.0 */
/* The place where older programs look for hcomm/hcomm_primitives.h. */
#pragma once

#include "../hcomm/hcomm_primitives.h"
