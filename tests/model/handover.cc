// SPDX-License-Identifier: Apache-2.0
/*
 * Explicit-state model of the hand-over protocol: two contexts (0 sends, 1 receives), their client threads, the
 * engine thread, the control thread that reports a death; store buffers as on x86 (TSO); crashes of the engine (with
 * restart) and of a client process, or a stop of a thread, at any step.
 *
 * Checked: (1) from every reachable state an end state can be reached (no lost wake-up, no deadlock, no livelock
 * without exit); (2) completed, received, tail advance by exactly one, once; (3) the receiver sees the right bytes and
 * nobody writes its buffer after it was told "done"; (4) one owner at a time; (5) "steady": no system call while nobody
 * sleeps and the engine is on patrol; (6) engine_only: no client thread ever owns a context.
 *
 * The rules, the arguments and what each bug= leaves out: README.md beside this file.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include "explore.h"
using u8 = uint8_t;

/* ---- shared words; + c = one per context ---- */
enum { IDLE, LEFT, CLIENT, ENGINE, SLEEP, PARKED, PATIENT, HELD };	/* values of ST */
static const char *const state_names[] = {"IDLE", "LEFT", "CLIENT", "ENGINE", "SLEEP", "PARKED", "PATIENT", "HELD"};
enum { DEEP, PATROL, DOZE };	/* values of AWAKE: waits for the eventfd; looks at the bits; waits for it, but not for long */
enum {
	ST = 0,		/* owner and attention word */
	NEWS = 2,	/* futex word all threads of the context sleep on */
	SLP = 4,	/* sleepers: threads that sleep or are about to */
	BIT = 6,	/* "engine, look at this context" */
	TAILS = 8,	/* stream: tasks submitted */
	COMP = 10,	/* stream: tasks completed */
	SEQ = 12,	/* + c * 2 + task - 1: pair_seq of the item */
	CNT = 16,	/* pair counter of this side (sent, posted) */
	ERR = 18,	/* task ended with an error */
	DEAD = 20,	/* member word, written by the daemon */
	TAIL = 22, RECV = 23,	/* pair ring */
	SRC = 24, DST = 28,	/* + message * 2 + half */
	AWAKE = 32, EVFD = 33,	/* engine: does it look; its eventfd */
	GOT = 34,	/* ghost: receives the application was told of */
	ASLEEP = 35,	/* + c: state may be SLEEP, PARKED or HELD; on a line of its own, all that peers read of a busy context */
	TAILS2 = 37, COMP2 = 38,	/* streams=2: a second stream of context 1, tasks without a peer */
	DECL = 39,	/* ghost, bit c * 2 + message - 1: a client has declined it */
	PELEFT = 40,	/* + c: SLEEP is as the engine has left it; in the code the version of the state word says so */
	NMEM = 48
};

enum { PA, PB, PE, PB2, PK, PW, NP };	/* sender, receiver, engine, second thread of the receiver, control, copy worker */

/* Program counters, by the function that executes them. */
#define PCS_APPLICATION(x) \
	x(M_WR0) x(M_WR1) x(M_SUB) x(M_SUB1) x(M_SUB2) x(M_SUB3) x(M_AFTER) x(M_DONE)
#define PCS_WAIT(x) \
	x(Y0) x(Y1) x(Y2) x(Y3) x(Y3L) x(Y4) x(Y4B) x(Y5) x(Y5B) x(Y6) x(Y6A) x(Y6B) x(Y7) x(Y8) x(Y9) x(Y9B) \
	x(YT) x(YTB) x(YTC) x(YO) x(YO1) x(YO2) x(YO3)
#define PCS_ADVANCE(x) \
	x(V0) x(V0B) x(V0C) x(V1) x(V1B) x(V2) x(V_OFFER) x(V_SRING) x(V_SCHK) x(V_COPY0) x(V_COPY1) x(V_RECV) x(V_RRING) \
	x(V_COMP) x(V_ERR) x(V_WAKE) x(V_OUT)
#define PCS_RING(x) \
	x(R0) x(R0B) x(R1) x(R1B) x(R1S) x(R1C) x(R1D) x(R2) x(R2B) x(R2C) x(R2D) x(W0) x(W1) x(W2)
#define PCS_LEAVE(x) x(L0) x(L1) x(L2) x(L2B) x(L3) x(L3B) x(L4) x(L0B) x(L1A) x(A1) x(A2) x(A3) x(L5) x(L5B) x(L6) x(L7)
#define PCS_ENGINE(x) x(E0) x(E1) x(E2) x(E2B) x(E3) x(E4) x(E4B) x(E5) x(E6) x(E7) x(E8) x(E9) \
	x(ED5) x(ED6) x(ED8) x(ES0) x(ES1) x(ES2)
#define PCS_RESTART(x) \
	x(ER_DRAIN) x(ER_AW) x(ER_C) x(ER_CNT) x(ER_ADV) x(ER_LEAVE) x(ER_CAS) x(ER_BIT) x(ER_NEWS) x(ER_WAKE) x(ER_NEXT)
#define PCS_CONTROL(x) x(K1) x(K1C) x(K2) x(K3) x(K4) x(K5)
#define PCS_WORKER(x) x(C0) x(C1) x(C2)
#define PCS(x) x(END) x(C_FREE) x(C_DONE) x(GONE) x(KWAIT) PCS_APPLICATION(x) PCS_WAIT(x) PCS_ADVANCE(x) PCS_RING(x) PCS_LEAVE(x) \
	PCS_ENGINE(x) PCS_RESTART(x) PCS_CONTROL(x) PCS_WORKER(x)
#define ENUM(name) name,
#define NAME(name) #name,
enum { PCS(ENUM) };
static const char *const pc_names[] = {PCS(NAME)};

