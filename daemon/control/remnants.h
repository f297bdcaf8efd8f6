/* SPDX-License-Identifier: Apache-2.0 */
/* Ended sessions whose processes live (registry/remnant.h): when those end their places are free. */
#pragma once

struct control;
struct session;
struct tenant;

/* Before session_remove() of one that leaves a remnant. */
void remnants_add(struct control *control, struct session *session);
/* Those that the registry has restored. */
void remnants_watch(struct control *control);
/* The yard of @tenant goes: nobody shares it any more. */
void remnants_drop(struct control *control, const struct tenant *tenant);
/* The daemon stops: the next process finds them. */
void remnants_forget(struct control *control);
