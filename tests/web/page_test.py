#!/usr/bin/env python3
"""usage: page_test.py RUNNEL ROOT [PICTURES]    the board's page in a browser: what is in it, what is drawn, what a user does.

Pictures of every tab are put into the folder PICTURES, where one is given.
"""
import base64
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'tools'))
import browser
from board_program import Board, fixtures

RUNNEL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
PICTURES = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
HOSTILE = '<img src=x onerror="window.hacked=1">'
faults = []


def expect(what, got, wanted):
    if got != wanted:
        faults.append(f'{what}: {got!r}, expected {wanted!r}')


def check(what, true):
    if not true:
        faults.append(what)


def picture(page, name):
    if PICTURES:
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.picture(PICTURES / f'{name}.png')


# Event files, byte by byte: crc32c by its table, protobuf by hand.
def crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = crc_table()


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def record(data):
    length = struct.pack('<Q', len(data))
    return length + struct.pack('<I', masked_crc(length)) + data + struct.pack('<I', masked_crc(data))


def varint(n):
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(step, wall, tag, plugin, tensor):
    value = field(1, tag.encode()) + field(8, tensor) + field(9, field(1, field(1, plugin.encode())))
    return record(b'\x09' + struct.pack('<d', wall) + b'\x10' + varint(step) + field(5, field(1, value)))


def scalar(step, value, tag='loss', wall=None):
    return event(step, time.time() if wall is None else wall, tag, 'scalars', b'\x08\x01\x12\x00' + field(4, struct.pack('<f', value)))


def texts(values):
    return b'\x08\x07' + field(2, field(2, b'\x08' + varint(len(values)))) + b''.join(field(8, v) for v in values)


def png(width, height, colour):
    def chunk(name, data):
        return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    rows = (b'\0' + bytes(colour) * width) * height
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def image(step, colour):
    return event(step, time.time(), 'picture', 'images', texts([b'4', b'3', png(4, 3, colour)]))


# What is drawn: how many points of a canvas are of a colour, and how many are drawn at all.
COUNT = '''(canvas, r, g, b) => {
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let same = 0, any = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 0) any++;
    if (data[i + 3] > 200 && Math.abs(data[i] - r) < 12 && Math.abs(data[i + 1] - g) < 12 && Math.abs(data[i + 2] - b) < 12) same++;
  }
  return [same, any];
}'''
SWATCH = "getComputedStyle([...document.querySelectorAll('#runs li')].find(li => li.textContent.startsWith(%r)).querySelector('.swatch')).backgroundColor"


def drawn(page, selector, run=None):
    colour = page.run(SWATCH % run)[4:-1] if run else '0, 0, 0'
    return page.run(f"({COUNT})(document.querySelector({selector!r}), {colour})")


def tab(page, name):
    page.run(f"document.getElementById('tab-{name}').click()")


