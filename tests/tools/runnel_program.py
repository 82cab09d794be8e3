"""What the tests of `runnel COMMAND` have in common. They are called with the program and the root of the sources."""
import os
import pathlib
import subprocess
import sys

RUNNEL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
faults = []


def fixtures():
    if 'RUNNEL_FIXTURES' in os.environ:
        return pathlib.Path(os.environ['RUNNEL_FIXTURES'])
    for folder in [ROOT, *ROOT.parents]:
        if (folder / 'shared/fixtures').is_dir():
            return folder / 'shared/fixtures'
    return None


def run_program(*arguments):
    """Exit status, standard output as bytes, standard error."""
    done = subprocess.run([RUNNEL, *map(str, arguments)], capture_output=True)
    return done.returncode, done.stdout, done.stderr.decode()


def expect(what, got, wanted):
    if got != wanted:
        faults.append(f'{what}: {got!r}, expected {wanted!r}')
