"""TensorFlow's writer on the benchmark of summaries: a call writes as many scalars as ours (bench/events.h). The protocol is
that of fastest_way.py; the ways are eager calls and a loop in a function. Needs `scripts/setup interop`."""
import argparse
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(os.environ.get("RUNNEL_BUILD", os.path.join(HERE, "..", "..", "build")), "interop-venv/bin/python")
if "tensorflow_summary_inside" not in os.environ:
    if not os.path.exists(VENV):
        sys.exit("TensorFlow is missing: run scripts/setup interop")
    os.environ.update(tensorflow_summary_inside="1", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
    os.execv(VENV, [VENV, *sys.argv])

import tensorflow as tf  # noqa: E402

SCALARS = 2000
step = 0


def eager():
    global step
    for _ in range(SCALARS):
        tf.summary.scalar("loss", 0.5, step=step)
        step += 1


@tf.function
def loop(first):
    for i in tf.range(first, first + SCALARS):
        tf.summary.scalar("loss", 0.5, step=i)


def traced():
    global step
    loop(tf.constant(step, tf.int64))
    step += SCALARS


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


parser = argparse.ArgumentParser()
parser.add_argument("--case")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--choose", action="store_true")
parser.add_argument("--way", type=int, default=0)
args = parser.parse_args()
ways = [eager, traced]
with tempfile.TemporaryDirectory() as folder, tf.summary.create_file_writer(folder).as_default():
    for way in ways:
        way()
    if args.choose:
        seconds = [timed(way) for way in ways]
        print(seconds.index(min(seconds)))
    else:
        print(f"{statistics.median(timed(ways[args.way]) for _ in range(5)):.9e}")