struct Proc {
	u8 pc, sp, ret[3], c, k, t, v, blocked, own, nbuf, buf[6][2];
};
struct State {
	u8 mem[NMEM];
	Proc pr[NP];
	u8 engine_crashes, client_crashes;	/* still to come */
	u8 dead_proc;				/* who died or was stopped (1 + process), 0 none */
	u8 zero[5];
};
using States = std::vector<State>;

/* ---- configuration ---- */
static int messages = 1, sync_a = 1, sync_b = 1, second = 0, streams = 1, heartbeat = 0, timeouts = 0;
static int engine_only = 0, lazy = 0, crashes = 1, copies = 0, after = 0, again = 0;
static std::string declined = "none";
static bool steady, dozes, trace, engine_dies, death, stop;
static int victim;
static std::string bug = "none", violation;
static bool wakes_seen;
static bool is_bug(const char *name) { return bug == name; }

/* ---- memory ---- */
/* May a client thread take it? The engine: may it? */
static bool is_free(u8 st) { return st != CLIENT && st != ENGINE && (st != HELD || is_bug("held-take")); }
static bool is_for_engine(u8 st) { return st == LEFT || st == PATIENT || st == HELD; }
/* again=1: may the bit of a context that the engine has left so have been set when it was HELD? */
static bool is_left_by_engine(const u8 *m, u8 c)
{
	return again && !is_bug("again-bit") && (m[ST + c] == PARKED || (m[ST + c] == SLEEP && m[PELEFT + c]));
}
static bool is_again(int p) { return again && !engine_only && p == PE; }
static u8 buffer(u8 base, u8 k, u8 half) { return base + ((sync_a && sync_b) ? 0 : (k - 1) * 2) + half; }
/* The stream that client thread @p submits to and waits for. */
static bool is_second_stream(int p) { return p == PB2 && streams == 2; }
static u8 own_tail(int p, u8 c) { return is_second_stream(p) ? TAILS2 : TAILS + c; }
static u8 own_comp(int p, u8 c) { return is_second_stream(p) ? COMP2 : COMP + c; }

static u8 ld(const State &s, int p, u8 a)
{
	const Proc &q = s.pr[p];
	for (int i = q.nbuf - 1; i >= 0; i--)
		if (q.buf[i][0] == a)
			return q.buf[i][1];
	return s.mem[a];
}
static bool st(State &s, int p, u8 a, u8 v)
{
	Proc &q = s.pr[p];
	if (q.nbuf == 6)
		return false;
	q.buf[q.nbuf][0] = a;
	q.buf[q.nbuf++][1] = v;
	return true;
}
/* An atomic OR, or, left out, the plain store that somebody might take for enough. */
static bool set_bit(State &s, int p, u8 c)
{
	if (is_bug("bit-fence"))
		return st(s, p, BIT + c, 1);
	if (s.pr[p].nbuf)
		return false;
	s.mem[BIT + c] = 1;
	return true;
}
static void call(Proc &q, u8 pc, u8 ret)
{
	if (q.sp == 3) { puts("model: stack"); exit(2); }
	q.ret[q.sp++] = ret;
	q.pc = pc;
}
static void ret(Proc &q) { q.pc = q.ret[--q.sp]; q.ret[q.sp] = 0; }
static bool undone2(const State &s, int p, u8 c) { return streams == 2 && c == 1 && ld(s, p, TAILS2) > ld(s, p, COMP2); }
static bool undone(const State &s, int p, u8 c)
{
	return ld(s, p, TAILS + c) > ld(s, p, COMP + c) || undone2(s, p, c);
}
/* Slices of it are with the copy worker. */
static bool is_out(const State &s, u8 c) { return c == 1 && s.pr[PW].pc != C_FREE; }
static bool can_progress(const State &s, int p, u8 c)
{
	u8 n = ld(s, p, COMP + c) + 1;
	if (undone2(s, p, c))
		return true;
	if (ld(s, p, TAILS + c) < n)
		return false;
	u8 seq = ld(s, p, SEQ + c * 2 + n - 1);
	if (!seq || (ld(s, p, DEAD + 1 - c) && !(p == PE && is_out(s, c))))
		return true;
	if (c == 0)
		return ld(s, p, TAIL) < seq || ld(s, p, RECV) >= seq;
	return ld(s, p, TAIL) >= seq && (p != PE || !is_out(s, c));
}
static bool take(State &s, int p, u8 c, u8 from)
{
	if (s.mem[ST + c] != from)
		return false;
	s.mem[ST + c] = p == PE ? ENGINE : CLIENT;
	s.mem[PELEFT + c] = 0;
	for (int o = 0; o < NP; o++)
		if (o != p && s.pr[o].own == c + 1 && s.pr[o].pc != GONE)
			violation = "two owners";
	if (engine_only && p != PE)
		violation = "a client owns a context";
	s.pr[p].own = c + 1;
	return true;
}
static void futex_wake(State &s, u8 c)
{
	wakes_seen = true;
	for (int p = 0; p < NP; p++)
		if (s.pr[p].blocked == c + 1)
			s.pr[p].blocked = 0;
}

/*
 * The steps. Each returns false when process @p cannot go on from here; each touches shared memory once (words that
 * only their owner looks at apart). A step with more than one outcome puts the others into @out.
 */

