#!/usr/bin/env python3
"""usage: examples_test.py FOLDER    the examples under FOLDER print what the handbook says

Those with `photographs` want the photographs of cats_vs_dogs, in $RUNNEL_FIXTURES or beside the project, and are left
out, saying so, where these are missing.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TEXT = 'The function is running in Python\n'
PNG = b'\x89PNG'


def scalar(value, dtype='float32'):
    return f'tf.Tensor({value}, shape=(), dtype={dtype})'


def variable(name, shape):
    return f"<tf.Variable '{name}:0' shape={shape} dtype=float32>\n"


# (command, standard input, standard output to the letter)
EXACT = [
    ('quiz', '', f'{TEXT}1\n2\n2\n{TEXT}0.1\n0.2\n{TEXT}1\n{TEXT}2\n1\n{TEXT}0.1\n{TEXT}0.2\n0.1\n'),
    ('quiz_2', '', ''.join(scalar(x) + '\n' for x in (1.0, 2.0, 3.0))),
    ('tensor_array', '', ' '.join(scalar(x) for x in (0.0, 1.0, 2.0)) + '\n'),
    ('graph_1plus1', '', '2\n'),
    ('graph_a_plus_b', '2\n3\n', 'a = b = a + b = 5\n'),
    ('graph_variable', '', '1.0\n2.0\n3.0\n4.0\n5.0\n'),
    ('graph_variable_with_initializer', '', '1.0\n2.0\n3.0\n4.0\n5.0\n'),
    ('graph_grad', '', '9.0 [6.0]\n'),
]

NUMBER = r'\d+(\.\d+)?(e-\d+)?'
ACCURACY = r'test accuracy: 0\.9\d+\n'
LOSSES = rf'(batch \d+: loss {NUMBER}\n){{1200}}'

# (command, what all of standard output matches)
MATCHED = [
    ('square_if_positive', re.escape(f"{scalar(1, 'int32')} {scalar(0, 'int32')}\n") +
     r'graph square_if_positive(.|\n)*If\((.|\n)*'),
    ('graph_variable_scope', re.escape(variable('dense1/weight', '(32, 10)') + variable('dense1/bias', '(10,)') +
                                       variable('dense2/weight', '(10, 10)') + variable('dense2/bias', '(10,)')) +
     r'tf\.Tensor\((.|\n)*shape=\(10, 10\), dtype=float32\)\n'),
    ('dataset_tutorial', '2013 12000\n2014 14000\n2015 15000\n2016 16500\n2017 17500\n'
     r'figure_1.png: 5\nfigure_2.png: 5\nfigure_3.png: 5 0 4 1\nfigure_4.png: \d \d \d \d\n'),
    ('dataset_training', '1 10 100\n2 20 200\n3 30 300\n1 10 100\n2 20 200\n'
     r'\[28 28 1\] 5\n(.|\n)*sparse_categorical_accuracy: 0\.9\d+\n(.|\n)*sparse_categorical_accuracy: 0\.\d+\n'),
    ('autograph_main --num_batches=3', rf'(loss {NUMBER}\n){{3}}{NUMBER}\n'),
    ('mnist_main', LOSSES + ACCURACY),
    ('mnist_main --mode=subclassing --training_loop=graph', LOSSES + ACCURACY),
    ('mnist_checkpoint', r'((batch \d+: loss .*\n){100}model saved to \./save/model\.ckpt-\d+\n){12}'),
    ('mnist_checkpoint --mode=test', r'test accuracy: 0\.9[3-7]\d*\n'),
    ('mnist_manager', r'((batch \d+: loss .*\n){100}model saved to \./save/model\.ckpt-\d+00\n){12}'),
    ('mnist_manager --mode=test', r'test accuracy: 0\.9[3-7]\d*\n'),
    ('mnist_resume', r'Epoch 1/2\n(.|\n)*val_accuracy improved from -inf to 0\.9\d+, saving model to \./save/best\.weights\.h5\n'
     rf'(.|\n)*{ACCURACY}'),
    ('mnist_resume --num_epochs=3', rf'Epoch 3/3\n(.|\n)*{ACCURACY}'),  # goes on with the third
    ('mnist_main --mode=functional --training_loop=keras', rf'(.|\n)*\n\[{NUMBER}, 0\.9\d+\]\n'),
    ('cats_vs_dogs --data_dir=photographs --num_epochs=1',
     rf'(.|\n)*loss sparse_categorical_accuracy \n(.|\n)*\n\[{NUMBER}, {NUMBER}\]\n'),
    ('cats_vs_dogs_tfrecord --data_dir=photographs', r'figure_1.png: cat\n'),
]

# (command, what standard error matches): where nothing was trained before, they end with 1 and print no result.
REFUSED = [
    ('mnist_checkpoint --mode=test', r'mnist_checkpoint: there is no checkpoint in \./save: train first.*\n'),
    ('mnist_manager --mode=test', r'mnist_manager: there is no checkpoint in \./save: train first.*\n'),
]


def photographs(folder):
    """A few photographs under `folder`; False where there are none."""
    fixtures = os.environ.get('RUNNEL_FIXTURES') or pathlib.Path(__file__).resolve().parents[2] / 'shared' / 'fixtures'
    source = pathlib.Path(fixtures) / 'cats_vs_dogs'
    for kind in ('train/cats', 'train/dogs', 'valid/cats', 'valid/dogs'):
        files = sorted((source / kind).glob('*.jpg'))[:4]
        if not files:
            return False
        (folder / kind).mkdir(parents=True)
        for file in files:
            shutil.copy(file, folder / kind)
    return True


def run(folder, command, given, work):
    name, *arguments = command.split()
    return subprocess.run([folder / name, *arguments], input=given, capture_output=True, text=True, timeout=600,
                          cwd=work)


folder = pathlib.Path(sys.argv[1]).resolve()
faults = 0
with tempfile.TemporaryDirectory() as made:
    work = pathlib.Path(made)
    has_photographs = photographs(work / 'photographs')
    if not has_photographs:
        print('the photographs of cats_vs_dogs are missing: two examples are left out')
    untrained = work / 'untrained'
    untrained.mkdir()
    for command, message in REFUSED:
        done = run(folder, command, '', untrained)
        if done.returncode != 1 or done.stdout or not re.search(message, done.stderr):
            print(f'{command}, untrained, ended with {done.returncode} and printed\n{done.stdout}{done.stderr}')
            faults += 1
    for command, given, expected in EXACT + [(command, '', re.compile(text)) for command, text in MATCHED]:
        if 'photographs' in command and not has_photographs:
            continue
        done = run(folder, command, given, work)
        fits = done.stdout == expected if isinstance(expected, str) else expected.fullmatch(done.stdout)
        figures = [work / name for name in re.findall(r'^figure_\d+\.png', done.stdout, re.M)]
        for figure in figures:
            fits = fits and figure.read_bytes().startswith(PNG)
            figure.unlink(missing_ok=True)
        if done.returncode != 0 or not fits:
            print(f'{command} ended with {done.returncode} and printed\n{done.stdout}{done.stderr}')
            print(f'expected:\n{expected}')
            faults += 1
sys.exit(1 if faults else 0)
