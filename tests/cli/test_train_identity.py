#!/usr/bin/env python3
"""Training is bit-identical whatever the buffer does: the loss of every minibatch on every rank, as text, over a sweep."""
import functools
import glob
import os
import signal
import threading

from train_tools import TINY_MODEL, Checks, community_graph, partition, side_by_side, train, why_no_model

TRAINING = ["--epochs", 2, "--batch", 20, "--fanout", "4,5", "--hidden", 16, "--dropout", "0.3", "--seed", 3, "--period", 4,
            "--eval", "end"]
STEERING = [
    ["--policy", "static", "--start", "degree"],
    ["--policy", "static", "--start", "random"],
    ["--policy", "lfu"],
    ["--policy", "lfu", "--start", "degree"],
    ["--policy", "score", "--decider", "never", "--start", "degree"],
    ["--policy", "score", "--decider", "never", "--start", "random"],
    ["--policy", "score", "--decider", "once", "--start", "empty"],
    ["--policy", "score", "--decider", "fixed:1", "--start", "empty"],
    ["--policy", "score", "--decider", "fixed:4", "--start", "degree"],
    ["--policy", "score", "--decider", "gain", "--start", "empty"],
    ["--policy", "score", "--decider", "gain", "--start", "random"],
    ["--policy", "score", "--decider", "llm", "--start", "empty", "--model", "/nonexistent/model.gguf"],
    ["--policy", "score", "--decider", "llm", "--start", "degree", "--fallback", "fixed:2", "--model", "/dev/null"],
]
CAPACITIES = ["0", "1", "7", "100%"]
LINKS = ["off", "1Gbit,50us", "200Mbit"]


def sweep():
    """(parts, options): every steering x capacity x mode on two ranks, the rest in turns; then one and four ranks."""
    runs = []
    for steering in STEERING:
        for capacity in CAPACITIES:
            for mode in ("async", "sync"):
                n = len(runs)
                runs.append((2, steering + ["--capacity", capacity, "--mode", mode, "--link", LINKS[n % 3],
                                            "--threads", 1 + (n // 2) % 3, "--depth", (1, 4)[(n // 3) % 2],
                                            "--max-message", (0, 1000)[n % 5 == 0]]))
    for parts, few in ((1, STEERING[::4]), (4, STEERING[::2])):
        for n, steering in enumerate(few):
            runs.append((parts, steering + ["--capacity", CAPACITIES[n % 4], "--link", LINKS[n % 3], "--threads", 1 + n % 3,
                                            "--depth", (1, 4)[n % 2]]))
    return runs


def kill_agent(marker, stop, killed):
    """Kills the first agent of the marked job once it has lived for a moment."""
    while not stop.wait(0.05):
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as file:
                    ours = marker.encode() in file.read()
                with open(os.path.join(os.path.dirname(path), "cmdline"), "rb") as file:
                    agent = b"--serve" in file.read().split(b"\0")
                if ours and agent:
                    stop.wait(1.0)
                    os.kill(int(path.split("/")[2]), signal.SIGKILL)
                    killed.append(path)
                    return
            except OSError:
                continue


def check_killed_agent(checks, parts, expected):
    """With a real model: answered decisions, then the agent is killed while training runs."""
    marker = "RUDDER_TEST_MARK=identity-%d" % os.getpid()
    stop, killed = threading.Event(), []
    killer = threading.Thread(target=kill_agent, args=(marker, stop, killed))
    killer.start()
    try:
        run = train(parts, os.path.join(checks.folder, "killed"), *TRAINING, "--policy", "score", "--decider", "llm",
                    "--start", "empty", "--capacity", "100%", "--mode", "sync", "--period", 1, "--model", TINY_MODEL,
                    env=dict([marker.split("=")]))
    finally:
        stop.set()
        killer.join()
    checks.equal(run.code, 0, "agent killed: exit code", run.output[-2000:])
    checks.equal(run.losses(), expected, "agent killed: losses")
    checks.that(killed, "the agent was seen and killed while training ran")
    if run.summary:
        # Killed between two questions it is started again in time; killed in the middle of one the fall-back decides.
        decisions = run.summary["decisions"]
        checks.that(decisions["fallback"] > 0 or decisions["answered"] == decisions["asked"],
                    "agent killed: every question was answered or decided by the fall-back", decisions)


def main():
    with Checks() as checks:
        graph = community_graph(os.path.join(checks.folder, "graph"))
        parts = {n: partition(graph, os.path.join(checks.folder, "parts%d" % n), n) for n in (1, 2, 4)}
        expected = {}
        for n in parts:
            base = train(parts[n], os.path.join(checks.folder, "base%d" % n), *TRAINING, "--policy", "none", "--threads", 1)
            checks.equal(base.code, 0, "no buffer,", n, "ranks: exit code", base.output[-2000:])
            expected[n] = base.losses()
            checks.equal(len(expected[n]), n, "files of steps")
            checks.that(all(len(set(losses)) > 5 for losses in expected[n].values()), "losses that vary")
            checks.equal(len(set(map(tuple, expected[n].values()))), 1, n, "ranks tell one loss")
        runs = sweep()
        hits = []

        calls = [functools.partial(train, parts[n], os.path.join(checks.folder, "run%d" % number), *TRAINING, *options)
                 for number, (n, options) in enumerate(runs)]
        for (n, options), run in zip(runs, side_by_side(calls)):
            what = " ".join(map(str, options))
            if checks.equal(run.code, 0, n, "ranks,", what, "exit code", run.output[-2000:]):
                checks.that(run.losses() == expected[n], n, "ranks,", what, ": other losses than without a buffer")
                hits.append(run.summary["hit_rows"])
        checks.that(sum(h > 0 for h in hits) > len(runs) // 3, "the sweep uses the buffer:", hits)
        print("%d combinations" % len(runs))
        missing = why_no_model()
        if missing is None:
            check_killed_agent(checks, parts[2], expected[2])
        else:
            print("not run: agent killed while training runs (%s)" % missing)


if __name__ == "__main__":
    main()