/* Application thread: write, submit (R5), synchronize, check. */
static bool step_application(State &s, int p, Proc &q, u8 *m)
{
	u8 c = q.c;
	bool drained = q.nbuf == 0, ok;

	switch (q.pc) {
	case M_WR0:
		if (after && !m[COMP2]) return false;
		if (!st(s, p, buffer(SRC, q.k, 0), q.k)) return false;
		q.pc = M_WR1; break;
	case M_WR1: if (!st(s, p, buffer(SRC, q.k, 1), q.k)) return false; q.pc = M_SUB; break;
	case M_SUB: if (!st(s, p, own_tail(p, c), q.k)) return false; q.pc = M_SUB1; break;
	case M_SUB1:
		if (!drained && !is_bug("submit-fence")) return false;
		q.t = ld(s, p, ST + c);
		if (engine_only && q.t == LEFT && !is_bug("submit-trusts-left")) { q.t = 0; call(q, L5, M_AFTER); }
		else if (q.t == HELD && !is_bug("held-take") && !is_bug("held-submit")) { q.t = 0; call(q, L5, M_AFTER); }
		else if (engine_only ? q.t == IDLE || q.t == PARKED : is_free(q.t)) q.pc = M_SUB2;
		else { q.t = 0; q.pc = M_AFTER; }
		break;
	case M_SUB2:
		if (!drained) return false;
		ok = engine_only ? m[ST + c] == q.t : take(s, p, c, q.t);
		q.t = 0;
		if (!ok) q.pc = M_SUB1;
		else if (engine_only) { m[ST + c] = LEFT; call(q, L5, M_AFTER); }
		else if (lazy) q.pc = M_SUB3;
		else call(q, V0, M_SUB3);
		break;
	case M_AFTER:
		if (p == PA ? sync_a : sync_b) { q.pc = Y0; break; }
		q.k++; q.pc = q.k > messages ? END : (p == PA ? M_WR0 : M_SUB);
		break;
	case M_DONE:
		if (c == 1 && !is_second_stream(p) && !ld(s, p, ERR + c)) {
			if (ld(s, p, buffer(DST, q.k, 0)) != q.k || ld(s, p, buffer(DST, q.k, 1)) != q.k)
				violation = "wrong data";
			if (p == PB) m[GOT] = q.k;
		}
		q.k++;
		q.pc = q.k > messages ? END : p == PA ? M_WR0 : p == PB || is_second_stream(p) ? M_SUB : Y0;
		break;
	}
	return true;
}

/* Synchronize: wait until completed >= k (R6, R7). */
static bool step_wait(State &s, int p, Proc &q, u8 *m, States &out)
{
	u8 c = q.c;
	bool drained = q.nbuf == 0, ok;

	switch (q.pc) {
	case Y0: q.pc = ld(s, p, own_comp(p, c)) >= q.k ? M_DONE : engine_only ? YO : Y1; break;
	case Y1:
		q.t = ld(s, p, ST + c);
		if (!is_free(q.t)) { q.t = 0; q.pc = YO; } else q.pc = Y2;
		break;
	case Y2:
		if (!drained) return false;
		ok = take(s, p, c, q.t);
		q.t = 0;
		if (ok) call(q, V0, Y3); else q.pc = Y0;
		break;
	case Y3:
		if (q.t == HELD && ld(s, p, own_comp(p, c)) < q.k) { call(q, L0, Y0); break; }
		if (ld(s, p, own_comp(p, c)) >= q.k) { q.pc = Y3L; break; }
		if (can_progress(s, p, c)) { State other = s; call(other.pr[p], V0, Y3); out.push_back(other); }
		if (steady) return false;
		q.pc = Y4; break;
	case Y4: q.v = ld(s, p, NEWS + c); q.pc = Y4B; break;
	case Y4B: if (!drained) return false; m[SLP + c]++; q.pc = Y5; break;
	case Y5: if (!st(s, p, ASLEEP + c, !is_bug("asleep-missing"))) return false; q.pc = Y5B; break;	/* before state */
	case Y5B: if (!st(s, p, ST + c, SLEEP)) return false; q.own = 0; q.pc = Y6; break;
	case Y6:
		if (!drained && !is_bug("sleep-fence")) return false;
		ok = can_progress(s, p, c) || ld(s, p, own_comp(p, c)) >= q.k;
		q.pc = ok && !is_bug("sleep-rescan") ? Y6A : Y7;
		break;
	case Y6A: if (!drained) return false; q.t = take(s, p, c, SLEEP); q.pc = Y6B; break;
	case Y6B:
		if (!drained) return false;
		m[SLP + c]--; q.v = 0;
		if (q.t) { q.t = 0; call(q, V0, Y3); } else q.pc = Y9;
		break;
	case Y7:
		if (!drained) return false;
		if (m[NEWS + c] == q.v) q.blocked = c + 1;
		q.v = 0; q.pc = Y8;
		break;
	case Y8: m[SLP + c]--; q.pc = engine_only ? Y0 : Y9; break;
	/*
	 * Whoever slept, woken or timed out, takes the context if it finds it LEFT, even if its own task is done, and
	 * leaves it by the rule: a ringer that counted this sleeper has relied on it and not woken the engine.
	 */
	case Y9:
		q.t = ld(s, p, ST + c);
		if (q.t == LEFT && !is_bug("left-behind")) q.pc = Y9B;
		else { q.t = 0; q.pc = Y0; }
		break;
	case Y9B:
		if (!drained) return false;
		ok = take(s, p, c, q.t);
		q.t = 0;
		if (ok) call(q, V0, Y3); else q.pc = Y9;
		break;
	case YT: m[SLP + c]--; q.pc = engine_only ? END : YTB; break;	/* timed out: back to the application for good */
	case YTB:
		q.t = ld(s, p, ST + c);
		if (q.t == LEFT && !is_bug("left-behind")) q.pc = YTC;
		else { q.t = 0; q.pc = END; }
		break;
	case YTC:
		if (!drained) return false;
		ok = take(s, p, c, q.t);
		q.t = 0;
		if (ok) call(q, L0, END); else q.pc = YTB;
		break;
	/* somebody else drives */
	case YO: q.v = is_bug("news-late") ? 0 : ld(s, p, NEWS + c); q.pc = YO1; break;
	case YO1:
		if (steady) { q.v = 0; q.pc = Y0; break; }
		if (!drained) return false;
		m[SLP + c]++; q.pc = YO2; break;
	case YO2:
		ok = ld(s, p, own_comp(p, c)) >= q.k || (!engine_only && is_free(ld(s, p, ST + c)));
		q.pc = ok && !is_bug("sleep-check") ? Y8 : is_bug("news-late") ? YO3 : Y7;
		if (q.pc == Y8) q.v = 0;
		break;
	case YO3: q.v = ld(s, p, NEWS + c); q.pc = Y7; break;
	}
	return true;
}

