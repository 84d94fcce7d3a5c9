#!/usr/bin/env python3
"""
Traces of real runs: replaying a trace with the policy, start and decider of the run fetches what the run fetched, row by row on
every rank; looking ahead comes as near to the bound as its memory allows; what a stopped or killed run leaves can be read.
"""
import json
import os
import re
import signal
import subprocess
import time

from train_tools import RUDDER, Checks, check_books, command, community_graph, partition, train

TRAINING = ["--batch", 20, "--fanout", "6,6", "--hidden", 8, "--seed", 3, "--period", 4, "--eval", "none", "--record"]
RUNS = [  # options of the training, policy as replay takes it, decider
    (["--policy", "lfu"], "lfu", None),
    (["--policy", "lfu", "--start", "degree"], "lfu/degree", None),
    (["--policy", "lru"], "lru", None),
    (["--policy", "sieve"], "sieve", None),
    (["--policy", "mix"], "mix", None),
    (["--policy", "static", "--start", "degree"], "static/degree", None),
    (["--policy", "score", "--start", "degree", "--decider", "fixed:3"], "score/degree", "fixed:3"),
    (["--policy", "score", "--start", "empty", "--decider", "once"], "score/empty", "once"),
    (["--policy", "score", "--start", "empty", "--decider", "gain", "--mode", "sync"], "score/empty", "gain"),
    (["--policy", "lookahead"], "lookahead:recorded", None),
    (["--policy", "lookahead", "--window", 2], "lookahead:recorded", None),
    (["--policy", "lookahead", "--window-memory", "60KiB"], "lookahead:recorded", None),
    (["--policy", "lookahead", "--window-memory", "0"], "lookahead:recorded", None),
    (["--policy", "lookahead", "--start", "degree"], "lookahead:recorded/degree", None),
]


