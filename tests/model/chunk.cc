// SPDX-License-Identifier: Apache-2.0
/*
 * Chunk claims: a large receive is copied by whoever has time: the thread that waits for it, the sender's that waits for its end, the
 * daemon's copy workers. A record in shared memory says what is copied, and has a word per chunk: generation and FREE, DONE, CLOSED or
 * the owner, who is alone to copy it.
 *
 * Two receives one after the other use one record of two chunks. The receiver's executor is its thread or the engine, which may change
 * whenever it is between two chunks. The daemon is killed once at any store (@kills), with engine and worker. One event more: the
 * sender's thread stops (and may be killed then), its process ends, it frees the source, the receive times out, the receiver's process
 * ends, or somebody else fails the pair, whereupon the sender uses its buffer for something else. Memory is sequentially consistent: what needs a fence is in README.md.
 *
 * Checked: a receive that ended well has the sender's bytes; nobody writes its destination after it ended, well or not, or after it was
 * taken from a dead receiver; an end is reached, unless somebody is stopped in the middle of a chunk.
 *
 *   chunk [event=none|stop|sender|free|timeout|receiver|fail] [kills=N] [bug=RULE] [trace]
 */
#include <cstdlib>
#include "explore.h"
using u8 = uint8_t;

static const int CHUNKS = 2, RECEIVES = 2;
enum { FREE, DONE, CLOSED, RECEIVER, SENDER, DAEMON };	/* of a claim; DAEMON + incarnation */
enum XPc { LOOK, OPEN, RUN, COPY, WRITE, FINISH, CHECK, COMMIT, CLOSE, FAIL, TELL, OVER };
enum HPc { H_LOOK, H_FIELDS, H_WORD, H_CLAIM, H_COPY, H_WRITE, H_FINISH, H_GONE };
enum { S, W, HELPERS };

struct Helper {
	u8 pc, generation, where, chunk, value;
};
struct State {
	/* the record */
	u8 number, where, generation[CHUNKS], claim[CHUNKS];
	/* the pair, the words of members, the beacon */
	u8 received, failed[RECEIVES + 1], sender_dead, receiver_dead, incarnation, retired, completed;
	/* memory */
	u8 spoilt, to[RECEIVES + 1][CHUNKS];
	/* executor: of the receiver's thread or of the daemon */
	u8 pc, by_client, opened, chunk, value;
	Helper helper[HELPERS];
	/* the world */
	u8 stopped, gone, receiver_gone, kills, event;
	u8 pad[6];
};
static_assert(sizeof(State) % 8 == 0, "words");

static std::string bug = "none", event = "none", violation;
static bool is_bug(const char *name) { return bug == name; }

static u8 daemon_of(const State &s) { return DAEMON + s.incarnation; }
/* Can it be proven that this owner writes nothing any more? */
static bool is_dead(const State &s, u8 owner)
{
	if (owner < RECEIVER || is_bug("take-over")) return false;
	if (is_bug("only-dead")) return true;
	if (owner == RECEIVER) return s.receiver_dead;
	return owner == SENDER ? s.sender_dead : owner < daemon_of(s);
}
static u8 load(const State &s, u8 where) { return s.spoilt && (where == 1 || s.gone) ? 99 : where; }
static void store(State &s, u8 where, u8 chunk, u8 value)
{
	if (s.completed >= where) violation = "the destination was written after the receive had ended";
	s.to[where][chunk] = value;
}
static bool is_lost(const State &s, u8 n) { return s.sender_dead || (n == 1 && s.retired) || (s.failed[n] && !is_bug("failed")); }

