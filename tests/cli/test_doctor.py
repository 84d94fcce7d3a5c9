#!/usr/bin/env python3
"""The doctor: a healthy machine passes, and each fault that is put in gives its line and the exit code."""

import os
import resource
import subprocess
import tempfile
import unittest

SOURCE = os.environ.get("RUDDER_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
RUDDER = os.path.join(os.environ.get("RUDDER_BUILD_DIR", os.path.join(SOURCE, "build")), "rudder")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("RUDDER_", "OMPI_"))}


def doctor(*arguments, before=None, **environment):
    done = subprocess.run(
        [RUDDER, "doctor", *arguments], capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL,
        preexec_fn=before, env={**ENVIRONMENT, **environment},
    )
    lines = {}
    for line in done.stdout.splitlines():
        verdict, subject, text = (line.split(None, 2) + [""])[:3]
        lines.setdefault(subject, []).append((verdict, text))
    return done.returncode, lines, done.stdout + done.stderr


class Doctor(unittest.TestCase):
    def check(self, lines, subject, verdict, text):
        self.assertIn(subject, lines)
        self.assertEqual(lines[subject][0][0], verdict, lines[subject])
        self.assertIn(text, lines[subject][0][1])

    def test_healthy(self):
        code, lines, text = doctor()
        self.assertEqual(code, 0, text)
        for subject in ("cores", "memory", "/dev/shm", "files", "MPI", "ranks", "BLAS", "METIS", "model"):
            self.assertIn(subject, lines)
        self.check(lines, "ranks", "ok", "2 ranks work together")

    def test_mpiexec_missing(self):
        code, lines, text = doctor(RUDDER_MPIEXEC="/nonexistent/mpiexec")
        self.assertEqual(code, 4, text)
        self.check(lines, "MPI", "FAIL", "/nonexistent/mpiexec cannot be started")
        self.check(lines, "MPI", "FAIL", "install the Debian package")

    def test_mpiexec_of_another_kind(self):
        code, lines, text = doctor(RUDDER_MPIEXEC="/bin/echo")
        self.assertEqual(code, 4, text)
        self.check(lines, "MPI", "FAIL", "expected the launcher of")

    def test_mpiexec_that_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mpiexec")
            with open(path, "w") as file:
                file.write('#!/bin/sh\n[ "$1" = --version ] && echo "Open MPI HYDRA" && exit 0\necho no slots >&2\nexit 1\n')
            os.chmod(path, 0o755)
            code, lines, text = doctor(RUDDER_MPIEXEC=path)
        self.assertEqual(code, 4, text)
        self.check(lines, "ranks", "FAIL", "no slots")

    def test_one_core(self):
        code, lines, text = doctor(before=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
        self.assertEqual(code, 0, text)
        self.check(lines, "cores", "warning", "1 of ")

    def test_few_open_files(self):
        code, lines, text = doctor(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)))
        self.check(lines, "files", "warning", "128 open files")
        self.assertEqual(code, 0, text)

    def test_no_model(self):
        with tempfile.TemporaryDirectory() as cache:
            code, lines, text = doctor(XDG_CACHE_HOME=cache)
        self.assertEqual(code, 0, text)
        self.check(lines, "model", "warning", "rudder agent --fetch")

    def test_agent_that_cannot_start(self):
        code, lines, text = doctor("--model", "/nonexistent/model.gguf")
        self.assertEqual(code, 4, text)
        self.assertEqual(lines["agent"][0][0], "FAIL", text)

    def test_parts_that_are_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            code, lines, text = doctor(folder)
        self.assertEqual(code, 4, text)
        self.check(lines, "parts", "FAIL", "parts.json")


if __name__ == "__main__":
    unittest.main(verbosity=2)
