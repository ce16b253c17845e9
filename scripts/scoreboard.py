#!/usr/bin/env python3
"""Tamis' keys beside those of other tools: merges, bugs, vectors, idempotence, speed.

Usage: scoreboard.py TAMIS SHARED_DATA > docs/scoreboard.md
The peers are published packages in the environment that runs this (scripts/scoreboard.sh makes it).
"""
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")
import ada_url
import courlan
import surt
import urlcanon
import ural
import url_normalize
import w3lib.url

TAMIS, SHARED = sys.argv[1], sys.argv[2]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PEERS = {
    "ada": lambda url: ada_url.URL(url).href,
    "w3lib": w3lib.url.canonicalize_url,
    "courlan": courlan.clean_url,
    "ural": ural.normalize_url,
    "url-normalize": url_normalize.url_normalize,
    "surt": surt.surt,
    "urlcanon": lambda url: str(urlcanon.semantic(urlcanon.parse_url(url))),
}
PACKAGES = {"ada": "ada-url"}
TOOLS = ["tamis", *PEERS]


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def tamis(command, inputs, *options):
    """One record for each input; a line cannot hold a line feed or be empty, those have none."""
    usable = [url for url in inputs if url and "\n" not in url]
    fed = "".join(url + "\n" for url in usable).encode("utf-8", "surrogatepass")
    run = subprocess.run([TAMIS, "urls", command, *options], input=fed, capture_output=True)
    rows = [json.loads(line) for line in run.stdout.decode().splitlines()]
    assert len(rows) == len(usable), (len(rows), len(usable), run.stderr)
    return dict(zip(usable, rows))


class Crash(Exception):
    pass


def peer_key(tool, url):
    """The key; None where the tool refuses the URL in a way that it documents."""
    try:
        key = PEERS[tool](url)
    except ValueError:
        return None
    except Exception as error:
        raise Crash(f"{type(error).__name__}: {error}") from error
    return key or None


def keys(tool, urls):
    """Keys by URL, and what crashed."""
    if tool == "tamis":
        rows = tamis("canon", urls)
        return {url: rows[url]["key"] for url in rows}, []
    found, crashed = {}, []
    for url in urls:
        try:
            found[url] = peer_key(tool, url)
        except Crash as crash:
            crashed.append((url, str(crash)))
    return found, crashed


def code(text, limit=100):
    text = json.dumps(text, ensure_ascii=True)[1:-1].replace("\\\\", "\\").replace("|", "\\|").replace("`", "\\`")
    return "`" + (text if len(text) <= limit else text[: limit - 1] + "…") + "`"


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def merges():
    cases = [case for case in lines(f"{ROOT}/testdata/urls/merges.jsonl") if case["profile"] == "default"]
    cases = [case for case in cases if "sets" not in case and "with" not in case]
    cases = [case for case in cases if "\n" not in case["a"] + case["b"]]
    urls = sorted({url for case in cases for url in (case["a"], case["b"])})
    verdicts = {tool: keys(tool, urls)[0] for tool in TOOLS}
    counts = {tool: [0, 0, 0] for tool in TOOLS}
    rows = []
    for case in cases:
        cells = []
        for tool in TOOLS:
            a, b = verdicts[tool].get(case["a"]), verdicts[tool].get(case["b"])
            same = a is not None and a == b
            refused = a is None or b is None
            if same and not case["same"]:
                cells.append("**wrong merge**")
                counts[tool][0] += 1
            elif refused:
                cells.append("refused")
                counts[tool][2] += 1
            elif case["same"] and not same:
                cells.append("missed")
                counts[tool][1] += 1
            else:
                cells.append("")
        if any(cells):
            right = "same" if case["same"] else "differ"
            rows.append([code(case["a"], 60), code(case["b"], 60), right, *cells])
    return len(cases), counts, rows


def bugs():
    cases = [case for case in lines(f"{ROOT}/testdata/urls/bugs.jsonl") if case.get("profile", "default") == "default"]
    cases = [case for case in cases if "sets" not in case and "with" not in case]
    rows, wrong = tamis("canon", [case["input"] for case in cases]), []
    for case in cases:
        row = rows[case["input"]]
        if "error" in case:
            right = row["key"] is None
        else:
            right = case.get("key", row["key"]) == row["key"] and case.get("fetch_url", row["fetch_url"]) == row["fetch_url"]
        if not right:
            wrong.append((case, row))
    return len(cases), wrong


