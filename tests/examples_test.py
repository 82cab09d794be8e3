#!/usr/bin/env python3
"""usage: examples_test.py FOLDER    the short examples under FOLDER print what the handbook says, to the letter"""
import pathlib
import subprocess
import sys

TEXT = 'The function is running in Python\n'


def scalar(value, dtype='float32'):
    return f'tf.Tensor({value}, shape=(), dtype={dtype})'


# name: (standard input, standard output, or how it begins where the rest is a graph's text)
EXAMPLES = {
    'quiz': ('', f'{TEXT}1\n2\n2\n{TEXT}0.1\n0.2\n{TEXT}1\n{TEXT}2\n1\n{TEXT}0.1\n{TEXT}0.2\n0.1\n'),
    'quiz_2': ('', ''.join(scalar(x) + '\n' for x in (1.0, 2.0, 3.0))),
    'square_if_positive': ('', f"{scalar(1, 'int32')} {scalar(0, 'int32')}\ngraph square_if_positive"),
    'tensor_array': ('', ' '.join(scalar(x) for x in (0.0, 1.0, 2.0)) + '\n'),
    'graph_a_plus_b': ('2\n3\n', 'a = b = a + b = 5\n'),
    'graph_variable': ('', '1.0\n2.0\n3.0\n4.0\n5.0\n'),
}

folder = pathlib.Path(sys.argv[1])
faults = 0
for name, (given, expected) in EXAMPLES.items():
    done = subprocess.run([folder / name], input=given, capture_output=True, text=True, timeout=60)
    output = done.stdout[:len(expected)] if name == 'square_if_positive' else done.stdout
    if done.returncode != 0 or output != expected:
        print(f'{name} ended with {done.returncode} and printed\n{done.stdout}{done.stderr}expected:\n{expected}')
        faults += 1
sys.exit(1 if faults else 0)