/*
 * A client's executor meets what it does not do: it gives the context to the engine (q.t, until it leaves). The engine keeps it that way
 * until a task is completed: so nobody declines the same head twice.
 */
static void decline(State &s, Proc &q)
{
	u8 bit = 1 << (q.c * 2 + s.mem[COMP + q.c]);

	if (streams == 1 && !engine_dies) {
		if (s.mem[DECL] & bit) violation = "a client declines what one has declined before";
		s.mem[DECL] |= bit;
	}
	q.t = HELD;
	ret(q);
}
/* Does the client thread @p decline what it would do now: @what, of the first message? */
static bool is_declined(int p, const char *what, u8 seq) { return p != PE && seq <= 1 && declined == what; }

/* Executor: advance context c (owned) until it is blocked. */
static bool step_advance(State &s, int p, Proc &q)
{
	u8 c = q.c, n, seq, half;

	switch (q.pc) {
	case V0:
		if (is_again(p) && ld(s, p, ST + c) == HELD) { q.pc = V0B; break; }
		if (ld(s, p, ASLEEP + c) && !st(s, p, ASLEEP + c, 0)) return false;
		q.pc = V0B; break;
	case V0B:
		if (undone2(s, p, c)) { q.pc = V0C; break; }
		n = ld(s, p, COMP + c) + 1;
		if (ld(s, p, TAILS + c) < n) { ret(q); break; }
		q.pc = ld(s, p, SEQ + c * 2 + n - 1) ? V2 : V1;
		break;
	case V0C:
		if (is_declined(p, "second", 0)) { decline(s, q); break; }
		if (!st(s, p, COMP2, ld(s, p, COMP2) + 1)) return false;
		q.t = 0; q.pc = V_WAKE; break;
	case V1:	/* pair_seq before the counter */
		n = ld(s, p, COMP + c) + 1;
		if (!st(s, p, SEQ + c * 2 + n - 1, ld(s, p, CNT + c) + 1)) return false;
		q.pc = V1B; break;
	case V1B: if (!st(s, p, CNT + c, ld(s, p, CNT + c) + 1)) return false; q.pc = V2; break;
	case V2:
		seq = ld(s, p, SEQ + c * 2 + ld(s, p, COMP + c));
		if (c == 0) {
			if (ld(s, p, TAIL) >= seq) q.pc = V_SCHK;
			else if (is_declined(p, "send", seq)) decline(s, q);
			else q.pc = V_OFFER;
		}
		else if (ld(s, p, RECV) >= seq) q.pc = V_RRING;
		else if (p == PE && is_out(s, c)) ret(q);
		else if (is_declined(p, "wait", seq)) decline(s, q);
		else if (ld(s, p, TAIL) >= seq) {
			if (is_declined(p, "receive", seq)) decline(s, q);
			else q.pc = p == PE && copies ? V_OUT : V_COPY0;
		}
		else if (ld(s, p, DEAD + 0)) { if (p == PE) q.pc = V_ERR; else decline(s, q); }
		else ret(q);
		break;
	case V_OUT:	/* to the copy worker: a queue within the daemon, with a lock */
		if (q.nbuf) return false;
		s.pr[PW].k = ld(s, p, SEQ + 2 + ld(s, p, COMP + c)); s.pr[PW].c = c; s.pr[PW].pc = C0;
		ret(q); break;
	case V_OFFER: if (!st(s, p, TAIL, ld(s, p, SEQ + ld(s, p, COMP + c)))) return false; q.pc = V_SRING; break;
	case V_SCHK:
		if (ld(s, p, RECV) >= ld(s, p, SEQ + ld(s, p, COMP + c))) q.pc = V_COMP;
		else if (ld(s, p, DEAD + 1)) { if (p == PE) q.pc = V_ERR; else decline(s, q); }
		else ret(q);
		break;
	case V_COPY0: case V_COPY1:
		seq = ld(s, p, SEQ + 2 + ld(s, p, COMP + c));
		half = q.pc == V_COPY1;
		if (!st(s, p, buffer(DST, seq, half), ld(s, p, buffer(SRC, seq, half)))) return false;
		q.pc = half ? V_RECV : V_COPY1; break;
	case V_RECV: if (!st(s, p, RECV, ld(s, p, SEQ + 2 + ld(s, p, COMP + c)))) return false; q.pc = V_RRING; break;
	case V_ERR: if (!st(s, p, ERR + c, 1)) return false; q.pc = V_COMP; break;
	case V_COMP: if (!st(s, p, COMP + c, ld(s, p, COMP + c) + 1)) return false; q.t = 0; q.pc = V_WAKE; break;
	}
	return true;
}

