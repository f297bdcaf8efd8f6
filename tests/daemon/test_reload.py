#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configuration files of the real daemon: what a start, --check-config and SIGHUP make of them. test_reload.py BUILD_DIR [TEST...]"""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
HCCLCTL = str(BUILD / "hcclctl" / "hcclctl")
HCCLD = str(BUILD / "daemon" / "hccld")
PATIENCE_S = 20


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="test-reload-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.socket = self.directory / "s"
        self.file = self.directory / "hccld.conf"
        self.log = self.directory / "log"

    def environment(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("HCCL")}
        for name in ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_FDNAMES", "XDG_RUNTIME_DIR"):
            env.pop(name, None)
        return env | {"HCCLD_SOCKET": str(self.socket)}

    def call(self, *arguments):
        return subprocess.run(arguments, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False)

    def write(self, text, name=None):
        path = self.directory / (name or "hccld.conf")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    def start(self, *options, **more):
        ready, daemon_ready = os.pipe()
        with open(self.log, "w", encoding="utf-8") as log:
            daemon = subprocess.Popen([HCCLD, "--config", str(self.file), "--device-memory", "64M", "--ready-fd",
                                       str(daemon_ready), *options], pass_fds=[daemon_ready], stderr=log,
                                      env=self.environment(), **more)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        os.close(daemon_ready)
        self.assertEqual(os.read(ready, 2), b"1\n", self.log.read_text())
        os.close(ready)
        return daemon

    def wait_for_log(self, text, count=1):
        end = time.monotonic() + PATIENCE_S
        while self.log.read_text().count(text) < count:
            self.assertLess(time.monotonic(), end, f"no '{text}' in:\n{self.log.read_text()}")
            time.sleep(0.01)

    def daemon_says(self):
        result = self.call(HCCLCTL, "version", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["daemon"]


class Start(Case):
    def test_files_count(self):
        self.write("[devices]\ndevices = 3\nsoc_name = FromFile\n")
        self.write("[devices]\nsoc_name = FromDirectory\n", "hccld.conf.d/10.conf")
        self.start("--no-keeper")
        said = self.daemon_says()
        self.assertEqual((said["devices"], said["soc_name"]), (3, "FromDirectory"))

    def test_all_errors_are_told(self):
        self.write("[devices]\ndevices = 0\n[log]\nlog_levl = info\n")
        self.write("[daemon]\nkeeper\n", "hccld.conf.d/10.conf")
        for options in ([], ["--no-keeper"]):
            result = self.call(HCCLD, "--config", str(self.file), *options)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr.splitlines(), [
                f"hccld: {self.file}:2: devices is '0', but must be a whole number from 1 to 64",
                f"hccld: {self.file}:4: there is no setting 'log_levl'; did you mean 'log_level'?",
                f"hccld: {self.file}.d/10.conf:2: expected [section] or key = value"])

    def test_wrong_options(self):
        for options, says in ((["--devcies", "3"], "did you mean --devices?"), (["--log-levl=info"], "did you mean --log-level?"),
                              (["--no-keepr"], "did you mean --no-keeper?"), (["--device"], None), (["--devices"], None), (["--xyz"], None)):
            result = self.call(HCCLD, *options)
            self.assertEqual((result.returncode, result.stdout), (2, ""), options)
            self.assertEqual(len(result.stderr.splitlines()), 2, result.stderr)
            self.assertIn(says or "hccld: the options are listed by hccld --help", result.stderr.splitlines()[1])
        self.assertIn("there are no arguments without option", self.call(HCCLD, "3").stderr)

    def test_a_file_that_is_named_must_exist(self):
        result = self.call(HCCLD, "--config", str(self.directory / "missing"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("missing: cannot be read: No such file", result.stderr)


class Check(Case):
    def check(self, *arguments):
        return self.call(HCCLD, "--check-config", *arguments)

    def test_valid(self):
        self.write("[devices]\ndevices = 3\n")
        for arguments in (["--config", str(self.file)], [str(self.file)], [str(BUILD / "daemon" / "hccld.conf")]):
            result = self.check(*arguments)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "the configuration is valid\n", ""))

    def test_invalid(self):
        first = self.write("[devices]\ndevices = 0\ndevices = 1\n", "a.conf")
        second = self.write("[nothing]\n", "b.conf")
        result = self.check(first, second, str(self.directory / "c.conf"))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(len(result.stderr.splitlines()), 5, result.stderr)
        self.assertTrue(result.stderr.endswith("hccld: 4 errors\n"), result.stderr)

    def test_options_are_checked_too(self):
        self.write("")
        self.assertEqual(self.check("--config", str(self.file), "--devices", "4").returncode, 0)
        self.assertEqual(self.check("--config", str(self.file), "--devices", "99").returncode, 1)

    def test_odd_files(self):
        (self.directory / "binary.conf").write_bytes(bytes(range(256)) * 20)
        (self.directory / "large.conf").write_bytes(b"#" * (2 << 20))
        os.mkfifo(self.directory / "fifo.conf")
        for name in ("binary.conf", "large.conf", "."):
            result = self.check(str(self.directory / name))
            self.assertEqual(result.returncode, 1, name)
            self.assertIn("hccld: ", result.stderr)
        self.assertEqual(self.check(str(self.directory / "fifo.conf")).returncode, 0)  # empty, and not waited for
        result = self.check(os.devnull)
        self.assertEqual(result.returncode, 0)


