// SPDX-License-Identifier: Apache-2.0
/*
 * Eager slots: a sender's executor copies a payload into a slot of its rank's pool in the communicator region; the slot says {pair,
 * number}, and is free iff that number will not be read any more. There is no free list, so that a kill between any two stores loses
 * no slot and gives none away twice.
 *
 * One sending rank with two slots, two pairs X and Y, four runs of sends; the executors of the sender and of both destinations are
 * killed and replaced at any store, whoever they are. One event more: the sender's process ends, a destination's does, a pair fails
 * (a time-out, say), or the ranks of pair X are suspended. Memory is sequentially consistent: what needs a fence is in README.md.
 *
 * Checked: what a destination commits is what was sent under that number; what is below `tail` in a slot is received, whatever has
 * become of its sender; `received` and `tail` only grow, by what they should; in the end all slots are free.
 *
 *   eager [event=none|sender|destination|fail|suspend] [kills=N] [bug=RULE] [trace]
 */
#include <cstdlib>
#include "explore.h"
using u8 = uint8_t;

enum { X, Y, PAIRS };
static const int SLOTS = 2, RUNS = 4, MOST = 3;
static const struct { u8 pair, count; } runs[RUNS] = {{X, 2}, {Y, 1}, {X, 1}, {Y, 2}};

enum Pc { START, SLOT, CLAIM, PAY0, PAY1, OFFER, TAIL, NEXT, OVER };		/* of the sender's executor */
enum RPc { R_LOOK, R_CHECK, R_COPY0, R_COPY1, R_AGAIN, R_COMMIT };	/* of a destination's */
enum { SEGMENT = SLOTS };	/* where of an offer; or the number of a slot */

struct State {
	/* shared */
	u8 run, first;			/* the stream's progress; number of the run's first item, 0: not issued */
	u8 slot_pair[SLOTS], slot_number[SLOTS], slot_pay[SLOTS][2];
	u8 tail[PAIRS], received[PAIRS], failed[PAIRS];
	u8 offer_number[PAIRS][MOST + 1], offer_where[PAIRS][MOST + 1];
	u8 gone, dead[PAIRS];		/* the sender's process; the destinations': member words */
	/* executors */
	u8 pc, at, slot;
	u8 rpc[PAIRS], rwhere[PAIRS], rpay[PAIRS][2];
	/* the world */
	u8 kills, event, emptying;
	u8 pad[7];
};
static_assert(sizeof(State) % 8 == 0, "words");

static std::string bug = "none", event = "none", violation;
static bool is_bug(const char *name) { return bug == name; }
static u8 payload(int pair, int number) { return 16 * (pair + 1) + number; }

/* Will nobody read number @n of @pair any more? */
static bool is_free(const State &s, int i)
{
	int pair = s.slot_pair[i], n = s.slot_number[i];

	if (n <= s.received[pair]) return true;
	if (is_bug("at-tail") && n <= s.tail[pair]) return true;
	if (is_bug("above-tail") && n > s.tail[pair]) return true;
	if (s.failed[pair] && n >= s.failed[pair] && !is_bug("failed")) return true;
	return s.dead[pair] && !is_bug("gone");
}