def check_live(program, folder):
    log = folder / 'live'
    (log / 'a').mkdir(parents=True)
    (log / 'b').mkdir()
    with Board(program, '--logdir', log) as board:
        one = chromium.open(board.url + '#tab=scalars&smooth=0')
        two = chromium.open(board.url + '#tab=scalars&smooth=0', 420, 800)
        one.wait("document.querySelector('.empty')?.textContent.includes('summary::scalar')")
        picture(one, 'empty')
        with open(log / 'a' / 'events.out.tfevents.1.a', 'wb', buffering=0) as out:
            for step in range(50):
                out.write(scalar(step, 1 / (step + 1)) + scalar(step, step, HOSTILE))
            for page in (one, two):
                page.wait("document.querySelectorAll('.card').length === 2")
            chart = ".card[data-tag=loss] .chart canvas"
            one.wait(f"document.querySelector('{chart} + canvas').getAttribute('aria-label') === '1 lines: a'")
            one.wait(f"({COUNT})(document.querySelector('{chart}'), ...{SWATCH % 'a'}.slice(4, -1).split(','))[0] > 100")
            # A tag is a text, whatever it holds.
            expect('the hostile tag', one.run("[...document.querySelectorAll('.card h3')].map(h => h.textContent).sort()"), sorted(['loss', HOSTILE]))
            expect('no element of a tag', one.run("document.querySelectorAll('main img').length + (window.hacked || 0)"), 0)
            # A second run, and more steps: both pages show them without a reload.
            with open(log / 'b' / 'events.out.tfevents.1.b', 'wb', buffering=0) as other:
                for step in range(30):
                    other.write(scalar(step, 0.5))
            begin = time.time()
            for step in range(50, 80):
                out.write(scalar(step, 1 / (step + 1)))
            for page in (one, two):
                page.wait(f"document.querySelector('{chart} + canvas').getAttribute('aria-label') === '2 lines: a, b'")
            one.wait(f"({COUNT})(document.querySelector('{chart}'), ...{SWATCH % 'b'}.slice(4, -1).split(','))[0] > 100")
            check(f'two windows took {time.time() - begin:.1f} s to show news', time.time() - begin < 20)
            picture(one, 'live')
            picture(two, 'live_narrow')
        # The run is hidden and shown again; the address keeps what was chosen.
        one.run("[...document.querySelectorAll('#runs li')].find(li => li.textContent.startsWith('b')).querySelector('input').click()")
        one.wait(f"document.querySelector('{chart} + canvas').getAttribute('aria-label') === '1 lines: a'")
        check('the address says what is hidden', 'off=' in one.run('location.hash'))
        # Zoom by dragging asks for that part.
        box = one.run(f"(r => [r.left, r.top, r.width, r.height])(document.querySelector('{chart}').getBoundingClientRect())")
        one.drag(box[0] + box[2] * 0.4, box[1] + 60, box[0] + box[2] * 0.6, box[1] + 60)
        one.wait("performance.getEntriesByType('resource').some(e => e.name.includes('/api/lines') && e.name.includes('from='))")
        # A point under the pointer.
        one.mouse('mouseMoved', box[0] + box[2] * 0.5, box[1] + 80)
        one.wait("document.querySelector('#tip')?.textContent.includes('a')")
        picture(one, 'tip')
        # Deleted runs go.
        shutil.rmtree(log / 'b')
        two.wait("![...document.querySelectorAll('#runs li')].some(li => li.textContent.startsWith('b'))")
        one.run("document.getElementById('tag-filter').value = 'los.$'; document.getElementById('tag-filter').dispatchEvent(new Event('input'))")
        one.wait("document.querySelectorAll('.card').length === 1")
        for page, name in ((one, 'wide'), (two, 'narrow')):
            expect(f'problems of the {name} page', page.problems(), [])


def check_images(program, folder):
    log = folder / 'images'
    log.mkdir()
    (log / 'events.out.tfevents.1.a').write_bytes(b''.join(image(step, (step, 255 - step, 7)) for step in range(200)))
    with Board(program, '--logdir', log) as board:
        page = chromium.open(board.url + '#tab=images')
        page.wait("document.querySelector('.pictures img')?.naturalWidth === 4")
        pixel = '''(async () => { const i = document.querySelector('.pictures img'); await i.decode(); const c = document.createElement('canvas');
          c.width = 4; c.height = 3; const g = c.getContext('2d'); g.drawImage(i, 0, 0); return [...g.getImageData(2, 1, 1, 1).data]; })()'''
        expect('the newest image', page.run(pixel), [199, 56, 7, 255])
        for step in (0, 123):
            page.run(f"(r => {{ r.value = {step}; r.dispatchEvent(new Event('input')); }})(document.querySelector('.slider input'))")
            page.wait(f"document.querySelector('.slider span').textContent.startsWith('step {step} ')")
            deadline = time.time() + 10
            while page.run(pixel) != [step, 255 - step, 7, 255] and time.time() < deadline:
                time.sleep(0.1)
            expect(f'the image of step {step}', page.run(pixel), [step, 255 - step, 7, 255])
        picture(page, 'images')
        expect('problems of images', page.problems(), [])