class Reload(Case):
    def change(self, who):
        self.write("[daemon]\nallow_duplicate_items = yes\n[log]\nlog_level = debug\n[devices]\ndevices = 5\n")
        os.kill(who, signal.SIGHUP)
        self.wait_for_log("the configuration was read again: 2 settings changed")
        self.wait_for_log("allow_duplicate_items is yes now, was no")
        self.wait_for_log("devices stays 2; 5 needs a restart")
        said = self.daemon_says()
        self.assertEqual((said["allow_duplicate_items"], said["devices"]), (True, 2))

    def refuse(self, who):
        self.write("[daemon]\nallow_duplicate_items = no\nsocket = x\n[log]\nlog_level = error\n")
        os.kill(who, signal.SIGHUP)
        self.wait_for_log("the configuration has 1 error: all settings stay as they are")
        self.wait_for_log(f"{self.file}:3: socket is 'x', but must be an absolute path")
        self.assertIs(self.daemon_says()["allow_duplicate_items"], True)

    def test_change_and_refusal(self):
        self.write("[devices]\ndevices = 2\n")
        daemon = self.start("--no-keeper")
        self.change(daemon.pid)
        self.refuse(daemon.pid)
        self.file.unlink()
        os.kill(daemon.pid, signal.SIGHUP)
        self.wait_for_log("hccld.conf: cannot be read: No such file")
        self.assertIs(self.daemon_says()["allow_duplicate_items"], True)
        self.assertIsNone(daemon.poll())

    def test_through_the_keeper(self):
        self.write("[devices]\ndevices = 2\n")
        daemon = self.start("--keeper")
        self.change(daemon.pid)
        worker = json.loads(self.call(HCCLCTL, "status", "--json").stdout)["pid"]
        self.assertNotEqual(worker, daemon.pid)
        settings = {entry["key"]: entry for entry in json.loads(self.call(HCCLCTL, "config", "--json").stdout)["settings"]}
        self.assertEqual((settings["keeper"]["value"], settings["keeper"]["where"]), ("yes", "--keeper"))
        self.refuse(worker)

    def path(self):
        return json.loads(self.call(HCCLCTL, "status", "--json").stdout)["local_path"]

    def test_the_local_path(self):
        """Follows a reload and a restart; a limit of pending bytes needs the engine, whatever is asked for."""
        self.write("")
        self.start("--keeper")
        worker = json.loads(self.call(HCCLCTL, "status", "--json").stdout)["pid"]
        self.assertEqual(self.path(), "direct")
        self.assertIn(", local path direct\n", self.call(HCCLCTL, "status").stdout)
        changes = (("[daemon]\nlocal_path = engine\n", "engine", 1), ("[limits]\npending_per_tenant = 1M\n", "engine", 2),
                   ("[daemon]\nlocal_path = direct\n", "direct", 1), ("[daemon]\nlocal_path = engine\n", "engine", 1))
        for number, (text, path, changed) in enumerate(changes):
            self.write(text)
            os.kill(worker, signal.SIGHUP)
            self.wait_for_log("the configuration was read again", number + 1)
            self.assertIn(f"read again: {changed} setting", self.log.read_text().splitlines()[-1])
            self.assertEqual(self.path(), path, text)
            self.assertIn(f", local path {path}\n", self.call(HCCLCTL, "status").stdout)
        os.kill(worker, signal.SIGKILL)
        self.assertEqual(self.path(), "engine")
        worker = json.loads(self.call(HCCLCTL, "status", "--json").stdout)["pid"]
        self.write("")
        os.kill(worker, signal.SIGKILL)
        self.assertEqual(self.path(), "direct")
        self.write("[daemon]\nlocal_path = both\n")
        result = self.call(HCCLD, "--config", str(self.file), "--check-config")
        self.assertIn("local_path is 'both', but must be", result.stderr)

    def test_restart_with_a_bad_file(self):
        """A daemon that has died comes back for its clients, whatever the file says by now."""
        self.write("[devices]\ndevices = 2\n")
        self.start("--keeper")
        worker = json.loads(self.call(HCCLCTL, "status", "--json").stdout)["pid"]
        self.write("[devices]\ndevices = 2\nsoc_name = Later\nnonsense\n")
        os.kill(worker, signal.SIGKILL)
        self.wait_for_log("taken over from the previous process")
        self.assertEqual(self.daemon_says()["soc_name"], "Later")
        self.assertIn(f"{self.file}:4: expected [section] or key = value", self.log.read_text())

    def test_a_reload_without_a_change(self):
        """Automatic values are none, also where the environment has been used up."""
        self.write("")
        daemon = self.start()
        os.kill(daemon.pid, signal.SIGHUP)
        self.wait_for_log("the configuration was read again: 0 settings changed")
        self.assertNotIn("needs a restart", self.log.read_text())

    def test_the_command_line_stays(self):
        self.write("[devices]\nsoc_name = A\n")
        daemon = self.start("--no-keeper", "--no-allow-duplicate-items")
        self.write("[daemon]\nallow_duplicate_items = yes\n")
        os.kill(daemon.pid, signal.SIGHUP)
        self.wait_for_log("read again: 0 settings changed")
        self.assertIs(self.daemon_says()["allow_duplicate_items"], False)
        self.assertEqual(self.daemon_says()["soc_name"], "A")

    def test_many_reloads(self):
        self.write("")
        daemon = self.start("--no-keeper")
        self.daemon_says()  # the descriptor that it said "ready" on is closed by then
        time.sleep(0.2)
        fds = len(os.listdir(f"/proc/{daemon.pid}/fd"))
        for i in range(200):
            self.write(f"[daemon]\nallow_duplicate_items = {i % 2}\n")
            os.kill(daemon.pid, signal.SIGHUP)
        self.wait_for_log("the configuration was read again")
        self.assertEqual(self.daemon_says()["devices"], 8)
        end = time.monotonic() + PATIENCE_S
        while len(os.listdir(f"/proc/{daemon.pid}/fd")) > fds:  # the connection of the last question is being closed
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


