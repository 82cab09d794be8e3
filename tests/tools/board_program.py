"""`runnel board` while a test uses it, and where TensorFlow's files are."""
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import time
import urllib.parse
import urllib.request


def fixtures(root):
    if 'RUNNEL_FIXTURES' in os.environ:
        return pathlib.Path(os.environ['RUNNEL_FIXTURES'])
    for folder in [root, *root.parents]:
        if (folder / 'shared/fixtures').is_dir():
            return folder / 'shared/fixtures'
    return None


class Board:
    """The program while it runs; `url` is where it says it is."""

    def __init__(self, program, *arguments):
        self.process = subprocess.Popen([program, 'board', *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        line = self.process.stdout.readline() if ready else ''
        found = re.search(r'http://localhost:\d+/', line)
        if not found:
            self.process.kill()
            sys.exit(f'the board did not start: {line!r} {self.process.stderr.read()!r}')
        self.url = found[0]
        self.port = int(self.url.rsplit(':', 1)[1][:-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def get(self, path, **parameters):
        query = '?' + urllib.parse.urlencode(parameters) if parameters else ''
        with urllib.request.urlopen(self.url + path + query, timeout=60) as response:
            return json.load(response)

    def loaded(self, ready=lambda index: True):
        """The index once the files have been read."""
        for _ in range(400):
            index = self.get('api/index')
            if not index['loading'] and ready(index):
                return index
            time.sleep(0.05)
        sys.exit(f'the board does not show what is expected: {index}')