/* Steps of the receiver's executor, receive @n. */
static void execute(const State &in, std::vector<State> &out)
{
	State s = in;
	u8 n = s.completed + 1;
	bool all_done = true, all_over = true;

	switch (s.pc) {
	case LOOK:	/* all that an executor knows of a receive it takes over */
		if (n > RECEIVES) s.pc = OVER;
		else if (s.received >= n) s.pc = TELL;
		else if (s.failed[n]) s.pc = s.number == n && !is_bug("failed-open") ? CLOSE : TELL;
		else {
			s.pc = s.number == n && ((s.generation[0] == n && s.generation[1] == n) || is_bug("opened") || is_bug("done-generation"))
				       ? RUN : OPEN;
			/* memory of the dead, or a sender that is gone: nothing is begun */
			if (s.pc == OPEN && (s.receiver_dead || is_lost(s, n)) && s.number != n) s.pc = FAIL;
			s.opened = 0;
		}
		break;
	case OPEN:	/* fields, number, then the words: no claim of an earlier generation is open */
		switch (is_bug("fields-last") ? (s.opened + 2) % 4 : s.opened) {
		case 0: s.where = n; break;
		case 1: s.number = n; break;
		case 2: if (s.generation[0] != n) { s.generation[0] = n; s.claim[0] = FREE; } break;
		case 3: if (s.generation[1] != n) { s.generation[1] = n; s.claim[1] = FREE; } break;
		}
		if (++s.opened == 4) { s.opened = 0; s.pc = RUN; }
		break;
	case RUN:
		for (int c = 0; c < CHUNKS; c++) {
			u8 claim = s.claim[c];
			bool done = claim == DONE && (s.generation[c] == n || is_bug("done-generation"));

			all_done &= done || (is_bug("done-owned") && claim >= RECEIVER);
			if (s.by_client && claim == FREE) {
				State t = s;
				t.claim[c] = RECEIVER; t.chunk = c; t.pc = COPY; out.push_back(t);
			}
			if (is_dead(s, claim) && !(claim == RECEIVER && s.by_client)) { State t = s; t.claim[c] = FREE; out.push_back(t); }
			if (claim == CLOSED && !is_bug("resume")) { State t = s; t.pc = CLOSE; out.push_back(t); }
		}
		if (all_done) { State t = s; t.pc = CHECK; out.push_back(t); }
		if (is_lost(s, n) || s.receiver_dead) { State t = s; t.pc = CLOSE; out.push_back(t); }
		if (event == "timeout" && s.event) { State t = s; t.event = 0; t.pc = CLOSE; out.push_back(t); }
		/* the context changes hands */
		if (!s.receiver_gone) { State t = s; t.by_client = !s.by_client; t.pc = LOOK; out.push_back(t); }
		return;
	case COPY: s.value = load(s, n); s.pc = WRITE; break;
	case WRITE: store(s, n, s.chunk, s.value); s.pc = FINISH; break;
	case FINISH: s.claim[s.chunk] = DONE; s.chunk = s.value = 0; s.pc = RUN; break;
	case CHECK: s.pc = is_lost(s, n) && !is_bug("source") ? CLOSE : COMMIT; break;
	case COMMIT: s.received = n; s.pc = TELL; break;
	case CLOSE:
		for (int c = 0; c < CHUNKS; c++) {
			u8 claim = s.claim[c];

			all_over &= claim == DONE || claim == CLOSED || (claim == FREE && is_bug("close")) ||
				    (claim >= RECEIVER && is_bug("wait"));
			if ((claim == FREE && !is_bug("close")) || is_dead(s, claim)) {
				State t = s;
				t.claim[c] = CLOSED; out.push_back(t);
			}
		}
		if (!all_over) return;
		s.pc = FAIL; break;
	case FAIL: s.failed[n] = 1; s.pc = TELL; break;
	case TELL:
		if (s.received >= n && (s.to[n][0] != n || s.to[n][1] != n)) violation = "wrong data";
		s.completed = n; s.pc = LOOK; break;
	default: return;
	}
	out.push_back(s);
}

static void help(const State &in, int h, std::vector<State> &out)
{
	u8 me = h == S ? (u8)SENDER : daemon_of(in);

	for (int c = 0; c < CHUNKS; c++) {
		State s = in;
		Helper &q = s.helper[h];
		u8 claim;

		if (q.pc != H_LOOK) {
			if (c) return;
			c = q.chunk;
		}
		claim = s.claim[c];
		switch (q.pc) {
		case H_LOOK:
			if (claim != FREE || !s.generation[c]) continue;
			q.chunk = c;
			if (is_bug("word-first")) { q.where = s.where; q.pc = H_WORD; }
			else { q.generation = s.generation[c]; q.pc = H_FIELDS; }
			break;
		case H_FIELDS: q.where = s.where; q.pc = H_CLAIM; break;
		case H_WORD: q.generation = s.generation[c]; q.pc = H_CLAIM; break;
		case H_CLAIM:
			if (claim == FREE && (s.generation[c] == q.generation || is_bug("generation"))) { s.claim[c] = me; q.pc = H_COPY; }
			else q = Helper{};
			break;
		case H_COPY: q.value = load(s, q.where); q.pc = H_WRITE; break;
		case H_WRITE: store(s, q.where, c, q.value); q.pc = H_FINISH; break;
		case H_FINISH: s.claim[c] = DONE; q = Helper{}; break;
		default: return;
		}
		out.push_back(s);
		if (in.helper[h].pc != H_LOOK) return;
	}
}

/* The daemon dies; its successor proves that it is gone before it says who it is. */
static void kill_daemon(const State &in, std::vector<State> &out)
{
	State s = in;

	if (!s.kills) return;
	s.kills--;
	s.incarnation++;
	s.helper[W] = Helper{};
	if (!s.by_client) { s.pc = LOOK; s.opened = s.chunk = s.value = 0; }
	out.push_back(s);
}

