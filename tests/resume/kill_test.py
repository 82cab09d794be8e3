#!/usr/bin/env python3
"""usage: kill_test.py RESUME_RUN [KILLS]    kill -9 at random steps of a training changes no bit of it

Runs the training once undisturbed; then again, killed after random numbers of steps and started anew with another seed.
Every step, the history and the last weights must be those of the undisturbed run. A training that comes to its end
before there were KILLS kills (5 unless given) in all is followed by another one.
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

program, kills = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
epochs = max(2, kills // 4)
seed = int(os.environ.get('RESUME_SEED', random.randrange(10**6)))
random.seed(seed)
print(f'RESUME_SEED={seed}')


def start(folder, losses, number):
    return subprocess.Popen([program, folder, losses, str(number), str(epochs)])


def lines(losses):
    """Whole lines only: a killed run may leave half of one."""
    text = losses.read_text() if losses.exists() else ''
    return [line for line in text[:text.rfind('\n') + 1].splitlines() if line]


def read(losses):
    """What is said of each step, and of the end; everything that was said of it."""
    said = {}
    weights = 0
    for line in lines(losses):
        key, value = line.split(' ', 1)
        if key == 'history':
            name, value = value.split(' ', 1)
            key = f'history {name}'
            weights = 0  # they follow; a run that was killed in between says all of it again
        elif key == 'weights':
            key = f'weights {weights}'
            weights += 1
        said.setdefault(key, set()).add(value)
    return said


def killed_training(work, steps, most):
    """A training that is killed at most `most` times: how often it was, and what it said."""
    joined, folder = work / 'joined', work / 'state'
    done = 0
    while done < most:
        before = len(lines(joined))
        # Another seed once there is something to go on from: everything random must come from there.
        process = start(folder, joined, random.randrange(2, 10**6) if (folder / 'checkpoint').exists() else 1)
        after = random.randint(1, max(2, 2 * steps // kills))
        while process.poll() is None and len(lines(joined)) < before + after:
            time.sleep(0.002)
        process.kill()
        ended = process.wait()
        if ended == 0:
            break  # it came to its end before it could be killed
        if ended != -signal.SIGKILL:
            sys.exit(f'a resumed run ended with {ended}')
        with joined.open('a') as file:
            file.write('\n')  # ends a line that was cut
        done += 1
    if start(folder, joined, 3).wait() != 0:
        sys.exit('the last run failed')
    got = read(joined)
    # A line that was cut in two has a part of the value.
    for key, values in got.items():
        if len(values) > 1:
            got[key] = {v for v in values if not any(w != v and w.startswith(v) for w in values)}
    return done, got


with tempfile.TemporaryDirectory() as made:
    root = pathlib.Path(made)
    whole = root / 'whole'
    if start(root / 'undisturbed', whole, 1).wait() != 0:
        sys.exit('the undisturbed run failed')
    wanted = read(whole)
    steps = sum(key.isdigit() for key in wanted)
    done = trainings = differences = 0
    while done < kills and trainings < kills:
        trainings += 1
        work = root / str(trainings)
        work.mkdir()
        killed, got = killed_training(work, steps, kills - done)
        done += killed
        different = sorted(key for key in wanted if got.get(key) != wanted[key])
        for key in different[:10]:
            print(f'{key}: wanted {sorted(wanted[key])[0][:80]}, got {[v[:80] for v in sorted(got.get(key, []))]}')
        differences += len(different)
    print(f'{steps} steps, killed {done} times in {trainings} trainings, {differences} differences')
    if done < kills:
        sys.exit('the runs ended before they could be killed')
    sys.exit(1 if differences else 0)
