/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that somebody may want to find, count or act on in the journal: MESSAGE_ID= of their lines, which never changes.
 * `journalctl MESSAGE_ID=...`; hccld(8) lists them, and a test compares it.
 */
#pragma once

/* X(name, 128 bits in hexadecimal, what it is) */
#define EVENT_TABLE(X)                                                                               \
	X(SERVING, "b3d2a0d324cf40aa8cb618959ae13f11", "the daemon serves")                          \
	X(TAKEN_OVER, "935871ed3a9f4d2abecd6c78aeab05e4", "it has taken over the state of an earlier process") \
	X(STOPPING, "2b50710e86854c7d8da8b500a6760e6a", "it has been asked to stop")                 \
	X(PROCESS_DIED, "307d56871be047c39477e94874bcc6b4", "a process with a session was killed")   \
	X(COMM_FAILED, "ff570b58c91a4e199002a7dcbdf3af9a", "a communicator failed, or lost a rank")  \
	X(LIAR_ENDED, "ae1363d887bd41bd8a389da9e578bba6", "a process broke the protocol; its session was ended") \
	X(LIMIT_REFUSED, "c70e57d2d0bf4857b0b2a185dd5efa1c", "a request was refused because of a limit") \
	X(RELOADED, "70744cbd77624a558494edaeb07b7986", "the configuration was read again")          \
	X(RELOAD_REFUSED, "c40a37c94a4b46758274b672095d24c8", "it was not: it has errors; nothing has changed") \
	X(ADMINISTRATION, "5029d6a8f06f4127a072fe2a88588644", "somebody has acted on the daemon; HCCLD_UID= says who")

enum event {
	EVENT_NONE,
#define EVENT_ENUMERATOR(name, id, text) EVENT_##name,
	EVENT_TABLE(EVENT_ENUMERATOR)
#undef EVENT_ENUMERATOR
	EVENT_COUNT
};
