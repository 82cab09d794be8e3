#!/usr/bin/env python3
"""usage: records_test.py RUNNEL ROOT    `runnel records` against the tables of TensorFlow's files, and on files made here.

Everything expected is worked out without Runnel: from the tables, or with struct and zlib.
"""
import csv
import hashlib
import json
import pathlib
import re
import struct
import sys
import tempfile
import zlib

from runnel_program import expect, faults, fixtures, run_program


def run(*arguments):
    return run_program('records', *arguments)


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def framed(payload):
    length = struct.pack('<Q', len(payload))
    return length + struct.pack('<I', masked_crc(length)) + payload + struct.pack('<I', masked_crc(payload))


def stats(path, *more):
    status, out, err = run('stats', path, '--json', *more)
    return status, json.loads(out), err


def check_table(folder):
    rows = list(csv.DictReader(open(folder / 'EXPECTED_tfrecord.tsv'), delimiter='\t', quoting=csv.QUOTE_NONE))
    for row in rows:
        status, found, err = stats(folder / row['file'])
        name = row['file']
        expect(f'{name}: status', (status, err), (0, ''))
        expect(f'{name}: records', found['records'], int(row['records']))
        expect(f'{name}: bytes', found['bytes'], int(row['uncompressed_bytes']))
        expect(f'{name}: sha256', found['payload_sha256'], row['sha256_of_concatenated_payloads'])
        expect(f'{name}: compression', found['compression'], row['compression'].split('(')[0])
        expect(f'{name}: kinds', found['kinds'], eval(row['kinds'], {}))  # a Python literal
        expect(f'{name}: verify', run('verify', folder / name)[0], 0)
    return len(rows)


def check_damaged(folder):
    count = 0
    for row in csv.DictReader(open(folder / 'DERIVED_EXPECT.tsv'), delimiter='\t', quoting=csv.QUOTE_NONE):
        name, wanted = row['file'], row['expected']
        path = folder / name
        if name.startswith('derived/zlib/'):
            status, found, _ = stats(path)
            expect(f'{name}: status', status, 0)
            expect(f'{name}: records', found['records'], int(wanted.split()[0]))
            expect(f'{name}: compression', found['compression'], 'ZLIB' if name.endswith('zz') else 'GZIP')
            if name.endswith('zz'):
                expect(f'{name} as GZIP', run('verify', path, '--compression', 'GZIP')[0], 1)
        elif name.startswith('derived/tfrecord/') or name.startswith('derived/events/'):
            status, found, err = stats(path)
            records = int(re.match(r'\d+', wanted)[0])
            expect(f'{name}: records', found['records'], records)
            clean = 'clean end' in wanted
            expect(f'{name}: status', status, 0 if clean else 1)
            expect(f'{name}: error', 'error' in found, not clean)
            if not clean:
                expect(f'{name}: code', found['error']['code'], 'DATA_LOSS')
                expect(f'{name}: record', found['error']['record'], records)
                if offset := re.search(r' at (\d+)', wanted):
                    expect(f'{name}: offset', found['error']['offset'], int(offset[1]))
                expect(f'{name}: message', 'runnel: ' in err and str(path) in err, True)
        else:
            continue
        count += 1
    return count


def check_made_here(folder):
    payloads = [b'', b'plain text\n', bytes(range(256)) * 40]
    data = b''.join(map(framed, payloads))
    plain, gz, zz = folder / 'plain', folder / 'gz', folder / 'zz'
    plain.write_bytes(data)
    packer = zlib.compressobj(wbits=31)
    gz.write_bytes(packer.compress(data) + packer.flush())
    zz.write_bytes(zlib.compress(data))
    for path, compression in (plain, 'none'), (gz, 'GZIP'), (zz, 'ZLIB'):
        status, found, _ = stats(path)
        expect('made: status', status, 0)
        expect('made: sha256', found['payload_sha256'], hashlib.sha256(b''.join(payloads)).hexdigest())
        expect('made: compression', found['compression'], compression)
        expect('made: raw', run('cat', path, '--raw')[1], b''.join(payloads))
    lines = run('cat', plain, '--json', '--skip', '1', '--limit', '1')[1].splitlines()
    expect('made: cat', [json.loads(line) for line in lines],
           [{'record': 1, 'offset': 16, 'bytes': 11, 'text': 'plain text\\n'}])
    # The index, read back with struct.
    status, out, _ = run('index', plain, '--json')
    index = (folder / 'plain.index').read_bytes()
    expect('index: status', (status, json.loads(out)['records']), (0, 3))
    expect('index: body', struct.unpack('<8sQQQQQ', index[:-4]), (b'RNLRIX01', len(data), 3, 0, 16, 43))
    expect('index: crc', struct.unpack('<I', index[-4:])[0], masked_crc(index[:-4]))
    expect('index of a compressed file', run('index', gz)[0], 1)
    expect('missing file', run('stats', folder / 'none')[0], 1)
    expect('no file named', run('stats')[0], 2)
    damaged = folder / 'damaged'
    damaged.write_bytes(data[:-1])
    status, out, err = run('cat', damaged, '--raw')
    expect('damaged: records first', (status, out), (1, payloads[0] + payloads[1]))
    expect('damaged: message', f'{damaged}: record 2 at byte 43' in err, True)
    status, out, _ = run('verify', plain, damaged, gz, '--json')
    expect('verify: goes on', (status, [json.loads(line)['ok'] for line in out.splitlines()]), (1, [True, False, True]))


with tempfile.TemporaryDirectory() as temporary:
    check_made_here(pathlib.Path(temporary))
shared = fixtures()
if shared is None:
    print("the folder with TensorFlow's files is missing (RUNNEL_FIXTURES names it): its part was left out")
else:
    print(f'{check_table(shared)} files of the table, {check_damaged(shared)} derived ones')
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