/* One step of the sender's executor: at most one store. */
static void send(const State &in, std::vector<State> &out)
{
	State s = in;
	int pair = s.run < RUNS ? runs[s.run].pair : 0, count = s.run < RUNS ? runs[s.run].count : 0, n = s.first + s.at - (s.at == count);

	switch (s.pc) {
	case START:
		if (s.run == RUNS || s.gone) { s.pc = OVER; break; }
		if (s.first && s.tail[pair] >= s.first + count - 1) { s.pc = NEXT; break; }
		/* ends with an error; but what has a number below `failed` is still offered */
		if (s.dead[pair] || (s.failed[pair] && (!s.first || s.first >= s.failed[pair] || is_bug("numbered")))) { s.pc = NEXT; break; }
		if (!s.first) { s.first = s.tail[pair] + 1; break; }
		s.at = 0; s.pc = SLOT; break;
	case SLOT:
		s.slot = SEGMENT;
		for (int i = 0; i < SLOTS; i++)
			if (is_free(s, i)) s.slot = i;
		s.pc = s.slot == SEGMENT ? OFFER : is_bug("claim-first") ? PAY0 : CLAIM;
		break;
	case CLAIM:	/* the word before the payload: who still reads the slot finds out */
		s.slot_pair[s.slot] = pair; s.slot_number[s.slot] = n; s.pc = is_bug("claim-first") || is_bug("tail-last") ? OFFER : PAY0; break;
	case PAY0: s.slot_pay[s.slot][0] = payload(pair, n); s.pc = PAY1; break;
	case PAY1: s.slot_pay[s.slot][1] = payload(pair, n); s.pc = is_bug("claim-first") ? CLAIM : is_bug("tail-last") ? NEXT : OFFER; break;
	case OFFER:
		s.offer_number[pair][n] = n; s.offer_where[pair][n] = s.slot;
		s.pc = ++s.at < count ? SLOT : TAIL; break;
	case TAIL: s.tail[pair] = s.first + count - 1; s.pc = is_bug("tail-last") && s.slot != SEGMENT ? PAY0 : NEXT; break;
	case NEXT:
		/* a send in a segment holds up its stream until it is received, or fails with its pair */
		for (int i = s.first; s.first && i < s.first + count; i++)
			if (s.tail[pair] >= i && s.offer_where[pair][i] == SEGMENT && s.received[pair] < i && !s.failed[pair] && !s.dead[pair])
				return;
		s.run++; s.first = 0; s.at = s.slot = 0; s.pc = START; break;
	default: return;
	}
	out.push_back(s);
}

static void receive(const State &in, int p, std::vector<State> &out)
{
	State s = in;
	u8 n = s.received[p] + 1, where = s.rwhere[p];

	switch (s.rpc[p]) {
	case R_LOOK:
		if (s.dead[p] || s.tail[p] < n || (s.failed[p] && n >= s.failed[p]) || s.emptying) return;
		if (s.offer_number[p][n] != n) { violation = "an offer was not there"; return; }
		s.rwhere[p] = s.offer_where[p][n];
		s.rpc[p] = R_CHECK;
		if (s.rwhere[p] == SEGMENT) {
			/* the sender's own memory: gone with its process */
			if (s.gone) { s.failed[p] = n; s.rpc[p] = R_LOOK; s.rwhere[p] = 0; }
			else { s.rpay[p][0] = s.rpay[p][1] = payload(p, n); s.rpc[p] = R_COMMIT; }
		}
		break;
	case R_CHECK: case R_AGAIN:	/* before and after the copy: is it still this number's? */
		if ((s.slot_pair[where] == p && s.slot_number[where] == n) || (s.rpc[p] == R_AGAIN && is_bug("look-again"))) {
			s.rpc[p] = s.rpc[p] == R_CHECK ? R_COPY0 : R_COMMIT;
			break;
		}
		/* only a number that nobody may receive any more loses its slot */
		if (!s.dead[p] && !(s.failed[p] && n >= s.failed[p])) { violation = "a slot was lost to another number"; return; }
		s.rpc[p] = R_LOOK; s.rwhere[p] = s.rpay[p][0] = s.rpay[p][1] = 0;
		break;
	case R_COPY0: s.rpay[p][0] = s.slot_pay[where][0]; s.rpc[p] = R_COPY1; break;
	case R_COPY1: s.rpay[p][1] = s.slot_pay[where][1]; s.rpc[p] = R_AGAIN; break;
	case R_COMMIT:
		if (s.rpay[p][0] != payload(p, n) || s.rpay[p][1] != payload(p, n)) violation = "wrong data";
		if (n > s.tail[p]) violation = "received is beyond tail";
		s.received[p] = n; s.rpc[p] = R_LOOK; s.rwhere[p] = s.rpay[p][0] = s.rpay[p][1] = 0;
		break;
	}
	out.push_back(s);
}