# Why a vector of another tool is not followed: the first reason whose test holds.
REASONS = [
    ("the input has no scheme and the tool adds one; a guess is no key", lambda v, a, b: "no scheme" in (a["error"] or "")),
    ("`host:port` without a scheme is guessed to be http; in the URL Standard `localhost:` is a scheme", lambda v, a, b: a["key"] is None and "names nothing" in (a["error"] or "")),
    ("browsers refuse the host or port", lambda v, a, b: a["key"] is None),
    ("the tool refuses what browsers take: any number of slashes behind the scheme", lambda v, a, b: v.get("expected") is None),
    ("an index page is a guess (class C, row 15)", lambda v, a, b: v["fn"] == "regex.normalize" and any(word in v["input"].lower() for word in ("/index.", "/default."))),
    ("slashes are not collapsed (class C, row 13)", lambda v, a, b: "//" in v["input"].split(":", 1)[-1].removeprefix("///").removeprefix("//")),
    ("session ids go only where a rule set names them and the value has the shape", lambda v, a, b: v["fn"] == "regex.normalize" and any(word in v["input"].lower() for word in ("sess", "sid"))),
    ("an expression of that tool's example configuration, for one site", lambda v, a, b: v["fn"] == "regex.normalize"),
    ("a trailing slash is another page (class C)", lambda v, a, b: v["fn"] == "slash.normalize"),
    ("`_escaped_fragment_` was withdrawn; routes are kept by rule set", lambda v, a, b: v["fn"] == "ajax.normalize"),
    ("the result has no scheme, or is no URL", lambda v, a, b: b is None or b["key"] is None),
    ("reserved characters are not decoded (row 7)", lambda v, a, b: "%" in v["input"]),
    ("parameters are dropped or merged, `www` or index pages stripped (class C)", lambda v, a, b: True),
]
KEY_FUNCTIONS = ["basic.normalize", "regex.normalize", "slash.normalize", "ajax.normalize", "querystring.normalize", "URLNormalize", "URIEncode", "url_normalize"]


def vectors():
    """A vector holds if its input and its result have one key, or both none."""
    held, failed, other = {}, [], {}
    for name in sorted(os.listdir(f"{SHARED}/canon")):
        cases = lines(f"{SHARED}/canon/{name}")
        texts = [case[field] for case in cases for field in ("input", "expected") if isinstance(case.get(field), str)]
        rows = tamis("canon", sorted(set(texts)))
        for case in cases:
            group = (name.removesuffix(".jsonl"), case["fn"])
            if case["fn"] == "urijoin":
                join(case, group, held, failed)
                continue
            if case["fn"] not in KEY_FUNCTIONS or not isinstance(case["input"], str) or case["input"] not in rows:
                other[group] = other.get(group, 0) + 1
                continue
            counts = held.setdefault(group, [0, 0])
            counts[1] += 1
            a = rows[case["input"]]
            want = case.get("expected")
            b = rows.get(want) if isinstance(want, str) else None
            if a["key"] == (b["key"] if b else None):
                counts[0] += 1
            else:
                reason = next(reason for reason, test in REASONS if test(case, a, b))
                failed.append((group, case["input"], want, a["key"] or "rejected", reason))
    return held, failed, other


def join(case, group, held, failed):
    reference = case["options"]["args"][0]
    counts = held.setdefault(group, [0, 0])
    counts[1] += 1
    base = case["input"]
    run = subprocess.run([TAMIS, "urls", "parse", "--base", base], input=(reference + "\n").encode(), capture_output=True)
    rows = [json.loads(line) for line in run.stdout.decode().splitlines()]
    got = rows[0]["href"] if rows else None
    want = case.get("expected")
    plain = lambda url: tamis("parse", [url])[url]["href"] if url else None
    if not reference or got == want or got == plain(want):
        counts[0] += 1
        return
    if run.returncode == 2:
        reason = "a base without a scheme is no base in the URL Standard"
    elif len(case["options"]["args"]) > 1:
        reason = "an option of RFC 3986 (`strict=False`) that the URL Standard settles otherwise"
    else:
        reason = "RFC 3986 against the URL Standard: `http:g` is relative to a base of its scheme"
    failed.append((group, f"{base} + {reference}", want, got, reason))


