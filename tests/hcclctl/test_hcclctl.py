#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
hcclctl as its user sees it: test_hcclctl.py BUILD_DIR [TEST...]

The daemon is tests/hcclctl/fake_daemon, which answers what is asked of it and can misbehave, and, in class Real, hccld.
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from resource import RLIMIT_NOFILE, setrlimit

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
HCCLCTL = str(BUILD / "hcclctl" / "hcclctl")
HCCLD = str(BUILD / "daemon" / "hccld")
MAN = pathlib.Path(__file__).resolve().parents[2] / "man"
FAKE = str(BUILD / "tests" / "hcclctl" / "fake_daemon")
QUERIES = ["status", "ps", "comms", "devices", "waiting"]
ADMIN = ["streams", "notifies", "threads", "kill", "drain", "undrain", "ping", "monitor"]
COMMANDS = QUERIES + ADMIN + ["limits", "mem", "resources", "channels", "config", "log", "run", "env", "version"]


def environment(directory, **more):
    """Nothing of the caller's that matters here, and a runtime directory that is empty."""
    result = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": directory, "TMPDIR": directory, "LC_ALL": "C.UTF-8"}
    for name in ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
        if name in os.environ:
            result[name] = os.environ[name]
    result.update({name: str(value) for name, value in more.items()})
    return result


