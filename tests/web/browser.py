"""A browser without a screen, driven through the pipe of its debugging protocol: no package is needed for it."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ('chromium-headless-shell', '/usr/lib/chromium/headless_shell', 'chromium', 'google-chrome')


def program():
    for name in PROGRAMS:
        found = shutil.which(name)
        if found:
            return found
    return None


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp()
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()

        def descriptors():
            os.dup2(down_read, 63)
            os.dup2(up_write, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(
            [program(), '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--remote-debugging-pipe',
             '--no-first-run', '--disable-extensions', f'--user-data-dir={self.folder}', '--window-size=1280,900', 'about:blank'],
            preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down_read)
        os.close(up_write)
        self.buffer = b''
        self.number = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, deadline):
        while b'\0' not in self.buffer:
            ready, _, _ = select.select([self.up], [], [], max(0, deadline - time.time()))
            if not ready:
                raise TimeoutError('the browser does not answer')
            got = os.read(self.up, 1 << 20)
            if not got:
                raise RuntimeError('the browser has ended')
            self.buffer += got
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def call(self, method, session=None, timeout=60, **parameters):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': parameters}
        if session:
            message['sessionId'] = session
        os.write(self.down, json.dumps(message).encode() + b'\0')
        deadline = time.time() + timeout
        while True:
            answer = self.read(deadline)
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer['result']
            if 'method' in answer:
                self.events.append(answer)

    def open(self, url, width=1280, height=900):
        return Page(self, url, width, height)


class Page:
    def __init__(self, browser, url, width, height):
        self.browser = browser
        target = browser.call('Target.createTarget', url='about:blank')['targetId']
        self.session = browser.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')
        self.size(width, height)
        self.call('Page.navigate', url=url)

    def call(self, method, **parameters):
        return self.browser.call(method, session=self.session, **parameters)

    def size(self, width, height, scale=1):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def run(self, expression):
        """The value of an expression of JavaScript; promises are waited for."""
        result = self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(f'{expression}: {result["exceptionDetails"]}')
        return result['result'].get('value')

    def wait(self, expression, seconds=30):
        deadline = time.time() + seconds
        while True:
            value = self.run(expression)
            if value:
                return value
            if time.time() > deadline:
                raise TimeoutError(f'never true: {expression}')
            time.sleep(0.1)

    def mouse(self, kind, x, y, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def click(self, x, y, count=1):
        for n in range(1, count + 1):
            self.mouse('mousePressed', x, y, button='left', clickCount=n)
            self.mouse('mouseReleased', x, y, button='left', clickCount=n)

    def drag(self, x0, y0, x1, y1):
        self.mouse('mousePressed', x0, y0, button='left', clickCount=1)
        for i in range(1, 6):
            self.mouse('mouseMoved', x0 + (x1 - x0) * i / 5, y0 + (y1 - y0) * i / 5, button='left', buttons=1)
        self.mouse('mouseReleased', x1, y1, button='left', clickCount=1)

    def key(self, key, **more):
        for kind in ('keyDown', 'keyUp'):
            text = {'text': key} if kind == 'keyDown' and len(key) == 1 else {}
            self.call('Input.dispatchKeyEvent', type=kind, key=key, **text, **more)

    def picture(self, path):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.call('Page.captureScreenshot')['data']))

    def problems(self):
        """What the page complained of: errors, refused requests, requests to other machines."""
        self.run('1')
        found = []
        for event in self.browser.events:
            if event.get('sessionId') != self.session:
                continue
            method, given = event['method'], event['params']
            if method == 'Runtime.exceptionThrown':
                details = given['exceptionDetails']
                found.append(details.get('exception', {}).get('description', details['text']))
            elif method == 'Log.entryAdded' and given['entry']['level'] == 'error':
                found.append(given['entry']['text'] + ' ' + given['entry'].get('url', ''))
            elif method == 'Network.requestWillBeSent':
                url = given['request']['url']
                if not url.startswith(('http://localhost:', 'about:', 'blob:', 'data:')):
                    found.append(f'a request to {url}')
        return found
