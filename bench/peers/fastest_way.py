"""The protocol of the opponents written in Python: --case NAME --threads N prints the seconds of one call of the fastest of
the ways that the case offers."""
import argparse
import statistics
import time

import torch


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main(cases, warm_up):
    """cases: name -> function of the thread count that gives callables. warm_up: calls each once before any is timed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list:
        print(*cases, sep="\n")
        return
    torch.set_num_threads(1)
    ways = list(cases[args.case](args.threads))
    for call in ways if warm_up else []:
        call()
    best = min(ways, key=timed)
    print(f"{statistics.median(timed(best) for _ in range(3)):.9e}")
