#!/usr/bin/env python3
"""The C++ code of these pages stands in tests, which compile it."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
pages = {
    'keras.md': 'keras/keras_pages_test.cpp',
    'keras_layers.md': 'keras/keras_pages_test.cpp',
    'keras_layers_image.md': 'keras/keras_pages_test.cpp',
    'keras_recurrent.md': 'keras/keras_pages_test.cpp',
    'checkpoints.md': 'track/checkpoints_page_test.cpp',
}


def lines(text):
    return '\n'.join(line.strip() for line in text.splitlines())


for page, test in pages.items():
    compiled = lines((root / 'tests' / test).read_text())
    blocks = re.findall(r'```cpp\n(.*?)```', (root / 'docs' / page).read_text(), re.S)
    if not blocks:
        sys.exit(f'docs/{page} has no code')
    for block in blocks:
        if lines(block) not in compiled:
            sys.exit(f'tests/{test} does not have this code of docs/{page}:\n{block}')
