#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks that may not run twice, and the records that make a restart safe.

The engine runs: 1 reduce in place over two slices, 2 notify record, 3 notify wait-and-reset, 4 wait for a second signal.
It is killed at most twice, before or after any store; its registers are lost, shared words stay. The peer interleaves
freely. `tasks.py` must print ok; `tasks.py no-redo` and `tasks.py no-intent` must fail.
"""
import sys

REDO, INTENT = "no-redo" not in sys.argv, "no-intent" not in sys.argv
WORDS = dict(done=0,            # tasks completed
             doing=0, val=0,    # intent: task number, the value it is about to store
             sl=0, sc=-1, scv=0,  # reduce: slices finished; scratch holds slice sc
             d0=10, d1=20,      # destination of the reduce
             ra=0, rb=0,        # notify we record: recorded (us), consumed (peer)
             wa=0, wb=0,        # notify we wait for: recorded (peer), consumed (us)
             sig=0, sent=0)     # ghosts: signals the peer got, records the peer made
SRC = (1, 2)


def engine(s, pc, r):
    """One step: (words, pc, register), at most one store to shared memory. None: must wait."""
    s = dict(s)
    n, i = s["done"] + 1, s["sl"]
    if pc == "start":
        if n == 1:
            if i == 2:
                s["done"] = 1
                return s, "start", 0
            if REDO and s["sc"] == i:
                return s, "apply", 0
            return s, "compute", s[f"d{i}"] + SRC[i]
        if n == 2:
            if INTENT and s["doing"] == 2:
                return s, "record", 0
            if s["ra"] != s["rb"]:
                return s, "done", 0            # still set: records collapse
            return s, "value" if INTENT else "record", s["ra"] + 1
        if n in (3, 4):
            if INTENT and s["doing"] == n:
                return s, "consume", 0
            if s["wa"] == s["wb"]:
                return None
            return s, "value" if INTENT else "consume", s["wa"]
        return None
    if pc == "compute":
        if not REDO:
            s[f"d{i}"] = r
            return s, "advance", 0
        s["scv"] = r
        return s, "valid", 0
    if pc == "valid":
        s["sc"] = i
        return s, "apply", 0
    if pc == "apply":
        s[f"d{i}"] = s["scv"]
        return s, "advance", 0
    if pc == "advance":
        s["sl"] = i + 1
        return s, "start", 0
    if pc == "value":
        s["val"] = r
        return s, "intend", 0
    if pc == "intend":
        s["doing"] = n
        return s, "record" if n == 2 else "consume", 0
    if pc == "record":
        v = s["val"] if INTENT else r
        s["ra"] = max(s["ra"], v)
        return s, "done", 0
    if pc == "consume":
        v = s["val"] if INTENT else r
        s["wb"] = max(s["wb"], v)
        return s, "done", 0
    assert pc == "done"
    s["done"] = n
    return s, "start", 0


def peer(s):
    out = []
    if s["ra"] != s["rb"]:
        out.append({**s, "rb": s["ra"], "sig": s["sig"] + 1})
    if s["wa"] == s["wb"] and s["sent"] < 2:
        out.append({**s, "wa": s["wa"] + 1, "sent": s["sent"] + 1})
    return out


def main():
    start = (tuple(WORDS.items()), "start", 0, 2)
    seen, work, ends = {start}, [start], 0
    while work:
        items, pc, r, kills = work.pop()
        s = dict(items)
        nxt = [(t, pc, r, kills) for t in peer(s)]
        e = engine(s, pc, r)
        if e:
            nxt.append((*e, kills))
        if kills:
            nxt.append((s, "start", 0, kills - 1))
        if s["sig"] > 1:
            sys.exit(f"FAIL a signal was delivered twice: {s}")
        if s["d0"] > 11 or s["d1"] > 22:
            sys.exit(f"FAIL reduced twice: {s}")
        if s["done"] == 4 and s["sig"] == 1:
            ends += 1
        elif not e and not peer(s):
            sys.exit(f"FAIL stuck: {s}")
        for t, p, q, k in nxt:
            key = (tuple(t.items()), p, q, k)
            if key not in seen:
                seen.add(key)
                work.append(key)
    print(f"ok {len(seen)} states {ends} ends")


main()
