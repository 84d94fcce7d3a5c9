#!/usr/bin/env python3
"""Faults: whatever happens to the agent, training ends well; whatever ends training, nothing of it is left behind."""
import json
import os
import signal
import subprocess
import tempfile
import time

from train_tools import TINY_MODEL, Checks, Run, check_decisions, command, community_graph, partition, train, why_no_model

TRAINING = ["--epochs", 2, "--batch", 20, "--fanout", "4,5", "--hidden", 16, "--seed", 3, "--eval", "end"]
LLM = ["--policy", "score", "--decider", "llm", "--start", "empty", "--capacity", "50%", "--period", 2]
# Long enough to be hit while it runs: rows trickle in.
LONG = ["--epochs", 1000, "--batch", 20, "--fanout", "4,5", "--hidden", 16, "--eval", "none", "--link", "20Mbit,1ms"]


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class Job:
    """A training in the background that can be found again by a mark in its environment, with a TMPDIR of its own."""
    count = 0

    def __init__(self, checks, parts, *options):
        Job.count += 1
        self.folder = os.path.join(checks.folder, "job%d" % Job.count)
        self.mark = "RUDDER_TEST_MARK=%d.%d" % (os.getpid(), Job.count)
        self.temporary = tempfile.mkdtemp(prefix="rudder-tmp-")
        self.shared = set(os.listdir("/dev/shm"))
        name, value = self.mark.split("=")
        self.output = open(self.folder + ".log", "w+")
        self.process = subprocess.Popen(command(parts, self.folder, *options), stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True,
                                        env=dict(os.environ, TMPDIR=self.temporary, **{name: value}))

    def processes(self):
        """{pid: command line} of what lives and belongs to the job."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if self.mark.encode() + b"\0" in read("/proc/%s/environ" % pid) + b"\0" and \
                    b") Z " not in read("/proc/%s/stat" % pid):
                found[int(pid)] = read("/proc/%s/cmdline" % pid).split(b"\0")
        return found

    def ranks(self):
        """{rank: pid}"""
        found = {}
        for pid, line in self.processes().items():
            environment = dict(v.split(b"=", 1) for v in read("/proc/%d/environ" % pid).split(b"\0") if b"=" in v)
            rank = environment.get(b"OMPI_COMM_WORLD_RANK", environment.get(b"PMI_RANK"))
            if rank is not None and b"train" in line:
                found[int(rank)] = pid
        return found

    def agents(self):
        return [pid for pid, line in self.processes().items() if b"--serve" in line]

    def wait_for_steps(self, checks, n, seconds=60):
        """Waits until epochs have been written, so that the job is in the middle of training."""
        end = time.time() + seconds
        path = os.path.join(self.folder, "steps.rank0.jsonl")
        while time.time() < end and self.process.poll() is None:
            if read(path).count(b"\n") >= n:
                return
            time.sleep(0.05)
        checks.that(False, "a job that trains", self.tell())

    def tell(self):
        return read(self.folder + ".log").decode(errors="replace")[-2500:]

    def end(self, checks, what, codes, within):
        """The job ends by itself within some seconds, with one of the codes, and leaves nothing."""
        begin = time.time()
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            checks.that(False, what, "ends within", within, "s", self.tell(), self.processes())
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
            code = self.process.wait()
        checks.that(code in codes, what, "exit code: expected", codes, "found", code, self.tell())
        seconds = time.time() - begin
        self.check_nothing_left(checks, what)
        self.output.close()
        return Run(code, self.tell(), self.folder), seconds

    def sockets(self):
        """Addresses of this job's agent, in Linux's abstract namespace."""
        config = read(os.path.join(self.folder, "config.json"))
        address = "@rudder-agent-%d-%s" % (os.getuid(), json.loads(config)["effective"]["job"] if config else "")
        return [line for line in read("/proc/net/unix").decode().splitlines() if line.endswith(address)]

    def shared_files(self):
        """New files in /dev/shm that bear the launcher's number or that no process has mapped."""
        ours = "rudder-%d-" % self.process.pid
        names = {n for n in os.listdir("/dev/shm") if n.startswith(ours) or not n.startswith("rudder-")} - self.shared
        used = b"".join(read("/proc/%s/maps" % pid) for pid in filter(str.isdigit, os.listdir("/proc"))) if names else b""
        return [name for name in names if name.startswith(ours) or b"/dev/shm/" + name.encode() not in used]

    def check_nothing_left(self, checks, what):
        end = time.time() + 5
        while time.time() < end and (self.processes() or self.sockets() or self.shared_files()):
            time.sleep(0.1)
        checks.equal(self.processes(), {}, what, "processes left")
        checks.equal(self.sockets(), [], what, "sockets left")
        checks.equal(self.shared_files(), [], what, "shared memory left")
        checks.equal(os.listdir(self.temporary), [], what, "temporary files left")
        if os.path.isdir(self.temporary) and not os.listdir(self.temporary):
            os.rmdir(self.temporary)


