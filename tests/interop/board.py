"""usage: board.py RUNNEL ROOT    TensorBoard and the board serve the same log folders: the routes that both have agree.

Answers are compared as JSON, so the order of keys and the digits of numbers do not count. TensorBoard keeps every point.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'tools'))
from board_program import Board, fixtures

RUNNEL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SCALARS = 'data/plugin/scalars/'
faults = []


def ask(base, path, **parameters):
    """Status, type and text of the answer."""
    url = base + path + ('?' + urllib.parse.urlencode(parameters) if parameters else '')
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.status, response.headers.get_content_type(), response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get_content_type(), error.read().decode()


def same(what, theirs, ours):
    if theirs != ours:
        faults.append(f'{what}: TensorBoard {str(theirs)[:300]}, the board {str(ours)[:300]}')


def without_descriptions(tags):
    """TensorBoard makes HTML of them, the board gives what was written."""
    return {run: {tag: (what['displayName'], bool(what['description'])) for tag, what in of_run.items()} for run, of_run in tags.items()}


def compare(base, board):
    def both(path, **parameters):
        return ask(base, path, **parameters), ask(board.url, path, **parameters)

    theirs, ours = both('data/runs')
    same('runs', json.loads(theirs[2]), json.loads(ours[2]))
    theirs, ours = both(SCALARS + 'tags')
    same('tags', without_descriptions(json.loads(theirs[2])), without_descriptions(json.loads(ours[2])))
    compared = 0
    for run, tags in json.loads(theirs[2]).items():
        if run == 'derived/events/flip':
            continue  # TensorBoard stops at a record that is damaged, the board steps over it
        for tag in tags:
            theirs, ours = both(SCALARS + 'scalars', run=run, tag=tag)
            same(f'{run} {tag}: kind', theirs[:2], ours[:2])
            same(f'{run} {tag}', json.loads(theirs[2]), json.loads(ours[2]))
            theirs, ours = both(SCALARS + 'scalars', run=run, tag=tag, format='csv')
            same(f'{run} {tag}: csv', theirs, ours)
            compared += 1
    same('whether many were compared', True, compared > 90)
    for parameters in ({}, {'run': 'a'}, {'tag': "it's"}, {'run': '.', 'tag': 'no such "tag"'}, {'run': 'no', 'tag': "it's"}):
        theirs, ours = both(SCALARS + 'scalars', **parameters)
        same(str(parameters), theirs, ours)


def address_of(log):
    """Where TensorBoard says it is."""
    for _ in range(600):
        log.seek(0)
        for word in log.read().split():
            if word.startswith('http://localhost:'):
                return word
        time.sleep(0.2)
    sys.exit('TensorBoard does not start')


def main():
    folder = fixtures(ROOT)
    if folder is None:
        print('skipped: the fixtures are missing')
        sys.exit(77)
    with Board(RUNNEL, '--logdir', folder) as board, tempfile.TemporaryFile('w+') as log:
        board.loaded()
        tensorboard = subprocess.Popen(
            [sys.executable, '-m', 'tensorboard.main', '--logdir', str(folder), '--port', '0', '--host', 'localhost',
             '--samples_per_plugin', 'scalars=1000000', '--load_fast', 'false', '--reload_interval', '1'], stdout=log, stderr=log)
        try:
            base = address_of(log)
            wanted = json.loads(ask(board.url, SCALARS + 'tags')[2])
            for _ in range(600):  # it reads one run after the other
                if len(json.loads(ask(base, SCALARS + 'tags')[2])) >= len(wanted):
                    break
                time.sleep(0.2)
            time.sleep(2)
            compare(base, board)
        finally:
            tensorboard.terminate()
            tensorboard.wait()
    print(*faults, sep='\n')
    sys.exit(1 if faults else 0)


main()
