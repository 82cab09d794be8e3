#!/usr/bin/env python3
"""TensorFlow judges what interop_driver wrote: every call is run by TensorFlow too, and the answers are compared.

Fails when something differs that neither docs/differences.md decides nor open.tsv lists."""
import argparse
import collections
import glob
import json
import os
import sys

import workers
from decisions import Open, read_decisions

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True, help="the folder that interop_driver wrote")
    parser.add_argument("--runnel", required=True, help="the program, whose op definitions are compared")
    parser.add_argument("--differences", default=os.path.join(ROOT, "docs", "differences.md"))
    parser.add_argument("--open", default=os.path.join(HERE, "open.tsv"))
    parser.add_argument("--write-open", action="store_true", help="list everything that is not decided as open")
    parser.add_argument("--report", help="everything as JSON")
    parser.add_argument("--all", action="store_true", help="print known differences too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


def name_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def judge_calls(args, decisions, known):
    from report import Tally

    paths = sorted(glob.glob(os.path.join(args.cases, "*.jsonl")), key=os.path.getsize, reverse=True)
    cases = {path: workers.read_cases(path) for path in paths}
    tally = Tally()

    def each(path, number, found):
        case = json.loads(cases[path][number][0])
        status = ""
        if found["status"] == "disagree":
            decision = next((d for d in decisions if d.covers(case, found)), None)
            if decision:
                decision.used += 1
            status = "decided" if decision else "open" if known.has(case["op"], found["reason"]) else "new"
        tally.add(case, found, status)

    workers.run([p for p in paths if cases[p]], args.jobs, each)
    return tally, [name_of(p) for p in paths if not cases[p]]


def judge_definitions(args, decisions, known):
    import op_defs

    found, absent = op_defs.compare(op_defs.our_definitions(args.runnel))
    rows = []
    for op, kind, text in found:
        reason = "definition: " + kind
        case = {"op": op, "attrs": {}, "inputs": [], "id": "definition"}
        decision = next((d for d in decisions if d.covers(case, {"reason": reason, "detail": text})), None)
        if decision:
            decision.used += 1
        status = "decided" if decision else "open" if known.has(op, reason) else "new"
        rows.append({"op": op, "reason": reason, "detail": text, "known": status})
    return rows, absent


def print_rows(rows):
    for row in rows:
        print(f"{row['count']:5} {row['op']}: {row['reason']}  [{row['known']}]")
        print(f"      {row['detail']}")
        print(f"      {row['id']}: {row['python']}")


def main():
    args = arguments()
    decisions = read_decisions(args.differences)
    known = Open(args.open)
    # The calls first: their processes are copies of this one, in which TensorFlow must not have run anything yet.
    tally, not_driven = judge_calls(args, decisions, known)
    definitions, absent = judge_definitions(args, decisions, known)
    rows = list(tally.rows())

    print(tally.summary())
    print("disagreements by reason:", dict(sum_by_reason(rows).most_common()))
    print("not compared:", dict(tally.apart.most_common()))
    print(f"as near to TensorFlow's float64 as its own narrower result: {tally.wider}; "
          f"both fail, with other codes: {sum(tally.codes.values())}")
    print(f"ops that TensorFlow lacks ({len(absent)}):", ", ".join(absent))
    not_driven = sorted(set(not_driven) - set(absent))
    print(f"ops that no call could be made for ({len(not_driven)}):", ", ".join(not_driven))
    kinds = collections.Counter((r["reason"], r["known"]) for r in definitions)
    print("definitions:", {f"{reason[12:]} ({status})": n for (reason, status), n in kinds.most_common()})
    print_rows(rows if args.all else [r for r in rows if r["known"] == "new"])
    for row in definitions:
        if row["known"] == "new" or args.all:
            print(f"{row['op']}: {row['reason']}: {row['detail']}  [{row['known']}]")

    if args.report:
        with open(args.report, "w", encoding="utf-8") as file:
            json.dump({"counts": tally.counts, "ops": tally.ops, "disagreements": rows, "definitions": definitions,
                       "not_compared": tally.apart, "absent": absent, "not_driven": not_driven,
                       "decisions": [[", ".join(d.ops), d.reason, d.text, d.used] for d in decisions]}, file, indent=1)
    if args.write_open:
        known.write([(r["op"], r["reason"]) for r in rows + definitions if r["known"] != "decided"])
        return 0
    new = sum(r["known"] == "new" for r in rows + definitions)
    if new:
        print(f"interop: {new} kinds of difference are neither decided in docs/differences.md nor listed as open")
    return 1 if new else 0


def sum_by_reason(rows):
    count = collections.Counter()
    for row in rows:
        count[row["reason"]] += row["count"]
    return count


if __name__ == "__main__":
    sys.exit(main())