def check_agent_run(checks, what, run, expected, fallback=True):
    """fallback: True, False, or None where a new agent may have answered in time."""
    if checks.that(run.code == 0 and run.summary is not None, what, "exit code", run.code, run.output[-2500:]):
        decisions = run.summary["decisions"]
        checks.that(run.losses() == expected, what, "same losses")
        check_decisions(checks, run, what)
        checks.equal(run.summary["status"], "ok", what, "status")
        if fallback is None:
            fallback = decisions["fallback"] > 0
            checks.that(fallback or decisions["answered"] == decisions["asked"], what, "no question is lost", decisions)
        checks.that(decisions["fallback"] > 0 or not fallback, what, "the fall-back is counted", decisions)
        checks.that(decisions["asked"] > 0, what, "decisions were asked", decisions)
        told = [line for line in run.output.splitlines() if "warning:" in line and "answers again" not in line]
        checks.equal(len(told), 1 if fallback else 0, what, "told once:", run.output[-2500:])


def check_models(checks, parts, expected):
    """A model that cannot be used is no reason to end training."""
    missing = os.path.join(checks.folder, "missing.gguf")
    text, header, empty = (os.path.join(checks.folder, name) for name in ("text.gguf", "header.gguf", "empty.gguf"))
    with open(text, "w") as file:
        file.write("This is no model.\n" * 1000)
    with open(header, "wb") as file:
        file.write(b"GGUF\x03\0\0\0" + b"\xff" * 4000)
    open(empty, "w").close()
    for name, model in (("missing", missing), ("not GGUF", text), ("a torn header", header), ("empty", empty),
                        ("a folder", checks.folder)):
        for mode in ("sync", "async"):
            slow = ["--link", "20Mbit,1ms"] if mode == "async" else []
            run = train(parts, os.path.join(checks.folder, "model-%s-%s" % (name.replace(" ", "-"), mode)), *TRAINING, *LLM,
                        "--mode", mode, "--model", model, *slow)
            check_agent_run(checks, "model %s, %s:" % (name, mode), run, expected)