static void sender_events(const State &in, std::vector<State> &out)
{
	State s = in;

	if (s.gone) {	/* the word, then the memory */
		if (!s.sender_dead) s.sender_dead = 1;
		else if (!s.spoilt) s.spoilt = 1;
		else return;
		out.push_back(s);
		return;
	}
	if (event == "free" && (s.event || (s.retired && !s.spoilt))) {
		if (s.event) { s.event = 0; s.retired = 1; } else s.spoilt = 1;
		out.push_back(s);
	}
	if (event == "stop" && s.event) { s.event = 0; s.stopped = 1; out.push_back(s); s.stopped = 0; }
	if ((event == "sender" && s.event) || s.stopped) {
		s.event = 0; s.stopped = 0; s.gone = 1; s.helper[S] = Helper{}; s.helper[S].pc = H_GONE;
		out.push_back(s);
	}
}

/* Somebody else fails the pair: the sender's time-out, say. The word, then the memory. */
static void failing_events(const State &in, std::vector<State> &out)
{
	State s = in;

	if (event != "fail") return;
	if (s.event) { s.event = 0; s.failed[1] = 1; } else if (!s.spoilt && s.received < 1) s.spoilt = 1; else return;
	out.push_back(s);
}

static void receiver_events(const State &in, std::vector<State> &out)
{
	State s = in;

	if (s.receiver_gone && !s.receiver_dead) {
		/* from here on the engine has what was the dead thread's */
		s.receiver_dead = 1;
		if (s.by_client) { s.by_client = 0; s.pc = LOOK; s.opened = s.chunk = s.value = 0; }
		out.push_back(s);
	} else if (event == "receiver" && s.event && !s.receiver_gone) {
		s.event = 0; s.receiver_gone = 1;
		out.push_back(s);
	}
}

static void successors(const State &s, std::vector<State> &out)
{
	if (!(s.by_client && s.receiver_gone)) execute(s, out);
	if (!s.stopped) help(s, S, out);
	help(s, W, out);
	kill_daemon(s, out);
	sender_events(s, out);
	receiver_events(s, out);
	failing_events(s, out);
}

static bool is_end(const State &s)
{
	/* who is stopped in the middle of a chunk holds up this transfer, and nothing else */
	if (s.stopped)
		for (int c = 0; c < CHUNKS; c++)
			if (s.claim[c] == SENDER) return true;
	return s.pc == OVER;
}

static void print(const State &s)
{
	static const char *const xpcs[] = {"LOOK", "OPEN", "RUN", "COPY", "WRITE", "FINISH", "CHECK", "COMMIT", "CLOSE", "FAIL", "TELL", "OVER"};
	static const char *const hpcs[] = {"LOOK", "FIELDS", "WORD", "CLAIM", "COPY", "WRITE", "FINISH", "GONE"};
	static const char *const claims[] = {"FREE", "DONE", "CLOSED", "RECEIVER", "SENDER", "DAEMON", "DAEMON'", "DAEMON''"};

	printf(" %s %s", s.by_client ? "client" : "engine", xpcs[s.pc]);
	for (int h = 0; h < HELPERS; h++) printf(" | %s %s %d of %d", h == S ? "sender" : "worker", hpcs[s.helper[h].pc], s.helper[h].chunk, s.helper[h].where);
	printf(" | number %d where %d", s.number, s.where);
	for (int c = 0; c < CHUNKS; c++) printf(" (%d %s)", s.generation[c], claims[s.claim[c]]);
	printf(" | received %d completed %d failed %d %d dead %d %d spoilt %d\n", s.received, s.completed, s.failed[1], s.failed[2],
	       s.sender_dead, s.receiver_dead, s.spoilt);
}

int main(int argc, char **argv)
{
	State first;
	bool trace = false;

	memset(&first, 0, sizeof(first));
	first.by_client = 1;
	first.claim[0] = first.claim[1] = DONE;
	first.kills = 1;
	for (int i = 1; i < argc; i++) {
		std::string a = argv[i];

		if (a.rfind("bug=", 0) == 0) bug = a.substr(4);
		else if (a.rfind("event=", 0) == 0) event = a.substr(6);
		else if (a.rfind("kills=", 0) == 0) first.kills = atoi(a.c_str() + 6);
		else if (a == "trace") trace = true;
		else { printf("unknown argument %s\n", argv[i]); return 2; }
	}
	first.event = event != "none";
	return explore_all(first, successors, is_end, violation, [&](const State &s) { if (trace) print(s); });
}
