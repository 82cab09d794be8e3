// The page: tabs, keys, and news from the server.
import {ask, follow} from './api.js';
import {byId, el, throttle} from './dom.js';
import {bytes} from './format.js';
import {graphs} from './graphs.js';
import {histograms} from './histograms.js';
import {hparams} from './hparams.js';
import {audio, images} from './media.js';
import {overview} from './overview.js';
import {prCurves} from './pr_curves.js';
import {mountRuns} from './runs.js';
import {scalars} from './scalars.js';
import {store} from './store.js';
import {texts} from './texts.js';

const TABS = [overview, scalars, images, audio, histograms, texts, graphs, hparams, prCurves];
const KEYS = [['/', 'find tags'], ['1 … 9', 'tabs'], ['r', 'show or hide the runs'], ['d', 'light or dark'],
  ['+ − ← → 0', 'zoom, move and reset the chart or graph that has the focus'], ['drag, Shift+drag, Ctrl+wheel', 'zoom in, pan, zoom a chart; double click: all of it'],
  ['Esc', 'leave a field'], ['?', 'this list']];

/** @type {{update: (change: any) => void, destroy: () => void} | null} */
let mounted = null;
let mountedName = '';

function currentTab() { return TABS.find(tab => tab.name === store.view.tab) || TABS[0]; }

function showTab() {
  const tab = currentTab();
  if (mountedName === tab.name) return;
  mounted?.destroy();
  mountedName = tab.name;
  byId('main').replaceChildren();
  byId('main').scrollTop = 0;
  mounted = tab.mount(byId('main'));
  document.title = `${tab.title} · Runnel board`;
}

function drawTabs() {
  byId('tabs').replaceChildren(...TABS.map((tab, i) => {
    const count = tab.plugins.length > 0 ? store.has(tab.plugins) : 0;
    return el('button', {role: 'tab', id: `tab-${tab.name}`, 'aria-selected': String(tab === currentTab()), title: `Key ${i + 1}`,
      onclick: () => store.choose({tab: tab.name})}, tab.title, count > 0 ? el('span', {class: 'count', text: String(count)}) : null);
  }));
}

/** @param {string} theme */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem('theme', theme);
  } catch { /* the browser keeps nothing: the choice holds for this page */ }
  mounted?.update({series: new Set(), shape: true});
}

function firstTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem('theme');
  } catch { /* as above */ }
  return kept || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

function otherTheme() { setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'); }

function toggleRuns() {
  const hidden = byId('runs').classList.toggle('hidden');
  byId('menu').setAttribute('aria-expanded', String(!hidden));
}

function showKeys() {
  const dialog = byId('keys');
  dialog.replaceChildren(el('h2', {text: 'Keys'}), el('dl', {}, ...KEYS.flatMap(([key, text]) =>
    [el('dt', {}, el('kbd', {text: key})), el('dd', {text})])), el('p', {}, el('button', {text: 'Close', onclick: () => dialog.close()})));
  dialog.showModal();
}

document.addEventListener('keydown', event => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.key === 'Escape') target.blur();
  const types = target instanceof HTMLInputElement && !['checkbox', 'range'].includes(target.type);
  if (types || target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/') (byId('tag-filter') || byId('run-filter')).focus();
  else if (event.key === '?') showKeys();
  else if (event.key === 'd') otherTheme();
  else if (event.key === 'r') toggleRuns();
  else if (/^[1-9]$/.test(event.key) && TABS[Number(event.key) - 1]) store.choose({tab: TABS[Number(event.key) - 1].name});
  else return;
  event.preventDefault();
});

/** @param {string} text @param {boolean} [bad] */
function say(text, bad = false) {
  byId('status').textContent = text;
  byId('status').classList.toggle('bad', bad);
}

let gone = false, asking = false, again = false;
/** One question at a time; news that come meanwhile are one more. */
async function update() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  try {
    await store.update();
    const {bytes: size, bytes_read: read} = store.summary;
    say(store.loading && size > 0 ? `reading ${bytes(read)} of ${bytes(size)}` : '');
  } catch (e) {
    if (!gone) say(/** @type {Error} */ (e).message, true);
  }
  asking = false;
  if (again) {
    again = false;
    soon();
  }
}
const soon = throttle(update, 300);

setTheme(firstTheme());
if (innerWidth <= 720) toggleRuns();
byId('menu').addEventListener('click', toggleRuns);
byId('theme').addEventListener('click', otherTheme);
byId('help').addEventListener('click', showKeys);
byId('refresh').addEventListener('click', () => ask('/api/refresh').then(soon, e => say(e.message, true)));
mountRuns();
store.listeners.add(change => {
  drawTabs();
  showTab();
  mounted?.update(change);
});
addEventListener('hashchange', () => {
  store.readAddress();
  mountedName = '';
  store.tell(new Set(), true);
});
drawTabs();
update().then(showTab);
follow(soon, lost => {
  if (lost) {
    say('the server does not answer; waiting for it', true);
  } else if (gone) {
    store.generation = 0;  // perhaps another one, with numbers of its own
    soon();
  }
  gone = lost;
});
