#!/usr/bin/env python3
"""usage: events_test.py RUNNEL ROOT    `runnel events` against what TensorBoard and TensorFlow say of their files.

Everything expected comes from those tables, or is worked out here with struct.
"""
import ast
import csv
import json
import math
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from runnel_program import RUNNEL, expect, faults, fixtures, run_program


def run(*arguments):
    status, out, err = run_program('events', *arguments)
    return status, out.decode(), err


def listed(path):
    status, out, err = run('ls', path, '--json')
    expect(f'ls {path}', (status, err), (0, ''))
    return [json.loads(line) for line in out.splitlines()]


def same_value(what, got, text, plugin):
    """`text` is a last value as the table of TensorBoard's reader has it."""
    if match := re.fullmatch(r'scalar float32 (\S+)', text):
        expect(what, struct.pack('<f', float(got)), struct.pack('<f', float(match[1])))
    elif match := re.fullmatch(r'buckets shape \((\d+), 3\) min (\S+) max (\S+) total (\S+)', text):
        expect(what, [got['buckets']] + ['%.6g' % got[k] for k in ('min', 'max', 'total')],
               [int(match[1]), match[2], match[3], match[4]])
    elif match := re.fullmatch(r"w=b'(\d+)' h=b'(\d+)' n=(\d+) first (\d+) bytes .*", text):
        expect(what, [got[k] for k in ('width', 'height', 'images', 'bytes')], [int(x) for x in match.groups()])
    elif match := re.fullmatch(r"n=\((\d+),\) first (\d+) bytes b'RIFF'", text):
        expect(what, [got['clips'], got['bytes']], [int(x) for x in match.groups()])
    elif plugin == 'hparams':
        expect(what, 'metadata_bytes' in got or got['shape'] == [0], True)
    elif match := re.fullmatch(r'strings shape \((.*)\) (b.*)', text, re.S):
        if 'text' in got and not match[2].endswith('...'):
            expect(what, got['text'], ast.literal_eval(match[2]).decode())
        expect(what, got['bytes'] > 0 or match[2] == "b''", True)
    elif match := re.fullmatch(r'(\w+) shape (\(.*?\)) (\[.*\])', text):
        shape, first = list(ast.literal_eval(match[2])), ast.literal_eval(match[3])
        expect(what, [got['dtype'], got['shape'], got['first']], [match[1], shape, first])
    else:
        faults.append(f'{what}: cannot compare {got} with {text}')


def check_tensorboard_table(folder):
    files = {}
    with open(folder / 'EXPECTED_events.tsv', newline='') as table:
        for row in list(csv.reader(table, delimiter='\t', quoting=csv.QUOTE_NONE))[1:]:
            files.setdefault(row[0], []).append(row)
    for file, rows in files.items():
        got = {row['tag']: row for row in listed(folder / file)}
        rows = [row for row in rows if row[2]]
        expect(f'{file}: tags', sorted(got), sorted(row[2] for row in rows))
        for _, _, tag, plugin, _, count, first, last, value in rows:
            mine = got.get(tag)
            if mine is None:
                continue
            what = f'{file} {tag}'
            expect(what, [mine[k] for k in ('run', 'plugin', 'count', 'first_step', 'last_step')],
                   ['.', plugin, int(count), int(first), int(last)])
            same_value(what, mine['last_value'], value, plugin)
    expect('files in the table', len(files) > 30, True)


OLD_PLUGINS = {'simple_value': 'scalars', 'histo': 'histograms', 'image': 'images', 'audio': 'audio'}


def number(value):
    return float(value) if isinstance(value, str) else value


