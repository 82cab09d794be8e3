// The list of runs: a filter, a box for each to show or hide it, and what the server says of the files.
import {byId, el, pattern, swatch} from './dom.js';
import {bytes, whole} from './format.js';
import {store} from './store.js';

const MOST = 1000;

export function mountRuns() {
  const aside = byId('runs');
  const filter = el('input', {type: 'search', id: 'run-filter', placeholder: 'Filter runs (regular expression)', 'aria-label': 'Filter runs'});
  filter.value = store.view.runs;
  filter.addEventListener('input', () => {
    filter.classList.toggle('bad', pattern(filter.value) === null);
    store.choose({runs: filter.value});
  });
  const all = el('label', {}, el('input', {type: 'checkbox', 'aria-label': 'Show all runs', onchange: toggleAll}), el('span', {text: 'all'}));
  const list = el('ul');
  const foot = el('div', {class: 'foot'});
  aside.append(el('div', {class: 'head'}, filter, all), list, foot);

  function toggleAll() {
    const listed = store.listedRuns(), shown = store.shownRuns();
    const off = new Set(store.list('off'));
    for (const run of listed) shown.size === listed.length ? off.add(run) : off.delete(run);
    store.chooseList('off', [...off]);
  }

  /** @param {string} run @param {boolean} show */
  function toggle(run, show) {
    const off = new Set(store.list('off'));
    show ? off.delete(run) : off.add(run);
    store.chooseList('off', [...off]);
  }

  let drawn = '';
  function draw() {
    const listed = store.listedRuns(), shown = store.shownRuns();
    const box = all.querySelector('input');
    box.checked = shown.size === listed.length && listed.length > 0;
    box.indeterminate = shown.size > 0 && shown.size < listed.length;
    all.querySelector('span').textContent = `${whole(shown.size)} of ${whole(store.runs.length)} runs`;
    const state = JSON.stringify([listed, [...shown]]);
    if (state !== drawn) {
      drawn = state;
      list.replaceChildren(...listed.slice(0, MOST).map(run => {
        const mark = el('input', {type: 'checkbox', checked: shown.has(run), onchange: () => toggle(run, mark.checked)});
        return el('li', {}, el('label', {title: run}, mark, swatch(store.colourOf(run)), el('span', {class: 'name', text: run})),
          el('button', {class: 'only', text: 'only', 'aria-label': `only ${run}`,
            onclick: () => store.chooseList('off', listed.filter(other => other !== run))}));
      }));
      if (listed.length > MOST) list.append(el('li', {class: 'note', text: `and ${whole(listed.length - MOST)} more: use the filter`}));
    }
    const {files, bytes: size, logdirs, complaints, version} = store.summary;
    foot.replaceChildren(el('div', {text: logdirs.map((/** @type {any} */ dir) => dir.name ? `${dir.name}: ${dir.path}` : dir.path).join(', ')}),
      el('div', {text: `${whole(files)} files, ${bytes(size)}; Runnel ${version}`}),
      ...complaints.slice(0, 5).map((/** @type {string} */ text) => el('div', {class: 'bad', text})));
  }
  store.listeners.add(draw);
  draw();
}