def web_platform():
    results = []
    cases = [case for case in json.load(open(f"{SHARED}/urls/wpt_urltestdata.json")) if isinstance(case, dict)]
    right, total, wrong = 0, 0, []
    ada_right = 0
    for case in cases:
        # A line of input cannot hold these; the tests of the crate read them.
        if not case["input"] or "\n" in case["input"] or any(ord(c) in range(0xD800, 0xE000) for c in case["input"]):
            continue
        total += 1
        want = None if case.get("failure") else case["href"]
        try:
            ada = ada_url.URL(case["input"], base=case.get("base")).href
        except ValueError:
            ada = None
        ada_right += ada == want
        args = ["--base", case["base"]] if case.get("base") else []
        run = subprocess.run([TAMIS, "urls", "parse", *args], input=case["input"].encode() + b"\n", capture_output=True)
        got = json.loads(run.stdout)["href"] if run.stdout else None
        right += got == want
        if got != want:
            wrong.append((case["input"], want, got))
    results.append(("URL parsing (`wpt_urltestdata.json`)", total, right, ada_right, wrong))
    cases = [case for case in json.load(open(f"{SHARED}/urls/wpt_toascii.json")) if isinstance(case, dict)]
    rows = tamis("parse", [f"https://{case['input']}/x" for case in cases])
    right, ada_right, wrong = 0, 0, []
    for case in cases:
        url = f"https://{case['input']}/x"
        try:
            ada_right += ada_url.URL(url).hostname == case["output"]
        except ValueError:
            ada_right += case["output"] is None
        right += rows[url]["host"] == case["output"]
        if rows[url]["host"] != case["output"]:
            wrong.append((case["input"], case["output"], rows[url]["host"]))
    results.append(("domain to ASCII (`wpt_toascii.json`)", len(cases), right, ada_right, wrong))
    cases = [line.rstrip("\n").split("\t") for line in open(f"{SHARED}/psl/oracle_registrable.tsv", encoding="utf-8")]
    cases = [case for case in cases[1:] if len(case) >= 3]
    rows = tamis("parse", [f"http://{case[0]}/" for case in cases])
    right, total, wrong = 0, 0, []
    for host, _, want, *_ in cases:
        row = rows[f"http://{host}/"]
        if row["error"] or row["host"] != host:
            continue
        total += 1
        right += (row["registrable_domain"] or "") == want
        if (row["registrable_domain"] or "") != want:
            wrong.append((host, want, row["registrable_domain"]))
    results.append(("registrable domain (`oracle_registrable.tsv`, hosts spelled as browsers do)", total, right, "", wrong))
    return results


def real_urls():
    with open(f"{SHARED}/urls/userbait.txt", encoding="utf-8", errors="replace") as file:
        urls = [line.rstrip("\n") for line in file]
    return [url for url in urls if url]


def stability(urls):
    """How many keys change when made again from themselves, and what crashes."""
    out = {}
    for tool in TOOLS:
        first, crashed = keys(tool, urls)
        again, more = keys(tool, sorted({key for key in first.values() if key}))
        unstable = sum(1 for key in first.values() if key and key in again and again[key] not in (key, None))
        refused = sum(1 for key in first.values() if key is None)
        out[tool] = (len(urls) - refused - len(crashed), refused, unstable, len(crashed) + len(more))
    return out


def speed(urls):
    """Microseconds for each URL on one core."""
    out = {}
    for tool in PEERS:
        best = float("inf")
        for _ in range(3):
            begun = time.perf_counter()
            for url in urls:
                try:
                    PEERS[tool](url)
                except Exception:
                    pass
            best = min(best, (time.perf_counter() - begun) / len(urls))
        out[tool] = best * 1e6
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(("\n".join(urls) + "\n") * 40)
        file.flush()
        environment = dict(os.environ, RAYON_NUM_THREADS="1")
        best = float("inf")
        for _ in range(3):
            begun = time.perf_counter()
            subprocess.run([TAMIS, "urls", "canon", file.name], stdout=subprocess.DEVNULL, env=environment)
            best = min(best, (time.perf_counter() - begun) / (40 * len(urls)))
    out["tamis"] = best * 1e6
    return out


