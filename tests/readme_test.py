#!/usr/bin/env python3
"""usage: readme_test.py HELLO    the program of the README is examples/hello.cpp, and prints what the README says"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
readme = (root / 'README.md').read_text()
code, printed = re.search(r'```cpp\n(.*?)```\s*```\n(.*?)```', readme, re.S).groups()
if code != (root / 'examples/hello.cpp').read_text():
    sys.exit('the program in README.md is not examples/hello.cpp')
output = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
if output != printed:
    sys.exit(f'README.md says\n{printed}but the program prints\n{output}')