def check_real_model(checks, parts, expected):
    missing = why_no_model()
    if missing is not None:
        print("not run: SIGKILL, SIGSTOP and SIGSEGV of the agent, truncated model, agent out of memory (%s)" % missing)
        return
    truncated = os.path.join(checks.folder, "truncated.gguf")
    with open(TINY_MODEL, "rb") as whole, open(truncated, "wb") as file:
        file.write(whole.read(os.path.getsize(TINY_MODEL) // 2))
    for name, more in (("truncated model", ["--model", truncated]),
                       ("agent out of memory", ["--model", TINY_MODEL, "--agent-memory", "100MB"])):
        job = Job(checks, parts, *TRAINING, *LLM, "--mode", "sync", *more)
        run, _ = job.end(checks, name, [0], 60)
        check_agent_run(checks, name, run, expected)
    job = Job(checks, parts, *TRAINING, *LLM, "--mode", "sync", "--model", TINY_MODEL)
    run, _ = job.end(checks, "agent that answers", [0], 120)
    check_agent_run(checks, "agent that answers", run, expected, fallback=False)
    if run.summary:
        checks.equal(run.summary["decisions"]["fallback"], 0, "a healthy agent needs no fall-back")
        checks.equal(run.summary["decisions"]["applied"], run.summary["decisions"]["asked"], "every question is answered")
    for name, number in (("SIGKILL", signal.SIGKILL), ("SIGSTOP", signal.SIGSTOP), ("SIGSEGV", signal.SIGSEGV)):
        job = Job(checks, parts, *TRAINING, *LLM, "--mode", "sync", "--period", 1, "--deadline-ms", 3000, "--model", TINY_MODEL)
        end, hit = time.time() + 30, False
        while time.time() < end and job.process.poll() is None and not hit:
            time.sleep(0.5)  # it lives, has loaded the model, and has perhaps answered
            for pid in job.agents():
                os.kill(pid, number)
                hit = True
        checks.that(hit, "agent %s: the agent was found" % name, job.tell())
        run, seconds = job.end(checks, "agent " + name, [0], 120)
        check_agent_run(checks, "agent %s:" % name, run, expected, True if number == signal.SIGSTOP else None)


def check_leftovers(checks, parts):
    model = TINY_MODEL if why_no_model() is None else os.path.join(checks.folder, "missing.gguf")
    steering = LLM + ["--model", model]

    run, _ = Job(checks, parts, *TRAINING, *steering).end(checks, "success", [0], 60)
    checks.equal(run.summary and run.summary["status"], "ok", "success: status")

    job = Job(checks, parts, *LONG, *steering)
    job.wait_for_steps(checks, 20)
    os.killpg(job.process.pid, signal.SIGINT)
    run, seconds = job.end(checks, "SIGINT to the group", [130], 10)
    check_interrupted(checks, run, "SIGINT to the group", "interrupted")

    job = Job(checks, parts, *LONG, *steering)
    job.wait_for_steps(checks, 20)
    job.process.terminate()
    run, seconds = job.end(checks, "SIGTERM to the launcher", [143], 10)
    check_interrupted(checks, run, "SIGTERM to the launcher", "interrupted")

    for rank in (0, 1):
        job = Job(checks, parts, *LONG, *steering)
        job.wait_for_steps(checks, 20)
        ranks = job.ranks()
        checks.that(job.sockets() or why_no_model(), "the agent's socket is seen while the job runs")
        if checks.equal(sorted(ranks), [0, 1], "ranks of the job"):
            os.kill(ranks[rank], signal.SIGKILL)
        run, seconds = job.end(checks, "SIGKILL to rank %d" % rank, [5], 10)
        checks.that(os.path.getsize(os.path.join(run.folder, "steps.rank0.jsonl")) > 0, "steps were written")
        if rank == 1 and run.summary:
            checks.that(run.summary["status"] in ("interrupted", "failed"), "SIGKILL to a rank: status", run.summary["status"])

    job = Job(checks, parts, *LONG, *steering, "--deadline", "2s")
    job.wait_for_steps(checks, 20)
    os.kill(job.ranks()[1], signal.SIGSTOP)
    run, seconds = job.end(checks, "a frozen rank", [5], 15)
    checks.that("RUDDER_E_PEER" in run.output, "a frozen rank: the message", run.output)


def check_one_rank(checks, parts):
    """One rank needs no launcher, and ends as well as many."""
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        job = Job(checks, parts, *LONG, "--epochs", 100000, "--policy", "lfu")
        job.wait_for_steps(checks, 20)
        os.kill(job.process.pid, number)
        run, _ = job.end(checks, "one rank, signal %d" % number, [code], 10)
        check_interrupted(checks, run, "one rank, signal %d" % number, "interrupted")


def check_interrupted(checks, run, what, status):
    """Files are whole: what was trained until then can be read."""
    if checks.that(run.summary is not None, what, "summary.json", run.output):
        checks.equal(run.summary["status"], status, what, "status")
        checks.that(run.summary["epochs_done"] > 0, what, "epochs that were done", run.summary["epochs_done"])
        checks.equal(len(run.summary["loss"]), run.summary["epochs_done"], what, "losses of epochs")
    try:
        checks.that(all(len(lines) > 0 for lines in run.lines("steps").values()), what, "steps")
    except ValueError as error:
        checks.that(False, what, "lines of steps are whole:", error)


def check_two_jobs(checks, parts, expected):
    """Two jobs of one user at once: both finish, each with its own agent."""
    model = TINY_MODEL if why_no_model() is None else os.path.join(checks.folder, "missing.gguf")
    jobs = [Job(checks, parts, *TRAINING, *LLM, "--mode", "sync", "--model", model) for _ in range(2)]
    seen = [0, 0]
    while any(job.process.poll() is None for job in jobs):
        for i, job in enumerate(jobs):
            seen[i] = max(seen[i], len(job.agents()))
        time.sleep(0.05)
    for job in jobs:
        run, _ = job.end(checks, "two jobs", [0], 120)
        checks.that(run.losses() == expected, "two jobs: same losses")
    if model == TINY_MODEL:
        checks.that(min(seen) >= 1, "two jobs: an agent each", seen)


def main():
    with Checks() as checks:
        graph = community_graph(os.path.join(checks.folder, "graph"))
        parts = partition(graph, os.path.join(checks.folder, "parts"), 2)
        alone = partition(graph, os.path.join(checks.folder, "alone"), 1)
        base = train(parts, os.path.join(checks.folder, "base"), *TRAINING, "--policy", "none")
        checks.equal(base.code, 0, "without a buffer: exit code", base.output[-2000:])
        expected = base.losses()
        check_models(checks, parts, expected)
        check_real_model(checks, parts, expected)
        check_leftovers(checks, parts)
        check_one_rank(checks, alone)
        check_two_jobs(checks, parts, expected)


if __name__ == "__main__":
    main()
