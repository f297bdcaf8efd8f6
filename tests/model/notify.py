#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Notifies (engine/notify.c): a change is made once, and whoever waits is woken.

Two contexts with a stream each, which one engine looks at in any order; a notify is (count, value), and has a waiter:
  a: add 1 to M; wait until N is 1, and clear it; add 1 to M
  b: add 1 to M; set N to 1; wait until M is 3, and clear it
The engine is killed up to twice before or after any store, also while it recovers; what it knew is lost, shared words stay. At the end
M must be (4, 0), N (2, 0), and that end must stay reachable from every state.

  notify.py            must print ok
  notify.py RULE...    without a rule, must fail:
    announce   a task does not store what it is about to make
    count      what was announced is compared with the whole word, not by its count
    recover    a restart does not first make what was announced
    ring       a change does not ring the waiter
    waiter     a head that waits does not say so
    clear      a wait clears in a step of its own, after it was found over and before it is announced
"""
import sys

KNOWN = {"announce", "count", "recover", "ring", "waiter", "clear"}
OFF = set(sys.argv[1:])
if OFF - KNOWN:
    sys.exit(__doc__)

LEFT, ENGINE, PARKED, IDLE = range(4)
TASKS = {"a": (("add", "M", 1), ("wait", "N", 1), ("add", "M", 1)), "b": (("add", "M", 1), ("set", "N", 1), ("wait", "M", 3))}
START = dict(M=(0, 0), N=(0, 0), waiter_M="", waiter_N="", done_a=0, done_b=0, number_a=None, number_b=None, cleared_a=0, cleared_b=0,
             state_a=LEFT, state_b=LEFT, kills=2)


def task_of(s, of):
    return TASKS[of][s["done_" + of]]


def change_due(s, of):
    """What the head is to make of its notify: the new word, or None: nothing yet."""
    kind, name, operand = task_of(s, of)
    count, value = s[name]
    if kind == "add":
        return count + 1, value + operand
    if kind == "set":
        return count + 1, operand
    return (count + 1, 0) if value == operand else None


def is_made(s, of):
    number = s["number_" + of]
    name = task_of(s, of)[1]
    if number is None:
        return False
    return s[name] == number if "count" in OFF else s[name][0] >= number[0]


def look(s, of):
    """The head of a context that the engine has taken: next words and place in the program."""
    if s["done_" + of] == len(TASKS[of]):
        return {**s, "state_" + of: IDLE}, ("free", "")
    if is_made(s, of) or s["cleared_" + of]:
        return s, ("commit", of)
    if change_due(s, of) is not None:
        if "clear" in OFF and task_of(s, of)[0] == "wait":
            return {**s, task_of(s, of)[1]: change_due(s, of)}, ("clear", of)
        return s, ("make" if "announce" in OFF else "announce", of)
    return s, ("wait", of)


def engine(s, pc):
    """One step of the engine: at most one store."""
    place, of = pc
    if place == "free":
        return [({**s, "state_" + c: ENGINE}, ("look", c)) for c in "ab" if s["state_" + c] == LEFT]
    if place == "recover":
        return [recover(s, of)]
    if place == "look":
        return [look(s, of)]
    name = task_of(s, of)[1]
    if place == "clear":
        return [({**s, "cleared_" + of: 1}, ("commit", of))]
    if place == "announce":
        return [({**s, "number_" + of: change_due(s, of)}, ("make", of))]
    if place == "make":
        return [({**s, name: change_due(s, of)}, ("commit" if "ring" in OFF else "ring", of))]
    if place == "ring":
        waiter = s["waiter_" + name]
        if waiter and s["state_" + waiter] == PARKED:
            s = {**s, "state_" + waiter: LEFT}
        return [(s, ("commit", of))]
    if place == "commit":
        # the next task's number is in a slot of its own
        return [({**s, "done_" + of: s["done_" + of] + 1, "number_" + of: None, "cleared_" + of: 0}, ("look", of))]
    if place == "wait":
        return [(s if "waiter" in OFF else {**s, "waiter_" + name: of}, ("leave", of))]
    assert place == "leave"
    return [({**s, "state_" + of: PARKED}, ("free", ""))]


def recover(s, of):
    """Heads make what they have announced; then every context with something to do is LEFT (R9)."""
    if of == "":
        return {**s, **{"state_" + c: LEFT if s["done_" + c] < len(TASKS[c]) else IDLE for c in "ab"}}, ("free", "")
    after = ("recover", "b" if of == "a" else "")
    if "recover" in OFF or s["done_" + of] == len(TASKS[of]) or s["number_" + of] is None or is_made(s, of):
        return s, after
    return {**s, task_of(s, of)[1]: change_due(s, of) or s[task_of(s, of)[1]]}, after


def successors(s, pc):
    out = engine(s, pc)
    if s["kills"]:
        out.append(({**s, "kills": s["kills"] - 1}, ("recover", "a")))
    return out


def main():
    start = (tuple(START.items()), ("free", ""))
    seen, work, before, ends = {start}, [start], {}, []
    while work:
        state = work.pop()
        s = dict(state[0])
        if s["state_a"] == s["state_b"] == IDLE:
            if s["M"] != (4, 0) or s["N"] != (2, 0):
                sys.exit(f"FAIL a change was lost or made twice: {s}")
            ends.append(state)
        for words, pc in successors(s, state[1]):
            nxt = (tuple(words.items()), pc)
            before.setdefault(nxt, []).append(state)
            if nxt not in seen:
                seen.add(nxt)
                work.append(nxt)
    alive, work = set(ends), ends
    while work:
        for state in before.get(work.pop(), ()):
            if state not in alive:
                alive.add(state)
                work.append(state)
    if seen - alive:
        sys.exit(f"FAIL no end can be reached from {len(seen - alive)} of {len(seen)} states, such as {min(seen - alive, key=str)}")
    print(f"ok {len(seen)} states")


main()
