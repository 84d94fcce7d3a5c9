/*
 * The style sheet of pages, line by line. Runs' colours alternate between dark and light (light and dark on the dark page),
 * so that neighbours differ in grey as well; so do the parts of stacked bars. Every part of a chart takes its colour from here.
 */
#ifndef RUDDER_REPORT_STYLE_H
#define RUDDER_REPORT_STYLE_H

/* clang-format off */
static const char *const page_style[] = {
    ":root{color-scheme:light dark;",
    "--bg:#f5f6f8;--card:#fff;--ink:#1b2027;--dim:#5a6470;--line:#dfe3e8;--grid:#e8ebef;--accent:#1f4e9e;--faint:#aab3bd;",
    "--s0:#1f4e9e;--s1:#e07b1a;--s2:#12664f;--s3:#cc5aa2;--s4:#7a2020;--s5:#2f9fd0;--s6:#5b3f9c;--s7:#93931f;",
    "--even:#fff;--odd:#14181d;--miss:#8db3da;--fill:#b4470f;--heat:#1f4e9e;",
    "--net:#1f4e9e;--p1:#6da3d8;--p2:#efc25e;--p3:#bd5b45;--p4:#9acb86;--p5:#6c4a9a;--wait:#e9ecf0;",
    "--on-net:#fff;--on-35:#fff;--on-124:#1b2027}",
    "@media(prefers-color-scheme:dark){:root{",
    "--bg:#0e1116;--card:#171c23;--ink:#e7eaee;--dim:#9ca7b3;--line:#2d353f;--grid:#262d36;--accent:#86b4ff;--faint:#5a6572;",
    "--s0:#86b4ff;--s1:#cf6f1c;--s2:#74dfb8;--s3:#c9589f;--s4:#ffb9ae;--s5:#2b8fc2;--s6:#c9b6ff;--s7:#96962a;",
    "--even:#14181d;--odd:#14181d;--miss:#3a5f8c;--fill:#f6b35e;--heat:#5b93e6;",
    "--net:#2f5fb8;--p1:#8dbdf0;--p2:#f7e3a8;--p3:#e08a72;--p4:#57934a;--p5:#b79bea;--wait:#232a33;",
    "--on-35:#14181d;--on-124:#14181d}}",

    "*{box-sizing:border-box}",
    "body{margin:0 auto;max-width:1560px;padding:28px 20px 60px;background:var(--bg);color:var(--ink);"
        "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,\"DejaVu Sans\",sans-serif}",
    "h1{font-size:26px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em;overflow-wrap:anywhere}",
    "header p{margin:0;color:var(--dim)}",
    "section{margin-top:36px}",
    "h2{font-size:19px;margin:0 0 10px;overflow-wrap:anywhere}",
    "h3{font-size:15px;margin:18px 0 6px;overflow-wrap:anywhere}",
    "p{margin:0 0 10px;max-width:110ch;overflow-wrap:anywhere}",
    "ul.points{margin:0 0 10px;padding-left:20px;max-width:110ch;overflow-wrap:anywhere}",
    "ul.points li{margin:3px 0}",
    "details{margin:0 0 14px}",
    "summary{cursor:pointer;color:var(--accent);margin-bottom:8px}",

    ".scroll{width:fit-content;max-width:100%;overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px;margin:0 0 14px}",
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}",
    "th,td{padding:5px 11px;text-align:left;vertical-align:top}",
    "th{font-weight:600;color:var(--dim);vertical-align:bottom;border-bottom:1px solid var(--line)}",
    "tbody tr+tr td{border-top:1px solid var(--grid)}",
    "tbody+tbody tr:first-child td{border-top:2px solid var(--line)}",
    "td.r,th.r{text-align:right}",
    "td.l{overflow-wrap:break-word}",
    "td.l:first-child{min-width:7.5em;overflow-wrap:anywhere}",
    "td.gap,th.gap{padding-left:20px}",
    ".wide td.l:last-child{min-width:22em}",
    "@media(max-width:1000px){table{font-size:12px}th,td{padding:5px}td.gap,th.gap{padding-left:12px}}",

    ".grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,640px),1fr));gap:16px;margin-bottom:14px}",
    ".narrow{grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr))}",
    "figure{margin:0;padding:14px 14px 10px;background:var(--card);border:1px solid var(--line);border-radius:8px;"
        "overflow-x:auto}",
    "figcaption{font-weight:600;margin-bottom:2px;overflow-wrap:anywhere}",
    "figure p{font-size:13px;color:var(--dim);margin:0 0 8px}",
    "svg.chart{display:block;max-width:100%;height:auto}",
    "svg.full{min-width:560px}", /* on a phone the figure scrolls, rather than that the texts become dots */
    "ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:0 0 8px;padding:0;font-size:13px}",
    ".sample{vertical-align:-1px;margin-right:6px}",
    ".key{display:inline-block;min-width:19px;padding:0 4px;margin-right:3px;border-radius:4px;text-align:center;"
        "font-weight:600;font-size:12px;line-height:18px;background:var(--c);color:var(--even)}",
    ".k1.key,.k3.key,.k5.key,.k7.key{color:var(--odd)}",
    ".k0{--c:var(--s0)}.k1{--c:var(--s1)}.k2{--c:var(--s2)}.k3{--c:var(--s3)}",
    ".k4{--c:var(--s4)}.k5{--c:var(--s5)}.k6{--c:var(--s6)}.k7{--c:var(--s7)}",

    ".t{font-size:12px;fill:var(--ink);font-variant-numeric:tabular-nums}.e{text-anchor:end}.m{text-anchor:middle}",
    ".label{fill:var(--dim)}.gl{stroke:var(--grid)}.axis{stroke:var(--dim)}.rule{stroke:var(--faint);stroke-dasharray:1 4}",
    ".ln{fill:none;stroke:var(--c);stroke-width:1.8;stroke-linejoin:round}.band{fill:var(--c);fill-opacity:.16}",
    ".mk{fill:var(--c);stroke:var(--c);stroke-width:1.4}",
    ".d1 .mk,.d3 .mk,.d4 .mk,.d7 .mk{fill:var(--card)}.d5 .mk,.d6 .mk{fill:none;stroke-width:2}",
    ".d1 .ln{stroke-dasharray:9 3}.d3 .ln{stroke-dasharray:9 3 2 3}.d5 .ln{stroke-dasharray:4 3}",
    ".d7 .ln{stroke-dasharray:12 3 2 3 2 3}",
    ".bound .ln{stroke:var(--ink);stroke-width:1.6;stroke-dasharray:2 3}.limit .ln{stroke:var(--dim);stroke-width:1}",
    ".event{stroke:var(--ink);stroke-width:1.2}.range{stroke:var(--ink);stroke-width:1.3}",
    ".mark{stroke:var(--ink);stroke-width:2.6}.halo{stroke:var(--card);stroke-width:6}",
    "rect,.miss,.fill{stroke:var(--card);stroke-width:.7}",
    ".miss{fill:var(--miss)}.fill{fill:var(--fill)}.net{fill:var(--net)}.one{fill:var(--accent)}.heat{fill:var(--heat)}",
    ".p1{fill:var(--p1)}.p2{fill:var(--p2)}.p3{fill:var(--p3)}.p4{fill:var(--p4)}.p5{fill:var(--p5)}",
    ".wait{fill:var(--wait);stroke:var(--faint)}",
    ".on-net{fill:var(--on-net)}.on-p3,.on-p5{fill:var(--on-35)}.on-p1,.on-p2,.on-p4{fill:var(--on-124)}",
    "@media print{body{background:#fff}.scroll,figure{break-inside:avoid}}"};
/* clang-format on */

#endif