/* R0..R2: ring the peer's context, it has something new. W0..W2: a task is done, wake this context's own sleepers. */
static bool step_ring(State &s, int p, Proc &q, u8 *m)
{
	u8 c = q.c, o = 1 - c;
	bool drained = q.nbuf == 0;

	switch (q.pc) {
	case R0:
		if (!drained && !is_bug("ring-fence")) return false;
		if (ld(s, p, ASLEEP + o)) q.pc = R0B; else ret(q);
		break;
	case R0B:
		switch (ld(s, p, ST + o)) {
		case SLEEP: q.pc = R1; break;
		case PARKED: q.pc = R2; break;
		case HELD: if (is_bug("held-no-ring")) ret(q); else q.pc = is_bug("held-ring-left") ? R2 : R2B; break;
		default: ret(q);
		}
		break;
	case R1: if (!drained) return false; if (m[ST + o] == SLEEP) { m[ST + o] = LEFT; q.pc = R1B; } else q.pc = R0B; break;
	case R1B:	/* the sleeper that SLEEP speaks of may have timed out: then it is the engine's */
		if (!set_bit(s, p, o)) return false;
		q.pc = R1S; break;
	case R1S: if (!drained) return false; q.pc = m[SLP + o] || is_bug("ring-trusts-sleep") ? R1C : R2C; break;
	case R1C: m[NEWS + o]++; q.pc = R1D; break;
	case R1D: futex_wake(s, o); ret(q); break;
	case R2: if (!drained) return false; 
		if (m[ST + o] == PARKED || (m[ST + o] == HELD && is_bug("held-ring-left"))) { m[ST + o] = LEFT; q.pc = R2B; } else q.pc = R0B;
		break;
	case R2B: if (!set_bit(s, p, o)) return false; q.pc = R2C; break;
	case R2C: if (ld(s, p, AWAKE) == PATROL) ret(q); else q.pc = R2D; break;
	case R2D: m[EVFD] = 1; wakes_seen = true; ret(q); break;

	case W0: if (!drained && !is_bug("wake-fence")) return false; if (ld(s, p, SLP + c)) q.pc = W1; else ret(q); break;
	case W1: if (!drained) return false; m[NEWS + c]++; q.pc = W2; break;
	case W2: futex_wake(s, c); ret(q); break;
	}
	return true;
}

/* How @p leaves context c. */
static u8 leave_kind(const State &s, int p, const Proc &q)
{
	u8 c = q.c;

	if (p == PE && is_out(s, c) && !is_bug("out-parked")) return HELD;
	if (!undone(s, p, c)) return IDLE;
	if (q.t == HELD && !(p == PE && is_bug("held-forgotten"))) return HELD;
	if (!engine_only && ld(s, p, SLP + c)) return SLEEP;
	if (p == PE) return PARKED;
	return q.sp && q.ret[q.sp - 1] == M_AFTER ? PATIENT : LEFT;
}

/* L0..L4: give the context up (R4). L5..L7: a context that is LEFT gets the engine's attention (R4, R5). */
static bool step_leave(State &s, int p, Proc &q, u8 *m)
{
	u8 c = q.c;
	bool drained = q.nbuf == 0, ok;

	switch (q.pc) {
	case L0:
		if (is_again(p) && (undone(s, p, c) || is_out(s, c))) { q.pc = L1A; break; }
		q.t = leave_kind(s, p, q);
		q.pc = p == PE && !is_bug("bit-after-park") ? L1 : L2;
		break;
	/* again=1: HELD, fence, one more advance instead of the rescan. `asleep` stays 1; what comes later sets the bit, which counts then */
	case L1A: if (!drained) return false; m[BIT + c] = 0; q.pc = A1; break;
	case A1: if (!st(s, p, ASLEEP + c, 1)) return false; q.pc = A2; break;
	case A2: if (!st(s, p, ST + c, HELD)) return false; q.pc = A3; break;
	case A3:
		if (!drained && !is_bug("again-fence")) return false;
		if (is_bug("again-none")) q.pc = L0B; else call(q, V0B, L0B);
		break;
	case L0B: q.t = leave_kind(s, p, q); q.pc = L2; break;
	case L1: if (!drained) return false; m[BIT + c] = 0; q.pc = L2; break;
	case L2:
		if ((q.t == SLEEP || q.t == PARKED || q.t == HELD) && !is_bug("asleep-missing") && !st(s, p, ASLEEP + c, 1)) return false;
		q.pc = L2B; break;
	case L2B:
		if (!st(s, p, ST + c, q.t)) return false;
		q.own = 0; q.pc = L3;
		if (p == PE) m[PELEFT + c] = q.t == SLEEP;
		break;
	case L3:
		if (!drained && !is_bug("leave-fence")) return false;
		if (q.t == LEFT || q.t == PATIENT || (q.t == HELD && p != PE)) {
			if (q.t == PATIENT ? is_bug("patient-no-bit") : q.t == HELD && is_bug("decline-no-bit")) { q.t = 0; ret(q); break; }
			if (q.t != PATIENT) q.t = 0;
			q.pc = L5; break;
		}
		ok = (!is_again(p) && can_progress(s, p, c)) || (q.t == IDLE && undone(s, p, c));
		if (ok && !is_bug("leave-rescan")) { q.pc = L4; break; }
		q.t = 0;
		if (p == PE && is_bug("bit-after-park")) q.pc = L3B; else ret(q);
		break;
	case L3B: if (!drained) return false; m[BIT + c] = 0; ret(q); break;
	case L4:
		if (!drained) return false;
		ok = take(s, p, c, q.t);
		if (!ok || q.t != HELD) q.t = 0;
		if (ok) call(q, V0, L0); else ret(q);
		break;
	case L5: q.pc = ld(s, p, BIT + c) ? L6 : L5B; break;
	case L5B: if (!set_bit(s, p, c)) return false; q.pc = L6; break;
	case L6:	/* what is PATIENT can wait for an engine that dozes */
		ok = ld(s, p, AWAKE) == PATROL || (ld(s, p, AWAKE) == DOZE && (q.t == PATIENT || is_bug("doze-left"))) ||
		     (q.t == PATIENT && is_bug("patient-no-awake"));
		q.t = 0;
		if (ok) ret(q); else q.pc = L7;
		break;
	case L7: m[EVFD] = 1; wakes_seen = true; ret(q); break;
	}
	return true;
}

/* Is every context with a bit PATIENT? */
static bool has_only_patient(const State &s, int p)
{
	for (u8 i = 0; i < 2; i++)
		if (ld(s, p, BIT + i) && ld(s, p, ST + i) != PATIENT)
			return false;
	return true;
}

