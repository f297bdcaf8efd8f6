#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ring of programs that open libhccl.so only: run.py HCCLCTL LIBRARIES PROGRAM"""
import os
import subprocess
import sys
import tempfile

hcclctl, libraries, program = sys.argv[1:4]
with tempfile.TemporaryDirectory() as directory:
    env = dict(os.environ, LD_LIBRARY_PATH=libraries)
    result = subprocess.run([hcclctl, "run", "--private", "-n", "4", "--", program, os.path.join(directory, "root")],
                            env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
print(result.stdout, result.stderr)
lines = sorted(line for line in result.stdout.splitlines())
sys.exit(0 if result.returncode == 0 and lines == ["[%d] rank %d: ok" % (i, i) for i in range(4)] else 1)
