#!/usr/bin/env python3
"""The launcher: exit codes, signals, and nothing left behind, with every MPI library on this machine.

A small MPI program is compiled against src/comm/launch.c and launched for real. What is left behind is looked for by a
mark in the environment of all processes, in a folder for temporary files of its own, and in /dev/shm.
"""

import fcntl
import glob
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import uuid

SOURCE = os.environ.get("RUDDER_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
MARK = "RUDDER_LAUNCH_TEST"

PROGRAM = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/launch.h"

static int is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

int main(int argc, char **argv)
{
    const char *mode = argv[1];
    const int value = argc > 2 ? atoi(argv[2]) : 0;
    int rank, size, more;
    if (!launch_is_rank()) {
        return launch_ranks(3, argc - 1, argv + 1);
    }
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &more);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is(mode, "ignore")) {
        signal(SIGTERM, SIG_IGN);
    }
    if (is(mode, "daemon") && rank == 1 && fork() == 0) {
        signal(SIGTERM, SIG_IGN);
        setsid();
        for (int file = 0; file < 1024; file++) {
            close(file); /* as the agent does: MPICH waits for whoever holds its pipes */
        }
        sleep(60);
        _exit(0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of %d pid %d parent %d\n", rank, size, (int)getpid(), (int)getppid());
    fflush(stdout);
    if (is(mode, "abort") && rank == 1) {
        MPI_Abort(MPI_COMM_WORLD, value);
    }
    if (is(mode, "crash") && rank == 1) {
        raise(SIGSEGV);
    }
    if (is(mode, "wait") || is(mode, "ignore") || is(mode, "abort") || is(mode, "crash")) {
        sleep(60);
    }
    if (is(mode, "columns") && rank == 0) {
        printf("columns %s\n", getenv("RUDDER_TERMINAL_COLUMNS"));
    }
    MPI_Finalize();
    return is(mode, "exit") || (is(mode, "exit-one") && rank == 1) ? value : 0;
}
"""


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def marked(mark):
    """Living processes with this mark in their environment. Zombies have none."""
    text = f"{MARK}={mark}".encode()
    return [pid for pid in processes() if text in read(f"/proc/{pid}/environ").split(b"\0")]


def shared_files():
    return set(os.listdir("/dev/shm"))


def in_use(name):
    """Whether any process has this file of /dev/shm open or mapped: then it belongs to a job of somebody else."""
    path = "/dev/shm/" + name
    for pid in processes():
        if path.encode() in read(f"/proc/{pid}/maps"):
            return True
        try:
            links = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for link in links:
            try:
                if os.readlink(f"/proc/{pid}/fd/{link}") == path:
                    return True
            except OSError:
                pass
    return False


class Job:
    """One launcher with a mark, a group and a temporary folder of its own."""

    def __init__(self, program, *arguments, **environment):
        self.mark = uuid.uuid4().hex
        self.folder = tempfile.mkdtemp(prefix="launch-test-")
        self.shared_before = shared_files()
        self.output = tempfile.TemporaryFile("w+")
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, MARK: self.mark, "TMPDIR": self.folder, **environment},
        )

    def text(self):
        # The descriptor is shared with the job: reading must not move its position.
        return os.pread(self.output.fileno(), 1 << 20, 0).decode()

    def ranks(self, deadline=30):
        """Waits until all three ranks have said their process ids."""
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            found = dict(re.findall(r"^rank (\d) of 3 pid (\d+)", self.text(), re.M))
            if len(found) == 3:
                return {int(rank): int(pid) for rank, pid in found.items()}
            time.sleep(0.02)
        raise AssertionError("the ranks did not start:\n" + self.text())

    def mpiexec(self):
        children = [pid for pid in marked(self.mark) if f"PPid:\t{self.process.pid}\n" in read(f"/proc/{pid}/status").decode()]
        assert len(children) == 1, children
        return children[0]

    def end(self, deadline):
        """The exit code. What the job has left is kept for left()."""
        try:
            return self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {deadline} s:\n" + self.text()) from None

    def left(self):
        """What is left at this moment: it must be nothing as soon as the launcher has ended."""
        left = [f"process {pid}: {read(f'/proc/{pid}/cmdline')}" for pid in marked(self.mark)]
        left += [f"file {name}" for name in os.listdir(self.folder)]
        left += [f"/dev/shm/{name}" for name in shared_files() - self.shared_before if self.may_be_ours(name)]
        return left

    def may_be_ours(self, name):
        """Other jobs on this machine have files of libraries, which are in use, and folders with their launcher's number."""
        if name.startswith("rudder-"):
            return name.startswith(f"rudder-{self.process.pid}-")
        return not in_use(name) and os.path.exists("/dev/shm/" + name)

    def clear(self):
        for pid in marked(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        for folder in [self.folder, *glob.glob(f"/dev/shm/rudder-{self.process.pid}-*")]:
            shutil.rmtree(folder, ignore_errors=True)  # after SIGKILL to the launcher nobody else does it
        self.output.close()


class Launch:
    """The cases; a class per MPI library below."""

    mpi = ""

    @classmethod
    def setUpClass(cls):
        cls.build = tempfile.mkdtemp(prefix="launch-build-")
        source = os.path.join(cls.build, "ranks.c")
        cls.program = os.path.join(cls.build, "ranks")
        with open(source, "w") as file:
            file.write(PROGRAM)
        units = ["comm/launch.c", "comm/leftovers.c", "base/log.c", "base/status.c"]
        subprocess.run(
            [f"mpicc.{cls.mpi}", "-std=c11", "-D_GNU_SOURCE", "-O1", "-o", cls.program, source]
            + [os.path.join(SOURCE, "src", unit) for unit in units]
            + ["-I" + os.path.join(SOURCE, folder) for folder in ("src", "include")]
            + [f'-DRUDDER_MPI_NAME="{cls.mpi}"', f'-DRUDDER_MPIEXEC="{shutil.which("mpiexec." + cls.mpi)}"', "-lpthread"],
            check=True,
        )

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.build)

    def job(self, *arguments, **environment):
        job = Job(self.program, *arguments, **environment)
        self.addCleanup(job.clear)
        return job

    def ends(self, job, code, deadline=20):
        self.assertEqual(job.end(deadline), code, job.text())
        self.assertEqual(job.left(), [])

    def test_success(self):
        job = self.job("exit", "0")
        self.ends(job, 0)
        self.assertEqual(sorted(job.ranks()), [0, 1, 2])

    def test_every_exit_code_of_ours_comes_through(self):
        for code in (1, 2, 3, 4, 5):
            with self.subTest(code=code):
                self.ends(self.job("exit", str(code)), code)

    def test_exit_code_of_one_rank(self):
        self.ends(self.job("exit-one", "3"), 3)

    def test_abort(self):
        self.ends(self.job("abort", "5"), 5, 10)

    def test_crash(self):
        job = self.job("crash")
        self.ends(job, 5, 10)
        self.assertIn("a rank was killed or crashed", job.text())

    def test_killed_rank(self):
        for victim in (0, 2):
            with self.subTest(rank=victim):
                job = self.job("wait")
                os.kill(job.ranks()[victim], signal.SIGKILL)
                self.ends(job, 5, 10)

    def test_killed_mpiexec(self):
        job = self.job("wait")
        job.ranks()
        os.kill(job.mpiexec(), signal.SIGKILL)
        self.ends(job, 5, 10)

    def test_interrupt_to_the_group(self):
        job = self.job("wait")
        job.ranks()
        os.killpg(job.process.pid, signal.SIGINT)
        self.ends(job, 130, 10)

    def test_terminate_the_launcher(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal=number):
                job = self.job("wait")
                job.ranks()
                job.process.send_signal(number)
                self.ends(job, 128 + number, 10)

    def test_ranks_that_do_not_listen(self):
        job = self.job("ignore")
        job.ranks()
        job.process.send_signal(signal.SIGTERM)
        self.ends(job, 143, 12)

    def test_second_signal_ends_at_once(self):
        job = self.job("ignore")
        job.ranks()
        job.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        job.process.send_signal(signal.SIGINT)
        self.ends(job, 130, 2.5)

    def test_killed_launcher_takes_its_processes_along(self):
        job = self.job("wait")
        job.ranks()
        job.process.kill()
        job.process.wait()
        end = time.monotonic() + 10
        while marked(job.mark) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(marked(job.mark), [])
        # Its folders go when the next job starts in the same place; those of jobs that live, and of others, stay.
        theirs = [os.path.join(job.folder, name) for name in ("rudder-1-abcdef", f"rudder-{job.process.pid}-abc", "rudder-x-abcdef")]
        for folder in theirs:
            os.mkdir(folder)
        ours = lambda: [path for place in (job.folder, "/dev/shm") for path in glob.glob(f"{place}/rudder-{job.process.pid}-??????")]
        self.assertGreaterEqual(len(ours()), 1)
        alive = self.job("wait", TMPDIR=job.folder)
        alive.ranks()
        self.assertEqual(ours(), [])
        living = glob.glob(f"{job.folder}/rudder-{alive.process.pid}-*")
        self.assertEqual(len(living), 1)
        self.ends(self.job("exit", "0", TMPDIR=job.folder), 0)
        self.assertTrue(all(map(os.path.isdir, living + theirs)))
        alive.process.send_signal(signal.SIGTERM)
        self.ends(alive, 143, 10)

    def test_child_of_a_rank_that_stays(self):
        job = self.job("daemon")
        self.ends(job, 0, 10)

    def test_stopped_while_starting(self):
        for delay in [0.02 * i for i in range(12)]:
            with self.subTest(delay=delay):
                job = self.job("wait")
                time.sleep(delay)
                job.process.send_signal(signal.SIGTERM)
                # Before the launcher has blocked its signals, SIGTERM ends it as any program.
                self.assertIn(job.end(12), (143, -signal.SIGTERM), job.text())
                self.assertEqual(job.left(), [])

    def test_two_jobs_at_once(self):
        jobs = [self.job("wait"), self.job("wait")]
        for job in jobs:
            job.ranks()
        jobs[0].process.send_signal(signal.SIGTERM)
        self.assertEqual(jobs[0].end(10), 143)
        for pid in jobs[1].ranks().values():
            os.kill(pid, 0)  # the other job lives
        jobs[1].process.send_signal(signal.SIGTERM)
        self.ends(jobs[1], 143, 10)

    def test_no_mpiexec(self):
        job = self.job("exit", "0", RUDDER_MPIEXEC="/nonexistent/mpiexec")
        self.ends(job, 4, 5)
        self.assertIn("/nonexistent/mpiexec cannot be started", job.text())
        self.assertIn("openmpi-bin" if self.mpi == "openmpi" else "package mpich", job.text())

    def test_wrong_mpiexec(self):
        job = self.job("exit", "0", RUDDER_MPIEXEC="/bin/echo")
        self.ends(job, 4, 5)
        self.assertIn("/bin/echo: expected the launcher of", job.text())

    def test_terminal_width_reaches_the_ranks_only_from_a_terminal(self):
        job = self.job("columns")
        self.ends(job, 0)
        self.assertIn("columns (null)", job.text())

    def test_at_a_terminal(self):
        """The job is in the background of its terminal: it must neither be stopped for reading nor eat what is typed."""
        outside, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 93, 0, 0))
        process = subprocess.Popen(
            [self.program, "columns"],
            stdin=inside,
            stdout=subprocess.PIPE,
            stderr=inside,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.write(outside, b"typed\n")
        text = process.communicate(timeout=20)[0].decode()
        self.assertEqual(process.returncode, 0)
        self.assertIn("columns 93", text)
        os.set_blocking(inside, False)
        self.assertEqual(os.read(inside, 100), b"typed\n")
        os.close(outside)
        os.close(inside)


class OpenMPI(Launch, unittest.TestCase):
    mpi = "openmpi"


class MPICH(Launch, unittest.TestCase):
    mpi = "mpich"


def load_tests(loader, tests, pattern):
    libraries = [case for case in (OpenMPI, MPICH) if shutil.which("mpicc." + case.mpi)]
    missing = {OpenMPI, MPICH} - set(libraries)
    if not libraries:
        sys.exit("neither mpicc.openmpi nor mpicc.mpich is installed")
    for case in missing:
        print(f"not tested: {case.mpi} is not installed", file=sys.stderr)
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in libraries)


if __name__ == "__main__":
    unittest.main(verbosity=2)
