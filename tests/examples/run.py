# SPDX-License-Identifier: Apache-2.0
"""Runs an example with a private daemon: it checks its sums itself, every rank says them, and host code touches no device memory."""
import os
import subprocess
import sys
import tempfile

hcclctl, hccld, example, ranks = sys.argv[1:]
for strict in ('0', '1'):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([hcclctl, 'run', '-n', ranks, '--private', '--daemon', hccld, '--', example, folder + '/root'],
                             env={**os.environ, 'HCCLD_STRICT_DEVICE': strict}, stdout=subprocess.PIPE, text=True, check=False)
    words = {'example_flags': 'the sum is', 'example_notifies': 'the last sum is'}[os.path.basename(example)]
    said = sum(f'of {ranks}: {words}' in line for line in run.stdout.splitlines())
    if run.returncode != 0 or said != int(ranks):
        sys.exit(f'strict {strict}: status {run.returncode}, {said} of {ranks} ranks have said their sum:\n{run.stdout}')
