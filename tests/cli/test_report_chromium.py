#!/usr/bin/env python3
"""
Reports as people see them: opened in headless Chromium, light and dark, 800 and 1600 pixels wide. A script that is added to a copy of
the page measures every text: none may meet another, leave its chart or be cut off; axes carry units, colours differ in grey, too.
Screenshots stay in the build folder (report-screenshots) for those who want to look themselves.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib

from train_tools import BUILD, RUDDER, Checks, community_graph, partition, train

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS, SCHEMES = (800, 1600), {"light": 1, "dark": 0}
TRAINING = ["--epochs", 3, "--batch", 20, "--fanout", "4,4", "--hidden", 8, "--period", 4, "--record"]

MEASURE = r"""
(function () {
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
    var out = {overlaps: [], outside: [], cut: [], wide: [], unlabelled: [], faint: [], texts: 0, charts: 0, cells: 0};
    function box(e) { return e.getBoundingClientRect(); }
    function light(color) { // CIE L* of a computed colour
        var c = color.match(/[\d.]+/g).slice(0, 3).map(function (v) {
            v /= 255;
            return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
        });
        var y = 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
        return {y: y, l: y > 0.008856 ? 116 * Math.cbrt(y) - 16 : 903.3 * y};
    }
    function contrast(a, b) {
        var x = light(a).y + 0.05, y = light(b).y + 0.05;
        return Math.max(x, y) / Math.min(x, y);
    }
    document.querySelectorAll('svg.chart').forEach(function (svg, number) {
        var texts = Array.from(svg.querySelectorAll('text')), frame = box(svg), boxes = texts.map(box);
        out.charts++;
        out.texts += texts.length;
        if (!svg.querySelector('text.label')) { out.unlabelled.push(number); }
        boxes.forEach(function (b, i) {
            if (b.left < frame.left - 0.5 || b.right > frame.right + 0.5 || b.top < frame.top - 0.5 || b.bottom > frame.bottom + 0.5) {
                out.outside.push(svg.getAttribute('aria-label') + ': ' + texts[i].textContent);
            }
            for (var j = 0; j < i; j++) {
                var c = boxes[j];
                if (b.left < c.right && c.left < b.right && b.top + 2 < c.bottom && c.top + 2 < b.bottom) {
                    out.overlaps.push(svg.getAttribute('aria-label') + ': ' + texts[i].textContent + ' / ' + texts[j].textContent);
                }
            }
        });
    });
    document.querySelectorAll('td, th, figcaption, h1, h2, h3, p, li').forEach(function (e) {
        out.cells++;
        if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0) { out.cut.push(e.tagName + ': ' + e.textContent.slice(0, 60)); }
    });
    document.querySelectorAll('.scroll:not(.wide), figure').forEach(function (e) {
        if (e.scrollWidth > e.clientWidth + 1) { out.wide.push(e.textContent.trim().slice(0, 80)); }
    });
    var body = getComputedStyle(document.body).backgroundColor;
    document.querySelectorAll('.key').forEach(function (e) {
        if (contrast(getComputedStyle(e).color, getComputedStyle(e).backgroundColor) < 4.5) { out.faint.push('key ' + e.textContent); }
    });
    document.querySelectorAll('p, li, td, th, h1, h2, summary, figcaption').forEach(function (e) {
        var card = e.closest('.scroll, figure');
        if (contrast(getComputedStyle(e).color, card ? getComputedStyle(card).backgroundColor : body) < 4.5) { out.faint.push(e.tagName); }
    });
    document.querySelectorAll('svg text').forEach(function (t) {
        var card = t.closest('figure');
        var on = t.getAttribute('class').match(/on-(\w+)/);
        var below = on ? getComputedStyle(t.closest('svg').querySelector('rect.' + on[1])).fill : getComputedStyle(card).backgroundColor;
        if (contrast(getComputedStyle(t).fill, below) < 4.5) { out.faint.push('text ' + t.textContent + ' on ' + below); }
    });
    function grey(selector, property) {
        var probe = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
        probe.innerHTML = '<g class="' + selector + '"><path class="' + (property == 'stroke' ? 'ln' : selector) + '"/></g>';
        document.body.appendChild(probe);
        var value = light(getComputedStyle(probe.querySelector('path'))[property]).l;
        document.body.removeChild(probe);
        return value;
    }
    out.grey = {
        lines: [0, 1, 2, 3, 4, 5, 6, 7].map(function (i) { return grey('k' + i + ' d' + i, 'stroke'); }),
        rows: ['miss', 'fill'].map(function (c) { return grey(c, 'fill'); }),
        loader: ['p1', 'p2', 'net', 'p3', 'p4', 'wait'].map(function (c) { return grey(c, 'fill'); }),
        compute: ['wait', 'p1', 'p4', 'net', 'p2', 'p5'].map(function (c) { return grey(c, 'fill'); })
    };
    out.scheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
    out.resources = performance.getEntriesByType('resource').map(function (r) { return r.name; });
    out.sideways = document.documentElement.scrollWidth - window.innerWidth;
    out.height = document.documentElement.scrollHeight;
    var pre = document.createElement('pre');
    pre.id = 'measured';
    pre.textContent = JSON.stringify(out);
    document.body.appendChild(pre);
})();
"""


def find_browser():
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


class Browser:
    def __init__(self, path, folder):
        self.command = [path, "--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
                        "--disable-component-update", "--disable-sync", "--disable-default-apps", "--enable-logging=stderr",
                        "--user-data-dir=" + os.path.join(folder, "profile")]
        if os.geteuid() == 0:
            self.command.append("--no-sandbox")

    def run(self, page, scheme, width, height, *options):
        return subprocess.run(self.command + ["--blink-settings=preferredColorScheme=%d" % SCHEMES[scheme],
                                              "--window-size=%d,%d" % (width, height), *options, "file://" + page],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)

    def measure(self, page, scheme, width):
        """What the added script found in a copy of the page."""
        with open(page, encoding="utf-8") as file:
            source = file.read()
        copy = page.replace(".html", ".measured.html")
        source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
        with open(copy, "w", encoding="utf-8") as file:
            file.write(source.replace("</body>", "<script>%s</script></body>" % MEASURE))
        done = self.run(copy, scheme, width, 1000, "--dump-dom")
        found = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout, re.S)
        text = found.group(1) if found else "null"
        for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
            text = text.replace(entity, character)
        return json.loads(text), done.stderr

    def screenshot(self, page, scheme, width, height, path):
        """Of the page as it is, but with everything unfolded."""
        unfolded = page.replace(".html", ".unfolded.html")
        with open(page, encoding="utf-8") as file, open(unfolded, "w", encoding="utf-8") as copy:
            copy.write(file.read().replace("<details>", "<details open>"))
        return self.run(unfolded, scheme, width, min(height, 16000), "--screenshot=" + path).stderr


def mean_luminance(path):
    """Width, height and mean luminance of a PNG with 8 bits a channel, of its first 600 lines."""
    with open(path, "rb") as file:
        data = file.read()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    channels, packed, at = {2: 3, 6: 4}[kind], b"", 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    raw, stride, before, total, count = zlib.decompress(packed), width * channels, bytes(width * channels), 0, 0
    for line in range(min(height, 600)):
        method = raw[line * (stride + 1)]
        row = bytearray(raw[line * (stride + 1) + 1:(line + 1) * (stride + 1)])
        for i in range(stride):
            left = row[i - channels] if i >= channels else 0
            up, corner = before[i], before[i - channels] if i >= channels else 0
            if method == 1:
                row[i] = (row[i] + left) & 255
            elif method == 2:
                row[i] = (row[i] + up) & 255
            elif method == 3:
                row[i] = (row[i] + (left + up) // 2) & 255
            elif method == 4:
                p = left + up - corner
                near = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
                row[i] = (row[i] + near) & 255
        before = bytes(row)
        total += sum(row[0::channels]) + sum(row[1::channels]) + sum(row[2::channels])
        count += 3 * width
    return width, height, total / count / 255


def check_page(checks, browser, page, name, screenshots, units, quick):
    for width in WIDTHS:
        for scheme in SCHEMES if not quick else ("light" if width == WIDTHS[0] else "dark",):
            what = "%s, %s, %d pixels:" % (name, scheme, width)
            found, log = browser.measure(page, scheme, width)
            if not checks.that(found is not None, what, "the page was measured", log[-1500:]):
                continue
            checks.equal(found["scheme"], scheme, what, "scheme of the browser")
            checks.that(found["charts"] > 0 and found["texts"] > 10 and found["cells"] > 10, what, "there is something to see")
            for key, meaning in (("overlaps", "texts that meet"), ("outside", "texts outside of their chart"), ("cut", "texts cut off"),
                                 ("wide", "tables and figures wider than the window"), ("unlabelled", "charts without names of axes"),
                                 ("faint", "texts without contrast"), ("resources", "requests")):
                checks.equal(found[key][:6], [], what, meaning)
            checks.that(found["sideways"] <= 0, what, "the page does not scroll sideways", found["sideways"])
            grey = found["grey"]
            pairs = [(abs(a - b), group) for group, values in grey.items() for a, b in zip(values, values[1:])]
            checks.that(min(pairs)[0] >= 9, what, "neighbours differ in grey", min(pairs), grey)
            path = os.path.join(screenshots, "%s-%s-%d.png" % (name, scheme, width))
            log = browser.screenshot(page, scheme, width, found["height"], path)
            checks.that("CONSOLE" not in log, what, "no message on the console", log[-1500:])
            if checks.that(os.path.exists(path), what, "a screenshot", log[-1500:]):
                pixels, _, luminance = mean_luminance(path)
                checks.equal(pixels, width, what, "width of the screenshot")
                checks.that(luminance > 0.8 if scheme == "light" else luminance < 0.3, what, "luminance", luminance)
    with open(page, encoding="utf-8") as file:
        labels = set(re.findall(r'<text[^>]*class="t (?:m )?label">([^<]*)</text>', file.read()))
    checks.that(units <= labels, name, "axes carry units", units - labels)


def add_words(run):
    """Decisions as an LLM that answers in JSON leaves them: sentences, explanations, predictions."""
    path = os.path.join(run, "decisions.rank0.jsonl")
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        line.update(prompt="A replacement is expected to save much more than it costs. Minibatches left: many. Hit rate: very low, steady. "
                           "Traffic: steady. Last replacements: none.", margin=1.75, latency_ms=812.5, tokens=70,
                    explanation="The expected saving is far above the cost, so <replacing> now pays off & \"soon\".",
                    prediction={"hits": {"said": "up", "true": True}, "rows": {"said": "down", "true": False}})
    with open(path, "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def add_traffic(run, most):
    """A matrix of traffic as a run on more hosts has it."""
    path = os.path.join(run, "summary.json")
    with open(path) as file:
        summary = json.load(file)
    for rank in summary["ranks_detail"]:
        rank["traffic_in_by_rank"] = [most * (r + 1) // 2 if r != rank["rank"] else 0 for r in range(summary["ranks"])]
    with open(path, "w") as file:
        json.dump(summary, file)


def write_replay(path, halo=12345678):
    rows = []
    for share, bound in ((0, 0), (0.05, 35.5), (0.1, 47.6), (0.25, 67.3), (0.5, 83.6), (1, 96.2)):
        for number, policy in enumerate(("static", "lru", "lfu", "sieve", "score", "mix", "lookahead:16", "lookahead:auto", "belady",
                                         "a-policy-of-ones-own-with-a-long-name")):
            remote, saved = 10 ** 10, bound / 100 * (0.5 + number / 16 if number < 9 else 1)
            fetched = round(remote * (1 - saved))
            rows.append({"trace": "runs/lfu", "rank": "all", "policy": policy, "start": "degree" if policy == "score" else "empty",
                         "decider": "fixed:16" if policy == "score" else "never", "capacity_rows": int(share * halo), "remote_rows": remote,
                         "hit_rows": remote - fetched, "fetched_rows": fetched, "fill_rows": 0, "bound_rows": remote * (1 - bound / 100),
                         "epoch_seconds": 3 + fetched / 1e9, "bytes": fetched * 1024, "asked": 0, "replaced": 0, "memory_bytes": 10 ** 8,
                         "window_mean": None})
    with open(path, "w") as file:
        json.dump({"format": "rudder-replay", "version": 1, "settings": {"link": "1Gbit,50us"}, "rows": rows,
                   "traces": [{"path": "runs/lfu/trace.rank0.rtr", "halo": halo}]}, file)


def main():
    path = find_browser()
    if path is None:
        print("not run: reports in a browser (no chromium)")
        sys.exit(0)
    with Checks() as checks:
        folder, screenshots = checks.folder, os.path.join(BUILD, "report-screenshots")
        os.makedirs(screenshots, exist_ok=True)
        parts = partition(community_graph(os.path.join(folder, "graph")), os.path.join(folder, "parts"), 3)
        for name, options in (("none", ["--policy", "none"]), ("lfu", ["--policy", "lfu"]), ("linked", ["--link", "200Mbit,50us"]),
                              ("a-run-with-a-name-that-is-much-longer-than-anyone-would-like-it", ["--policy", "static"]),
                              ("score", ["--policy", "score", "--decider", "fixed:4", "--start", "empty", "--epochs", 20])):
            run = train(parts, os.path.join(folder, name), *TRAINING, *options)
            checks.equal(run.code, 0, "training", run.output[-500:])
        runs = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if os.path.exists(os.path.join(folder, name, "config.json"))]
        add_words(os.path.join(folder, "score"))
        add_traffic(os.path.join(folder, "score"), 10 ** 9)
        add_traffic(os.path.join(folder, "lfu"), 999999)
        replay = os.path.join(folder, "replay.json")
        write_replay(replay)
        browser = Browser(path, folder)
        pages = {"runs": (runs + [replay], {"minibatch", "rows a minibatch", "hits (% of remote rows)", "saved (% of remote rows)",
                                            "seconds (s)", "seconds an epoch (s)", "rows", "capacity (% of the halo)", "epoch"}),
                 "one": ([os.path.join(folder, "score")], {"minibatch", "rows a minibatch"}),
                 "many": ((runs * 6)[:26], {"rows", "seconds (s)"})}
        for name, (inputs, units) in pages.items():
            page = os.path.join(folder, name + ".html")
            done = subprocess.run([RUDDER, "report", *inputs, "-o", page], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if checks.equal(done.returncode, 0, name, done.stderr):
                check_page(checks, browser, page, name, screenshots, units, name != "runs")


if __name__ == "__main__":
    main()