def check_fixtures(program):
    with Board(program, '--logdir', fixtures(ROOT)) as board:
        page = chromium.open(board.url, 1280, 900)
        page.wait("document.querySelectorAll('.card').length > 3 && !document.getElementById('status').textContent")
        picture(page, 'overview')
        tab(page, 'scalars')
        page.wait("document.querySelectorAll('.card canvas').length > 10")
        time.sleep(1.5)
        picture(page, 'scalars')
        page.key('d')
        time.sleep(0.5)
        picture(page, 'scalars_dark')
        page.key('d')
        for name, ready in (('audio', "document.querySelectorAll('audio').length === 7 && [...document.querySelectorAll('audio')].every(a => a.readyState >= 1 || a.nextSibling.textContent.includes('cannot play'))"),
                            ('histograms', "document.querySelectorAll('.chart canvas').length > 3"),
                            ('text', "document.querySelector('.markdown strong')?.textContent === 'hello'"),
                            ('hparams', "document.querySelectorAll('table.data tr').length > 5"),
                            ('pr_curves', "document.querySelectorAll('.card').length === 2")):
            tab(page, name)
            try:
                page.wait(ready)
            except TimeoutError as e:
                faults.append(f'{name}: {e}')
            time.sleep(1)
            picture(page, name)
        tab(page, 'audio')
        page.wait("[...document.querySelectorAll('.card')].find(c => c.textContent.includes('snd/a440'))?.querySelector('audio')?.readyState >= 1")
        tab(page, 'histograms')
        page.wait("document.querySelectorAll('.chart canvas').length > 3")
        page.wait(f"({COUNT})(document.querySelector('.chart canvas'), 0, 0, 0)[1] > 1000")
        page.run("(s => { s.value = 'bands'; s.dispatchEvent(new Event('change')); })(document.querySelector('.toolbar select'))")
        page.wait(f"({COUNT})(document.querySelector('.chart canvas'), 0, 0, 0)[1] > 20000")
        picture(page, 'bands')
        check_graph(page)
        page.size(390, 800)
        tab(page, 'scalars')
        time.sleep(1.5)
        picture(page, 'narrow')
        expect('problems with the fixtures', page.problems(), [])


def check_graph(page):
    tab(page, 'graphs')
    page.wait("document.querySelector('.graph canvas') && /nodes/.test(document.querySelector('.toolbar .note')?.textContent)")
    choose = '''(s => { const o = [...s.options].find(o => o.text.includes(%r)); s.value = o.value; s.dispatchEvent(new Event('change')); })(document.querySelector('main select'))'''
    page.run(choose % 'iris_model: __run_graph__')
    page.wait("/^[3-9][0-9][0-9] nodes|^1,|^[12][0-9][0-9] nodes/.test(document.querySelector('.toolbar .note').textContent)")
    time.sleep(0.5)
    picture(page, 'graph')
    before = drawn(page, '.graph canvas')[1]
    check('the graph is drawn', before > 2000)
    # Finding an op opens the scopes around it.
    page.run('''(s => { s.value = 'dnn/hiddenlayer_0/kernel'; s.dispatchEvent(new Event('input')); })(document.querySelector('main input[type=search]'))''')
    page.wait("document.querySelectorAll('.details .linklike').length > 0")
    page.run("document.querySelector('.details .linklike').click()")
    page.wait("document.querySelector('.details dd')?.textContent.includes('hiddenlayer_0/kernel')")
    time.sleep(0.3)
    picture(page, 'graph_open')
    page.run(choose % 'Keras model')
    page.wait("document.querySelector('.toolbar .note').textContent.length > 0")
    time.sleep(0.5)
    picture(page, 'graph_keras')


if browser.program() is None:
    print('skipped: there is no browser (scripts/setup test)')
    sys.exit(77)
with browser.Browser() as chromium, tempfile.TemporaryDirectory() as name:
    check_live(RUNNEL, pathlib.Path(name))
    check_images(RUNNEL, pathlib.Path(name))
    if fixtures(ROOT) is None:
        print('the fixtures are missing: only a part was tested')
    else:
        check_fixtures(RUNNEL)
print(*faults, sep='\n')
sys.exit(1 if faults else 0)