class Signals(Case):
    """That come while it starts."""

    def begin(self, keeper, *more, **options):
        self.write("")
        log = open(self.log, "w", encoding="utf-8")
        self.addCleanup(log.close)
        daemon = subprocess.Popen([HCCLD, "--config", str(self.file), "--device-memory", "64M", keeper, *more], stderr=log,
                                  env=self.environment(), **options)
        self.addCleanup(daemon.wait)
        self.addCleanup(lambda: daemon.poll() is None and daemon.kill())
        return daemon

    def test_a_stop(self):
        """It is a stop that was asked for, at whatever time: status 0, and no name is left behind."""
        for keeper in ("--keeper", "--no-keeper") * 5:
            daemon = self.begin(keeper)
            end = time.monotonic() + PATIENCE_S
            while not self.socket.exists():
                self.assertLess(time.monotonic(), end)
            daemon.terminate()
            self.assertEqual(daemon.wait(PATIENCE_S), 0, self.log.read_text())
            self.assertFalse(self.socket.exists())

    def test_reloads(self):
        for _ in range(5):
            ready, daemon_ready = os.pipe()
            os.set_blocking(ready, False)
            daemon = self.begin("--keeper", "--ready-fd", str(daemon_ready), pass_fds=[daemon_ready])
            os.close(daemon_ready)
            status = pathlib.Path(f"/proc/{daemon.pid}/status")
            while not int(re.search(r"SigBlk:\s*(\w+)", status.read_text())[1], 16) & 1:  # the keeper takes it
                self.assertIsNone(daemon.poll())
            end = time.monotonic() + PATIENCE_S
            told = None
            while told is None:
                self.assertLess(time.monotonic(), end)
                os.kill(daemon.pid, signal.SIGHUP)
                try:
                    told = os.read(ready, 2)
                except BlockingIOError:
                    pass
            os.close(ready)
            self.assertEqual(told, b"1\n", self.log.read_text())
            self.assertNotIn("killed by signal", self.log.read_text())
            daemon.terminate()
            self.assertEqual(daemon.wait(PATIENCE_S), 0)