/* Engine (R10). */
static bool step_engine(State &s, int p, Proc &q, u8 *m, States &out)
{
	u8 c = q.c;
	bool drained = q.nbuf == 0, ok;

	switch (q.pc) {
	case E0:
		for (u8 i = 0; i < 2; i++)
			if (ld(s, p, BIT + i)) { State other = s; other.pr[p].c = i; other.pr[p].pc = E1; out.push_back(other); }
		if (s.pr[PW].pc == C_DONE) {
			State other = s;
			other.pr[p].c = s.pr[PW].c; other.pr[p].pc = ES0; out.push_back(other);
		}
		if (steady) return false;
		q.c = 0;
		if (has_only_patient(s, p)) {
			if (!ld(s, p, BIT) && !ld(s, p, BIT + 1)) q.pc = E5;
			else q.pc = is_bug("patient-deep") ? E5 : ED5;
			break;
		}
		return false;
	case E1:
		q.t = ld(s, p, ST + c);
		q.pc = (is_for_engine(q.t) || is_left_by_engine(m, c)) && !ld(s, p, DEAD + c) ? E2 : E3;
		if (q.pc == E3) q.t = 0;
		if (steady && !engine_only) { q.t = 0; q.pc = E0; }
		break;
	case E2:
		if (!drained) return false;
		ok = take(s, p, c, q.t);
		if (!ok || q.t != HELD) q.t = 0;	/* HELD: what a client has declined stays so until a task is completed */
		if (ok) call(q, V0, E2B); else q.pc = E0;
		break;
	case E3: if (!drained) return false; m[BIT + c] = 0; q.pc = E4; break;
	case E4:
		ok = is_for_engine(ld(s, p, ST + c)) || is_left_by_engine(m, c);
		q.pc = ok && !ld(s, p, DEAD + c) && !is_bug("bit-recheck") ? E4B : E0; break;
	case E4B: m[BIT + c] = 1; q.pc = E0; break;
	case E5: if (!st(s, p, AWAKE, DEEP)) return false; q.pc = E6; break;
	case E6:
		if (!drained && !is_bug("deep-fence")) return false;
		ok = is_bug("patient-deep") ? !has_only_patient(s, p) : ld(s, p, BIT) || ld(s, p, BIT + 1);
		q.pc = ok || s.pr[PW].pc == C_DONE ? E7 : E8; break;
	case E7: if (!st(s, p, AWAKE, PATROL)) return false; q.pc = E0; break;
	case E8:
		if (m[EVFD]) { m[EVFD] = 0; q.pc = E7; break; }
		if (!heartbeat) return false;
		q.pc = E9; break;
	case E9:	/* heartbeat: whatever is LEFT gets its bit back */
		for (u8 i = 0; i < 2; i++)
			if (is_for_engine(m[ST + i]) && !m[DEAD + i]) m[BIT + i] = 1;
		q.pc = E7; break;
	/* it dozes: only what is PATIENT may rely on its time-out */
	case ED5: if (!st(s, p, AWAKE, DOZE)) return false; q.pc = ED6; break;
	case ED6:
		if (!drained && !is_bug("doze-fence")) return false;
		q.pc = has_only_patient(s, p) && s.pr[PW].pc != C_DONE ? ED8 : E7; break;
	case ED8:
		if (!m[EVFD] && m[ST] != PATIENT && m[ST + 1] != PATIENT && !heartbeat) return false;
		m[EVFD] = 0; q.pc = heartbeat ? E9 : E7; break;
	/* slices came back: commit; to their context the engine, the only one that may take what is HELD, has done nothing else */
	case ES0:
		if (!ld(s, p, DEAD + c) && !st(s, p, RECV, s.pr[PW].k)) return false;
		q.pc = ld(s, p, DEAD + c) ? E0 : ES1;
		s.pr[PW].pc = C_FREE; s.pr[PW].k = s.pr[PW].c = 0;
		break;
	case ES2: if (!is_bug("out-no-bit") && !set_bit(s, p, c)) return false; q.pc = E0; break;
	}
	return true;
}

/* Copies message k in two slices, then wakes the engine. */
static bool step_worker(State &s, int p, Proc &q, u8 *m)
{
	u8 half = q.pc == C1;

	if (q.pc == C2) {
		if (q.nbuf) return false;
		m[EVFD] = !is_bug("out-no-wake");
		q.pc = C_DONE;
		return true;
	}
	if (!st(s, p, buffer(DST, q.k, half), ld(s, p, buffer(SRC, q.k, half)))) return false;
	q.pc = half ? C2 : C1;
	return true;
}

/* Engine after a restart (R9): the old one is proven gone. */
static bool step_restart(State &s, int p, Proc &q, u8 *m)
{
	u8 c = q.c, i, seq;
	bool drained = q.nbuf == 0;

	switch (q.pc) {
	case ER_DRAIN: if (!drained || s.pr[PW].nbuf) return false; q.pc = ER_AW; break;
	case ER_AW: if (!st(s, p, AWAKE, PATROL)) return false; q.c = 0; q.pc = ER_C; break;
	case ER_C:
		switch (ld(s, p, ST + c)) {
		case ENGINE: q.own = c + 1; q.pc = ER_CNT; break;
		case LEFT: case PATIENT: q.pc = is_bug("restart-no-bit") ? ER_NEWS : ER_BIT; break;
		case HELD:
			if (again) { q.own = c + 1; q.pc = ER_CNT; break; }	/* killed in its second advance */
			q.pc = is_bug("restart-no-held") ? ER_NEWS : ER_BIT; break;
		case SLEEP: case PARKED: q.pc = ER_CAS; break;
		case IDLE:	/* the old engine may have died between its store of IDLE and its rescan */
			q.pc = undone(s, p, c) && !is_bug("restart-trusts-idle") ? ER_CAS : ER_NEWS; break;
		default: q.pc = ER_NEWS;
		}
		if (is_bug("restart-no-ring") && q.pc == ER_CAS) { q.pc = ER_NEXT; break; }
		break;
	case ER_CNT:
		i = ld(s, p, COMP + c);
		seq = i < 2 ? ld(s, p, SEQ + c * 2 + i) : 0;
		if (seq > ld(s, p, CNT + c) && !is_bug("restart-no-count") && !st(s, p, CNT + c, seq)) return false;
		q.pc = ER_ADV; break;
	case ER_CAS:
		if (!drained) return false;
		if (m[ST + c] == SLEEP || m[ST + c] == PARKED || m[ST + c] == IDLE) m[ST + c] = LEFT;
		q.pc = ER_BIT; break;
	case ER_BIT: if (!drained) return false; m[BIT + c] = 1; q.pc = ER_NEWS; break;
	case ER_NEWS:
		if (!drained) return false;
		if (is_bug("restart-no-news")) { q.pc = ER_NEXT; break; }
		m[NEWS + c]++; q.pc = ER_WAKE; break;
	case ER_WAKE: futex_wake(s, c); q.pc = ER_NEXT; break;
	}
	return true;
}

