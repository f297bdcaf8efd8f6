// SPDX-License-Identifier: Apache-2.0
/*
 * Chunk claims: a large receive is copied by whoever has time: the engine's copy worker, a thread of the receiver's process that waits for it,
 * one of the sender's that waits for its end. A record in shared memory says what is copied, and has a word per chunk: generation and FREE,
 * DONE, CLOSED or the owner, who is alone to copy it.
 *
 * Two receives one after the other use one record of two chunks. The executor is the engine, which keeps to itself that it has opened the record.
 * The daemon is killed @kills times at any store, with engine and worker: the next one recovers first. One event more: the sender's or the
 * receiver's thread stops (and may be killed then), the sender's process ends, it frees the source, the receive times out, the receiver's
 * process ends, or somebody else fails the pair, whereupon the sender uses its buffer for something else. Memory is sequentially
 * consistent: what needs a fence is in README.md.
 *
 * Checked: a receive that ended well has the sender's bytes; nobody writes its destination after it ended, well or not, or after it was
 * taken from a dead receiver; an end is reached, unless somebody is stopped in the middle of a chunk.
 *
 *   chunk [event=none|stop|stop-receiver|sender|free|timeout|receiver|fail] [kills=N] [bug=RULE] [trace]
 */
#include <cstdlib>
#include "explore.h"
using u8 = uint8_t;

static const int CHUNKS = 2, RECEIVES = 2;
enum { FREE, DONE, CLOSED, RECEIVER, SENDER, DAEMON };	/* of a claim; DAEMON + incarnation */
enum XPc { LOOK, OPEN, RUN, CHECK, COMMIT, CLOSE, FAIL, TELL, OVER, RECOVER };
enum HPc { H_LOOK, H_FIELDS, H_WORD, H_CLAIM, H_COPY, H_WRITE, H_FINISH, H_GONE };
enum { S, R, W, HELPERS };

struct Helper {
	u8 pc, generation, where, chunk, value, me;
};
struct State {
	/* the record */
	u8 where, last, generation[CHUNKS], claim[CHUNKS];
	/* the pair, the words of members, the beacon */
	u8 received, failed[RECEIVES + 1], sender_dead, receiver_dead, incarnation, retired, completed;
	/* memory */
	u8 spoilt, to[RECEIVES + 1][CHUNKS];
	/* the engine: what it has opened */
	u8 pc, opened, mine;
	Helper helper[HELPERS];
	/* the world */
	u8 stopped, gone, receiver_gone, kills, event;
	u8 pad[8];
};
static_assert(sizeof(State) % 8 == 0, "words");

static std::string bug = "none", event = "none", violation;
static bool is_bug(const char *name) { return bug == name; }