def replay(folder, *options):
    """{(policy, rank): row} of `rudder replay` over a run's folder."""
    path = os.path.join(folder, "replay.json")
    done = subprocess.run([RUDDER, "replay", folder, "--per-rank", "--json", path, *map(str, options)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode != 0:
        return done.stdout
    with open(path) as file:
        rows = json.load(file)["rows"]
    os.remove(path)
    return {(row["policy"], row["rank"]): row for row in rows}


def check_equal_rows(checks, parts, folder):
    """What was fetched live and what the replay says."""
    for number, (options, policy, decider) in enumerate(RUNS):
        for capacity in ("10%", "40%"):
            run = train(parts, os.path.join(folder, "equal%d-%s" % (number, capacity[:-1])), *TRAINING, "--epochs", 3,
                        "--capacity", capacity, *options)
            what = " ".join(map(str, options)) + " " + capacity + ":"
            check_books(checks, run, what)
            if run.code != 0:
                continue
            checks.equal(sum(rank["untracked_rows"] for rank in run.summary["ranks_detail"]), 0, what, "untracked rows")
            rows = replay(run.folder, "--policy", policy, "--capacity", capacity, "--period", 4,
                          *(["--decider", decider] if decider else []))
            if not checks.that(isinstance(rows, dict), what, "replay", rows):
                continue
            found = [row for key, row in sorted(rows.items(), key=str) if key[1] != "all" and key[0] != "bound"]
            checks.equal(len(found), run.summary["ranks"], what, "rows of replay")
            for row, rank in zip(found, run.summary["ranks_detail"]):
                for key in ("remote_rows", "hit_rows", "fetched_rows", "fill_rows"):
                    checks.equal(row[key], rank[key], what, "rank", rank["rank"], key, "of the replay and of the run")


def check_window(checks, parts, folder):
    """The default policy is near the bound; less memory fetches more, and still less than lfu."""
    training = TRAINING + ["--epochs", 6, "--capacity", "25%"]
    runs = {"lfu": train(parts, os.path.join(folder, "window-lfu"), *training, "--policy", "lfu"),
            "auto": train(parts, os.path.join(folder, "window-auto"), *training)}
    for name, run in runs.items():
        check_books(checks, run, "window " + name)
    if runs["auto"].code != 0 or runs["lfu"].code != 0:
        return
    wanted = max(rank["window_bytes"] for rank in runs["auto"].summary["ranks_detail"])
    for share in (4, 16):
        runs[share] = train(parts, os.path.join(folder, "window-%d" % share), *training, "--window-memory", wanted // share)
        check_books(checks, runs[share], "window memory / %d" % share)
    runs["one"] = train(parts, os.path.join(folder, "window-one"), *training, "--window-memory", "0")
    fetched = {name: run.summary["fetched_rows"] for name, run in runs.items()}
    remote = runs["lfu"].summary["remote_rows"]
    bound = replay(runs["auto"].folder, "--policy", "lfu", "--capacity", "25%")
    if checks.that(isinstance(bound, dict), "replay", bound):
        fewest = bound["lfu", "all"]["bound_rows"]
        checks.that(fewest <= fetched["auto"], "nothing is below the bound", fewest, fetched)
        checks.that(remote - fetched["auto"] >= 0.99 * (remote - fewest), "lookahead saves what can be saved", fetched, fewest)
    checks.that(fetched["auto"] <= fetched[4] <= fetched[16] <= fetched["one"], "more memory fetches less", fetched)
    checks.that(fetched[4] < fetched["lfu"], "a quarter of the memory still beats lfu", fetched)
    checks.equal(runs["auto"].summary["window_cut_share"], 0, "the window is cut short")
    checks.that(runs[16].summary["window_cut_share"] > 0.5, "the cut is told", runs[16].summary["window_cut_share"])
    for name, run in runs.items():
        steps = run.lines("steps")
        for rank in run.summary["ranks_detail"]:
            window = [step["window"] for step in steps[rank["rank"]]]
            checks.equal(rank["window_max"], max(window), name, "window_max")
            checks.that(abs(rank["window_mean"] - sum(window) / len(window)) < 1e-9, name, "window_mean", rank["window_mean"])
            left = [len(window) - 1 - step for step in range(len(window))]
            checks.that(all(w <= l for w, l in zip(window, left)), name, "nothing beyond the end is announced")
        checks.equal(len({tuple(s["window"] for s in rank) for rank in steps.values()}), 1, name, "ranks look equally far")
    epoch = runs["auto"].summary["steps_per_epoch"]
    across = any(s["step"] % epoch + s["window"] >= epoch for s in runs["auto"].lines("steps")[0])
    checks.that(across, "looks across the end of an epoch")


def check_traffic(checks, parts, folder):
    """What a rank sent to another is what that one got from it."""
    run = train(parts, os.path.join(folder, "traffic"), *TRAINING, "--epochs", 2)
    if checks.equal(run.code, 0, "traffic: exit code", run.output[-2000:]):
        ranks = run.summary["ranks_detail"]
        for a in ranks:
            for b in ranks:
                checks.equal(a["traffic_out_by_rank"][b["rank"]], b["traffic_in_by_rank"][a["rank"]], "traffic", a["rank"], b["rank"])
            checks.equal(a["traffic_in_by_rank"][a["rank"]], 0, "traffic with itself")
            checks.equal(sum(a["traffic_in_by_rank"]), a["traffic_in_bytes"], "traffic in")
            checks.equal(sum(a["traffic_out_by_rank"]), a["traffic_out_bytes"], "traffic out")
            checks.that(a["traffic_in_bytes"] >= a["fetched_bytes"], "all fetched rows are part of the traffic")


def check_owner_costs(checks, parts, folder):
    """Rows of a slow rank are fetched less often where costs count, whether they are measured or told."""
    costs = os.path.join(folder, "costs.txt")
    with open(costs, "w") as file:
        file.write("1\n10 # the slow one\n1\n1\n")
    for policy in ("lookahead", "mix"):
        slow = {}
        for cost in ("off", "measured", costs):
            name = "%s-%s" % (policy, os.path.basename(cost))
            run = train(parts, os.path.join(folder, name), *TRAINING, "--epochs", 4, "--policy", policy, "--capacity", "30%",
                        "--link", "1Gbit;1=2Mbit", "--owner-cost", cost)
            check_books(checks, run, "owner cost " + name)
            if run.code != 0:
                return
            slow[cost] = sum(rank["traffic_in_by_rank"][1] for rank in run.summary["ranks_detail"])
        checks.that(slow[costs] < 0.95 * slow["off"], policy, "with costs told fetches less from the slow rank", slow)
        checks.that(slow["measured"] < 0.95 * slow["off"], policy, "with measured costs fetches less from it", slow)


def inspect(path):
    done = subprocess.run([RUDDER, "inspect", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.returncode, done.stdout


def wait_for_steps(path, lines, process):
    """Until a run has logged so many steps."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if os.path.exists(path) and open(path).read().count("\n") >= lines:
            return True
        time.sleep(0.02)
    return False


def check_stopped(checks, parts, folder):
    """A signal closes the traces; SIGKILL leaves a prefix that can be read."""
    for name, number in (("terminated", signal.SIGTERM), ("killed", signal.SIGKILL)):
        run = os.path.join(folder, name)
        process = subprocess.Popen(command(parts, run, *TRAINING, "--epochs", 100000), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        ready = wait_for_steps(os.path.join(run, "steps.rank0.jsonl"), 50, process)
        checks.that(ready, name, "the run trains")
        if number == signal.SIGTERM:
            process.terminate()
        else:
            ranks = subprocess.run(["pgrep", "-s", str(process.pid), "-f", "train"], stdout=subprocess.PIPE, text=True)
            for pid in ranks.stdout.split():
                if int(pid) != process.pid:
                    os.kill(int(pid), signal.SIGKILL)
        process.wait(60)
        for rank in range(2):
            code, text = inspect(os.path.join(run, "trace.rank%d.rtr" % rank))
            checks.equal(code, 0, name, "inspect", text)
            if number == signal.SIGTERM:
                checks.that(re.search(r"cut off|torn", text) is None, name, "the trace is whole", text)


def main():
    with Checks() as checks:
        graph = community_graph(os.path.join(checks.folder, "graph"), nodes=1500, degree=10)
        for n in (2, 4):
            folder = os.path.join(checks.folder, "ranks%d" % n)
            os.makedirs(folder)
            parts = partition(graph, os.path.join(folder, "parts"), n)
            check_equal_rows(checks, parts, folder)
            check_window(checks, parts, folder)
            check_traffic(checks, parts, folder)
            if n == 2:
                check_stopped(checks, parts, folder)
            else:
                check_owner_costs(checks, parts, folder)


if __name__ == "__main__":
    main()
