#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/run judges a small project of its own: what it must not take for a success."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPS = "device*: needs a device\n"


class RunTest(unittest.TestCase):
    def run_project(self, tests, skips=SKIPS, arguments=("quick", "--kind", "release"), lines="", files=None):
        """
        Status, all lines and the counts of a project with @tests: [(name, suite, shell commands)]. @lines: more of its meson.build,
        @files: its sources.
        """
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "tests"))
            shutil.copy(os.path.join(HERE, "run"), os.path.join(root, "tests/run"))
            with open(os.path.join(root, "tests/SKIPS"), "w", encoding="utf-8") as file:
                file.write(skips)
            with open(os.path.join(root, "meson.build"), "w", encoding="utf-8") as file:
                file.write("project('x')\nsh = find_program('sh')\n")
                for name, suite, commands in tests:
                    file.write(f"test('{name}', sh, args: ['-c', '''{commands}'''], suite: '{suite}')\n")
                file.write(lines)
            for name, text in (files or {}).items():
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            process = subprocess.run(["python3", os.path.join(root, "tests/run"), *arguments], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        lines = process.stdout.splitlines()
        match = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", lines[-1] if lines else "")
        self.assertTrue(match, process.stdout)
        return process.returncode, process.stdout, tuple(map(int, match.groups()))

    def test_only_what_the_tests_need_is_compiled(self):
        """Except in release and clang."""
        lines = "add_languages('c', native: false)\nexecutable('broken', 'broken.c')\n" \
                "test('a', executable('good', 'good.c'), suite: 'tsan')\n"
        files = {"good.c": "int main(void) { return 0; }\n", "broken.c": "#error\n"}
        status, _, counts = self.run_project([], arguments=("full", "--kind", "tsan"), lines=lines, files=files)
        self.assertEqual((status, counts), (0, (2, 0, 0)))
        status, _, counts = self.run_project([], arguments=("full", "--kind", "release"), lines=lines, files=files)
        self.assertEqual((status, counts), (1, (0, 1, 0)))

    def test_success(self):
        status, _, counts = self.run_project([("a", "unit", "true"), ("b", "lint", "true")])
        self.assertEqual((status, counts), (0, (3, 0, 0)))  # the build is an entry, too

    def test_failure_shows_output(self):
        status, output, counts = self.run_project([("a", "unit", "true"), ("b", "unit", "echo why; exit 1")])
        self.assertEqual((status, counts), (1, (2, 1, 0)))
        self.assertRegex(output, r"FAILED release: b: fail, status 1.*\n(.*\n)*why\n")

    def test_crash(self):
        status, _, counts = self.run_project([("a", "unit", "kill -SEGV $$")])
        self.assertEqual((status, counts), (1, (1, 1, 0)))

    def test_allowed_skip_is_named(self):
        status, output, counts = self.run_project(
            [("a", "lint", "true"), ("device-rdma", "unit", "echo other; echo needs a device: rxe0; exit 77")])
        self.assertEqual((status, counts), (0, (2, 0, 1)))
        self.assertIn("SKIPPED release: device-rdma: needs a device: rxe0\n", output)

    def test_other_skip_fails(self):
        for name, text in (("device-rdma", "no compiler"), ("other", "needs a device"), ("device-x", "")):
            with self.subTest(name=name, text=text):
                status, output, counts = self.run_project([(name, "unit", f"echo {text}; exit 77")])
                self.assertEqual((status, counts), (1, (1, 1, 0)))
                self.assertIn(f"FAILED release: {name}: a skip that tests/SKIPS does not allow", output)

    def test_no_test_fails(self):
        status, output, counts = self.run_project([("a", "model", "true")])
        self.assertEqual((status, counts), (1, (1, 1, 0)))
        self.assertIn("no test was run", output)

    def test_suites_of_levels(self):
        tests = [("a", "unit", "true"), ("b", "model", "true")]
        status, _, counts = self.run_project(tests, arguments=("full", "--kind", "release"))
        self.assertEqual((status, counts), (0, (3, 0, 0)))

    def test_build_failure(self):
        status, output, counts = self.run_project([("a", "unit", "true"), ("b", "unit", "'''")])
        self.assertEqual((status, counts), (1, (0, 1, 0)))
        self.assertIn("FAILED release: build", output)


if __name__ == "__main__":
    unittest.main()