def check_tensorflow_folder(folder):
    """The events of each file as TensorFlow decoded them, put together by tag."""
    expected = json.loads((folder / 'expected.json').read_text())
    for file, events in expected['files'].items():
        wanted = {}
        for event in events:
            if event['kind'] == 'graph_def':
                key, plugin = ('__run_graph__', False), 'graphs'
            elif event['kind'] == 'summary':
                key, plugin = (event['tag'], True), OLD_PLUGINS.get(event['value_kind'], event.get('plugin', ''))
            else:
                continue
            row = wanted.setdefault(key, {'plugin': plugin, 'count': 0, 'first': event['step']})
            row.update(count=row['count'] + 1, last=event['step'], event=event)
        got = listed(folder / file)
        what = f'{folder.name}/{file}'
        expect(f'{what}: tags', sorted(r['tag'] for r in got), sorted(tag for tag, _ in wanted))
        for row in got:
            want = wanted.get((row['tag'], row['plugin'] != 'graphs'))
            if want is None:
                faults.append(f'{what}: {row["tag"]} is not expected')
                continue
            expect(f'{what} {row["tag"]}', [row[k] for k in ('plugin', 'count', 'first_step', 'last_step')],
                   [want[k] for k in ('plugin', 'count', 'first', 'last')])
            check_decoded(f'{what} {row["tag"]}', row['last_value'], want['event'], want['plugin'])
    return len(expected['files'])


def check_decoded(what, got, event, plugin):
    tensor = event.get('tensor')
    if event['kind'] != 'summary':
        expect(what, got['bytes'] > 0, True)
    elif event['value_kind'] == 'simple_value' or (plugin == 'scalars' and tensor['shape'] == []):
        wanted = number(event['value'])
        same = math.isnan(number(got)) if math.isnan(wanted) else '%.7g' % number(got) == '%.7g' % wanted
        expect(f'{what} {got} {wanted}', same, True)
    elif event['value_kind'] == 'histo':
        full = [n for n in event['value']['bucket'] if n > 0]
        expect(what, [got['min'], got['max'], got['total']],
               [event['value']['min'], event['value']['max'], sum(full)])
    elif event['value_kind'] == 'image':
        expect(what, [got['width'], got['height']], [event['value']['width'], event['value']['height']])
    elif event['value_kind'] == 'audio':
        expect(what, got['clips'], 1)
    elif plugin == 'images':
        expect(what, got['images'], len(event['images']))
        if event['images']:
            expect(what, [got['height'], got['width']], event['images'][0]['shape'][:2])
    elif plugin == 'audio':
        expect(what, got['clips'], tensor['shape'][0])
    elif plugin == 'histograms':
        expect(what, got['buckets'], tensor['shape'][0])
        if tensor['shape'][0] > 0:
            expect(what, got['min'], tensor['first'][0])
    elif isinstance(got, dict) and 'dtype' in got:
        expect(what, [got['dtype'], got['shape']], [tensor['dtype'], tensor['shape']])
    elif not isinstance(got, dict):
        expect(what, [tensor['shape'], number(got)], [[], number(event['value'])])
    else:
        expect(what, got, 'a description')


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def masked(data):
    crc = 0xffffffff
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xff] ^ crc >> 8
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def record(data):
    length = struct.pack('<Q', len(data))
    return length + struct.pack('<I', masked(length)) + data + struct.pack('<I', masked(data))


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def simple(step, tag, value):
    inner = field(1, tag.encode()) + b'\x15' + struct.pack('<f', value)
    return record(b'\x09' + struct.pack('<d', 100.5) + bytes([0x10, step]) + field(5, field(1, inner)))


