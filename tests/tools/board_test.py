#!/usr/bin/env python3
"""usage: board_test.py RUNNEL ROOT    `runnel board` as a program: what it prints, ports, news, signals, fixtures.

Where TensorFlow's files are there, what it answers is compared with the table that TensorBoard's own reader made.
"""
import csv
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from board_program import Board, fixtures

RUNNEL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
faults = []


def expect(what, got, wanted):
    if got != wanted:
        faults.append(f'{what}: {got!r}, expected {wanted!r}')


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def check_ports(folder):
    port = free_port()
    with Board(RUNNEL, '--logdir', folder / 'nothing here', '--port', port) as first:
        expect('the port asked for', first.port, port)
        index = first.loaded()
        expect('an absent folder', (index['series'], index['complaints']), ([], []))
        second = subprocess.run([RUNNEL, 'board', '--logdir', str(folder), '--port', str(port)], capture_output=True,
                                text=True, timeout=60)
        expect('status where the port is taken', second.returncode, 1)
        if f'process {first.process.pid} (' not in second.stderr or second.stderr.count('\n') != 1:
            faults.append(f'the message where the port is taken: {second.stderr!r}')
        begin = time.time()
        first.process.send_signal(signal.SIGINT)
        expect('the end by Ctrl-C', first.process.wait(timeout=30), -signal.SIGINT)
        if time.time() - begin > 2:
            faults.append('Ctrl-C took more than two seconds')


def check_growth(folder):
    source = fixtures(ROOT) / 'handbook/docs/_static/code/zh/tools/tensorboard/tensorboard'
    file = next(source.glob('events*'))
    content = file.read_bytes()
    (folder / 'run').mkdir()
    with Board(RUNNEL, '--logdir', folder) as board:
        board.loaded()
        with open(folder / 'run' / file.name, 'wb') as out:
            out.write(content[:300000])
        board.loaded(lambda index: index['series'] and index['series'][0]['count'] > 4000)
        with open(folder / 'run' / file.name, 'ab') as out:
            out.write(content[300000:])
        series, = board.loaded(lambda index: index['series'][0]['count'] == 10000)['series']
        expect('the last step', (series['last_step'], series['last_value']), (9999, 0.0046510557))
        points = board.get('data/plugin/scalars/scalars', run='run', tag='loss')
        expect('points', (len(points), [p[1] for p in points]), (10000, list(range(10000))))
        line, = board.get('api/lines', series=series['id'], **{'from': 5000, 'to': 5009})['lines']
        expect('a part', line['steps'], list(range(5000, 5010)))
        expect('its values', [round(v, 5) for v in line['values']], [round(p[2], 5) for p in points[5000:5010]])
        shutil.rmtree(folder / 'run')
        board.loaded(lambda index: not index['series'])


def check_fixtures(folder):
    """Every row of what TensorBoard says of the fixtures."""
    rows = 0
    with Board(RUNNEL, '--logdir', folder) as board:
        index = board.loaded()
        known = {(series['run'], series['tag']): series for series in index['series']}
        files = {}
        with open(folder / 'EXPECTED_events.tsv', newline='') as table:
            for row in list(csv.reader(table, delimiter='\t', quoting=csv.QUOTE_NONE))[1:]:
                if row[2]:
                    files.setdefault((os.path.dirname(row[0]), row[2]), []).append(row)
        for (run, tag), parts in files.items():
            series = known.get((run, tag))
            if series is None:
                faults.append(f'{run} {tag} is missing')
                continue
            expect(f'{run} {tag}', (series['plugin'], series['count']), (parts[0][3], sum(int(row[5]) for row in parts)))
            rows += 1
        for series in index['series']:
            if series['plugin'] == 'scalars':
                continue
            places = board.get('api/places', series=series['id'])['at']
            values = board.get('api/values', series=series['id'], at=','.join(places[:50]))['values']
            if not series['plugin'].startswith('graph'):
                for value in values:
                    complex_numbers = "the value of 'complex' holds complex64, no numbers"
                    expect(f"{series['run']} {series['tag']}", value.get('error'),
                           complex_numbers if series['tag'] == 'complex' else None)
            else:
                board.get('api/graph', series=series['id'])
    expect('rows of the table', rows > 80, True)


def main():
    with tempfile.TemporaryDirectory() as name:
        check_ports(pathlib.Path(name))
        if fixtures(ROOT) is None:
            print('the fixtures are missing: only a part was tested')
        else:
            check_growth(pathlib.Path(name))
            check_fixtures(fixtures(ROOT))
    print(*faults, sep='\n')
    sys.exit(1 if faults else 0)


main()
