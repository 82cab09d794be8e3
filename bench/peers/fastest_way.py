"""The protocol of the opponents written in Python. --case NAME --threads N --choose prints the number of the fastest of the
ways that the case offers; with --way NUMBER instead, the seconds of one call of that way."""
import argparse
import statistics
import time


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main(cases):
    """cases: name -> function of the thread count that gives ways: a short trial, the whole, and how many calls that is
    (one if it does not say)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--way", type=int, default=0)
    args = parser.parse_args()
    if args.list:
        print(*cases, sep="\n")
        return
    ways = list(cases[args.case](args.threads))
    if args.choose:
        seconds = []
        for trial, *_ in ways:
            trial()  # starts the workers
            seconds.append(timed(trial))
        print(seconds.index(min(seconds)))
        return
    trial, whole, *calls = ways[args.way]
    trial()
    first = timed(whole)
    seconds = first if first > 2 else statistics.median([first, timed(whole), timed(whole)])
    print(f"{seconds / (calls[0] if calls else 1):.9e}")