/* Another executor goes on: it knows nothing but what is in shared memory. */
static void kill(const State &in, int who, std::vector<State> &out)
{
	State s = in;

	if (!s.kills) return;
	s.kills--;
	if (who == PAIRS) {
		if (s.pc == START || s.pc == OVER) return;
		s.pc = START; s.at = s.slot = 0;
	} else {
		if (s.rpc[who] == R_LOOK) return;
		s.rpc[who] = R_LOOK; s.rwhere[who] = s.rpay[who][0] = s.rpay[who][1] = 0;
	}
	out.push_back(s);
}

/* Ranks of pair X are suspended: what is in flight ends. The engine owns both contexts meanwhile. */
static void suspend(const State &in, std::vector<State> &out)
{
	State s = in;
	bool owns = is_bug("owner") || ((s.pc == START || s.pc == NEXT || s.pc == OVER) && s.rpc[X] == R_LOOK);
	u8 most = s.tail[X];

	if (s.first && s.run < RUNS && runs[s.run].pair == X && most < s.first + runs[s.run].count - 1)
		most = s.first + runs[s.run].count - 1;
	if (s.emptying == 0) {
		if (!s.event || !owns) return;
		s.event = 0;
		s.failed[X] = 0; s.tail[X] = most; s.emptying = 1;
	} else {
		s.received[X] = s.tail[X]; s.emptying = 0;
		if (s.run < RUNS && runs[s.run].pair == X && s.first) { s.run++; s.first = s.at = s.slot = 0; s.pc = START; }
	}
	out.push_back(s);
}

static void successors(const State &s, std::vector<State> &out)
{
	State t = s;

	if (s.emptying && !is_bug("owner")) { suspend(s, out); return; }
	if (!s.gone) send(s, out);
	for (int p = 0; p < PAIRS; p++) receive(s, p, out);
	for (int who = 0; who <= PAIRS; who++) kill(s, who, out);
	if (event == "suspend") suspend(s, out);
	if (!s.event || event == "suspend") return;
	t.event = 0;
	if (event == "sender") { t.gone = 1; t.pc = OVER; out.push_back(t); }
	if (event == "destination") { t.dead[X] = 1; out.push_back(t); }
	if (event == "fail")
		for (int n = s.received[X] + 1; n <= s.received[X] + 2 && n <= MOST; n++) { t.failed[X] = n; out.push_back(t); }
}

static bool is_end(const State &s)
{
	if (s.pc != OVER || s.emptying) return false;
	for (int p = 0; p < PAIRS; p++) {
		u8 last = s.failed[p] && s.failed[p] <= s.tail[p] ? s.failed[p] - 1 : s.tail[p];

		if (s.rpc[p] != R_LOOK || (!s.dead[p] && s.received[p] < last)) return false;
	}
	for (int i = 0; i < SLOTS; i++)
		if (!is_free(s, i) && !s.gone) {
			violation = "a slot is lost for ever";
			return false;
		}
	return true;
}

static void print(const State &s)
{
	static const char *const pcs[] = {"START", "SLOT", "CLAIM", "PAY0", "PAY1", "OFFER", "TAIL", "NEXT", "OVER"};
	static const char *const rpcs[] = {"LOOK", "CHECK", "COPY0", "COPY1", "AGAIN", "COMMIT"};

	printf(" run %d first %d %s slot %d gone %d |", s.run, s.first, pcs[s.pc], s.slot, s.gone);
	for (int i = 0; i < SLOTS; i++) printf(" {%c %d: %x %x}", "XY"[s.slot_pair[i]], s.slot_number[i], s.slot_pay[i][0], s.slot_pay[i][1]);
	for (int p = 0; p < PAIRS; p++)
		printf(" | %c tail %d received %d failed %d dead %d %s", "XY"[p], s.tail[p], s.received[p], s.failed[p], s.dead[p], rpcs[s.rpc[p]]);
	puts("");
}

int main(int argc, char **argv)
{
	State first;
	bool trace = false;

	memset(&first, 0, sizeof(first));
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
