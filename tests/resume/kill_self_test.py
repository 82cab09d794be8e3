#!/usr/bin/env python3
"""usage: kill_self_test.py    kill_test.py counts every kill that was asked for, and sees what it is for

The trainings are small programs: "good" ends on its own when it is started for the fourth time in a folder, "short" at
once, "forgetful" says something else of a step after it was killed.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What is to be killed waits after the lines that it is killed for; kill_test.py starts the last run with the seed 3.
TRAINING = """#!/bin/sh
# FOLDER LOSSES SEED EPOCHS
mkdir -p "$1"
starts=$(cat "$1/starts" 2>/dev/null || echo 0)
echo $((starts + 1)) > "$1/starts"
: > "$1/checkpoint"
whole=false
case "$3 $1" in 3\\ *|*/undisturbed) whole=true ;; esac
case "KIND $whole $starts" in short\\ false*|good\\ false\\ 3) exit 0 ;; esac
value=0x1p-1
[ KIND = forgetful ] && [ "$starts" -gt 0 ] && value=0x1p-2
for step in 1 2 3 4 5 6 7 8; do
  echo "$step $value" >> "$2"
  [ $step = 4 ] && [ $whole = false ] && exec sleep 60
done
echo "history loss $value" >> "$2"
"""


def run(kind, kills):
    """What kill_test.py ends with and prints."""
    with tempfile.TemporaryDirectory() as made:
        program = pathlib.Path(made) / 'training'
        program.write_text(TRAINING.replace('KIND', kind))
        program.chmod(0o755)
        test = pathlib.Path(__file__).with_name('kill_test.py')
        done = subprocess.run([sys.executable, test, program, str(kills)], capture_output=True, text=True, timeout=120,
                              env={**os.environ, 'RESUME_SEED': '1'})
        return done.returncode, done.stdout + done.stderr


faults = []
ended, said = run('good', 5)
if ended != 0 or not re.search(r'killed 5 times in 2 trainings, 0 differences', said):
    faults.append(f'good: {ended}\n{said}')
ended, said = run('short', 2)
if ended == 0 or 'ended before they could be killed' not in said:
    faults.append(f'short: {ended}\n{said}')
ended, said = run('forgetful', 4)
if ended == 0 or not re.search(r'killed 4 times in 1 trainings, [1-9]\d* differences', said):
    faults.append(f'forgetful: {ended}\n{said}')
print('\n'.join(faults))
sys.exit(1 if faults else 0)