/* Control thread (R8): a client died; c = its context. Ring hard. */
static bool step_control(State &s, int p, Proc &q, u8 *m)
{
	u8 c = q.c, o = 1 - c;
	bool drained = q.nbuf == 0;

	switch (q.pc) {
	case K1: if (!st(s, p, DEAD + c, 1)) return false; q.pc = K1C; break;
	case K1C:
		if (!drained) return false;
		if (is_bug("death-no-ring")) { q.pc = END; break; }
		if (is_bug("death-soft-ring")) { call(q, R0, END); break; }
		if (m[ST + o] == SLEEP || m[ST + o] == PARKED) m[ST + o] = LEFT;
		q.pc = K2; break;
	case K2: m[BIT + o] = 1; q.pc = K3; break;
	case K3: m[NEWS + o]++; q.pc = K4; break;
	case K4: futex_wake(s, o); q.pc = K5; break;
	case K5: m[EVFD] = 1; q.pc = END; break;
	}
	return true;
}

/* What touches no shared word is no step of its own: nobody can tell it from the step before. */
static void settle(Proc &q)
{
	for (;;)
		switch (q.pc) {
		case M_SUB3: call(q, L0, M_AFTER); break;
		case Y3L: call(q, L0, M_DONE); break;
		case V_SRING: call(q, R0, V_SCHK); break;
		case V_RRING: call(q, R0, V_COMP); break;
		case V_WAKE: call(q, W0, V0); break;
		case E2B: call(q, L0, E0); break;
		case ES1: call(q, R0, ES2); break;
		case ER_ADV: call(q, V0, ER_LEAVE); break;
		case ER_LEAVE: call(q, L0, ER_NEWS); break;
		case ER_NEXT: if (q.c == 0) { q.c = 1; q.pc = ER_C; } else q.pc = E0; break;
		default: return;
		}
}

static void step(const State &in, int p, States &out)
{
	State s = in;
	Proc &q = s.pr[p];
	u8 pc = q.pc, *m = s.mem;
	bool r;

	if (q.blocked) {
		if (!timeouts || pc != Y8)
			return;
		q.blocked = 0; q.pc = YT; q.k = messages + 1;
		out.push_back(s);
		return;
	}
	if (pc < M_WR0) return;
	else if (pc < Y0) r = step_application(s, p, q, m);
	else if (pc < V0) r = step_wait(s, p, q, m, out);
	else if (pc < R0) r = step_advance(s, p, q);
	else if (pc < L0) r = step_ring(s, p, q, m);
	else if (pc < E0) r = step_leave(s, p, q, m);
	else if (pc < ER_DRAIN) r = step_engine(s, p, q, m, out);
	else if (pc < K1) r = step_restart(s, p, q, m);
	else if (pc < C0) r = step_control(s, p, q, m);
	else r = step_worker(s, p, q, m);
	if (!r)
		return;
	settle(q);
	out.push_back(s);
}

/* The oldest store of @p reaches memory. */
static void drain(const State &in, int p, States &out)
{
	State s = in;
	Proc &q = s.pr[p];
	u8 a = q.buf[0][0], v = q.buf[0][1];

	if ((a == TAIL || a == RECV || a == COMP || a == COMP + 1 || a == COMP2) && v != s.mem[a] + 1)
		violation = "a commit word did not advance by one";
	if (a >= DST && a < DST + 4 && v <= s.mem[GOT])
		violation = "write to a buffer already handed to the application";
	s.mem[a] = v;
	memmove(q.buf[0], q.buf[1], sizeof(q.buf[0]) * 5);
	q.buf[5][0] = q.buf[5][1] = 0;
	q.nbuf--;
	out.push_back(s);
}

/* The daemon dies and comes back: a control thread that was announcing a death begins again. */
static void crash_engine(const State &in, States &out)
{
	State s = in;

	s.engine_crashes--;
	for (int p : {(int)PE, (int)PK, (int)PW}) {
		Proc &q = s.pr[p];
		if (p == PW) { q.pc = C_FREE; q.k = q.c = 0; continue; }
		if (p == PK && q.pc < K1 && q.sp == 0)
			continue;
		q.sp = q.t = q.v = q.own = 0;
		memset(q.ret, 0, sizeof(q.ret));
		if (p == PE) { q.pc = ER_DRAIN; q.c = 0; }
		else q.pc = K1;
	}
	out.push_back(s);
}

static void crash_client(const State &in, States &out)
{
	State s = in;

	if (s.pr[victim].pc == END)
		return;
	for (int p : {victim, victim == PB ? (int)PB2 : victim}) {
		Proc &q = s.pr[p];
		q.pc = GONE; q.blocked = q.own = 0;
	}
	s.client_crashes--;
	s.dead_proc = victim + 1;
	s.pr[PK].pc = K1; s.pr[PK].c = victim == PA ? 0 : 1;
	out.push_back(s);
}

/* SIGSTOP of a thread that sleeps, or is between its store of LEFT, PATIENT or HELD and the bit or the look at `awake`. */
static void stop_client(const State &in, States &out)
{
	State s = in;
	Proc &q = s.pr[victim];
	bool submitting = q.pc >= L5 && q.pc <= L7;

	if (q.own || (!q.blocked && !submitting) || s.mem[TAILS + (victim == PA ? 0 : 1)] < messages)
		return;
	q.pc = GONE; q.blocked = 0;
	s.client_crashes--;
	s.dead_proc = victim + 1;
	out.push_back(s);
}

