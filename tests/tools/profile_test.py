#!/usr/bin/env python3
"""usage: profile_test.py RUNNEL ROOT    `runnel profile` on profiles made here, and on TensorFlow's.

Everything expected is worked out here; the files are put together with struct and json.
"""
import gzip
import json
import pathlib
import re
import sys
import tempfile

from runnel_program import expect, faults, fixtures, run_program


def run(*arguments):
    status, out, err = run_program('profile', *arguments)
    return status, out.decode(), err


def expect_text(what, text, pattern):
    if not re.search(pattern, text):
        faults.append(f'{what}: no {pattern!r} in {text!r}')


def report(path):
    status, out, err = run(path, '--json')
    expect(f'{path}: status', (status, err), (0, ''))
    return json.loads(out) if status == 0 else None


def varint(value):
    out = b''
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def xspace(lines):
    """An XSpace as TensorFlow writes it: {thread: [(name, begin in us, length in us, {statistic: number})]}."""
    events, stats, plane = {}, {}, field(2, '/host:CPU')
    for id, (thread, rows) in enumerate(lines.items(), 50):
        line = field(1, id) + field(2, thread) + field(3, 1000)
        for name, begin, length, numbers in rows:
            event = field(1, events.setdefault(name, len(events) + 1))
            event += field(2, begin * 10**6) + field(3, length * 10**6)
            for stat, number in numbers.items():
                event += field(4, field(1, stats.setdefault(stat, len(stats) + 1)) + field(4, number))
            line += field(4, event)
        plane += field(3, line)
    for number, names in (4, events), (5, stats):
        for name, id in names.items():
            plane += field(number, field(1, id) + field(2, field(1, id) + field(2, name)))
    return field(1, plane) + field(4, 'elsewhere')


TENSORFLOWS = {
    'python': [
        ('train', 0, 100, {'_r': 1, 'step_num': 3}),
        ('IteratorGetNext:IteratorGetNext', 5, 25, {}),
        ('FunctionRun', 30, 60, {'_pt': 6, '_p': 77}),
        ('a/MatMul:MatMul', 40, 10, {}),
        ('train', 100, 300, {'_r': 1, 'step_num': 4}),
        ('a/MatMul:MatMul', 110, 50, {}),
    ],
    'pool': [
        ('ExecutorState::Process', 42, 40, {'_ct': 6, '_c': 77}),
        ('b/Relu:Relu', 45, 15, {}),
        ('c/Relu:Relu', 200, 15, {}),  # of no step
    ],
}


def check_tensorflows_form(folder):
    (folder / 'mine.xplane.pb').write_bytes(xspace(TENSORFLOWS))
    got = report(folder / 'mine.xplane.pb')
    expect('host', got['host'], 'elsewhere')
    expect('length', got['length_ns'], 401_000)
    expect('steps', [(s['name'], s['number'], s['length_ns'], s['input_ns'], s['compute_ns'], s['host_ns'], s['idle_ns'])
                     for s in got['steps']],
           [('train', 3, 100_000, 25_000, 20_000, 40_000, 15_000), ('train', 4, 300_000, 0, 50_000, 0, 250_000)])
    expect('ops', [(o['name'], o['type'], o['calls'], o['total_ns'], o['share_of_peak']) for o in got['ops']],
           [('a/MatMul', 'MatMul', 2, 60_000, None), ('b/Relu', 'Relu', 1, 15_000, None),
            ('c/Relu', 'Relu', 1, 15_000, None)])
    expect('no peak is made up', got['peak'], None)
    expect('memory', got['memory'], None)
    status, out, err = run(folder / 'mine.xplane.pb', '--top', 1)
    expect('text', (status, err), (0, ''))
    expect_text('text', out, r'(?m)^1 of 3 ops, by own time \(90.0 us in all\)$')
    expect_text('text', out, r'(?m)^  a/MatMul MatMul +2 +60.0 us +60.0 us +66.7%$')
    expect_text('text', out, r'(?m)^  input +12.5 us +0 ns +25.0 us +6.2%$')