def main():
    versions = ", ".join(f"{tool} {importlib.metadata.version(PACKAGES.get(tool, tool))}" for tool in PEERS)
    total, counts, matrix = merges()
    bug_total, bug_wrong = bugs()
    held, failed, other = vectors()
    urls = real_urls()
    hard = urls + sorted({case[side] for case in lines(f"{ROOT}/testdata/urls/merges.jsonl") for side in "ab" if "\n" not in case[side]})
    stable, each = stability(hard), speed(urls)
    print("# Scoreboard\n")
    print("Made by `make scoreboard`; not edited by hand. Tamis under its `default` profile beside published packages:", versions + ".\n")
    print("A *wrong merge* gives one key to two URLs that servers may answer differently: a page is lost without a word. A *missed merge* costs a fetch. The pairs are those of `testdata/urls/merges.jsonl`, real bug reports and each row of the rule table among them; which of them are right is argued there, in `why`. Ada is a parser and makes no keys; its serialised URL is taken for one.\n")
    table(
        ["tool", f"wrong merges of {total} pairs", "missed", "pairs refused", f"refused of {len(hard)} URLs", "not idempotent", "crashes", "µs/URL, one core"],
        [[tool, *counts[tool][:3], stable[tool][1], stable[tool][2], stable[tool][3], f"{each[tool]:.2f}"] for tool in TOOLS],
    )
    print(f"µs/URL over {len(urls)} real URLs, Python's call included for the Python packages; for Tamis the whole of `tamis urls canon` on one worker, reading and writing JSON included. The library alone is measured by `cargo bench -p tamis-url-canon`. surt's keys are no URLs, so making one again from itself means nothing there; its column counts it all the same.\n")
    print("## Vectors of standards\n")
    results = web_platform()
    table(["vectors", "run", "tamis right", "ada right"], [[name, run, right, ada] for name, run, right, ada, _ in results])
    print("Where Tamis differs:\n")
    for name, _, _, _, wrong in results:
        for given, want, got in wrong:
            if "registrable" in name:
                why = "the oracle's library takes the parent of a wildcard rule (`*.x`) for a suffix; the list's own algorithm does not, and `crates/hostname` follows that"
            else:
                why = "the standard now lower-cases ASCII domains and decodes no label, as `wpt_toascii.json` has it"
            print(f"- {code(given)}: {code(str(got))}, the vector has {code(str(want))}: {why}.")
    print("\n## Bug reports\n")
    print(f"{bug_total - len(bug_wrong)} of {bug_total} cases of `testdata/urls/bugs.jsonl` that need no rule set come out as they should; the tests of the crate run the rest.\n")
    for case, row in bug_wrong:
        print(f"- {case['case']}: {code(case['input'])} gives {code(str(row['key']))}")
    print("## Vectors of other tools\n")
    print("A vector holds if its input and its result have one key in Tamis, or both none; `urijoin` holds if the joined URL is the same. Vectors that ask something else (is it in this domain, guess a scheme, cut a fragment) are counted apart.\n")
    table(["tool, function", "held"], [[f"{name}, `{fn}`", f"{right} of {run}"] for (name, fn), (right, run) in sorted(held.items())])
    print("Asked something else:", ", ".join(f"{name} `{fn}` {count}" for (name, fn), count in sorted(other.items())) + ".\n")
    print("### Each that does not hold, and why\n")
    by_reason = {}
    for group, given, want, got, reason in failed:
        by_reason.setdefault(reason, []).append((group, given, want, got))
    for reason, cases in by_reason.items():
        print(f"**{reason[0].upper()}{reason[1:]}** ({len(cases)}):\n")
        for (name, fn), given, want, got in cases:
            print(f"- {name} `{fn}`: {code(given)} → {code(str(want))}; here {code(str(got))}")
        print()
    print("## Pairs on which a tool errs\n")
    table(["a", "b", "right", *TOOLS], matrix)


main()