def alive(pid):
    """Neither gone nor a zombie that nobody has reaped yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="test-hcclctl-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.socket = os.path.join(self.directory, "s")

    def call(self, *arguments, **more):
        more.setdefault("HCCLD_SOCKET", self.socket)
        return subprocess.run([HCCLCTL, *arguments], env=environment(self.directory, **more), timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def fake(self, mode="normal"):
        ready, daemon_ready = os.pipe()
        daemon = subprocess.Popen([FAKE, "--socket", self.socket, "--ready-fd", str(daemon_ready)],
                                  stdout=subprocess.DEVNULL, pass_fds=[daemon_ready],
                                  env=environment(self.directory, FAKE_DAEMON_MODE=mode))
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        os.close(daemon_ready)
        self.assertEqual(os.read(ready, 2), b"1\n")
        os.close(ready)
        return daemon


class CommandLine(Case):
    def test_overview(self):
        for arguments in ([], ["help"], ["--help"]):
            result = self.call(*arguments)
            self.assertEqual(result.returncode, 0)
            for command in COMMANDS:
                self.assertIn(f"  {command} ", result.stdout)

    def test_help_of_each_command(self):
        for command in COMMANDS:
            for arguments in ([command, "--help"], ["help", command], [command, "-h"]):
                result = self.call(*arguments)
                self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
                self.assertTrue(result.stdout.startswith(f"Usage: hcclctl {command}"), result.stdout)

    def test_manual_names_every_option(self):
        for page, programs in (("hcclctl.1.scd", [[HCCLCTL, command] for command in COMMANDS]), ("hccld.8.scd", [[HCCLD]])):
            text = (MAN / page).read_text()
            if page == "hccld.8.scd":  # settings are there
                text += (BUILD / "man" / "hccld.conf.5.scd").read_text()
            for program in programs:
                help_text = subprocess.run([*program, "--help"], capture_output=True, text=True, check=True,
                                           env=environment(self.directory)).stdout
                for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_text)) - {"--version", "--help"}:
                    self.assertIn(f"*{option}*", text, f"{program} in {page}")

    def test_options_without_command(self):
        """A probe with an empty variable must not look healthy."""
        for arguments in (["--socket", "status"], ["--json"], ["--socket", self.socket, "--json"]):
            result = self.call(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("which command?", result.stderr)
        for arguments in (["--socket", "", "status"], ["status", "--socket="], ["run", "--socket", "", "-n", "1", "true"]):
            result = self.call(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("the path is empty", result.stderr)

    def test_suggestion(self):
        for wrong, meant in {"statsu": "status", "pss": "ps", "sessions": "ps", "comm": "comms", "envv": "env"}.items():
            result = self.call(wrong)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"did you mean '{meant}'", result.stderr)
        self.assertIn("'hcclctl help' lists them", self.call("help", "foo").stderr)
        for wrong in ("qwertyuiop", "", "x" * 5000, "\x1b[2J"):
            self.assertEqual(self.call(wrong).returncode, 2)

    def test_wrong_usage(self):
        for arguments in (["status", "--nonsense"], ["ps", "extra"], ["log"], ["log", "debug", "info"], ["config", "x"], ["comms", "--json=1"], ["status", "--socket"],
                          ["--nonsense"], ["status", "-v"], ["run"], ["run", "-n", "2"], ["run", "true"],
                          ["run", "-n", "0", "true"], ["run", "-n", "x", "true"], ["run", "-n", "5000", "true"],
                          ["run", "-n", "-1", "true"], ["run", "-n", "1", "--devices", "65", "true"],
                          ["run", "-n", "1", "--devices", "0", "true"], ["help", "nonsense"]):
            result = self.call(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertTrue(result.stderr, arguments)

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([HCCLCTL, "help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left", result.stderr)


class Queries(Case):
    def test_daemon_of_an_older_release(self):
        self.fake()
        for command in ADMIN:
            result = self.call(command, *(["1"] if command == "kill" else []))
            self.assertEqual((result.returncode, result.stdout), (1, ""), command)
            self.assertRegex(result.stderr, r"^hcclctl: hccld 9\.8\.7 does not support \w+: update hccld$")

    def test_no_daemon(self):
        for command in QUERIES:
            for arguments in ([command], [command, "--json"]):
                result = self.call(*arguments)
                self.assertEqual((result.returncode, result.stdout), (3, ""))
                self.assertIn(self.socket, result.stderr)
                self.assertIn("hccld --socket", result.stderr)
        self.assertIn('hccld --socket "$PWD"/x\n', self.call("status", HCCLD_SOCKET="x").stderr)
        result = self.call("status", HCCLD_SOCKET="")
        self.assertEqual(result.returncode, 3)
        self.assertIn("/run/hccld/hccld.sock", result.stderr)
        self.assertIn("Start one with 'hccld'", result.stderr)
        result = self.call("status", "--socket", self.directory + "/" + "x" * 300)
        self.assertEqual(result.returncode, 3)
        self.assertIn("the path behind --socket is too long", result.stderr)
        self.assertNotIn("hccld --socket", result.stderr)
        self.assertIn("path in HCCLD_SOCKET is longer than 107 bytes", self.call("status", HCCLD_SOCKET="/" + "x" * 300).stderr)
        pathlib.Path(self.directory, "file").touch()
        for path, says in ((self.directory, "that is no socket"), (self.directory + "/file", "that is no socket"),
                           (self.directory + "/file/s", "Not a directory")):
            result = self.call("status", "--socket", path)
            self.assertEqual((result.returncode, result.stdout), (3, ""))
            self.assertIn(says, result.stderr)
            self.assertNotIn("hccld --socket", result.stderr)  # hccld would refuse it, too
        result = self.call("version")
        self.assertEqual(result.returncode, 0)
        self.assertIn("no daemon", result.stdout)

    def test_json(self):
        self.fake()
        for place in (lambda c: [c, "--json"], lambda c: ["--json", c], lambda c: ["--socket", self.socket, c, "--json"]):
            status = json.loads(self.call(*place("status")).stdout)
            self.assertIs(status["healthy"], True)
            self.assertEqual((status["pid"], status["incarnation"], len(status["devices"])), (77, 2, 4))
            self.assertEqual(status["devices"][1]["memory_used"], 3 << 29)
            self.assertIsNone(status["oldest"])
        sessions = json.loads(self.call("ps", "--json").stdout)["sessions"]
        self.assertEqual([session["session"] for session in sessions], [2**64 - 1, 2**64 - 2])
        self.assertEqual(sessions[0]["devices"], [0, 1, 2, 5])
        comms = json.loads(self.call("comms", "--json").stdout)["comms"]
        self.assertEqual([len(comm["members"]) for comm in comms], [6, 6])
        devices = json.loads(self.call("devices", "--json").stdout)
        self.assertEqual([device["device"] for device in devices["devices"]], [0, 1])
        self.assertIsInstance(devices["rdma_devices"], list)
        waiting = json.loads(self.call("waiting", "--json").stdout)["waiting"]
        self.assertEqual([entry["operation"] for entry in waiting], ["receive", "send"])
        version = json.loads(self.call("version", "--json").stdout)
        self.assertEqual(version["daemon"]["version"], "9.8.7")

    def test_text(self):
        self.fake()
        lines = self.call("status").stdout.splitlines()
        self.assertEqual(lines[0], "healthy: nothing is stuck")
        self.assertIn("up 1 h 2 min, incarnation 2", lines[2])
        self.assertIn("1.5 GiB", "\n".join(lines))
        self.assertIn("0-2,5", self.call("ps").stdout)
        self.assertIn("0:100@0 1:101@0 2:102@0 3:103@0 and 2 more", self.call("comms").stdout)
        self.assertRegex(self.call("comms").stdout, r" 5 of 6 .* 1:missing 0:100@0 2:102@0 3:103@0 and 2 more")
        lines = self.call("comms", "-v").stdout.splitlines()
        self.assertEqual(len(lines), 13)
        self.assertRegex(lines[8], r" 1 +- +- +missing\b")
        self.assertIn("RDMA", self.call("devices").stdout)
        self.assertIn("rank 1 has not posted", self.call("waiting").stdout)

    def test_stuck(self):
        self.fake("stuck")
        result = self.call("status")
        self.assertEqual(result.returncode, 1)
        self.assertTrue(result.stdout.startswith("stuck: rank 0 waits for rank 1\n"))
        self.assertIn("Waiting longest: 12 s in ring, communicator world\n  rank 1 has not posted the send\n", result.stdout)
        result = self.call("status", "--json")
        self.assertEqual(result.returncode, 1)
        self.assertIs(json.loads(result.stdout)["healthy"], False)

    def test_empty(self):
        self.fake("empty")
        self.assertIn("no process", self.call("ps").stdout)
        self.assertIn("no communicator", self.call("comms").stdout)
        self.assertIn("no operation waits", self.call("waiting").stdout)
        self.assertEqual(json.loads(self.call("ps", "--json").stdout), {"sessions": []})

    def test_what_others_have_is_not_denied(self):
        self.fake("others")
        for command in ("ps", "mem", "waiting", "limits"):
            self.assertIn("none of yours; 3 sessions of other users are not shown\n", self.call(command).stdout, command)
        self.assertEqual(self.call("comms").stdout, "none of yours; 1 communicator of other users is not shown\n")

    def test_odd_text_is_harmless(self):
        self.fake("odd")
        for command in QUERIES + ["version", "comms -v"]:
            result = subprocess.run([HCCLCTL, *command.split()], capture_output=True,
                                    env=environment(self.directory, HCCLD_SOCKET=self.socket))
            self.assertEqual((result.returncode, result.stderr), (0, b""), command)
            self.assertNotRegex(result.stdout.decode("utf-8"), "[\x00-\x09\x0b-\x1f\x7f-\x9f]", command)
            if command in QUERIES:
                json.loads(self.call(command, "--json").stdout)

    def test_misbehaving_daemons(self):
        for mode, status, says in (("refuse", 1, "only root may ask"), ("hangup", 3, "has ended"),
                                   ("version", 3, "too old"), ("other", 1, "malformed")):
            with self.subTest(mode):
                daemon = self.fake(mode)
                result = self.call("status")
                self.assertEqual((result.returncode, result.stdout), (status, ""))
                self.assertIn(says, result.stderr)
                daemon.terminate()
                daemon.wait()

    def test_endless_list(self):
        self.fake("endless")
        self.assertEqual(self.call("ps", "--json").returncode, 1)

    def test_silent_daemon(self):
        self.fake("silent")
        started = time.monotonic()
        result = self.call("status")
        self.assertEqual(result.returncode, 1)
        self.assertIn("does not answer within 10 s", result.stderr)
        self.assertLess(time.monotonic() - started, 15)


class Env(Case):
    NAMES = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "LD_LIBRARY_PATH", "PATH", "HCCLD_SOCKET"]

    def evaluate(self, hcclctl, *arguments, **more):
        script = 'eval "$("$@")" && printf "%s\\n" ' + " ".join(f'"${{{name}:-}}"' for name in self.NAMES)
        result = subprocess.run(["sh", "-euc", script, "sh", hcclctl, "env", *arguments], text=True, check=True,
                                capture_output=True, env=environment(self.directory, **more))
        return dict(zip(self.NAMES, result.stdout.splitlines()))

    def test_build_directory(self):
        values = self.evaluate(HCCLCTL)
        home = pathlib.Path(values["ASCEND_HOME_PATH"])
        self.assertTrue((home / "include" / "hccl" / "hccl.h").exists())
        self.assertTrue((home / "lib64" / "libhccl.so").exists())
        self.assertEqual(values["HCCLD_SOCKET"], "")

    def test_moved_installation_with_an_odd_name(self):
        prefix = pathlib.Path(self.directory) / "it's $HOME \"x\" `y`"
        home = prefix / "lib" / "hccld" / "ascend"
        home.mkdir(parents=True)
        (prefix / "bin").mkdir()
        shutil.copy(HCCLCTL, prefix / "bin" / "hcclctl")
        core = {"LD_LIBRARY_PATH": f"{BUILD}/client"}
        values = self.evaluate(str(prefix / "bin" / "hcclctl"), "--socket", "/a b/s", **core)
        self.assertEqual(values["ASCEND_HOME_PATH"], str(home))
        self.assertEqual(values["ASCEND_TOOLKIT_HOME"], str(home))
        self.assertEqual(values["LD_LIBRARY_PATH"], f"{home}/lib64:{core['LD_LIBRARY_PATH']}")
        self.assertTrue(values["PATH"].startswith(f"{prefix}/bin:{prefix}/sbin:"))
        self.assertEqual(values["HCCLD_SOCKET"], "/a b/s")
        result = subprocess.run([prefix / "bin" / "hcclctl", "env", "--json"], capture_output=True, text=True,
                                env=environment(self.directory, **core))
        self.assertEqual(json.loads(result.stdout)["ascend_home_path"], str(home))


class Run(Case):
    """hcclctl run with a private fake daemon."""

    def arguments(self, *arguments):
        return [HCCLCTL, "run", "--daemon", FAKE, *arguments]

    def run_ranks(self, *arguments, text=True, **more):
        more = {"env": environment(self.directory), "stdin": subprocess.DEVNULL, **more}
        return subprocess.run(self.arguments(*arguments), capture_output=True, text=text, timeout=60, **more)

    def start(self, *arguments, **more):
        more = {"env": environment(self.directory), "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE, "text": True, **more}
        process = subprocess.Popen(self.arguments(*arguments), **more)
        self.addCleanup(self.dispose, process)
        return process

    @staticmethod
    def dispose(process):
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def assert_nothing_left(self):
        wait_for(lambda: not list(pathlib.Path(self.directory).glob("hccld-*")), "the private directory is removed")
        mine = f"XDG_RUNTIME_DIR={self.directory}".encode()

        def left():
            found = []
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if mine in (process / "environ").read_bytes().split(b"\0") and alive(process.name):
                        found.append((process / "cmdline").read_bytes())
                except OSError:
                    pass
            return found
        wait_for(lambda: not left(), "no process is left")

    def test_environment(self):
        result = self.run_ranks("-n", "5", "--devices", "2", "--", "sh", "-c",
                                'echo $RANK_ID $RANK $LOCAL_RANK $RANK_SIZE $WORLD_SIZE $LOCAL_WORLD_SIZE $DEVICE_ID; '
                                'test -S "$HCCLD_SOCKET" && echo "socket"; echo "${LD_LIBRARY_PATH%%:*}"')
        self.assertEqual(result.returncode, 0)
        lines = sorted(result.stdout.splitlines())
        self.assertEqual([line for line in lines if re.match(r"\[\d\] \d", line)],
                         [f"[{rank}] {rank} {rank} {rank} 5 5 5 {rank % 2}" for rank in range(5)])
        self.assertEqual(sum("socket" in line for line in lines), 5)
        if (BUILD / "ascend" / "lib64").exists():
            self.assertEqual(sum(line.endswith(f"{BUILD}/ascend/lib64") for line in lines), 5)
        self.assertIn("--devices 2", result.stderr)
        self.assert_nothing_left()

    def test_job_has_a_name_of_its_own(self):
        """In another pid namespace the same pid is another run."""
        names = []
        for _ in range(2):
            result = self.run_ranks("-n", "3", "sh", "-c", "echo $HCCLD_JOB")
            names.append({line.split()[1] for line in result.stdout.splitlines()})
            self.assertEqual(len(names[-1]), 1)
        self.assertRegex(names[0].pop(), r"^hcclctl-\d+-[0-9a-f]{16}$")
        env = environment(self.directory, HCCLD_JOB="mine")
        self.assertEqual(self.run_ranks("-n", "1", "sh", "-c", "echo $HCCLD_JOB", env=env).stdout, "[0] mine\n")

    def test_visible_devices(self):
        env = environment(self.directory, ASCEND_RT_VISIBLE_DEVICES="4,5,6,99")
        result = self.run_ranks("-n", "4", "--devices", "8", "sh", "-c", "echo $DEVICE_ID", env=env)
        self.assertEqual(sorted(result.stdout.splitlines()), ["[0] 0", "[1] 1", "[2] 2", "[3] 0"])
        for wrong in ("8", "a,b", ""):
            result = self.run_ranks("-n", "1", "--devices", "8", "true", env=environment(self.directory, ASCEND_RT_VISIBLE_DEVICES=wrong))
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(f"ASCEND_RT_VISIBLE_DEVICES is '{wrong}': a program sees no device", result.stderr)

    def test_options_for_the_daemon(self):
        result = self.run_ranks("-n", "1", "--device-memory", "1G", "--soc-name", "Ascend910B", "--copy-threads", "0",
                                "--allow-duplicate-items", "--local-path", "engine", "--log-level", "debug", "true")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--device-memory 1G --soc-name Ascend910B --copy-threads 0 --allow-duplicate-items "
                      "--local-path engine --log-level debug --devices 8", result.stderr)

    def test_devices_of_a_configuration_file_do_not_count(self):
        path = f"{self.directory}/hccld.conf"
        with open(path, "w", encoding="utf-8") as file:
            file.write("[devices]\ndevices = 3\n")
        for arguments, number, why in ((), 8, "the default"), (("--devices", "2"), 2, "--devices"):
            result = self.run_ranks("-n", "1", "--config", path, *arguments, "true")
            self.assertEqual(result.returncode, 0)
            self.assertIn(f"the private daemon has {number} devices ({why}), not 3 as in {path}: hcclctl run sets the number by --devices",
                          result.stderr)
        result = self.run_ranks("-n", "1", "--config", path, "--devices", "3", "true")
        self.assertEqual((result.returncode, result.stderr.count("devices (")), (0, 0))

    def test_socket_of_the_private_daemon(self):
        result = self.run_ranks("-n", "1", "--socket", self.socket, "sh", "-c", "echo $HCCLD_SOCKET")
        self.assertEqual((result.returncode, result.stdout), (0, f"[0] {self.socket}\n"))
        result = self.run_ranks("-n", "1", "--socket", "relative", "sh", "-c", "echo $HCCLD_SOCKET", cwd=self.directory)
        self.assertEqual((result.returncode, result.stdout), (0, f"[0] {self.directory}/relative\n"))

    def test_running_daemon(self):
        self.fake()
        env = environment(self.directory, HCCLD_SOCKET=self.socket)

        def run(*arguments):
            return subprocess.run([HCCLCTL, "run", *arguments], env=env, capture_output=True, text=True, timeout=60)
        result = run("-n", "6", "sh", "-c", "echo $DEVICE_ID $HCCLD_SOCKET")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "")
        self.assertEqual(sorted(result.stdout.splitlines()),
                         [f"[{rank}] {rank % 4} {self.socket}" for rank in range(6)])
        env["HCCLD_LOCAL_PATH"] = "engine"
        result = run("-n", "1", "true")
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertIn("HCCLD_LOCAL_PATH is set, but does nothing", result.stderr)
        del env["HCCLD_LOCAL_PATH"]
        env["ASCEND_RT_VISIBLE_DEVICES"] = "4"
        result = run("-n", "1", "true")
        self.assertEqual(result.returncode, 2)
        self.assertIn("does not begin with an id from 0 to 3", result.stderr)
        del env["ASCEND_RT_VISIBLE_DEVICES"]
        result = run("-n", "1", "--devices", "5", "true")
        self.assertEqual(result.returncode, 2)
        self.assertIn("the daemon has 4", result.stderr)

    def test_daemon_that_does_not_come_up(self):
        env = environment(self.directory, FAKE_DAEMON_MODE="broken")
        result = self.run_ranks("-n", "1", "true", env=env)
        self.assertEqual((result.returncode, result.stdout), (125, ""))
        self.assertIn("no room for devices", result.stderr)
        self.assertIn("exit status 3", result.stderr)
        self.assert_nothing_left()
        result = subprocess.run([HCCLCTL, "run", "-n", "1", "--socket", self.socket, "true"], capture_output=True,
                                text=True, env=environment(self.directory))
        self.assertEqual(result.returncode, 3)
        result = subprocess.run([HCCLCTL, "run", "--daemon", "/etc/passwd", "-n", "1", "true"], capture_output=True,
                                text=True, env=environment(self.directory))
        self.assertEqual(result.returncode, 125)
        self.assertIn("Permission denied", result.stderr)
        self.assert_nothing_left()

    def test_exit_statuses(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -11 $$", 139)):
            result = self.run_ranks("-n", "3", "sh", "-c", f"test $RANK = 1 && {{ {script}; }}; exit 0")
            self.assertEqual(result.returncode, status)
        self.assertEqual(self.run_ranks("-n", "3", "no-such-program").returncode, 127)
        self.assertEqual(self.run_ranks("-n", "3", "/etc/passwd").returncode, 126)

    def test_failure_ends_the_others(self):
        started = time.monotonic()
        result = self.run_ranks("-n", "4", "sh", "-c", "test $RANK = 2 && exit 5; exec sleep 60")
        self.assertEqual(result.returncode, 5)
        self.assertLess(time.monotonic() - started, 20)
        self.assertRegex(result.stderr, r"hcclctl: rank 2 \(pid \d+\) ended with exit status 5; ending the other 3")
        self.assert_nothing_left()

    def test_failure_kills_who_does_not_end(self):
        result = self.run_ranks("-n", "3", "--grace", "1", "sh", "-c",
                                'test $RANK = 1 && sleep 0.5 && exit 5; trap "" TERM; while :; do sleep 1; done')
        self.assertEqual(result.returncode, 5)
        self.assertIn("killing 2 ranks", result.stderr)
        self.assert_nothing_left()

    def test_rank_in_another_process_group_is_ended_too(self):
        started = time.monotonic()
        move = "import os, time\nos.setpgid(0, os.getpgid(os.getppid()))\nprint(flush=True)\ntime.sleep(60)"
        result = self.run_ranks("-n", "2", "sh", "-c", f'test $RANK = 1 && sleep 1 && exit 5; exec {sys.executable} -c "$0"', move)
        self.assertEqual(result.returncode, 5)
        self.assertLess(time.monotonic() - started, 20)
        self.assert_nothing_left()

    def test_killed_rank_counts_before_those_that_it_takes_along(self):
        """Two that end before we look: which came first is not known."""
        process = self.start("-n", "2", "sh", "-c", 'trap "exit 1" USR1; echo $$; while :; do sleep 0.05; done')
        pids = dict(line[1:].split("] ") for line in (process.stdout.readline(), process.stdout.readline()))
        process.send_signal(signal.SIGSTOP)
        os.kill(int(pids["1"]), signal.SIGKILL)
        os.kill(int(pids["0"]), signal.SIGUSR1)
        wait_for(lambda: not alive(int(pids["0"])) and not alive(int(pids["1"])), "both end")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(timeout=30), 137)
        self.assert_nothing_left()

    def test_keep_going(self):
        result = self.run_ranks("-n", "4", "--keep-going", "sh", "-c",
                                "test $RANK = 1 && exit 3; sleep 0.5; test $RANK = 2 && kill -9 $$; echo done")
        self.assertEqual(result.returncode, 3)
        self.assertEqual(sorted(result.stdout.splitlines()), ["[0] done", "[3] done"])
        self.assertIn("rank 1", result.stderr)
        self.assertRegex(result.stderr, r"rank 2 \(pid \d+\) was killed by signal 9 \(Killed\)\n")

    def test_lines(self):
        result = self.run_ranks("-n", "2", "sh", "-c", 'printf "a\\n\\nb"; printf "e\\nf" >&2')
        for rank in "01":
            self.assertEqual([line for line in result.stdout.splitlines() if line.startswith(f"[{rank}]")],
                             [f"[{rank}] a", f"[{rank}] ", f"[{rank}] b"])
        self.assertEqual(sorted(line for line in result.stderr.splitlines() if line[0] == "[" and line[1] in "01"),
                         ["[0] e", "[0] f", "[1] e", "[1] f"])

    def test_binary_output(self):
        data = bytes(range(256)) * 3000
        path = pathlib.Path(self.directory) / "data"
        path.write_bytes(data)
        result = self.run_ranks("-n", "1", "cat", str(path), text=False)
        expected = b"".join(b"[0] " + line + b"\n" for line in data.split(b"\n"))
        self.assertEqual(result.stdout, expected)

    def test_line_of_many_mebibytes(self):
        result = self.run_ranks("-n", "2", "sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; echo", text=False)
        for rank in b"0", b"1":
            pieces = [line[4:] for line in result.stdout.split(b"\n") if line.startswith(b"[" + rank + b"] ")]
            self.assertEqual(b"".join(pieces), b"x" * 5000000)

    def test_much_output_of_many_ranks(self):
        script = 'i=0; while [ $i -lt 40 ]; do echo "out $RANK $i"; echo "err $RANK $i" >&2; i=$((i + 1)); done; ' \
                 'yes "rank $RANK says this over and over" | head -c 3000000; echo'
        result = self.run_ranks("-n", "16", "sh", "-c", script)
        self.assertEqual(result.returncode, 0)
        size = {rank: 0 for rank in range(16)}
        for line in result.stdout.splitlines():
            match = re.fullmatch(r"\[(\d+)\] (?:out \1 \d+|(rank \1 says this over and over)|(.*))", line)
            self.assertTrue(match, line)
            if match[2]:
                size[int(match[1])] += len(match[2]) + 1
        for rank in range(16):
            self.assertGreater(size[rank], 2999900)
            self.assertEqual([line for line in result.stderr.splitlines() if line.startswith(f"[{rank}] err")],
                             [f"[{rank}] err {rank} {i}" for i in range(40)])

    def test_slow_reader(self):
        """The ranks wait for the reader; the run stays answerable."""
        process = self.start("-n", "2", "sh", "-c", "yes | head -c 20000000", text=False)
        time.sleep(1)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        started = time.monotonic()
        out, _ = process.communicate(timeout=30)
        self.assertLess(time.monotonic() - started, 15)
        self.assertEqual(process.returncode, 143)
        self.assertTrue(set(out.replace(b"[0] y\n", b"").replace(b"[1] y\n", b"")) <= set(b""))
        self.assert_nothing_left()

    def test_reader_that_leaves(self):
        process = self.start("-n", "2", "yes")
        self.assertEqual(process.stdout.readline()[3:], " y\n")
        process.stdout.close()
        self.assertEqual(process.wait(timeout=30), 128 + signal.SIGPIPE)
        self.assert_nothing_left()

    def test_same_pipe_for_both_outputs(self):
        process = self.start("-n", "4", "sh", "-c",
                             "for i in 1 2 3; do yes out | head -c 100000; yes err | head -c 100000 >&2; done",
                             stderr=subprocess.STDOUT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(sum(line.endswith("] out") for line in out.splitlines()), 4 * 3 * 25000)

    def test_left_behind_process_does_not_hold_us_up(self):
        started = time.monotonic()
        result = self.run_ranks("-n", "2", "sh", "-c", "sleep 30 & echo $!; exit 0")
        self.assertEqual(result.returncode, 0)
        self.assertLess(time.monotonic() - started, 15)
        for line in result.stdout.splitlines():
            os.kill(int(line.split()[1]), signal.SIGKILL)

    def test_many_ranks(self):
        result = self.run_ranks("-n", "512", "sh", "-c", "echo $DEVICE_ID; echo e >&2")
        self.assertEqual(result.returncode, 0)
        self.assertEqual({line.split("] ")[0] + "]" for line in result.stdout.splitlines()},
                         {f"[{rank}]" for rank in range(512)})
        self.assert_nothing_left()

    def test_file_limit_is_raised_for_us_and_not_for_the_ranks(self):
        result = self.run_ranks("-n", "100", "sh", "-c", "ulimit -Sn", preexec_fn=lambda: setrlimit(RLIMIT_NOFILE, (100, 4096)))
        self.assertEqual(result.returncode, 0)
        self.assertEqual({line.split()[1] for line in result.stdout.splitlines()}, {"100"})
        result = self.run_ranks("-n", "100", "true", preexec_fn=lambda: setrlimit(RLIMIT_NOFILE, (100, 100)))
        self.assertEqual(result.returncode, 125)
        self.assertIn("open files", result.stderr)

    def test_descriptors_of_the_ranks(self):
        result = self.run_ranks("-n", "2", "sh", "-c", "ls /proc/self/fd | tr '\\n' ' '")
        # 3 is ls' own
        self.assertEqual(sorted(result.stdout.splitlines()), ["[0] 0 1 2 3 ", "[1] 0 1 2 3 "])

    def test_standard_input(self):
        result = self.run_ranks("-n", "3", "cat", stdin=None, input="for rank 0\n")
        self.assertEqual((result.returncode, result.stdout), (0, "[0] for rank 0\n"))

    def test_closed_standard_descriptors(self):
        for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            result = subprocess.run(["sh", "-c", f'"$@" {closing}', "sh", *self.arguments("-n", "2", "echo", "x")],
                                    env=environment(self.directory), capture_output=True, text=True, timeout=30)
            self.assertIn(result.returncode, (0, 125), closing)
        self.assert_nothing_left()

    def test_signals_are_passed_on(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            name = number.name[3:]
            process = self.start("-n", "3", "sh", "-c", f'trap "echo got {name}; exit 0" {name}; echo ready; '
                                 'while :; do sleep 0.05; done')
            for _ in range(3):
                self.assertIn("ready", process.stdout.readline())
            process.send_signal(number)
            out, _ = process.communicate(timeout=30)
            self.assertEqual(sorted(out.splitlines()), [f"[{rank}] got {name}" for rank in range(3)])
            self.assertEqual(process.returncode, 0)
        self.assert_nothing_left()

    def test_signal_reaches_what_a_rank_has_started(self):
        process = self.start("-n", "1", "sh", "-c", "sleep 60 & echo $!; wait")
        pid = int(process.stdout.readline().split()[1])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        process = self.start("-n", "1", "sh", "-c", "echo $$; sleep 61; true")
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 143)
        self.assertTrue(pid)

    def test_second_and_third_signal(self):
        script = 'trap "echo got" INT; trap "" TERM; echo ready; while :; do sleep 0.05; done'
        process = self.start("-n", "2", "--grace", "60", "sh", "-c", script)
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertIn("got", process.stdout.readline() + process.stdout.readline())
        process.send_signal(signal.SIGINT)
        self.assertIn("again", self.read_until(process.stderr, "again"))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 137)
        self.assert_nothing_left()

    @staticmethod
    def read_until(stream, word):
        text = ""
        while word not in text:
            line = stream.readline()
            if not line:
                break
            text += line
        return text

    def test_terminal(self):
        """^C once, at a terminal: every rank gets one SIGINT."""
        script = 'trap "echo interrupted; exit 9" INT; echo ready; while :; do sleep 0.05; done'
        arguments, env = self.arguments("-n", "3", "sh", "-c", script), environment(self.directory)
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(HCCLCTL, arguments, env)
        text = ""

        def read(until, count):
            nonlocal text
            end = time.monotonic() + 30
            while text.count(until) < count and time.monotonic() < end:
                if not select.select([terminal], [], [], 0.5)[0]:
                    continue
                try:
                    text += os.read(terminal, 4096).decode()
                except OSError:
                    break
        read("] ready", 3)
        os.write(terminal, b"\x03")
        read("nothing that comes", 1)
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        self.assertEqual(text.count("] interrupted"), 3, text)
        self.assertEqual(os.waitstatus_to_exitcode(status), 9)
        self.assert_nothing_left()

    def test_each_rank_may_end_in_its_own_time_after_a_signal(self):
        process = self.start("-n", "3", "--grace", "10", "sh", "-c",
                             'trap "sleep 0.$RANK_ID; echo bye; exit 4" INT; trap "exit 5" TERM; echo ready; '
                             'while :; do sleep 0.05; done')
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(sorted(out.splitlines()), ["[0] bye", "[1] bye", "[2] bye"])
        self.assertEqual(process.returncode, 4)
        self.assert_nothing_left()

    def test_stop_and_continue(self):
        process = self.start("-n", "1", "sh", "-c", "echo $$; exec sleep 60")
        rank = process.stdout.readline().split()[1]
        process.send_signal(signal.SIGTSTP)

        def state(pid):
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        wait_for(lambda: state(process.pid) == "T" and state(rank) == "T", "both stop")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: state(process.pid) != "T" and state(rank) != "T", "both go on")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 143)
        self.assert_nothing_left()

    def test_private_directory(self):
        process = self.start("-n", "1", "sh", "-c", "echo $HCCLD_SOCKET; exec sleep 60")
        directory = pathlib.Path(process.stdout.readline().split()[1]).parent
        self.assertEqual(directory.stat().st_mode & 0o7777, 0o700)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 130)
        self.assertFalse(directory.exists())
        self.assert_nothing_left()

    def test_killed_hcclctl_leaves_nothing(self):
        process = self.start("-n", "4", "sh", "-c", "echo $$; exec sleep 60")
        ranks = [int(process.stdout.readline().split()[1]) for _ in range(4)]
        process.kill()
        process.wait()
        for rank in ranks:
            wait_for(lambda: not alive(rank), "the ranks are killed")
        self.assert_nothing_left()

    def test_killed_daemon_is_reported(self):
        process = self.start("-n", "1", "sh", "-c", "echo started; sleep 1; echo on")
        self.assertIn("started", process.stdout.readline())
        os.kill(int(re.search(r"pid (\d+):", process.stderr.readline())[1]), signal.SIGKILL)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertIn("[0] on", out)
        self.assertRegex(err, r"private daemon \(pid \d+\) ended with signal 9")
        self.assert_nothing_left()

    def test_stubborn_daemon_is_killed(self):
        result = self.run_ranks("-n", "1", "true", env=environment(self.directory, FAKE_DAEMON_MODE="stubborn"))
        self.assertEqual(result.returncode, 0)
        self.assert_nothing_left()


class Real(Run):
    """With hccld itself: that the two get along; some tests of Run run again."""

    def arguments(self, *arguments):
        return [HCCLCTL, "run", "--private", "--device-memory", "16M", *arguments]


for name in dir(Run):
    if name.startswith("test_") and name not in (
            "test_exit_statuses", "test_failure_ends_the_others", "test_socket_of_the_private_daemon", "test_many_ranks",
            "test_private_directory", "test_killed_hcclctl_leaves_nothing"):
        setattr(Real, name, None)


class RealQueries(Case):
    def setUp(self):
        super().setUp()
        self.run = subprocess.Popen([HCCLCTL, "run", "--private", "--socket", self.socket, "--devices", "3",
                                     "--device-memory", "16M", "--soc-name", "Ascend910B1", "-n", "1", "cat"],
                                    env=environment(self.directory), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(self.run.wait)
        self.addCleanup(self.run.stdin.close)
        wait_for(lambda: self.call("status").returncode == 0, "the daemon answers")

    def test_queries(self):
        status = json.loads(self.call("status", "--json").stdout)
        self.assertIs(status["healthy"], True)
        self.assertEqual(status["socket"], self.socket)
        self.assertEqual([device["memory_total"] for device in status["devices"]], [16 << 20] * 3)
        self.assertTrue(self.call("status").stdout.startswith("healthy: "))
        self.assertEqual(json.loads(self.call("ps", "--json").stdout), {"sessions": []})
        self.assertEqual(json.loads(self.call("comms", "--json").stdout), {"comms": []})
        self.assertEqual(json.loads(self.call("waiting", "--json").stdout), {"waiting": []})
        self.assertEqual(len(json.loads(self.call("devices", "--json").stdout)["devices"]), 3)
        self.assertEqual(json.loads(self.call("limits", "--json").stdout), {"tenants": []})
        memory = json.loads(self.call("mem", "--json").stdout)
        self.assertEqual([device["total"] for device in memory["devices"]], [16 << 20] * 3)
        self.assertEqual(memory["total"], sum(use["total"] for use in memory["memory"]))
        self.assertIn("\ntotal ", self.call("mem").stdout)
        resources = json.loads(self.call("resources", "--json").stdout)
        self.assertEqual((resources["ranks"], resources["processes"]), ([], []))
        self.assertEqual([(device["vector_cores"], device["vector_cores_total"]) for device in resources["devices"]], [(0, 48)] * 3)
        self.assertRegex(self.call("resources").stdout, r"DEVICE +CHANNELS +NOTIFIES +OF +VECTOR CORES +OF\n +0 +0 +0 +\d+ +0 +48\n")
        daemon = json.loads(self.call("version", "--json").stdout)["daemon"]
        self.assertEqual((daemon["soc_name"], daemon["devices"]), ("Ascend910B1", 3))

    def test_run_finds_it(self):
        result = self.call("run", "-v", "-n", "4", "sh", "-c", "echo $DEVICE_ID")
        self.assertEqual(result.returncode, 0)
        self.assertIn("using the running daemon, 3 devices", result.stderr)
        self.assertEqual(sorted(result.stdout.splitlines()), ["[0] 0", "[1] 1", "[2] 2", "[3] 0"])

    def test_second_daemon_at_the_same_socket(self):
        result = self.call("run", "--private", "--socket", self.socket, "-n", "1", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("[hccld]", result.stderr)
        self.assertEqual(self.call("status").returncode, 0)


if __name__ == "__main__":
    # whoever starts us in the background or by nohup has these ignored, and what the tests start would inherit it
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