def trace(begin, **more):
    return dict({'traceEvents': [
        {'ph': 'M', 'pid': 1, 'name': 'process_name', 'args': {'name': '/host:CPU'}},
        {'ph': 'M', 'pid': 1, 'tid': 9, 'name': 'thread_name', 'args': {'name': 'tf_Compute'}},
        {'ph': 'X', 'pid': 1, 'tid': 9, 'ts': begin, 'dur': 10.5, 'name': 'x/Mul:Mul', 'args': {'group_id': '0'}},
        {},
    ]}, **more)


def check_logs(folder):
    def profile_of(run, time):
        path = folder / run / 'plugins/profile' / time
        path.mkdir(parents=True)
        return path / 'host1.trace.json.gz'

    older = profile_of('train', '2026_01_02_03_04_05')
    newer = profile_of('eval', '2026_01_02_03_04_06')
    older.write_bytes(gzip.compress(json.dumps(trace(1)).encode()))
    newer.write_bytes(gzip.compress(json.dumps(trace(2)).encode()))
    status, out, err = run(folder)
    expect('logs', (status, err), (0, ''))
    expect('logs: the newest', out.splitlines()[0], str(newer))
    expect('logs: the others', out.splitlines()[-2:], ['Older profiles', f'  {older}'])
    expect('logs: length', report(folder)['length_ns'], 12_500)
    expect('logs: one run', report(folder / 'train')['length_ns'], 11_500)
    (folder / 'plain.json').write_text(json.dumps(trace(0)['traceEvents']))
    expect('a bare list', [o['name'] for o in report(folder / 'plain.json')['ops']], ['x/Mul'])


def check_errors(folder):
    def fails(path, pattern):
        status, out, err = run(path)
        expect(f'{path}: status', (status, out), (1, ''))
        expect(f'{path}: lines', err.count('\n'), 1)
        expect_text(path, err, pattern)

    whole = xspace(TENSORFLOWS)
    (folder / 'cut.xplane.pb').write_bytes(whole[:len(whole) // 2])
    fails(folder / 'cut.xplane.pb', r'^runnel: \[profile\] .*/cut\.xplane\.pb: at byte 0: no XSpace message, or a damaged one')
    (folder / 'bad.json').write_text('{"traceEvents": [{"ph": "X", "ts": }]}')
    fails(folder / 'bad.json', r'/bad\.json: at byte 35: no JSON')
    (folder / 'other.json').write_text('{"a": 1}')
    fails(folder / 'other.json', r"other\.json: the JSON has no list 'traceEvents'")
    (folder / 'damaged.trace.json.gz').write_bytes(gzip.compress(b'[]' * 1000)[:-9])
    fails(folder / 'damaged.trace.json.gz', r'damaged\.trace\.json\.gz')
    (folder / 'empty.pb').write_bytes(b'')
    fails(folder / 'empty.pb', r'empty\.pb: the file is empty')
    (folder / 'none').mkdir()
    fails(folder / 'none', r'none: no profile is there')
    fails(folder / 'missing.pb', r'missing\.pb')


def check_fixtures(shared):
    got = report(shared / 'tf215/events/profile')
    expected = json.loads((shared / 'tf215/events/profile/expected.json').read_text())
    expect('fixture: events', got['events'], sum(count for _, count in expected['planes'][0]['lines']))
    expect('fixture: steps', [(s['name'], s['number']) for s in got['steps']], [('train', i) for i in range(5)])
    got = report(shared / 'clsandoval_mlbook/my_logs')
    expect('Keras: steps', len(got['steps']), 1)
    expect('Keras: wait', got['steps'][0]['input_ns'] > 0, True)
    expect('Keras: top op', got['ops'][0]['name'], 'FlushSummaryWriter')
    expect_text('Keras: words', got['input']['words'], 'The steps wait for input')


with tempfile.TemporaryDirectory() as work:
    for name, check in (('form', check_tensorflows_form), ('logs', check_logs), ('errors', check_errors)):
        (pathlib.Path(work) / name).mkdir()
        check(pathlib.Path(work) / name)
shared = fixtures()
if shared is None:
    print('the folder with profiles of TensorFlow is missing (RUNNEL_FIXTURES names it): not compared')
else:
    check_fixtures(shared)
for fault in faults:
    print('FAILED:', fault)
print('ok' if not faults else f'{len(faults)} faults')
sys.exit(bool(faults))
