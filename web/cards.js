// Cards in groups that open and close. A card asks for its values when it is seen, and again when they have changed
// and it is still seen.
import {el, swatch} from './dom.js';
import {store} from './store.js';

/**
 * @typedef {import('./store.js').Series} Series
 * @typedef {{node: HTMLElement, show: (series: Series[]) => void, load: () => Promise<void>, redraw?: () => void,
 *   destroy?: () => void}} Card
 * @typedef {{group: string, cards: {key: string, series: Series[]}[]}} Group
 */

const ASK_EVERY = 900;  // milliseconds, of one card

export class CardList {
  /**
   * @param {HTMLElement} box
   * @param {{plan: () => Group[], make: (key: string, series: Series[]) => Card, empty: () => HTMLElement}} kind
   */
  constructor(box, kind) {
    this.box = box;
    this.kind = kind;
    /** @type {Map<string, {card: Card, series: Series[], seen: boolean, stale: boolean, busy: boolean, asked: number, timer: number}>} */
    this.cards = new Map();
    /** @type {Map<string, HTMLDetailsElement>} */
    this.groups = new Map();
    this.seer = new IntersectionObserver(entries => {
      for (const entry of entries) {
        const state = this.cards.get(/** @type {HTMLElement} */ (entry.target).dataset.key || '');
        if (!state) continue;
        state.seen = entry.isIntersecting;
        this.refresh(state);
      }
    }, {rootMargin: '150px'});
    this.arrange();
  }

  destroy() {
    this.seer.disconnect();
    for (const state of this.cards.values()) {
      clearTimeout(state.timer);
      state.card.destroy?.();
    }
  }

  /** @param {{series: Set<number>, shape: boolean}} change */
  update(change) {
    if (change.shape) {
      this.arrange();
      for (const state of this.cards.values()) state.card.redraw?.();
    }
    for (const state of this.cards.values()) {
      if (state.series.some(series => change.series.has(series.id))) {
        state.series = state.series.map(series => store.series.get(series.id) || series);
        state.card.show(state.series);
        state.stale = true;
        this.refresh(state);
      }
    }
  }

  /** Puts groups and cards where they belong, keeping those that are there. */
  arrange() {
    const plan = this.kind.plan();
    const wanted = new Set(plan.flatMap(group => group.cards.map(card => card.key)));
    for (const [key, state] of this.cards) {
      if (wanted.has(key)) continue;
      this.seer.unobserve(state.card.node);
      clearTimeout(state.timer);
      state.card.destroy?.();
      state.card.node.remove();
      this.cards.delete(key);
    }
    const names = new Set(plan.map(group => group.group));
    for (const [name, node] of this.groups) {
      if (names.has(name)) continue;
      node.remove();
      this.groups.delete(name);
    }
    this.box.querySelector('.empty')?.remove();
    if (plan.length === 0) this.box.append(this.kind.empty());
    let place = 0;
    for (const {group, cards} of plan) {
      const node = this.groupNode(group, cards.length);
      if (this.box.children[place] !== node) this.box.insertBefore(node, this.box.children[place] || null);
      place++;
      const inside = /** @type {HTMLElement} */ (node.lastElementChild);
      cards.forEach(({key, series}, i) => {
        let state = this.cards.get(key);
        if (!state) {
          const card = this.kind.make(key, series);
          card.node.dataset.key = key;
          state = {card, series, seen: false, stale: true, busy: false, asked: 0, timer: 0};
          this.cards.set(key, state);
          card.show(series);
          this.seer.observe(card.node);
        } else if (ids(state.series) !== ids(series)) {
          state.series = series;
          state.card.show(series);
          state.stale = true;
          this.refresh(state);
        }
        if (inside.children[i] !== state.card.node) inside.insertBefore(state.card.node, inside.children[i] || null);
      });
    }
  }

  /** @param {string} name @param {number} count */
  groupNode(name, count) {
    let node = this.groups.get(name);
    if (!node) {
      node = /** @type {HTMLDetailsElement} */ (el('details', {class: 'group', open: true},
        el('summary', {}, el('span', {text: name}), el('span', {class: 'count'})), el('div', {class: 'cards'})));
      this.groups.set(name, node);
    }
    const label = node.querySelector('summary .count');
    if (label) label.textContent = String(count);
    return node;
  }

  /** @param {any} state */
  refresh(state) {
    if (!state.seen || !state.stale || state.busy || state.timer) return;
    const wait = state.asked + ASK_EVERY - Date.now();
    if (wait > 0) {
      state.timer = setTimeout(() => { state.timer = 0; this.refresh(state); }, wait);
      return;
    }
    state.stale = false;
    state.busy = true;
    state.asked = Date.now();
    state.card.load().catch((/** @type {Error} */ e) => showProblem(state.card.node, e)).finally(() => {
      state.busy = false;
      this.refresh(state);
    });
  }
}

/** @param {Series[]} series */
function ids(series) { return series.map(one => one.id).join(); }

/** @param {HTMLElement} node @param {Error | null} problem */
export function showProblem(node, problem) {
  node.querySelector(':scope > .note.bad')?.remove();
  if (problem) node.append(el('p', {class: 'note bad', text: problem.message}));
}

/**
 * The group of a tag: its first part. Tags of one part share a group.
 * @param {string} tag
 */
export function prefix(tag) {
  const slash = tag.indexOf('/');
  return slash > 0 ? tag.slice(0, slash) : 'Tags';
}

/**
 * Cards of one tag and run each, the runs of a tag side by side.
 * @param {string[]} plugins
 * @returns {Group[]}
 */
export function planByTag(plugins) {
  /** @type {Map<string, Group>} */
  const groups = new Map();
  for (const [tag, list] of store.byTag(plugins)) {
    const group = groups.get(prefix(tag)) || {group: prefix(tag), cards: []};
    groups.set(group.group, group);
    group.cards.push(...list.map(series => ({key: String(series.id), series: [series]})));
  }
  return [...groups.values()];
}

/**
 * What a tab says that has nothing to show.
 * @param {string} what
 * @param {string} how
 */
export function emptyTab(what, how) {
  const filtered = store.view.tags || store.view.runs || store.view.off;
  const folders = store.summary.logdirs.map((/** @type {any} */ dir) => dir.path).join(', ');
  return el('div', {class: 'empty'}, el('h2', {text: store.loading ? 'Reading the files…' : `No ${what} here yet`}),
    el('p', {text: filtered && store.series.size > 0 ? 'Filters of runs or tags may hide them.' :
      `The board looks at ${folders || 'the log folder'} and shows what comes, without a reload.`}),
    el('p', {text: 'A program writes them so:'}), el('pre', {text: how}));
}

/** The field that filters tags. */
export function tagFilter() {
  const field = el('input', {type: 'search', id: 'tag-filter', placeholder: 'Filter tags (regular expression)',
    'aria-label': 'Filter tags', value: store.view.tags, size: 30});
  field.value = store.view.tags;
  field.addEventListener('input', () => store.choose({tags: field.value}));
  return field;
}

/**
 * The tag of a card, and the run with its colour.
 * @param {Series} series
 */
export function cardHeading(series) {
  return el('div', {class: 'heading'}, el('h3', {text: series.tag, title: [series.tag, series.description].filter(Boolean).join('\n')}),
    el('div', {class: 'run'}, swatch(store.colourOf(series.run)), el('span', {class: 'name', text: series.run, title: series.run})));
}