class FileSize(Case):
    """ulimit -f, of a shell or a batch system: shared memory counts, and so does the log."""

    def test_a_soft_limit_is_lifted(self):
        def soft():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        self.write("")
        for keeper in "--keeper", "--no-keeper":
            daemon = self.start(keeper, preexec_fn=soft)
            self.assertEqual(self.daemon_says()["devices"], 8)
            daemon.terminate()
            self.assertEqual(daemon.wait(PATIENCE_S), 0)

    def test_a_hard_limit_is_named(self):
        self.write("")
        for keeper in "--keeper", "--no-keeper":
            result = subprocess.run([HCCLD, "--config", str(self.file), keeper], env=self.environment(), capture_output=True, text=True,
                                    timeout=PATIENCE_S, check=False,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("File too large", result.stderr)
            self.assertFalse(self.socket.exists())


class Sinks(Case):
    """Whoever is to read the log does not hold up the daemon."""

    def serve(self, sink):
        self.write("")
        ready, daemon_ready = os.pipe()
        daemon = subprocess.Popen([HCCLD, "--config", str(self.file), "--device-memory", "64M", "--no-keeper", "--ready-fd",
                                   str(daemon_ready)], pass_fds=[daemon_ready], stderr=sink, env=self.environment())
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        os.close(daemon_ready)
        self.assertEqual(os.read(ready, 2), b"1\n")
        os.close(ready)
        self.write("[devices]\n" + "junk\n" * 400)
        return daemon

    def lost(self):
        result = self.call(HCCLCTL, "config", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["log_lines_lost"]

    def make_noise(self, daemon):
        """Until lines are lost."""
        end = time.monotonic() + PATIENCE_S
        while not self.lost():
            self.assertLess(time.monotonic(), end)
            os.kill(daemon.pid, signal.SIGHUP)
        self.assertIsNone(daemon.poll())

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            self.make_noise(self.serve(full))

    def test_reader_that_does_not_read(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        daemon = self.serve(writer)
        os.close(writer)
        self.make_noise(daemon)
        self.assertTrue(os.read(reader, 1 << 20))

    def test_reader_that_is_gone(self):
        reader, writer = os.pipe()
        daemon = self.serve(writer)
        os.close(writer)
        os.close(reader)
        self.make_noise(daemon)

    def test_no_standard_error(self):
        daemon = self.serve(subprocess.DEVNULL)
        os.kill(daemon.pid, signal.SIGHUP)
        self.assertEqual(self.lost(), 0)


class Tool(Case):
    def config(self, **more):
        result = subprocess.run([HCCLCTL, "config", "--json"], env=self.environment() | more, capture_output=True, text=True,
                                check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def settings(self):
        return {entry["key"]: entry for entry in self.config()["settings"]}

    def test_config(self):
        self.write("[devices]\n\ndevices = 2\n")
        other = self.write("[daemon]\nallow_duplicate_items = on\n", "hccld.conf.d/10.conf")
        daemon = self.start("--no-keeper", "--soc-name", "Ascend910B1")
        settings = self.settings()
        self.assertEqual((settings["devices"]["value"], settings["devices"]["origin"], settings["devices"]["where"]),
                         ("2", "file", f"{self.file}:3"))
        self.assertEqual((settings["soc_name"]["origin"], settings["soc_name"]["where"]), ("command line", "--soc-name"))
        self.assertEqual((settings["socket"]["value"], settings["socket"]["origin"]), (str(self.socket), "environment"))
        self.assertEqual((settings["allow_duplicate_items"]["value"], settings["allow_duplicate_items"]["where"]),
                         ("yes", f"{other}:2"))
        self.assertEqual((settings["log_level"]["value"], settings["log_level"]["default"], settings["log_level"]["origin"],
                          settings["log_level"]["reloadable"]), ("info", "info", "default", True))
        self.assertEqual((settings["device_memory"]["value"], settings["device_memory"]["default"]), ("64M", "auto"))
        self.assertRegex(settings["copy_threads"]["value"], r"^\d+$")
        self.assertEqual(self.config()["files"], [str(self.file), other])
        for setting in settings.values():
            self.assertTrue(setting["help"] and setting["allowed"] and setting["section"], setting)
        self.write("[devices]\ndevices = 2\n")
        os.kill(daemon.pid, signal.SIGHUP)
        self.wait_for_log("the configuration was read again")
        self.assertEqual(self.settings()["devices"]["where"], f"{self.file}:2")
        result = self.call(HCCLCTL, "config")
        self.assertEqual(result.returncode, 0, result.stderr)
        text = result.stdout
        self.assertRegex(text, r"\[devices\] devices +2 +\S*hccld.conf:2 +restart\n")
        self.assertRegex(text, r"\[log\] log_level +info +default +reload\n")
        self.assertIn(f"Files read: {self.file}, {other}\n", text)
        self.assertIn("; takes one of error, warning", self.call(HCCLCTL, "config", "-v").stdout)

    def test_paths_are_absolute(self):
        self.write("[devices]\ndevices = 2\n")
        other = self.write("[log]\nlog_level = notice\n", "hccld.conf.d/10.conf")
        self.start("--no-keeper", "--config", self.file.name, cwd=self.directory)
        self.assertEqual(self.config()["files"], [str(self.file), other])
        self.assertEqual(self.settings()["devices"]["where"], f"{self.file}:2")
        # who checks one is where it is
        self.write("nonsense\n")
        result = subprocess.run([HCCLD, "--check-config", self.file.name], cwd=self.directory, capture_output=True, text=True, check=False)
        self.assertTrue(result.stderr.startswith(f"hccld: {self.file.name}:1: "), result.stderr)

    def test_every_setting_is_in_the_example(self):
        self.write((BUILD / "daemon" / "hccld.conf").read_text())
        self.start("--no-keeper")
        example = self.file.read_text()
        for setting in self.config()["settings"]:
            self.assertEqual(example.count(f"\n#{setting['key']} = {setting['default']}\n"), 1, setting)
        # without the marks the file says the same
        self.write("\n".join(line[1:] if line.startswith("#") and line[1] != " " else line for line in example.splitlines()))
        self.assertEqual(self.call(HCCLD, "--check-config", str(self.file)).stderr, "")

    def test_variables(self):
        self.write("")
        self.start("--no-keeper")
        variables = {entry["name"]: entry for entry in self.config(
            HCCL_EXEC_TIMEOUT="77", HCCL_BUFFSIZE="many", HCCL_CONNECT_TIMEOUT="", ASCEND_RT_VISIBLE_DEVICES="4,5")["variables"]}
        self.assertEqual((variables["HCCL_EXEC_TIMEOUT"]["value"], variables["HCCL_EXEC_TIMEOUT"]["origin"]), ("77", "environment"))
        self.assertIsNone(variables["HCCL_EXEC_TIMEOUT"]["error"])
        self.assertNotIn("EI0001", variables["HCCL_BUFFSIZE"]["error"])
        self.assertIn("expected a whole number from 1", variables["HCCL_BUFFSIZE"]["error"])
        self.assertEqual((variables["HCCL_CONNECT_TIMEOUT"]["value"], variables["HCCL_CONNECT_TIMEOUT"]["origin"]),
                         ("120", "default"))
        self.assertEqual((variables["ASCEND_RT_VISIBLE_DEVICES"]["value"], variables["ASCEND_RT_VISIBLE_DEVICES"]["error"]), ("4,5", None))
        for wrong, says in (("8", "sees no device: the list does not begin with an id from 0 to 7"), ("a,b", "sees no device"),
                            ("", "sees no device"), ("4,5,9", "the first 2 of its entries"), ("4,4", "the first 1 of its entries")):
            devices = {entry["name"]: entry for entry in self.config(ASCEND_RT_VISIBLE_DEVICES=wrong)["variables"]}["ASCEND_RT_VISIBLE_DEVICES"]
            self.assertEqual((devices["value"], devices["origin"]), (wrong, "environment"))
            self.assertIn(says, devices["error"])
        # two that are right alone
        both = {entry["name"]: entry for entry in self.config(HCCL_INTRA_PCIE_ENABLE="1", HCCL_INTRA_ROCE_ENABLE="1")["variables"]}
        self.assertIn("are both 1", both["HCCL_INTRA_PCIE_ENABLE"]["error"])
        self.assertIn("are both 1", both["HCCL_INTRA_ROCE_ENABLE"]["error"])
        self.assertIn("environment, WRONG", subprocess.run([HCCLCTL, "config"], env=self.environment() | {"ASCEND_RT_VISIBLE_DEVICES": "8"},
                                                           capture_output=True, text=True, check=False).stdout)
        self.assertEqual(variables["HCCLD_SOCKET"]["value"], str(self.socket))

    def test_log(self):
        self.write("[log]\nlog_level = notice\n")
        daemon = self.start("--no-keeper")
        result = self.call(HCCLCTL, "log", "debug")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "log level: debug\n", ""))
        self.wait_for_log(f"uid {os.getuid()} (pid ")
        self.wait_for_log("has set the log level to debug, was notice")
        self.assertEqual((self.settings()["log_level"]["value"], self.settings()["log_level"]["origin"]), ("debug", "request"))
        self.assertEqual(self.call(HCCLCTL, "--socket", str(self.socket), "log", "error").returncode, 0)
        self.wait_for_log("has set the log level to error, was debug")
        self.assertEqual(json.loads(self.call(HCCLCTL, "log", "error", "--json").stdout), {"level": "error"})
        result = self.call(HCCLCTL, "log", "loud")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no log level 'loud'; there are error, warning, notice, info and debug", result.stderr)
        os.kill(daemon.pid, signal.SIGHUP)
        end = time.monotonic() + PATIENCE_S
        while self.settings()["log_level"]["origin"] != "file":
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        self.assertEqual((self.settings()["log_level"]["value"], self.settings()["log_level"]["where"]),
                         ("notice", f"{self.file}:2"))


if __name__ == "__main__":
    unittest.main()
