#!/usr/bin/env python3
"""rudder report on runs of the real program: the numbers are the summary's, whatever the run; hostile files get a reason."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from html.parser import HTMLParser

from train_tools import RUDDER, Checks, command, community_graph, partition, train

TRAINING = ["--epochs", 3, "--batch", 20, "--fanout", "4,4", "--hidden", 8, "--period", 4]


def report(*arguments, env=None):
    return subprocess.run([RUDDER, "report", *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, env=dict(os.environ, **(env or {})))


class Page(HTMLParser):
    """Tables as lists of rows of texts, the tags that occur, and everything that could fetch something."""

    def __init__(self, path):
        super().__init__()
        self.tables, self.tags, self.links, self.open = [], {}, [], []
        self.cell = None
        self.text = []
        with open(path, encoding="utf-8") as file:
            self.source = file.read()
        self.feed(self.source)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.links += [v for k, v in attributes if k in ("src", "href", "xlink:href", "action", "data", "srcset")]
        if tag not in ("meta", "path", "rect"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = ""

    def handle_startendtag(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise ValueError("</%s> closes something else" % tag)
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self.cell.replace("\u00a0", " "))
            self.cell = None

    def handle_data(self, data):
        self.text.append(data)
        if self.cell is not None:
            self.cell += data

    def table(self, *head):
        """Rows below the head of the table whose head begins with these cells, as {head: cell}."""
        for rows in self.tables:
            if rows and rows[0][:len(head)] == list(head):
                return [dict(zip(rows[0], row)) for row in rows[1:]]
        return []


def grouped(number):
    return "{:,}".format(number).replace(",", " ")


def check_page(checks, page, what):
    checks.equal(page.open, [], what, "tags left open")
    checks.equal(page.links, [], what, "links")
    checks.that(not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags), what, "only what is inline", page.tags)
    checks.that("nan" not in re.sub(r"<[^>]*>", " ", page.source).lower().split(), what, "no NaN in texts")
    checks.that(not re.search(r'[ "](nan|-?inf)', page.source), what, "no NaN among coordinates")
    checks.that("Content-Security-Policy" in page.source, what, "its own policy")


def check_numbers(checks, page, text, runs, what):
    """The headline and the tables against summary.json."""
    rows, results = page.table("run", "policy"), page.table("run", "link")
    checks.equal([len(rows), len(results)], [len(runs)] * 2, what, "a row a run")
    for letter, row, result, run in zip("ABCDEFGH", rows, results, runs):
        s = run.summary
        who = "%s %s:" % (what, row["run"])
        checks.equal(row["run"][0], letter, who, "letter")
        checks.equal(row["rows fetched"], grouped(s["fetched_rows"]), who, "rows fetched")
        checks.equal(row["of them fill"], grouped(s["fill_rows"]), who, "fill rows")
        checks.equal(row["hits"], "%.1f %%" % (100 * s["hit_rate"]), who, "hit rate")
        checks.equal(row["saved"], "%.1f %%" % (100 * (1 - s["fetched_rows"] / s["remote_rows"])), who, "saved")
        seconds = sum(s["epoch_seconds"]) / len(s["epoch_seconds"])
        checks.that(abs(float(result["epoch s"]) - seconds) < 0.006, who, "epoch", result["epoch s"], seconds)
        checks.equal(result["test"], "%.3f" % s["test"], who, "test accuracy")
        checks.equal(result["loss"], "%.4f" % s["loss"][-1], who, "loss")
        checks.equal(result.get("asked", "0"), grouped(s["decisions"]["asked"]), who, "decisions")
        line = [l for l in text.splitlines() if l.startswith(letter + " ")]
        checks.that(line and grouped(s["fetched_rows"]) in line[0], who, "the text says the same", line[:1])
    for thread in ("loader", "compute"):
        for row, run in zip(page.table(thread + " thread"), runs):
            for part, seconds in run.summary["time"][thread].items():
                found = float(row[part].split()[0])
                checks.that(abs(found - seconds) < 0.006, what, row[thread + " thread"], part, found, seconds)
    for row in page.table("decisions"):
        key = row["decisions"].replace(" ", "_")
        for head, cell in row.items():
            if key in ("asked", "answered", "applied", "replaced", "kept", "nothing_stale", "late", "invalid", "failed") and head != "decisions":
                found = runs[ord(head[0]) - ord("A")].summary["decisions"][key]
                checks.equal(cell, grouped(found), what, head, key)


def check_bound(checks, page, runs, what):
    """No run beats the bound, which one recorded run tells for all; without a buffer there is none."""
    for row, run in zip(page.table("run", "policy"), runs):
        if run.summary["policy"] == "none":
            checks.equal(row["bound"], "-", what, row["run"], "no bound without a buffer")
            continue
        bound, saved = (float(row[key].split()[0]) for key in ("bound", "saved"))
        checks.that(saved <= bound + 0.05, what, row["run"], "saved", saved, "bound", bound)


def check_runs(checks, folder, parts):
    runs = [train(parts, os.path.join(folder, name), *TRAINING, *(["--record"] if name in ("lfu", "score") else []), *options)
            for name, options in (("none", ["--policy", "none"]), ("lfu", ["--policy", "lfu"]), ("static", ["--policy", "static"]),
                                  ("score", ["--policy", "score", "--decider", "fixed:4", "--start", "empty"]))]
    for run in runs:
        checks.equal(run.code, 0, "training", run.output[-500:])
    path = os.path.join(folder, "all.html")
    done = report(*[run.folder for run in runs], "-o", path)
    if not checks.equal(done.returncode, 0, "report of four runs", done.stderr):
        return
    text = report(*[run.folder for run in runs]).stdout
    page = Page(path)
    check_page(checks, page, "four runs:")
    check_numbers(checks, page, text, runs, "four runs:")
    check_bound(checks, page, runs, "four runs:")
    checks.that("to the last bit" in "".join(page.text), "equal losses are told")
    checks.that("\x1b" not in text, "no colours in a file")
    differs = page.table("differs", "A")
    checks.that({"--policy", "--decider"} <= {row["differs"] for row in differs}, "what differs stands first", differs)
    checks.equal([row for row in differs if row["differs"] == "--epochs"], [], "what is equal does not")
    decisions = page.table("rank", "asked at")
    checks.that(len(decisions) > 0, "decisions are listed")
    # one run alone, and a run without any remote row
    for run in runs:
        done = report(run.folder, "-o", path)
        checks.equal(done.returncode, 0, "report of one run", done.stderr)
        page = Page(path)
        check_page(checks, page, run.folder)
        check_numbers(checks, page, report(run.folder).stdout, [run], run.folder)


def check_replay(checks, folder):
    """The tables of a replay say what its rows say, the bound included; what is no replay is refused."""
    path, page = os.path.join(folder, "replay.json"), os.path.join(folder, "replay.html")
    remote, halo, rows = 200000, 4000, []
    for capacity, bound in ((400, 120000), (1000, 90000), (4000, 0)):
        for rank in ("all", 0, 1):
            share = 1 if rank == "all" else 2
            for policy, decider, fetched in (("bound", None, bound), ("lfu", None, bound + 30000), ("mix", None, bound + 20000),
                                             ("lookahead:8", None, bound + 400), ("belady", None, bound),
                                             ("score", "fixed:4", bound + 50000)):
                rows.append({"trace": "runs/<a>", "policy": policy, "start": None, "decider": decider, "rank": rank,
                             "capacity_rows": capacity // share, "remote_rows": remote // share, "hit_rows": (remote - fetched) // share,
                             "fetched_rows": fetched // share, "fill_rows": 0, "bound_rows": bound // share, "bytes": None,
                             "epoch_seconds": fetched / 1e5})
    replay = {"format": "rudder-replay", "version": 1, "command": ["rudder", "replay"], "settings": {"link": "1Gbit"}, "rows": rows,
              "traces": [{"path": "runs/<a>/trace.rank%d.rtr" % r, "rank": r, "halo": halo // 2} for r in (0, 1)]}
    with open(path, "w") as file:
        json.dump(replay, file)
    done = report(path, "-o", page)
    if checks.equal(done.returncode, 0, "report of a replay", done.stderr):
        check_page(checks, Page(page), "replay:")
        table = {row["saved, by capacity"]: row for row in Page(page).table("saved, by capacity")}
        for row in rows:
            if row["rank"] == "all":
                head = "%s (%.3g %%)" % (grouped(row["capacity_rows"]), 100 * row["capacity_rows"] / halo)
                name = {"bound": "bound: the best possible buffer", "score": "score, fixed:4"}.get(row["policy"], row["policy"])
                saved = "%.2f %%" % (100 * (1 - row["fetched_rows"] / remote))
                checks.equal(table.get(name, {}).get(head), saved, "replay:", name, head)
                checks.that(saved in report(path).stdout, "replay: the text says it, too")
        best = Page(page).table("capacity", "bound")
        checks.equal({row["best policy"] for row in best}, {"lookahead:8"}, "replay: best that a run can use")
        checks.equal({row["best without look-ahead"] for row in best}, {"mix"}, "replay: best without look-ahead")
    for name, change, reason in (("another format", {"format": "rudder-graph"}, "rudder-replay"), ("another version", {"version": 2}, "version"),
                                 ("no rows", {"rows": None}, "rows"), ("a row that is a number", {"rows": [4]}, "capacity_rows"),
                                 ("too many rows", {"rows": [{}] * 30000}, "more"),
                                 ("half a row", {"rows": [dict(rows[0], fetched_rows=0.5)]}, "fetched_rows"),
                                 ("a text for a number", {"rows": [dict(rows[0], epoch_seconds="1")]}, "epoch_seconds")):
        with open(path, "w") as file:
            json.dump(dict(replay, **change), file)
        done = report(path)
        checks.equal(done.returncode, 3, name, done.stderr)
        checks.that(reason in done.stderr, name, "reason", done.stderr)


def diff(*arguments):
    return subprocess.run([RUDDER, "diff", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120)


def check_diff(checks, folder, parts):
    """0 when nothing but names and times differs; otherwise what differs is named."""
    a = os.path.join(folder, "lfu")
    again = train(parts, os.path.join(folder, "lfu-again"), *TRAINING, "--record", "--policy", "lfu", "--name", "another name")
    done = diff(a, again.folder)
    checks.equal(done.returncode, 0, "the same run twice", done.stdout)
    checks.that("equal bit for bit" in done.stdout, "equal losses are told", done.stdout)
    checks.equal(diff(a, a).returncode, 0, "a run and itself")
    done = diff(a, os.path.join(folder, "score"))
    checks.equal(done.returncode, 1, "other policies")
    for word in ("--policy: A lfu, B score", "equal bit for bit", "rows fetched: A", "asked: A 0, B"):
        checks.that(word in done.stdout, "other policies:", word, done.stdout)
    other = train(parts, os.path.join(folder, "lfu-seed"), *TRAINING, "--policy", "lfu", "--seed", 2)
    done = diff(a, other.folder)
    checks.equal(done.returncode, 1, "another seed")
    checks.that("losses differ from minibatch 0 on" in done.stdout and "--seed: A 1, B 2" in done.stdout, "another seed", done.stdout)
    # one loss changed in its last digit
    copy = os.path.join(folder, "lfu-changed")
    shutil.copytree(a, copy)
    path = os.path.join(copy, "steps.rank0.jsonl")
    with open(path) as file:
        lines = file.readlines()
    loss = json.loads(lines[3])["loss"]
    lines[3] = lines[3].replace(json.dumps(loss), json.dumps(loss * (1 + 2 ** -52)))
    with open(path, "w") as file:
        file.writelines(lines)
    done = diff(a, copy)
    checks.equal(done.returncode, 1, "one bit of one loss")
    checks.that("differ from minibatch 3 on" in done.stdout, "one bit of one loss", done.stdout)
    checks.equal(diff(a, folder).returncode, 3, "no run")
    checks.equal(diff(a).returncode, 2, "one run alone")


def check_hostile_names(checks, folder, parts):
    evil = "<script>alert('x')</script> \"quoted\" & \u202eright\x1b[31m"
    run = train(parts, os.path.join(folder, "evil"), *TRAINING, "--name", evil)
    checks.equal(run.code, 0, "training with an odd name", run.output[-300:])
    path = os.path.join(folder, "evil.html")
    checks.equal(report(run.folder, "-o", path, "--title", evil).returncode, 0, "report with an odd name")
    page = Page(path)
    check_page(checks, page, "odd name:")
    checks.that("<script" not in page.source and "&lt;script&gt;" in page.source, "names are escaped")
    checks.that("\x1b" not in page.source and "\u202e" not in page.table("run", "policy")[0]["run"], "controls are gone")
    text = report(run.folder).stdout
    checks.that("\x1b" not in text and "\u202e" not in text, "controls are gone from the text")


def check_damage(checks, folder, good):
    """Every way to damage a run that is told with file and reason, exit code 3 and no page."""
    def edit(name, change):
        def apply(run):
            path = os.path.join(run, name)
            with open(path, "rb") as file:
                content = file.read()
            with open(path, "wb") as file:
                file.write(change(content))
        return apply

    def member(name, *keys, value):
        def change(content):
            whole = json.loads(content)
            at = whole
            for key in keys[:-1]:
                at = at[key]
            at[keys[-1]] = value
            return json.dumps(whole).encode()
        return edit(name, change)

    steps, line = "steps.rank0.jsonl", b'{"epoch":0,"step":0,"loss":1,"remote":1,"hit":0,"miss":1,"fill":0,"bytes":4}\n'
    cases = {
        "no config": (lambda run: os.remove(os.path.join(run, "config.json")), "config.json"),
        "config is a folder": (lambda run: (os.remove(os.path.join(run, "config.json")), os.mkdir(os.path.join(run, "config.json"))),
                               "config.json"),
        "config is no JSON": (edit("config.json", lambda c: b"\x00\xff" + c), "config.json"),
        "config is an array": (edit("config.json", lambda c: b"[1]"), "config.json"),
        "config is huge": (edit("config.json", lambda c: c + b" " * (2 << 20)), "at most"),
        "config is deep": (edit("config.json", lambda c: b'{"a":' * 100000), "config.json"),
        "no ranks": (member("config.json", "effective", "ranks", value=0), "ranks"),
        "a billion ranks": (member("config.json", "effective", "ranks", value=10 ** 9), "ranks"),
        "ranks are a text": (member("config.json", "effective", "ranks", value="four"), "ranks"),
        "policy is a number": (member("config.json", "options", "policy", value=4), "policy"),
        "summary cut": (edit("summary.json", lambda c: c[:len(c) // 2]), "summary.json"),
        "summary empty": (edit("summary.json", lambda c: b""), "summary.json"),
        "rows are negative": (member("summary.json", "remote_rows", value=-1), "remote_rows"),
        "rows are a text": (member("summary.json", "fetched_bytes", value="many"), "fetched_bytes"),
        "rows are infinite": (edit("summary.json", lambda c: c.replace(b'"row_bytes": ', b'"row_bytes": 1e999')), "row_bytes"),
        "an epoch's loss is an object": (member("summary.json", "loss", 0, value={}), "loss"),
        "losses of another number of epochs": (member("summary.json", "loss", value=[1.0]), "loss"),
        "a rank twice": (member("summary.json", "ranks_detail", 1, "rank", value=0), "rank"),
        "a rank beyond": (member("summary.json", "ranks_detail", 1, "rank", value=77), "rank"),
        "traffic of other ranks": (member("summary.json", "ranks_detail", 0, "traffic_in_by_rank", value=[1, 2, 3]), "traffic_in_by_rank"),
        "steps garbled": (edit(steps, lambda c: c[:200] + b"\xff\x00" + c[200:]), steps + ":1"),
        "steps not JSON": (edit(steps, lambda c: c + b"hello\n"), steps),
        "steps of a long line": (edit(steps, lambda c: b"x" * 100000 + b"\n"), steps + ":1"),
        "steps backwards": (edit(steps, lambda c: c + c), steps),
        "steps that do not add up": (edit(steps, lambda c: line.replace(b'"hit":0', b'"hit":5')), "remote = hit + miss"),
        "steps with half a row": (edit(steps, lambda c: line.replace(b'"fill":0', b'"fill":0.5')), "fill"),
        "steps without rows": (edit(steps, lambda c: b"{}\n"), steps + ":1"),
        "decision of no kind": (edit("decisions.rank0.jsonl", lambda c: c.replace(b'"status":"', b'"status":"x', 1)), "status"),
        "decision without a number": (edit("decisions.rank0.jsonl", lambda c: b"{}\n"), "decisions.rank0.jsonl:1"),
        "trace cut to nothing": (edit("trace.rank0.rtr", lambda c: c[:3]), "trace.rank0.rtr"),
        "trace is foreign": (edit("trace.rank0.rtr", lambda c: b"\x89PNG\r\n\x1a\n" + bytes(200)), "trace.rank0.rtr"),
    }
    for name, (damage, reason) in cases.items():
        run, page = os.path.join(folder, "damaged"), os.path.join(folder, "damaged.html")
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(good, run)
        damage(run)
        done = report(run, "-o", page)
        checks.equal(done.returncode, 3, name, "exit code", done.stderr)
        checks.that(reason in done.stderr, name, "reason", repr(reason), done.stderr)
        checks.that(not os.path.exists(page) and not os.path.exists(page + ".part"), name, "no page")


def check_usage(checks, folder, good):
    for code, reason, arguments in ((2, "RUN", []), (3, "cannot be opened", [os.path.join(folder, "nothing")]), (3, "config.json", [folder]),
                                    (2, "outptu", [good, "--outptu", "x"]), (3, "cannot be made", [good, "-o", folder + "/no/x.html"]),
                                    (2, "at most 26", [good] * 27), (2, "unexpected argument", [good] * 65)):
        done = report(*arguments)
        checks.equal(done.returncode, code, arguments, "exit code", done.stderr)
        checks.that(reason in done.stderr, arguments, "reason", done.stderr)
    checks.equal(report(*[good] * 26, "-o", os.path.join(folder, "many.html")).returncode, 0, "26 runs")
    check_page(checks, Page(os.path.join(folder, "many.html")), "26 runs")
    done = subprocess.run("%s report %s > /dev/full" % (RUDDER, good), shell=True, stderr=subprocess.PIPE, text=True)
    checks.equal(done.returncode, 3, "a full disk", done.stderr)


def wait_until_still(path):
    size = -1
    while size != os.path.getsize(path):
        size = os.path.getsize(path)
        time.sleep(1)


def check_unfinished(checks, folder, parts):
    """Interrupted: a summary of what was done. Killed: none, and perhaps half a line."""
    for number, kind in ((signal.SIGINT, "interrupted"), (signal.SIGKILL, "killed")):
        run = os.path.join(folder, kind)
        job = subprocess.Popen(command(parts, run, "--epochs", 100000, "--batch", 20, "--fanout", "4,4", "--hidden", 8),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        path, deadline = os.path.join(run, "steps.rank0.jsonl"), time.time() + 60
        while time.time() < deadline and not (os.path.exists(path) and os.path.getsize(path) > 100000):
            time.sleep(0.05)
        os.killpg(job.pid, number) if kind == "killed" else job.send_signal(number)
        job.wait(60)
        if kind == "killed":
            wait_until_still(path) # the launcher is gone before its ranks are
            if os.path.exists(os.path.join(run, "summary.json")):
                os.remove(os.path.join(run, "summary.json"))
            with open(path, "rb+") as file:
                file.truncate(os.path.getsize(path) - 7)
        with open(path) as file:
            whole = [json.loads(line) for line in file if line.endswith("\n")]
        page = os.path.join(folder, kind + ".html")
        done = report(run, "-o", page)
        if not checks.equal(done.returncode, 0, kind, done.stderr):
            continue
        check_page(checks, Page(page), kind)
        checks.that(kind in "".join(Page(page).text), kind, "is told")
        checks.that(os.path.getsize(page) < 400000, kind, "a long run does not make a large page", os.path.getsize(page), len(whole))
        if kind == "killed":
            rows = sum(step["miss"] + step["fill"] for step in whole)
            with open(os.path.join(run, "steps.rank1.jsonl")) as file:
                other = [json.loads(line) for line in file if line.endswith("\n")]
            rows += sum(step["miss"] + step["fill"] for step in other)
            checks.equal(Page(page).table("run", "policy")[0]["rows fetched"], grouped(rows), kind, "sums of the steps")


def main():
    with Checks() as checks:
        parts = partition(community_graph(os.path.join(checks.folder, "graph")), os.path.join(checks.folder, "parts"), 2)
        check_runs(checks, checks.folder, parts)
        check_replay(checks, checks.folder)
        check_diff(checks, checks.folder, parts)
        check_hostile_names(checks, checks.folder, parts)
        check_damage(checks, checks.folder, os.path.join(checks.folder, "score"))
        check_usage(checks, checks.folder, os.path.join(checks.folder, "lfu"))
        check_unfinished(checks, checks.folder, parts)


if __name__ == "__main__":
    main()