static void successors(const State &s, States &out)
{
	for (int p = 0; p < NP; p++) {
		if (s.pr[p].nbuf)
			drain(s, p, out);
		step(s, p, out);
	}
	if (s.engine_crashes)
		crash_engine(s, out);
	if (s.client_crashes) {
		if (stop) stop_client(s, out);
		else crash_client(s, out);
	}
}

static bool is_end(const State &s)
{
	bool died = s.dead_proc && !stop;

	for (int p : {PA, PB, PB2, PK})
		if (s.pr[p].pc != END && s.pr[p].pc != GONE && s.pr[p].pc != KWAIT)
			return false;
	for (int c = 0; c < 2; c++) {
		bool dead = died && (s.dead_proc - 1 == PA ? 0 : 1) == c;
		if (!dead && s.mem[COMP + c] != messages)
			return false;
		if (c == 1 && !dead && streams == 2 && s.mem[COMP2] != messages)
			return false;
		if (s.mem[ERR + c] && !died) {
			violation = "error without a death";
			return false;
		}
	}
	return true;
}

static void print(const State &s)
{
	for (int c = 0; c < 2; c++)
		printf(" [%d] %-6s asleep %d news %d sleepers %d bit %d tail %d done %d |", c, state_names[s.mem[ST + c]],
		       s.mem[ASLEEP + c], s.mem[NEWS + c], s.mem[SLP + c], s.mem[BIT + c], s.mem[TAILS + c], s.mem[COMP + c]);
	printf(" offer %d received %d awake %d evfd %d |", s.mem[TAIL], s.mem[RECV], s.mem[AWAKE], s.mem[EVFD]);
	for (int p = 0; p < NP; p++) {
		printf(" %s%s", pc_names[s.pr[p].pc], s.pr[p].blocked ? "(sleeps)" : "");
		if (s.pr[p].nbuf) printf("+%d", s.pr[p].nbuf);
	}
	puts("");
}

static bool parse_crash(const std::string &kind)
{
	std::string client = kind;

	if (kind == "engine" || kind.rfind("engine+", 0) == 0) {
		engine_dies = true;
		client = kind.size() > 7 ? kind.substr(7) : "";
	}
	stop = client.rfind("stop-", 0) == 0;
	if (stop) client = client.substr(5);
	victim = client == "sender" ? PA : PB;
	death = !client.empty();
	return client.empty() || client == "sender" || client == "receiver";
}

static bool parse(const std::string &a)
{
	static const struct { const char *key; int *value; } numbers[] = {
		{"messages", &messages}, {"second", &second}, {"streams", &streams}, {"heartbeat", &heartbeat},
		{"timeouts", &timeouts}, {"engine_only", &engine_only}, {"lazy", &lazy}, {"crashes", &crashes}, {"copies", &copies}, {"again", &again},
		{"after", &after},
	};
	size_t eq = a.find('=');
	std::string key = a.substr(0, eq), value = eq == std::string::npos ? "" : a.substr(eq + 1);

	if (a == "steady") { steady = true; return true; }
	if (a == "dozing") { steady = dozes = true; return true; }
	if (a == "trace") { trace = true; return true; }
	if (key == "bug") { bug = value; return true; }
	if (key == "decline") { declined = value; return true; }
	if (key == "crash") return parse_crash(value);
	if (key == "sync" && value.size() == 2) { sync_a = value[0] == '1'; sync_b = value[1] == '1'; return true; }
	for (auto &n : numbers)
		if (key == n.key && !value.empty()) { *n.value = atoi(value.c_str()); return true; }
	return false;
}

static State first_state()
{
	State s;

	memset(&s, 0, sizeof(s));
	s.pr[PA].pc = M_WR0; s.pr[PA].k = 1;
	s.pr[PB].pc = M_SUB; s.pr[PB].k = 1; s.pr[PB].c = 1;
	s.pr[PE].pc = steady ? E0 : E8;
	s.pr[PW].pc = C_FREE;
	s.mem[AWAKE] = steady ? dozes ? DOZE : PATROL : DEEP;
	s.mem[BIT] = s.mem[BIT + 1] = steady;
	s.pr[PB2].pc = streams == 2 ? M_SUB : second ? Y0 : END; s.pr[PB2].k = 1; s.pr[PB2].c = 1;
	s.pr[PK].pc = KWAIT;
	s.engine_crashes = engine_dies ? crashes : 0;
	s.client_crashes = death;
	return s;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!parse(argv[i])) { printf("unknown argument %s\n", argv[i]); return 2; }

	Explorer<State> explorer;
	std::vector<uint32_t> ends;
	States out;
	auto fail = [&](const std::string &what, uint32_t i) {
		printf("VIOLATION %s (%u states)\n", what.c_str(), explorer.count());
		if (trace)
			for (uint32_t j : explorer.path_to(i)) print(explorer.at(j));
		else
			print(explorer.at(i));
		return 1;
	};

	explorer.add(first_state(), explorer.NONE);
	for (uint32_t i = 0; i < explorer.count(); i++) {
		State s = explorer.at(i);
		out.clear();
		successors(s, out);
		if (is_end(s)) ends.push_back(i);
		if (steady && wakes_seen) violation = "system call in the steady pattern";
		if (!violation.empty()) return fail(violation, i);
		explorer.begin();
		for (const State &t : out) explorer.edge(explorer.add(t, i));
	}
	uint32_t stuck = explorer.find_stuck(ends);
	if (stuck != explorer.NONE) return fail("stuck: no end state can be reached any more", stuck);
	printf("ok %u states %zu edges %zu ends\n", explorer.count(), explorer.edge_count(), ends.size());
	return 0;
}
