#!/usr/bin/env python3
"""The frame of the program: help, version, slips and their exit codes, for every sub-command that is linked in."""

import os
import re
import subprocess
import unittest

SOURCE = os.environ.get("RUDDER_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
RUDDER = os.path.join(os.environ.get("RUDDER_BUILD_DIR", os.path.join(SOURCE, "build")), "rudder")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RUDDER_")}


def run(*arguments, **environment):
    done = subprocess.run(
        [RUDDER, *arguments], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
        env={**ENVIRONMENT, **environment},
    )
    return done.returncode, done.stdout, done.stderr


def commands():
    code, out, _ = run("--help")
    assert code == 0, out
    return re.findall(r"^  ([\w-]+) +\S", out.split("Commands:")[1], re.M)


MANY = {"replay": 3, "report": 3}
FIRST = {"import": ["wordnet"], "generate": ["sbm"]}  # what must stand before the options


class Usage(unittest.TestCase):
    def test_help(self):
        for arguments in (["--help"], ["-h"], ["help"]):
            code, out, err = run(*arguments)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("usage: rudder COMMAND", out)
        self.assertIn("train", commands())
        self.assertIn("doctor", commands())

    def test_nothing_is_a_usage_error(self):
        code, out, err = run()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("usage: rudder COMMAND", err)

    def test_version_names_what_the_program_is_made_of(self):
        code, out, _ = run("--version")
        self.assertEqual(code, 0)
        for pattern in (r"^rudder \d+\.\d+\.\d+$", r"MPI +(Open MPI|MPICH)", r"BLAS +OpenBLAS", r"METIS +\d"):
            self.assertRegex(out, re.compile(pattern, re.M))

    def test_unknown_command(self):
        code, out, err = run("trian")
        self.assertEqual((code, out, err), (2, "", 'rudder: unknown command "trian"; did you mean "train"?\n'))
        code, _, err = run("help", "doktor")
        self.assertEqual((code, err), (2, 'rudder: unknown command "doktor"; did you mean "doctor"?\n'))
        code, _, err = run("zzzzzz")
        self.assertEqual((code, err), (2, 'rudder: unknown command "zzzzzz"; "rudder --help" lists them\n'))

    def test_every_command_has_help(self):
        for command in commands():
            with self.subTest(command=command):
                code, out, err = run(command, "--help")
                self.assertEqual((code, err), (0, ""))
                self.assertTrue(out.startswith(f"usage: rudder {command}"), out)
                self.assertLessEqual(max(map(len, out.splitlines())), 100)
                self.assertEqual(run("help", command), (code, out, err))
                for name in re.findall(r"--(?:\[no-\])?([a-z][a-z-]*)", out):
                    self.assertNotIn("--no-no-", out)
                    self.assertGreater(len(name), 1)

    def test_every_command_refuses_what_it_does_not_know(self):
        for command in commands():
            with self.subTest(command=command):
                code, out, err = run(command, *FIRST.get(command, []), "--hlep")
                self.assertEqual((code, out), (2, ""))
                self.assertIn("unknown option --hlep; did you mean --help?", err)
                self.assertEqual(run(command, *FIRST.get(command, []), "--no-such-thing-anywhere")[0], 2)
                # More arguments than a command takes; those that take any number look for the files.
                self.assertEqual(run(command, *FIRST.get(command, []), *["x"] * 20)[0], MANY.get(command, 2))

    def test_nearest_option_name(self):
        code, _, err = run("train", "parts", "--epoch", "5")
        self.assertEqual(code, 2)
        self.assertIn("unknown option --epoch; did you mean --epochs?", err)

    def test_the_environment_is_checked_as_strictly(self):
        code, _, err = run("train", "parts", RUDDER_EPOCHS="many")
        self.assertEqual(code, 2)
        self.assertIn("RUDDER_EPOCHS: expected", err)

    def test_no_colour_without_a_terminal(self):
        self.assertNotIn("\033", run("trian")[2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
