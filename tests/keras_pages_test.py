#!/usr/bin/env python3
"""The C++ code of the pages about Keras stands in tests/keras/keras_pages_test.cpp, which compiles it."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
pages = ['keras.md', 'keras_layers.md', 'keras_layers_image.md', 'keras_recurrent.md']


def lines(text):
    return '\n'.join(line.strip() for line in text.splitlines())


compiled = lines((root / 'tests/keras/keras_pages_test.cpp').read_text())
for page in pages:
    blocks = re.findall(r'```cpp\n(.*?)```', (root / 'docs' / page).read_text(), re.S)
    if not blocks:
        sys.exit(f'docs/{page} has no code')
    for block in blocks:
        if lines(block) not in compiled:
            sys.exit(f'tests/keras/keras_pages_test.cpp does not have this code of docs/{page}:\n{block}')
