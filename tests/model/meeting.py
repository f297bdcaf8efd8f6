#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Host functions and events (engine/meeting.c, client/hostfunc.c): nothing is lost, nothing runs twice.

host:  a stream with a copy and a host function. Actors: the engine, the thread that submits, the thread that runs host functions.
       Stores go through a buffer per actor (TSO) and reach memory at any later time; atomic read-modify-writes and fences empty it.
event: a stream records an event, a stream of another context waits for it, submitted in any order by one thread.

The engine is killed up to twice between any two stores; what it knew is lost, shared words stay, and rule R9 makes a context
with undone work LEFT. From every state an end must stay reachable in which all is done and the function has run once.

  meeting.py            both, must print ok
  meeting.py RULE...    without a rule, must fail:
    sleeper-fence  the host thread reads the news before its entry in session_host.sleepers can be seen
    news-late      it looks for due functions, then reads the news
    mark-first     the engine marks the function as told of, then tells
    rescan         who leaves a context looks at `tail` only, not at host_done
    own-number     the host thread goes by the engine's mark, and not by its own list
    done-first     host_done is stored before the function is run
    ring           a record does not ring contexts that watch
    restart        a restart does not look at contexts with undone work
"""
import sys

KNOWN = {"sleeper-fence", "news-late", "mark-first", "rescan", "own-number", "done-first", "ring", "restart"}
OFF = set(sys.argv[1:])
if OFF - KNOWN:
    sys.exit(__doc__)

IDLE, LEFT, ENGINE, PARKED = range(4)


class Machine:
    """A state, unpacked: shared words, and per actor its program counter, registers and store buffer."""

    def __init__(self, state):
        words, actors = state
        self.words = dict(words)
        self.actors = {name: [pc, dict(regs), list(buffer)] for name, pc, regs, buffer in actors}

    def pack(self):
        return (tuple(self.words.items()),
                tuple((name, a[0], tuple(a[1].items()), tuple(a[2])) for name, a in self.actors.items()))

    def load(self, name, word):
        for stored, value in reversed(self.actors[name][2]):
            if stored == word:
                return value
        return self.words[word]

    def store(self, name, word, value):
        self.actors[name][2].append((word, value))

    def fence(self, name):
        for word, value in self.actors[name][2]:
            self.words[word] = value
        self.actors[name][2] = []

    def go(self, name, pc):
        self.actors[name][0] = pc
        return self


def tell(m, name, state):
    """R5 after the fence: a free context becomes LEFT."""
    if m.load(name, state) in (IDLE, PARKED):
        m.fence(name)
        m.words[state] = LEFT


# ---- host ----

def host_start():
    words = dict(tail=0, completed=0, done=0, news=0, sleepers=0, state=IDLE, mark=0,
                 list=0, asleep=0, ran=0, kills=2)  # list, asleep, ran are the process's own
    actors = (("engine", "look", (("inputs", 0),), ()), ("submit", "push", (), ()), ("host", "enter", (("news", 0),), ()))
    return tuple(words.items()), actors


def host_engine(m, pc, regs):
    e = "engine"

    def inputs():
        return m.load(e, "tail") + (0 if "rescan" in OFF else m.load(e, "done"))

    if pc == "look":
        if m.words["state"] != LEFT:
            return None
        m.fence(e)
        m.words["state"] = ENGINE
        return m.go(e, "inputs")
    if pc == "inputs":
        regs["inputs"] = inputs()
        return m.go(e, "run")
    if pc == "run":
        completed, tail = m.load(e, "completed"), m.load(e, "tail")
        if completed == tail:
            return m.go(e, "leave")
        if completed == 0:
            m.store(e, "completed", 1)
            return m
        if m.load(e, "done"):
            m.store(e, "completed", 2)
            return m.go(e, "leave")
        if m.load(e, "mark"):
            return m.go(e, "leave")
        return m.go(e, "mark" if "mark-first" in OFF else "tell")
    if pc == "tell":
        m.fence(e)
        m.words["news"] += 1
        return m.go(e, "wake")
    if pc == "wake":
        if m.load(e, "sleepers"):
            m.words["asleep"] = 0
        return m.go(e, "leave" if "mark-first" in OFF else "mark")
    if pc == "mark":
        m.store(e, "mark", 1)
        return m.go(e, "tell" if "mark-first" in OFF else "leave")
    if pc == "leave":
        m.store(e, "state", IDLE if m.load(e, "completed") == m.load(e, "tail") else PARKED)
        return m.go(e, "fence")
    if pc == "fence":
        m.fence(e)
        return m.go(e, "rescan")
    assert pc == "rescan"
    if inputs() == regs["inputs"]:
        return m.go(e, "look")
    if m.words["state"] not in (IDLE, PARKED):
        return m.go(e, "look")
    m.words["state"] = ENGINE
    return m.go(e, "inputs")


def host_submit(m, pc, regs):
    s = "submit"
    if pc == "push":
        m.words["list"] = 1  # with a lock: at once
        return m.go(s, "tail")
    if pc == "tail":
        m.store(s, "tail", 2)
        return m.go(s, "fence")
    if pc == "fence":
        m.fence(s)
        return m.go(s, "tell")
    if pc == "tell":
        tell(m, s, "state")
        return m.go(s, "end")
    return None


def host_thread(m, pc, regs):
    h = "host"

    def due():
        if "own-number" in OFF:
            return m.load(h, "mark") == 1 and m.load(h, "completed") == 1
        return m.words["list"] == 1 and m.load(h, "completed") >= 1

    if pc == "enter":
        if "sleeper-fence" in OFF:
            m.store(h, "sleepers", 1)
        else:
            m.fence(h)
            m.words["sleepers"] = 1
        return m.go(h, "find" if "news-late" in OFF else "news")
    if pc == "news":
        regs["news"] = m.load(h, "news")
        return m.go(h, "wait" if "news-late" in OFF else "find")
    if pc == "find":
        if due():
            m.words["list"] = 0
            return m.go(h, "done" if "done-first" in OFF else "call")
        return m.go(h, "news" if "news-late" in OFF else "wait")
    if pc == "wait":
        if "sleeper-fence" not in OFF:
            m.fence(h)
        if m.words["news"] != regs["news"]:
            return m.go(h, "enter")
        m.words["asleep"] = 1
        return m.go(h, "asleep")
    if pc == "asleep":
        return None if m.words["asleep"] else m.go(h, "enter")
    if pc == "call":
        m.words["ran"] += 1
        return m.go(h, "tell" if "done-first" in OFF else "done")
    if pc == "done":
        m.store(h, "done", 2)
        return m.go(h, "call" if "done-first" in OFF else "tell")
    assert pc == "tell"
    m.fence(h)
    tell(m, h, "state")
    return m.go(h, "enter")


def host_wrong(m):
    if m.words["ran"] > 1:
        return "the host function ran twice"
    if m.words["completed"] == 2 and m.words["ran"] == 0:
        return "the stream went on before the host function had run"
    return None


def host_end(m):
    return m.words["completed"] == 2 and m.words["ran"] == 1 and m.actors["submit"][0] == "end"


# ---- event ----

def event_start():
    words = dict(recorded=0, tail_a=0, tail_b=0, completed_a=0, completed_b=0, state_a=IDLE, state_b=IDLE, kills=2)
    actors = (("engine", "look", (("watch", 0), ("of", ""), ("ring", 0)), ()), ("submit", "first", (("b", 0),), ()))
    return tuple(words.items()), actors


def event_engine(m, pc, regs):
    e = "engine"
    if pc == "look":
        return None  # which one is a choice: event_looks()
    of = regs["of"]
    if pc == "run":
        if m.load(e, "completed_" + of) == m.load(e, "tail_" + of):
            return m.go(e, "leave")
        if of == "a":
            if m.load(e, "recorded") < 1:
                m.store(e, "recorded", 1)
            regs["ring"] = regs["watch"]
            return m.go(e, "commit")
        if m.load(e, "recorded") >= 1:
            return m.go(e, "commit")
        regs["watch"] = 1
        return m.go(e, "leave")
    if pc == "commit":
        m.store(e, "completed_" + of, 1)
        return m.go(e, "leave")
    if pc == "leave":
        m.fence(e)
        undone = m.words["completed_" + of] != m.words["tail_" + of]
        if regs["ring"] and "ring" not in OFF and m.words["state_b"] == PARKED:
            m.words["state_b"] = LEFT
        regs["ring"] = 0
        m.store(e, "state_" + of, PARKED if undone else IDLE)
        return m.go(e, "rescan")
    assert pc == "rescan"
    m.fence(e)
    blocked = of == "b" and m.words["recorded"] < 1
    if m.words["completed_" + of] != m.words["tail_" + of] and not blocked and m.words["state_" + of] in (IDLE, PARKED):
        m.words["state_" + of] = ENGINE
        return m.go(e, "run")
    return m.go(e, "look")


def event_looks(state):
    out = []
    for of in "ab":
        m = Machine(state)
        if m.actors["engine"][0] == "look" and m.words["state_" + of] == LEFT:
            m.fence("engine")
            m.words["state_" + of] = ENGINE
            m.actors["engine"][1]["of"] = of
            out.append(m.go("engine", "run"))
    return out


def event_submit(m, pc, regs):
    s = "submit"
    of = {"first": "ab"[regs["b"]], "first-tell": "ab"[regs["b"]]}.get(pc, "ab"[1 - regs["b"]])
    if pc in ("first", "second"):
        m.store(s, "tail_" + of, 1)
        return m.go(s, pc + "-tell")
    if pc.endswith("-tell"):
        m.fence(s)
        tell(m, s, "state_" + of)
        return m.go(s, "second" if pc == "first-tell" else "end")
    return None


def event_wrong(m):
    return "the wait was over before the record" if m.words["completed_b"] and not m.words["recorded"] else None


def event_end(m):
    return m.words["completed_a"] == 1 and m.words["completed_b"] == 1 and m.words["recorded"] == 1


# ---- exploring ----

def kill_engine(state, contexts, registers):
    m = Machine(state)
    if not m.words["kills"]:
        return None
    m.words["kills"] -= 1
    m.fence("engine")  # the processor finishes what a dead process has stored
    m.actors["engine"][1].update(registers)
    for suffix in contexts:
        undone = m.words["completed" + suffix] != m.words["tail" + suffix]
        was = m.words["state" + suffix]
        if "restart" in OFF and was != ENGINE:
            continue
        m.words["state" + suffix] = LEFT if undone else IDLE
    return m.go("engine", "look")


def successors(state, programs, contexts, registers, extra):
    out = [m.pack() for m in extra(state)]
    for name, program in programs.items():
        m = Machine(state)
        nxt = program(m, m.actors[name][0], m.actors[name][1])
        if nxt:
            out.append(nxt.pack())
        m = Machine(state)
        if m.actors[name][2]:
            word, value = m.actors[name][2].pop(0)
            m.words[word] = value
            out.append(m.pack())
    killed = kill_engine(state, contexts, registers)
    if killed:
        out.append(killed.pack())
    return out


def explore(title, starts, programs, contexts, registers, extra, wrong, end):
    seen, work, before, ends = set(starts), list(starts), {}, []
    while work:
        state = work.pop()
        m = Machine(state)
        fault = wrong(m)
        if fault:
            sys.exit(f"FAIL {title}: {fault}: {state}")
        if end(m):
            ends.append(state)
        for nxt in successors(state, programs, contexts, registers, extra):
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
    lost = seen - alive
    if lost:
        sys.exit(f"FAIL {title}: no end can be reached from {len(lost)} of {len(seen)} states, such as {min(lost, key=str)}")
    print(f"ok {title}: {len(seen)} states")


def main():
    explore("host", [host_start()], {"engine": host_engine, "submit": host_submit, "host": host_thread}, [""], {"inputs": 0},
            lambda state: [], host_wrong, host_end)
    starts = []
    for b in (0, 1):
        m = Machine(event_start())
        m.actors["submit"][1]["b"] = b
        starts.append(m.pack())
    explore("event", starts, {"engine": event_engine, "submit": event_submit}, ["_a", "_b"], {"watch": 0, "of": "", "ring": 0},
            event_looks, event_wrong, event_end)


main()
