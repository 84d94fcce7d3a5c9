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
POLICIES = ["static", "lru", "sieve", "lfu", "mix", "score", "lookahead"]
STARTS = ["empty", "degree", "random", "presample", "vip", "file"]
DECIDED = [
    ["--decider", "once", "--start", "empty"],
    ["--decider", "fixed:1", "--start", "empty"],
    ["--decider", "fixed:4", "--start", "degree"],
    ["--decider", "gain", "--start", "empty"],
    ["--decider", "gain", "--start", "random"],
    ["--decider", "llm", "--start", "empty", "--model", "/nonexistent/model.gguf"],
    ["--decider", "llm", "--start", "degree", "--fallback", "fixed:2", "--model", "/dev/null"],
]
WINDOWS = ["auto", 1, 3, 1000]
WINDOW_MEMORIES = ["0", "20KiB", "1GiB"]  # of these minibatches the first holds one, the second a few, the last the whole run
ORDERS = ["shuffled", "community", "class", "drift"]
CAPACITIES = ["0", "1", "7", "100%"]
LINKS = ["off", "1Gbit,50us", "200Mbit"]


def sweep(weights, costs_file):
    """
    (parts, order, options): every policy x start, decider x capacity x mode, window x memory of the window x capacity on two
    ranks, with the rest in turns; costs of owners; every policy with every order of seeds; some with one and four ranks.
    weights, costs_file: files.
    """
    runs = []

    def add(options, parts=2, order="shuffled", **fixed):
        n = len(runs)
        turns = {"capacity": CAPACITIES[(n * 7 // 3) % 4], "mode": ("async", "sync")[n % 2], "link": LINKS[n % 3],
                 "threads": 1 + (n // 2) % 3, "depth": (1, 4)[(n // 3) % 2], "max-message": (0, 1000)[n % 5 == 0]}
        turns.update(fixed)
        runs.append((parts, order, options + [x for key, value in turns.items() for x in ("--" + key, value)]))

    for policy in POLICIES:
        for start in STARTS:
            add(["--policy", policy, "--start", "file:" + weights if start == "file" else start],
                capacity=("7", "100%")[len(runs) % 2])
    for decided in DECIDED:
        for capacity in CAPACITIES:
            for mode in ("async", "sync"):
                add(["--policy", "score"] + decided, capacity=capacity, mode=mode)
    for window in WINDOWS:
        for memory in WINDOW_MEMORIES:
            for capacity in ("7", "30%", "100%"):
                add(["--policy", "lookahead", "--window", window, "--window-memory", memory], capacity=capacity)
    for policy in ("mix", "lookahead", "lfu"):
        for costs in ("measured", costs_file):
            add(["--policy", policy, "--owner-cost", costs], capacity="30%", link="1Gbit,50us;1=20Mbit")
    for order in ORDERS[1:]:
        for policy in POLICIES:
            add(["--policy", policy], order=order, capacity="30%")
        add(["--policy", "lookahead", "--window", 2, "--record"], order=order, capacity="30%")
        add(["--policy", "lookahead", "--window-memory", "20KiB", "--start", "presample"], order=order, capacity="30%")
    for parts in (1, 4):
        for policy in POLICIES:
            add(["--policy", policy], parts=parts)
        add(["--policy", "lookahead", "--window-memory", "20KiB", "--start", "vip"], parts=parts, capacity="30%")
        add(["--policy", "score", "--decider", "fixed:1"], parts=parts, capacity="100%")
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
        weights = os.path.join(checks.folder, "weights.txt")
        with open(weights, "w") as file:
            file.write("# id weight\n" + "".join("%d %g\n" % (v, 1.5 * (v % 7)) for v in range(0, 600, 2)))
        for n, order in [(2, order) for order in ORDERS] + [(1, ORDERS[0]), (4, ORDERS[0])]:
            base = train(parts[n], os.path.join(checks.folder, "base%d-%s" % (n, order)), *TRAINING, "--policy", "none",
                         "--threads", 1, "--seed-order", order)
            checks.equal(base.code, 0, "no buffer,", n, "ranks: exit code", base.output[-2000:])
            expected[n, order] = base.losses()
            checks.equal(len(expected[n, order]), n, "files of steps")
            checks.that(all(len(set(losses)) > 5 for losses in expected[n, order].values()), "losses that vary")
            checks.equal(len(set(map(tuple, expected[n, order].values()))), 1, n, "ranks tell one loss")
        costs_file = os.path.join(checks.folder, "costs.txt")
        with open(costs_file, "w") as file:
            file.write("1\n8\n")
        runs = sweep(weights, costs_file)
        hits, windows = [], []

        calls = [functools.partial(train, parts[n], os.path.join(checks.folder, "run%d" % number), *TRAINING,
                                   "--seed-order", order, *options) for number, (n, order, options) in enumerate(runs)]
        for (n, order, options), run in zip(runs, side_by_side(calls)):
            what = order + " " + " ".join(map(str, options))
            if checks.equal(run.code, 0, n, "ranks,", what, "exit code", run.output[-2000:]):
                checks.that(run.losses() == expected[n, order], n, "ranks,", what, ": other losses than without a buffer")
                hits.append(run.summary["hit_rows"])
                windows.append(run.summary["window_max"])
        checks.that(sum(h > 0 for h in hits) > len(runs) // 3, "the sweep uses the buffer:", hits)
        checks.that(max(windows) > 4 and 0 < len([w for w in windows if 0 < w <= 4]), "the sweep looks ahead:", windows)
        print("%d combinations" % len(runs))
        missing = why_no_model()
        if missing is None:
            check_killed_agent(checks, parts[2], expected[2, ORDERS[0]])
        else:
            print("not run: agent killed while training runs (%s)" % missing)


if __name__ == "__main__":
    main()