def check_commands(folder):
    path = folder / 'a' / 'events.out.tfevents.1.host'
    path.parent.mkdir()
    path.write_bytes(b''.join(simple(step, 'x,y', step / 2) for step in range(1, 6)))
    expect('export', run('export', folder)[1].splitlines(),
           ['run,tag,step,wall_time,value'] + [f'a,"x,y",{s},100.500000,{s / 2:g}' for s in range(1, 6)])
    rows = [json.loads(line) for line in run('cat', folder, '--json', '--limit', '2')[1].splitlines()]
    expect('cat --json', [(r['run'], r['tag'], r['step'], r['wall_time'], r['value']) for r in rows],
           [('a', 'x,y', 1, 100.5, 0.5), ('a', 'x,y', 2, 100.5, 1)])
    expect('tail', run('tail', folder, '-n', '1')[1], '100.500 a step 5 x,y [scalars] 2.5\n')
    expect('verify', run('verify', folder), (0, f'{path}: ok, 5 events, {path.stat().st_size} bytes\n', ''))

    whole = path.read_bytes()
    path.write_bytes(whole[:-3])  # cut: four are left, and it is said where
    at = len(whole) // 5 * 4
    status, out, err = run('ls', folder, '--json')
    expect('ls of a cut file', (status, json.loads(out)['count'], f'byte {at}' in err), (0, 4, True))
    expect('verify of a cut file', run('verify', folder)[0], 1)
    flipped = bytearray(whole)
    flipped[len(whole) // 5 + 20] ^= 1  # the second is lost
    path.write_bytes(flipped)
    status, out, err = run('cat', folder, '--csv')
    expect('cat of a damaged file', (status, [line.split(',')[-3] for line in out.splitlines()[1:]]),
           (0, ['1', '3', '4', '5']))
    expect('damage is told', err.count('bad data checksum'), 1)
    faulty = json.loads(run('verify', folder, '--json')[1])
    expect('verify --json', (faulty['ok'], faulty['events'], faulty['faults'][0]['offset']),
           (False, 4, len(whole) // 5))
    short = field(5, b'\x0a\x09x')  # a summary whose value is to have nine bytes and has one
    path.write_bytes(simple(1, 'good', 1) + record(b'\x09' + struct.pack('<d', 1) + b'\x10\x07' + short))
    for command in ('ls', 'cat', 'tail'):
        status, out, err = run(command, folder)
        expect(f'{command} of a damaged summary', (status, 'good' in out, 'step 7 is damaged' in err), (0, True, True))
    # A few bytes that claim to be a histogram of a gigabyte.
    sizes = b''.join(field(2, b'\x08' + size) for size in (b'\xd5\xaa\xd5\xaa\x01', b'\x03'))
    tensor = b'\x08\x04' + field(2, sizes) + field(7, b'\x01')
    value = field(1, b'bomb') + field(9, field(1, field(1, b'histograms'))) + field(8, tensor)
    path.write_bytes(record(b'\x09' + struct.pack('<d', 1) + b'\x10\x01' + field(5, field(1, value))))
    row = json.loads(run('ls', folder, '--json')[1])
    expect('a huge histogram', (row['plugin'], 'error' in row['last_value']), ('histograms', True))
    status, _, err = run('ls', folder / 'missing')
    expect('a missing folder', (status, 'missing' in err), (1, True))


def check_follow(folder):
    path = folder / 'events.out.tfevents.2.host'
    path.write_bytes(simple(1, 'loss', 1))
    with subprocess.Popen([RUNNEL, 'events', 'tail', '-f', folder, '--csv'], stdout=subprocess.PIPE, text=True) as tail:
        lines = [tail.stdout.readline() for _ in range(2)]
        addition = simple(2, 'loss', 2)
        with open(path, 'ab') as grown:
            grown.write(addition[:10])
            grown.flush()
            time.sleep(0.5)  # half an event is no event yet
            grown.write(addition[10:])
        lines.append(tail.stdout.readline())
        (folder / 'later').mkdir()
        (folder / 'later' / 'events.out.tfevents.3.host').write_bytes(simple(3, 'loss', 3))
        lines.append(tail.stdout.readline())
        shutil.rmtree(folder / 'later')
        other = folder / 'other'
        other.write_bytes(simple(4, 'loss', 4))
        other.replace(path)  # a shorter one
        lines.append(tail.stdout.readline())
        tail.send_signal(signal.SIGTERM)
    expect('tail -f', [line.strip().split(',')[:3] for line in lines],
           [['run', 'tag', 'step'], ['.', 'loss', '1'], ['.', 'loss', '2'], ['later', 'loss', '3'],
            ['.', 'loss', '4']])


with tempfile.TemporaryDirectory() as work:
    for name, check in (('commands', check_commands), ('follow', check_follow)):
        (pathlib.Path(work) / name).mkdir()
        check(pathlib.Path(work) / name)
shared = fixtures()
if shared is None:
    print('the folder with event files of TensorFlow is missing (RUNNEL_FIXTURES names it): not compared')
else:
    check_tensorboard_table(shared)
    compared = sum(check_tensorflow_folder(path.parent)
                   for path in sorted((shared / 'tf215/events').glob('*/expected.json')))
    expect("TensorFlow 2.15's files", compared > 10, True)
for fault in faults:
    print('FAILED:', fault)
print('ok' if not faults else f'{len(faults)} faults')
sys.exit(bool(faults))