static u8 daemon_of(const State &s) { return DAEMON + s.incarnation; }
/* Can it be proven that this owner writes nothing any more? */
static bool is_dead(const State &s, u8 owner)
{
	if (owner < RECEIVER) return false;
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

/* C6: nobody claims any more; false: somebody owns a chunk. @out: the steps that come first. */
static bool close_all(const State &s, std::vector<State> &out, bool closes, bool waits)
{
	bool all_over = true;

	for (int c = 0; c < CHUNKS; c++) {
		u8 claim = s.claim[c];

		all_over &= claim == DONE || claim == CLOSED || (claim == FREE && !closes) || (claim >= RECEIVER && !waits);
		if ((claim == FREE && closes) || is_dead(s, claim)) {
			State t = s;
			t.claim[c] = CLOSED; out.push_back(t);
		}
	}
	return all_over;
}

/* Steps of the engine, receive @n. */
static void execute(const State &in, std::vector<State> &out)
{
	State s = in;
	u8 n = s.completed + 1;
	bool all_done = true;

	switch (s.pc) {
	case RECOVER:	/* what the one before has left: then all begins anew */
		if (!close_all(s, out, !is_bug("recover"), !is_bug("remain"))) return;
		s.pc = LOOK; break;
	case LOOK:
		if (n > RECEIVES) s.pc = OVER;
		else if (s.received >= n || s.failed[n]) s.pc = TELL;
		/* memory of the dead, or a sender that is gone: nothing is begun */
		else s.pc = s.receiver_dead || is_lost(s, n) ? FAIL : OPEN;
		s.opened = 0;
		s.mine = s.last + 1;
		break;
	case OPEN:	/* fields, generation, then the words: no claim of an earlier generation is open */
		switch (is_bug("fields-last") ? (s.opened + 2) % 4 : s.opened) {
		case 0: s.where = n; break;
		case 1: s.last = s.mine; break;
		case 2: s.generation[0] = s.mine; s.claim[0] = FREE; break;
		case 3: s.generation[1] = s.mine; s.claim[1] = FREE; break;
		}
		if (++s.opened == 4) { s.opened = 0; s.pc = RUN; }
		break;
	case RUN:
		for (int c = 0; c < CHUNKS; c++)
			all_done &= s.claim[c] == DONE || (is_bug("done-owned") && s.claim[c] >= RECEIVER);
		if (all_done) { State t = s; t.pc = CHECK; out.push_back(t); }
		if (is_lost(s, n) || s.receiver_dead) { State t = s; t.pc = CLOSE; out.push_back(t); }
		if (event == "timeout" && s.event) { State t = s; t.event = 0; t.pc = CLOSE; out.push_back(t); }
		return;
	case CHECK: s.pc = is_lost(s, n) && !is_bug("source") ? CLOSE : COMMIT; break;
	case COMMIT: s.received = n; s.pc = TELL; break;
	case CLOSE:
		if (!close_all(s, out, !is_bug("close"), !is_bug("wait"))) return;
		s.pc = FAIL; break;
	case FAIL: s.failed[n] = 1; s.pc = TELL; break;
	case TELL:
		if (s.received >= n && (s.to[n][0] != n || s.to[n][1] != n)) violation = "wrong data";
		s.completed = n; s.pc = LOOK; break;
	default: return;
	}
	out.push_back(s);
}

/* failed-open: a task whose pair has failed ends, whatever is open. */
static void end_failed(const State &in, std::vector<State> &out)
{
	State s = in;

	if (!is_bug("failed-open") || s.pc != RUN || !s.failed[s.completed + 1]) return;
	s.pc = TELL;
	out.push_back(s);
}

static void help(const State &in, int h, std::vector<State> &out)
{
	/* the worker has what the engine gives it: not before it has recovered */
	if (h == W && (in.pc == RECOVER || in.pc == LOOK) && in.helper[W].pc == H_LOOK) return;
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
			q.me = h == S ? (u8)SENDER : h == R ? (u8)RECEIVER : daemon_of(in);
			if (is_bug("word-first")) { q.where = s.where; q.pc = H_WORD; }
			else { q.generation = s.generation[c]; q.pc = H_FIELDS; }
			break;
		case H_FIELDS: q.where = s.where; q.pc = H_CLAIM; break;
		case H_WORD: q.generation = s.generation[c]; q.pc = H_CLAIM; break;
		case H_CLAIM:
			if (claim == FREE && (s.generation[c] == q.generation || is_bug("generation"))) {
				q.generation = s.generation[c]; s.claim[c] = q.me; q.pc = H_COPY;
			} else q = Helper{};
			break;
		case H_COPY: q.value = load(s, q.where); q.pc = H_WRITE; break;
		case H_WRITE: store(s, q.where, c, q.value); q.pc = H_FINISH; break;
		case H_FINISH:
			if (claim == q.me && s.generation[c] == q.generation) s.claim[c] = DONE;
			q = Helper{}; break;
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
	s.pc = RECOVER; s.opened = s.mine = 0;
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
	if ((event == "sender" && s.event) || s.stopped == 1) {
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

	if (s.receiver_gone) {
		if (s.receiver_dead) return;
		s.receiver_dead = 1;
		out.push_back(s);
		return;
	}
	if (event == "stop-receiver" && s.event) { s.event = 0; s.stopped = 2; out.push_back(s); s.stopped = 0; }
	if ((event == "receiver" && s.event) || s.stopped == 2) {
		s.event = 0; s.stopped = 0; s.receiver_gone = 1; s.helper[R] = Helper{}; s.helper[R].pc = H_GONE;
		out.push_back(s);
	}
}

static void successors(const State &s, std::vector<State> &out)
{
	execute(s, out);
	end_failed(s, out);
	if (s.stopped != 1) help(s, S, out);
	if (s.stopped != 2) help(s, R, out);
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
			if (s.claim[c] == (s.stopped == 1 ? SENDER : RECEIVER)) return true;
	return s.pc == OVER;
}

static void print(const State &s)
{
	static const char *const xpcs[] = {"LOOK", "OPEN", "RUN", "CHECK", "COMMIT", "CLOSE", "FAIL", "TELL", "OVER", "RECOVER"};
	static const char *const hpcs[] = {"LOOK", "FIELDS", "WORD", "CLAIM", "COPY", "WRITE", "FINISH", "GONE"};
	static const char *const claims[] = {"FREE", "DONE", "CLOSED", "RECEIVER", "SENDER", "DAEMON", "DAEMON'", "DAEMON''"};
	static const char *const names[] = {"sender", "receiver", "worker"};

	printf(" engine %s (%d)", xpcs[s.pc], s.mine);
	for (int h = 0; h < HELPERS; h++) printf(" | %s %s %d of %d", names[h], hpcs[s.helper[h].pc], s.helper[h].chunk, s.helper[h].where);
	printf(" | last %d where %d", s.last, s.where);
	for (int c = 0; c < CHUNKS; c++) printf(" (%d %s)", s.generation[c], claims[s.claim[c]]);
	printf(" | received %d completed %d failed %d %d dead %d %d spoilt %d\n", s.received, s.completed, s.failed[1], s.failed[2],
	       s.sender_dead, s.receiver_dead, s.spoilt);
}

int main(int argc, char **argv)
{
	State first;
	bool trace = false;

	memset(&first, 0, sizeof(first));
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
